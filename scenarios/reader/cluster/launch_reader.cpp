#include "scenarios/reader/cluster/launch_reader.hpp"

#include <tuple>

#include <fmt/format.h>

namespace ddpsim {
namespace {

/// A host time of at most a second.
Value<Duration> launch_time() {
  auto value = value::time_or_zero();
  value.read = [](const Yaml& given) {
    const Duration time = given.duration_or_zero();
    if (time > std::chrono::seconds{1}) given.fail("expected a launch of at most one second");
    return time;
  };
  return value;
}

/// The times of a T that has them as Launch does; `defaults` are those of a scenario, or none.
template <typename T>
Map<T> make_launch_map(std::string name, bool defaults) {
  const auto about = [&](std::string meaning, const char* by_default, const char* example) {
    return About{
        .meaning = std::move(meaning), .unset = defaults ? by_default : "0 us", .example = example};
  };
  Map<T> map(std::move(name),
             "Host times. On a CPU a kernel is a call, and launching one costs nothing.");
  map.key("kernel", launch_time(), &T::kernel, about("To enqueue one kernel.", "6 us", "6 us"))
      .key("collective", launch_time(), &T::collective,
           about("To issue one collective.", "35 us", "35 us"))
      .key("hook", launch_time(), &T::hook, about("To run one gradient hook.", "12 us", "12 us"))
      .key(
          "handover", launch_time(), &T::handover,
          about("From issuing a collective while kernels run to the communicating thread taking it "
                "up. Only CPUs have one: there a thread has to be woken.",
                "0 us", "1 ms"))
      .key("wait", launch_time(), &T::wait,
           about("To go on after a wait for a collective, on a CPU.", "0 us", "80 us"));
  for (const auto& [key, field, of] :
       {std::tuple("wait_all_gather", &T::wait_all_gather, "an all-gather"),
        std::tuple("wait_reduce_scatter", &T::wait_reduce_scatter, "a reduce-scatter")})
    map.key(key, launch_time(), field,
            {.meaning = fmt::format("`wait` where {} is waited for.", of),
             .otherwise = "that of `wait`",
             .example = "40 us"});
  return map;
}

const Map<LaunchChange>& change_map() {
  static const auto map = make_launch_map<LaunchChange>("launch", true);
  return map;
}

}  // namespace

void LaunchChange::apply(Launch& launch) const {
  launch.kernel = kernel.value_or(launch.kernel);
  launch.collective = collective.value_or(launch.collective);
  launch.hook = hook.value_or(launch.hook);
  launch.handover = handover.value_or(launch.handover);
  launch.wait = wait.value_or(launch.wait);
  if (wait_all_gather) launch.wait_all_gather = wait_all_gather;
  if (wait_reduce_scatter) launch.wait_reduce_scatter = wait_reduce_scatter;
}

Value<LaunchChange> launch_value() {
  const auto mapping = value::mapping(&change_map);
  return {value::either({{value::word("sync", "kernels run on the host thread, as on a CPU")},
                         launch_time().type,
                         mapping.type}),
          [=](const Yaml& given) {
            if (given.is_map()) return mapping.read(given);
            LaunchChange change;
            given.text("a time such as \"6 us\", or sync");
            if (given.is_word("sync"))
              change.synchronous = true;
            else
              change.kernel = change.collective = launch_time().read(given);
            return change;
          },
          {}};
}

const Map<Launch>& launch_map() {
  static const auto map = make_launch_map<Launch>("calibration_launch", false);
  return map;
}

}  // namespace ddpsim
