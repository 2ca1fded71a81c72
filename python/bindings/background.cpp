#include "python/bindings/background.hpp"

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <thread>

#include <fmt/format.h>

#include "backend/device_error.hpp"
#include "backend/thread_limits.hpp"
#include "tools/report/writers/progress.hpp"

namespace ddpsim {
namespace {

constexpr std::chrono::milliseconds tick{50};

/// Ends work that nobody waits for any more.
struct Abandoned {};

/// Between the calling thread and the one that works.
struct Call {
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false, abandoned = false;
  std::string answer;
  std::exception_ptr failure;
  std::optional<std::pair<std::string, double>> told;  ///< the latest, if nobody has seen it

  void tell(const std::string& what, double fraction) {
    const std::lock_guard lock(mutex);
    if (abandoned) throw Abandoned();
    told.emplace(what, fraction);
  }
};

/// Call under way whose caller has gone.
struct Left {
  std::mutex mutex;
  std::condition_variable changed;
  int calls = 0;
};
Left& left() {
  static Left& all = *new Left;
  return all;
}

void run(const std::shared_ptr<Call>& call,
         const std::function<std::string(const Tell&)>& question) {
  std::string answer;
  std::exception_ptr failure;
  try {
    answer = question([&](const std::string& what, double part) { call->tell(what, part); });
  } catch (...) {
    failure = std::current_exception();
  }
  const std::lock_guard lock(call->mutex);
  call->answer = std::move(answer);
  call->failure = failure;
  call->done = true;
  call->changed.notify_all();
  if (!call->abandoned) return;
  const std::lock_guard others(left().mutex);
  --left().calls;
  left().changed.notify_all();
}

/// The work goes on without its caller, to its end or the next time that it tells of its progress.
void abandon(Call& call) {
  const std::lock_guard lock(call.mutex);
  if (call.done) return;
  call.abandoned = true;
  const std::lock_guard others(left().mutex);
  ++left().calls;
}

/// Shows progress as the caller wants it.
class Shown {
 public:
  explicit Shown(PyObject* wanted)
      : function_(wanted),
        called_(PyCallable_Check(wanted) != 0),
        bar_(called_ || (wanted != Py_None && PyObject_IsTrue(wanted) == 0)) {}
  void show(const std::string& what, double fraction) {
    if (called_)
      owned(PyObject_CallFunction(function_, "sd", what.c_str(), fraction));
    else
      bar_.show(what, fraction);
  }

 private:
  PyObject* function_;
  bool called_;
  Progress bar_;
};

}  // namespace

std::string in_background(std::function<std::string(const Tell&)> question, PyObject* progress) {
  Shown shown(progress);
  const auto call = std::make_shared<Call>();
  try {
    std::thread([call, question = std::move(question)] { run(call, question); }).detach();
  } catch (const std::system_error& problem) {
    throw DeviceError(
        fmt::format("no thread could be started ({}): {}", problem.what(), what_limits_threads));
  }
  for (;;) {
    std::optional<std::pair<std::string, double>> told;
    bool done = false;
    {
      const Unlocked unlocked;
      std::unique_lock lock(call->mutex);
      call->changed.wait_for(lock, tick, [&] { return call->done; });
      done = call->done;
      told.swap(call->told);
    }
    try {
      if (PyErr_CheckSignals() != 0) throw PythonError();
      if (told) shown.show(told->first, told->second);
    } catch (...) {
      abandon(*call);
      throw;
    }
    if (!done) continue;
    if (call->failure) std::rethrow_exception(call->failure);
    return std::move(call->answer);
  }
}

void wait_for_abandoned_work() {
  const Unlocked unlocked;
  std::unique_lock lock(left().mutex);
  left().changed.wait(lock, [] { return left().calls == 0; });
}

}  // namespace ddpsim
