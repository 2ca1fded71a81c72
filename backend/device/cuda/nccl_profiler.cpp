// NCCL calls this from its own threads: an event begins (a collective, or one of its thread blocks,
// whose parent is the collective), changes state, ends. We keep the earliest start and the latest
// stop of each collective's blocks. The types below have the layout NCCL expects; of what a
// description holds only what we read is named.

#include "backend/device/cuda/nccl_profiler.hpp"

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <mutex>

namespace ddpsim {
namespace {

constexpr std::uint64_t collective_event = 1 << 1, kernel_event = 1 << 6;
constexpr int kernel_stopped = 22;

struct Description {
  std::uint64_t type;
  void* parent;
  int rank;
  union {
    struct {
      std::uint8_t channel;
      std::uint64_t timer;
    } kernel;
    std::uint64_t room[16];
  };
};
union StateArguments {
  struct {
    std::uint64_t timer;
  } kernel;
  std::uint64_t room[2];
};

/// One table of functions, as NCCL calls them; 0 is success.
struct Table {
  const char* name;
  int (*init)(void** context, std::uint64_t communicator, int* mask, const char* name, int nodes,
              int ranks, int rank, void (*log)());
  int (*start)(void* context, void** handle, Description* description);
  int (*stop)(void* handle);
  int (*state)(void* handle, int state, StateArguments* arguments);
  int (*finalize)(void* context);
};

struct Reported {
  CollectiveSpan span;
  int blocks = 0, ended = 0;
};
/// What a handle points to.
struct Event {
  Reported* collective = nullptr;
  bool is_block = false;
};

std::mutex mutex;
std::deque<Reported> collectives;  // nothing moves when it grows at its ends
std::deque<Event> events;
constexpr std::size_t most_events = 1 << 20;  // then nothing more is reported until they are taken

int init(void** context, std::uint64_t, int* mask, const char*, int, int, int, void (*)()) {
  *context = nullptr;
  *mask = static_cast<int>(collective_event | kernel_event);
  return 0;
}

int start(void*, void** handle, Description* description) {
  *handle = nullptr;
  const std::lock_guard lock(mutex);
  if (events.size() >= most_events) return 0;
  if (description->type == collective_event) {
    *handle = &events.emplace_back(Event{&collectives.emplace_back(), false});
  } else if (description->type == kernel_event && description->parent != nullptr) {
    Reported* collective = static_cast<Event*>(description->parent)->collective;
    const std::uint64_t timer = description->kernel.timer;
    collective->span.start =
        collective->blocks == 0 ? timer : std::min(collective->span.start, timer);
    ++collective->blocks;
    *handle = &events.emplace_back(Event{collective, true});
  }
  return 0;
}

int stop(void*) {
  return 0;
}

int state(void* handle, int state, StateArguments* arguments) {
  if (handle == nullptr || state != kernel_stopped) return 0;
  const std::lock_guard lock(mutex);
  const auto* event = static_cast<Event*>(handle);
  if (!event->is_block) return 0;
  event->collective->span.stop = std::max(event->collective->span.stop, arguments->kernel.timer);
  ++event->collective->ended;
  return 0;
}

int finalize(void*) {
  return 0;
}

}  // namespace

// NCCL finds it by this name.
extern "C" __attribute__((visibility("default"))) Table ncclProfiler_v5;
Table ncclProfiler_v5{"ddpsim", init, start, stop, state, finalize};

void use_nccl_profiler() {
  setenv("NCCL_PROFILER_PLUGIN", "STATIC_PLUGIN", 0);
}

std::vector<CollectiveSpan> take_collective_spans() {
  const std::lock_guard lock(mutex);
  std::vector<CollectiveSpan> spans;
  for (const Reported& each : collectives) {
    if (each.blocks == 0 || each.ended < each.blocks) return {};  // not all there yet
    spans.push_back(each.span);
  }
  collectives.clear();
  events.clear();
  return spans;
}

}  // namespace ddpsim
