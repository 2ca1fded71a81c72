#pragma once

namespace ddpsim {

/// While it lives, this thread, and threads it starts meanwhile for good, ask the scheduler for short
/// time slices: when something arrives for them they run at once, also where a kernel keeps every
/// core busy, instead of after milliseconds. Threads that move bytes use it; it takes no privilege,
/// and does nothing where the kernel is older than Linux 6.12.
/// Source: Linux, Documentation/scheduler/sched-eevdf.rst; sched_setattr(2), sched_runtime.
class ShortSlice {
 public:
  ShortSlice();
  ~ShortSlice();
  ShortSlice(const ShortSlice&) = delete;
  ShortSlice& operator=(const ShortSlice&) = delete;
};

}  // namespace ddpsim
