#include "scenarios/reader/cluster/calibration_reader.hpp"

#include <array>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "scenarios/reader/cluster/calibration_fits.hpp"
#include "scenarios/reader/cluster/launch_reader.hpp"
#include "scenarios/reader/format/file_end.hpp"
#include "scenarios/reader/format/file_kind.hpp"
#include "scenarios/reader/format/map.hpp"
#include "scenarios/reader/measured/doubts.hpp"
#include "scenarios/reader/text/yaml_text.hpp"

namespace ddpsim {
namespace {

constexpr std::int64_t most_repeats = 1'000'000'000;

/// The keys of a repeated measurement: `time` is its median.
template <typename T>
void add_spread(Map<T>& map, Spread T::*spread, const Value<Duration>& time,
                const std::string& meaning) {
  const auto field = [spread](auto member) {
    return [=](auto& t) -> auto& {
      return t.*spread.*member;
    };
  };
  map.key_taken("time", time,
                [spread](T& t, Duration median) {
                  t.*spread = {median, median, median};
                },
                field(&Spread::median), {.meaning = meaning, .example = "830 us", .required = true})
      .key("low", value::time_or_zero(), field(&Spread::low),
           {.meaning = "The 10th percentile.",
            .otherwise = "as `time`",
            .example = "810 us",
            .always_written = true})
      .key("high", value::time_or_zero(), field(&Spread::high),
           {.meaning = "The 90th percentile.",
            .otherwise = "as `time`",
            .example = "900 us",
            .always_written = true})
      .key("repeats", value::whole(0, most_repeats), field(&Spread::repeats),
           {.meaning = "How often it was measured.", .example = "40", .always_written = true})
      .key("outliers", value::whole(0, most_repeats), field(&Spread::outliers),
           {.meaning = "How many measurements lie beyond three times the quartile distance from "
                       "the nearer quartile.",
            .example = "1",
            .always_written = true});
}

/// `[m, n, k, batch]`
Value<Gemm> gemm_value() {
  constexpr std::string_view expected = "four whole numbers, [m, n, k, batch]";
  constexpr std::int64_t most = std::int64_t{1} << 40;
  return {{value::list({value::integer_form(1, most)}, 4, 4)},
          [=](const Yaml& given) {
            const std::vector<Yaml> items = given.list(expected);
            if (items.size() != 4) given.fail(fmt::format("expected {}", expected));
            const auto extent = [&](std::size_t i) { return items[i].integer(1, most); };
            return Gemm{extent(0), extent(1), extent(2), extent(3)};
          },
          [](YAML::Emitter& out, const Gemm& gemm) {
            out << YAML::Flow << YAML::BeginSeq << gemm.m << gemm.n << gemm.k << gemm.batch
                << YAML::EndSeq;
          }};
}

const Map<MeasuredWork>& task_map() {
  static const Map<MeasuredWork> map = [] {
    Map<MeasuredWork> all(
        "calibrated_task",
        "How long one kind of task takes on the machine, nothing communicating beside "
        "it. There is one entry of each operation, gemm, traffic, type and aside.");
    all.key("operation", value::one_of(kernel_operations), &MeasuredWork::operation,
            {.meaning = "What the task does.", .example = "copy in", .required = true})
        .key("gemm", gemm_value(), &MeasuredWork::gemm,
             {.meaning = "The shape of a matrix product: m, n, k, batch.",
              .otherwise = "the task only moves memory",
              .example = "[64, 256, 128, 1]"})
        .key("traffic", value::size(), &MeasuredWork::traffic,
             {.meaning = "The bytes that are read and written, together.",
              .example = "2 MiB",
              .required = true})
        .key("type", value::one_of(all_dtypes), &MeasuredWork::type,
             {.meaning = "How a matrix product multiplies.", .always_written = true})
        .key(
            "aside", value::boolean(), &MeasuredWork::aside,
            {.meaning = "Whether the task was measured as a comm hook runs it, beside the backward "
                        "pass."});
    add_spread(all, &MeasuredWork::time, value::time_or_zero(),
               "How long it takes, in the median.");
    return all.check([](MeasuredWork& task, const YamlMap& entries) {
      if (task.aside && !may_run_aside(task.operation))
        entries.at("aside").fail(
            fmt::format("`aside` is for what a comm hook computes, and {} is not: take it out",
                        name_of(task.operation)));
    });
  }();
  return map;
}

const Map<AllReduceCost>& all_reduce_map() {
  auto size = value::size_or_count();
  size.write = value::size().write;
  static const Map<AllReduceCost> map = [&] {
    Map<AllReduceCost> all("calibrated_all_reduce", "A measured all-reduce of one size.");
    all.key("bytes", size, &AllReduceCost::size,
            {.meaning = "What each rank hands to the all-reduce. Sizes grow from entry to entry.",
             .example = "4 KiB",
             .required = true});
    add_spread(all, &AllReduceCost::time, value::time(),
               "How long it takes from the last rank's arrival, in the median.");
    all.key("streamed", value::time(), &AllReduceCost::streamed,
            {.meaning = "How long each takes where many follow one another, `collectives_at_once` "
                        "of them at the same time.",
             .otherwise = "what its bytes take at the best rate of the list",
             .example = "50 us"});
    return all;
  }();
  return map;
}

constexpr std::array calibrated_collectives{Operation::all_reduce,     Operation::all_gather,
                                            Operation::reduce_scatter, Operation::broadcast,
                                            Operation::all_to_all,     Operation::send_receive};

const Map<MeasuredCollective>& collective_map() {
  auto size = value::size_or_count();
  size.write = value::size().write;
  static const Map<MeasuredCollective> map = [&] {
    Map<MeasuredCollective> all("calibrated_collective",
                                "How long one kind of collective of one size takes among so many "
                                "ranks. There is one entry of each operation, ranks and bytes.");
    all.key("operation", value::one_of(calibrated_collectives), &MeasuredCollective::operation,
            {.meaning = "The collective, or a message from one rank to another.",
             .example = "all-gather",
             .required = true})
        .key("ranks", value::whole(2, 1024), &MeasuredCollective::ranks,
             {.meaning = "How many ranks take part. Where they are fewer than measured, groups of "
                         "so many did the same at the same time.",
              .example = "2",
              .required = true})
        .key("bytes", size, &MeasuredCollective::size,
             {.meaning = "What each rank hands over.", .example = "4 KiB", .required = true});
    add_spread(all, &MeasuredCollective::time, value::time(),
               "How long it takes from the last rank's arrival until the last rank is done, in the "
               "median.");
    return all;
  }();
  return map;
}

const Map<OperationFactor>& factor_map() {
  static const auto map =
      Map<OperationFactor>(
          "calibrated_factor",
          "How much longer an operation's tasks take together, in the median step, "
          "than their medians added up.")
          .key("operation", value::one_of(kernel_operations), &OperationFactor::operation,
               {.meaning = "The operation.", .example = "forward", .required = true})
          .key("over_medians", value::number(OperationFactor::least, OperationFactor::most),
               &OperationFactor::over_medians,
               {.meaning = "The factor.", .example = "1.04", .required = true});
  return map;
}

const Map<MeasuredInterference>& interference_map() {
  using Point = MeasuredInterference;
  const auto slowdown = value::number(Point::least, Point::most);
  auto size = value::size_or_count();
  size.write = value::size().write;
  static const auto map =
      Map<Point>("calibrated_interference",
                 "How all-reduces of one size and the computation beside them slow each other. A "
                 "factor of 1 means not at all.")
          .key("channels", value::whole(0, 1024), &Point::channels,
               {.meaning = "How many thread blocks the all-reduces were allowed on a GPU. Only "
                           "entries without a limit price a step.",
                .unset = "0",
                .otherwise = "as many as the library chooses"})
          .key(
              "bytes", size, &Point::size,
              {.meaning = "The size of the all-reduces. Sizes grow from entry to entry of the same "
                          "channels.",
               .example = "4 MiB",
               .required = true})
          .key("compute_slowdown", slowdown, &Point::compute_slowdown,
               {.meaning = "The factor on the time of kernels that arithmetic bounds; without "
                           "`memory_slowdown`, of all kernels.",
                .example = "1.1",
                .required = true})
          .key("memory_slowdown", slowdown, &Point::memory_slowdown,
               {.meaning = "The factor on the time of kernels that memory bounds.",
                .otherwise = "as `compute_slowdown`",
                .example = "1.3"})
          .key("communication_slowdown", slowdown, &Point::communication_slowdown,
               {.meaning = "The factor on the time of the all-reduces.",
                .example = "1.05",
                .required = true});
  return map;
}

/// A list of mappings, read one after the other: `take(entries so far, the entry's place)` refuses
/// those that do not go with the ones before.
template <typename T, typename Check>
Value<std::vector<T>> entries_of(const Map<T>& (*map)(), std::string expected, Check check) {
  auto value = value::list_of(value::mapping(map), expected);
  value.read = [=](const Yaml& given) {
    std::vector<T> entries;
    for (const Yaml& item : given.list(expected)) {
      entries.push_back(map().read(item));
      check(entries, item);
    }
    return entries;
  };
  return value;
}

void fail_unless_growing(bool grows, const Yaml& item) {
  if (!grows) YamlMap(item).at("bytes").fail("sizes must grow from entry to entry");
}

Value<std::vector<MeasuredWork>> tasks_value() {
  auto value = value::list_of(value::mapping(&task_map), "");
  value.read = [](const Yaml& given) {
    std::vector<MeasuredWork> tasks;
    std::set<std::tuple<Operation, std::optional<Gemm>, Bytes, DType, bool>> seen;
    for (const Yaml& item :
         given.list("a list such as [{operation: copy in, traffic: 2 MiB, time: 95 us}, ...]")) {
      const MeasuredWork& task = tasks.emplace_back(task_map().read(item));
      if (!seen.emplace(task.operation, task.gemm, task.traffic, task.type, task.aside).second)
        item.fail("there is an entry of this operation, gemm, traffic, type and aside already");
    }
    return tasks;
  };
  return value;
}

Value<std::vector<AllReduceCost>> all_reduce_value() {
  return entries_of(&all_reduce_map, "a list such as [{bytes: 1 MiB, time: 40 us}, ...]",
                    [](const std::vector<AllReduceCost>& points, const Yaml& item) {
                      const std::size_t last = points.size() - 1;
                      fail_unless_growing(last == 0 || points[last].size > points[last - 1].size,
                                          item);
                    });
}

Value<std::vector<MeasuredCollective>> calibrated_collectives_value() {
  return entries_of(&collective_map,
                    "a list such as [{operation: all-gather, ranks: 2, bytes: 1 MiB, time: 2 ms}]",
                    [](const std::vector<MeasuredCollective>& points, const Yaml& item) {
                      const MeasuredCollective& last = points.back();
                      if (last.operation == Operation::send_receive && last.ranks != 2)
                        YamlMap(item).at("ranks").fail("a message is between two ranks");
                      for (std::size_t i = 0; i + 1 < points.size(); ++i)
                        if (points[i].operation == last.operation &&
                            points[i].ranks == last.ranks && points[i].size == last.size)
                          item.fail("there is an entry of this operation, ranks and bytes already");
                    });
}

Value<std::vector<OperationFactor>> factors_value() {
  return entries_of(
      &factor_map, "a list such as [{operation: forward, over_medians: 1.04}]",
      [](const std::vector<OperationFactor>& factors, const Yaml& item) {
        for (std::size_t i = 0; i + 1 < factors.size(); ++i)
          if (factors[i].operation == factors.back().operation)
            item.fail(fmt::format("{} is in the list already", name_of(factors[i].operation)));
      });
}

Value<std::vector<MeasuredInterference>> interference_value() {
  auto value = value::list_of(value::mapping(&interference_map), "");
  value.read = [](const Yaml& given) {
    std::vector<MeasuredInterference> points;
    std::map<int, Bytes> largest;  // of each number of channels
    for (const Yaml& item :
         given.list("a list such as [{bytes: 1 MiB, compute_slowdown: 1.1, communication_slowdown: "
                    "1.05}, ...]")) {
      const MeasuredInterference& point = points.emplace_back(interference_map().read(item));
      fail_unless_growing(point.size > largest[point.channels], item);
      largest[point.channels] = point.size;
    }
    return points;
  };
  return value;
}

void add_provenance(Map<Calibration>& map) {
  const auto text = [&](const char* name, std::string Calibration::*field, const char* meaning,
                        const char* example) {
    map.key(name, value::text(), field,
            {.meaning = meaning, .otherwise = "not known", .example = example});
  };
  text("backend", &Calibration::backend, "What measured, for people.", "gloo");
  text("machine", &Calibration::machine, "The host and its kernel, for people.",
       "node1, Linux 6.1");
  text("cpu", &Calibration::cpu, "The processor, for people.", "AMD EPYC, 2 cores");
  text("link", &Calibration::link, "What connects the ranks, for people.", "lo, loopback");
  text("versions", &Calibration::versions, "The programs and libraries, for people.",
       "ddpsim 0.1.0, Gloo 0.5.0");
  text("date", &Calibration::date, "When it was measured, for people.", "2026-11-21T04:00:00Z");
  text("workload", &Calibration::workload, "The workload whose kernels were measured, for people.",
       "resnet18");
}

void add_measurements(Map<Calibration>& map) {
  map.key("tasks", tasks_value(), &Calibration::tasks,
          {.meaning = "How long kernels and copies take.",
           .otherwise = "none were measured",
           .example = "[{operation: copy in, traffic: 2 MiB, time: 95 us}]"})
      .key("factors", factors_value(), &Calibration::factors,
           {.meaning = "How much longer than their medians tasks take together, by operation.",
            .otherwise = "1 each",
            .example = "[{operation: forward, over_medians: 1.04}]",
            .remark = "how much longer an operation's tasks take together than their medians added "
                      "up"})
      .key("all_reduce", all_reduce_value(), &Calibration::all_reduce,
           {.meaning = "How long all-reduces take, by size.",
            .otherwise = "none were measured",
            .example = "[{bytes: 4 KiB, time: 60 us}]"})
      .key("collectives", calibrated_collectives_value(), &Calibration::collectives,
           {.meaning = "How long other collectives take, and all-reduces of fewer ranks, by kind, "
                       "ranks and size.",
            .otherwise = "as a part of an all-reduce, by the law of a ring",
            .example = "[{operation: all-gather, ranks: 2, bytes: 4 KiB, time: 50 us}]"})
      .key("interference", interference_value(), &Calibration::interference,
           {.meaning = "How all-reduces and computation slow each other, by size.",
            .otherwise = "the law says how",
            .example = "[{bytes: 4 MiB, compute_slowdown: 1.1, communication_slowdown: 1.05}]"})
      .key_written("fits", {value::form(Form::Kind::anything)}, write_fits,
                   {.meaning = "Laws through the points above, for people: what reads the file "
                               "computes them anew.",
                    .otherwise = "nothing was fitted",
                    .example = "{streaming: {bandwidth: 10 GB/s, points: 5}}"});
}

Map<Calibration> make_calibration_map() {
  Map<Calibration> map(
      "calibration",
      "What `ddpsim calibrate` measured of a machine and its link, enough to price "
      "any step on it.");
  map.key_constant("format", "ddpsim.calibration/1",
                   {.meaning = "Marks the file as a calibration.",
                    .example = "ddpsim.calibration/1",
                    .required = true});
  add_provenance(map);
  map.key(
      "complete", value::boolean(), &Calibration::complete,
      {.meaning = "Whether everything was measured. If not, the measurement was interrupted, and "
                  "what is here was measured in full.",
       .always_written = true,
       .remark = "false: interrupted; what is here was measured in full"});
  add_doubts(map, &Calibration::doubts);
  map.key("ranks", value::whole(1, 1024), &Calibration::ranks,
          {.meaning = "How many ranks measured.", .example = "2", .required = true})
      .key("synchronous", value::boolean(), &Calibration::synchronous,
           {.meaning = "Whether kernels run on the host thread, as on a CPU.",
            .example = "true",
            .required = true,
            .remark = "whether kernels run on the host thread"})
      .key("collectives_at_once", value::whole(1, 8), &Calibration::collectives_at_once,
           {.meaning = "How many collectives of one communicator the backend runs at the same "
                       "time, unless the cluster says otherwise.",
            .example = "2"})
      .key("launch", value::mapping(&launch_map), &Calibration::launch,
           {.meaning = "What each kind of call costs the host.",
            .otherwise = "nothing",
            .example = "{kernel: 0 us, collective: 9 us}",
            .always_written = true,
            .remark = "host time of each"})
      .key("slowest_rank", value::number(1, 100), &Calibration::slowest_rank,
           {.meaning =
                "How many times as long as a typical rank the slowest computes, in the median "
                "step.",
            .always_written = true,
            .remark = "its computation over a typical one's, in the median step"})
      .key("backward_beside_hook", value::number(1, 100), &Calibration::backward_beside_hook,
           {.meaning =
                "How many times as long the backward pass computes where a comm hook computes "
                "beside it.",
            .example = "1.1",
            .remark = "how much longer backward computes where a comm hook computes aside"});
  add_measurements(map);
  map.check([](Calibration& calibration, const YamlMap& entries) {
    if (calibration.ranks == 1 && !calibration.all_reduce.empty())
      entries.at("all_reduce").fail("all-reduces take at least two ranks");
    for (const MeasuredCollective& each : calibration.collectives)
      if (each.ranks > calibration.ranks)
        entries.at("collectives")
            .fail(fmt::format("{} ranks measured, and one of these is of {}", calibration.ranks,
                              each.ranks));
      else if (each.operation == Operation::all_reduce && each.ranks == calibration.ranks)
        entries.at("collectives").fail("an all-reduce of all ranks belongs to all_reduce");
  });
  add_end(map, "ddpsim.calibration/1");
  map.needs_also({{.key = "end"}});
  return map;
}

}  // namespace

const Map<Calibration>& calibration_map() {
  static const Map<Calibration> map = make_calibration_map();
  return map;
}

namespace {

Calibration calibration_of(const Yaml& root) {
  const YamlMap map(root);
  const Yaml format = map.at("format");
  value::constant("ddpsim.calibration/1").read(format);
  check_end(map, format);
  return calibration_map().read(root);
}

}  // namespace

Calibration read_calibration(const std::filesystem::path& file) {
  const Yaml root = Yaml::load(file);
  check_kind(root, FileKind::calibration);
  return calibration_of(root);
}

Calibration read_calibration(const Yaml& given) {
  const std::filesystem::path path = given.folder() / given.text("the path of a calibration file");
  if (const std::string reason = unreadable(path); !reason.empty())
    given.fail(fmt::format("{}: {}", path.string(), reason));
  const Yaml root = Yaml::load(path, example_of(FileKind::calibration));
  check_kind(root, FileKind::calibration, &given);
  return calibration_of(root);
}

}  // namespace ddpsim
