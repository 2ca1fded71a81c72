#pragma once

#include <functional>
#include <string>

#include "python/bindings/python.hpp"
#include "python/bindings/questions.hpp"

namespace ddpsim {

/// What `work` answers, on a thread of its own, without Python's lock. The calling thread looks for
/// signals twenty times a second: Ctrl-C raises KeyboardInterrupt at once, and the work ends where
/// it next tells of its progress. `progress`: a function (what, fraction), called by the calling
/// thread; None: a bar on stderr if that is a terminal; False: nothing. Throws what `work` throws,
/// and PythonError where a signal or `progress` raises.
std::string in_background(std::function<std::string(const Tell&)> work, PyObject* progress);

/// Waits for work that was left behind by Ctrl-C. Call before the interpreter ends.
void wait_for_abandoned_work();

}  // namespace ddpsim
