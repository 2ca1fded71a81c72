#include "scenarios/reader/calibration_reader.hpp"

#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>

namespace ddpsim {
namespace {

constexpr std::int64_t most_repeats = 1'000'000'000;

Spread read_spread(YamlMap& map, Duration median) {
  Spread spread{median, median, median};
  if (const auto value = map.optional("low")) spread.low = value->duration_or_zero();
  if (const auto value = map.optional("high")) spread.high = value->duration_or_zero();
  if (const auto value = map.optional("repeats"))
    spread.repeats = static_cast<int>(value->integer(0, most_repeats));
  if (const auto value = map.optional("outliers"))
    spread.outliers = static_cast<int>(value->integer(0, most_repeats));
  return spread;
}

Gemm read_gemm(const Yaml& given) {
  constexpr std::string_view expected = "four whole numbers, [m, n, k, batch]";
  const std::vector<Yaml> items = given.list(expected);
  if (items.size() != 4) given.fail(fmt::format("expected {}", expected));
  const auto extent = [&](std::size_t i) { return items[i].integer(1, std::int64_t{1} << 40); };
  return {extent(0), extent(1), extent(2), extent(3)};
}

TaskCost read_task(const Yaml& given) {
  TaskCost task;
  YamlMap map(given);
  task.operation = map.required("operation").one_of<Operation>(kernel_operations);
  if (const auto value = map.optional("gemm")) task.gemm = read_gemm(*value);
  task.traffic = map.required("traffic").bytes();
  if (const auto value = map.optional("type")) task.type = value->one_of<DType>(all_dtypes);
  if (const auto value = map.optional("aside")) {
    task.aside = value->boolean();
    if (task.aside && !may_run_aside(task.operation))
      value->fail(fmt::format("only what a comm hook computes runs aside, and {} is not of that",
                              name_of(task.operation)));
  }
  task.time = read_spread(map, map.required("time").duration_or_zero());
  map.finish();
  return task;
}

std::vector<TaskCost> read_tasks(const Yaml& given) {
  std::vector<TaskCost> tasks;
  std::set<std::tuple<Operation, std::optional<Gemm>, Bytes, DType, bool>> seen;
  for (const Yaml& item :
       given.list("a list such as [{operation: copy in, traffic: 2 MiB, time: 95 us}, ...]")) {
    const TaskCost& task = tasks.emplace_back(read_task(item));
    if (!seen.emplace(task.operation, task.gemm, task.traffic, task.type, task.aside).second)
      item.fail("there is an entry of this operation, gemm, traffic, type and aside already");
  }
  return tasks;
}

/// Sizes of a list, each larger than the one before.
class Growing {
 public:
  Bytes read(const Yaml& given) {
    const Bytes size = given.bytes_or_count();
    if (size <= last_) given.fail("sizes must grow from entry to entry");
    return last_ = size;
  }

 private:
  Bytes last_;
};

std::vector<AllReduceCost> read_all_reduce(const Yaml& given) {
  std::vector<AllReduceCost> points;
  Growing sizes;
  for (const Yaml& item : given.list("a list such as [{bytes: 1 MiB, time: 40 us}, ...]")) {
    YamlMap map(item);
    const Bytes size = sizes.read(map.required("bytes"));
    points.push_back({size, read_spread(map, map.required("time").duration())});
    map.finish();
  }
  return points;
}

std::vector<OperationFactor> read_factors(const Yaml& given) {
  std::vector<OperationFactor> factors;
  for (const Yaml& item : given.list("a list such as [{operation: forward, over_medians: 1.04}]")) {
    YamlMap map(item);
    OperationFactor& factor = factors.emplace_back();
    factor.operation = map.required("operation").one_of<Operation>(kernel_operations);
    factor.over_medians = map.required("over_medians").number(0.1, 100);
    for (const OperationFactor& earlier : factors)
      if (&earlier != &factor && earlier.operation == factor.operation)
        item.fail(fmt::format("{} is in the list already", name_of(factor.operation)));
    map.finish();
  }
  return factors;
}

std::vector<MeasuredInterference> read_interference(const Yaml& given) {
  constexpr double least = MeasuredInterference::least, most = MeasuredInterference::most;
  std::vector<MeasuredInterference> points;
  std::map<int, Growing> sizes;  // of each number of channels
  for (const Yaml& item :
       given.list("a list such as [{bytes: 1 MiB, compute_slowdown: 1.1, communication_slowdown: "
                  "1.05}, ...]")) {
    YamlMap map(item);
    MeasuredInterference& point = points.emplace_back();
    if (const auto value = map.optional("channels"))
      point.channels = static_cast<int>(value->integer(0, 1024));
    point.size = sizes[point.channels].read(map.required("bytes"));
    if (const auto value = map.optional("memory_slowdown"))
      point.memory_slowdown = value->number(least, most);
    point.compute_slowdown = map.required("compute_slowdown").number(least, most);
    point.communication_slowdown = map.required("communication_slowdown").number(least, most);
    map.finish();
  }
  return points;
}

Launch read_launch(const Yaml& given) {
  Launch launch;
  YamlMap map(given);
  const auto read = [&](const char* key, Duration& time) {
    const auto value = map.optional(key);
    if (!value) return;
    time = value->duration_or_zero();
    if (time > std::chrono::seconds{1}) value->fail("expected a launch of at most one second");
  };
  read("kernel", launch.kernel);
  read("collective", launch.collective);
  read("hook", launch.hook);
  read("handover", launch.handover);
  read("wait", launch.wait);
  map.finish();
  return launch;
}

}  // namespace

Calibration read_calibration(const std::filesystem::path& file) {
  const Yaml root = Yaml::load(file);
  YamlMap map(root);
  const Yaml format = map.required("format");
  if (format.text("ddpsim.calibration/1") != "ddpsim.calibration/1")
    format.fail("expected ddpsim.calibration/1");
  Calibration calibration;
  const auto text = [&](const char* key, std::string& into) {
    if (const auto value = map.optional(key)) into = value->text("a text");
  };
  text("backend", calibration.backend);
  text("machine", calibration.machine);
  text("cpu", calibration.cpu);
  text("link", calibration.link);
  text("versions", calibration.versions);
  text("date", calibration.date);
  text("workload", calibration.workload);
  if (const auto value = map.optional("complete")) calibration.complete = value->boolean();
  calibration.ranks = static_cast<int>(map.required("ranks").integer(1, 1024));
  calibration.synchronous = map.required("synchronous").boolean();
  if (const auto value = map.optional("launch")) calibration.launch = read_launch(*value);
  if (const auto value = map.optional("slowest_rank"))
    calibration.slowest_rank = value->number(1, 100);
  if (const auto value = map.optional("backward_beside_hook"))
    calibration.backward_beside_hook = value->number(1, 100);
  if (const auto value = map.optional("tasks")) calibration.tasks = read_tasks(*value);
  if (const auto value = map.optional("all_reduce")) {
    calibration.all_reduce = read_all_reduce(*value);
    if (calibration.ranks == 1 && !calibration.all_reduce.empty())
      value->fail("all-reduces take at least two ranks");
  }
  if (const auto value = map.optional("factors")) calibration.factors = read_factors(*value);
  if (const auto value = map.optional("interference"))
    calibration.interference = read_interference(*value);
  map.optional("fits");
  map.finish();
  return calibration;
}

Calibration read_calibration(const Yaml& given) {
  const std::filesystem::path path = given.folder() / given.text("the path of a calibration file");
  if (const std::string reason = unreadable(path); !reason.empty())
    given.fail(fmt::format("{}: {}", path.string(), reason));
  return read_calibration(path);
}

}  // namespace ddpsim
