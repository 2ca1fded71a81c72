#include "scenarios/reader/cluster/calibration_reader.hpp"

#include <chrono>
#include <set>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "sim/predict/predict.hpp"
#include "tests/scenarios/reader/calibrations.hpp"
#include "tests/scenarios/reader/refusal.hpp"

namespace ddpsim {
namespace {

using namespace std::chrono_literals;

/// The good calibration with `text` in place of the line that begins with `begin`.
std::string with(const std::string& begin, const std::string& text) {
  std::istringstream lines(good_calibration);
  std::string all;
  for (std::string line; std::getline(lines, line);)
    all += (line.rfind(begin, 0) == 0 ? text : line) + "\n";
  return all;
}

Calibration read(const Scratch& scratch, const std::string& content) {
  return read_calibration(scratch.write("c.yaml", content));
}

/// Why a calibration is refused; "" if it is not.
std::string refused(const std::string& content) {
  const Scratch scratch;
  try {
    read(scratch, content);
  } catch (const InputError& problem) {
    return scratch.without_folder(problem.what());
  }
  return "";
}

/// The cluster of a scenario with the good calibration beside it.
CalibratedCluster cluster_with(const std::string& keys,
                               const std::string& content = good_calibration) {
  const Scratch scratch;
  scratch.write("c.yaml", content);
  return read_scenario(scratch.write("s.yaml",
                                     "workload: {model: resnet18, batch: 2}\ncluster:\n"
                                     "  calibration: c.yaml\n" +
                                         keys))
      .cluster;
}

/// Why a scenario with these keys in its cluster is refused. The calibration stands in line 3.
std::string cluster_refused(const std::string& keys,
                            const std::string& content = good_calibration) {
  const Scratch scratch;
  scratch.write("c.yaml", content);
  return refusal(scratch,
                 "workload: {model: resnet18, batch: 2}\ncluster:\n  calibration: c.yaml\n" + keys);
}

TEST_CASE("factors are read, and refused where they make no sense",
          "[scenarios][calibration_reader]") {
  const Scratch scratch;
  CHECK(read(scratch, good_calibration).factors ==
        std::vector<OperationFactor>{{Operation::forward, 1.25}});
  const auto factor = [](const std::string& text) {
    return refused(with("  - {operation: forward, over", "  - {" + text + "}"));
  };
  CHECK(
      factor("operation: hook, over_medians: 1").starts_with("c.yaml:18:17: factors.operation: "));
  CHECK(factor("operation: forward, over_medians: 0") ==
        "c.yaml:18:40: factors.over_medians: expected a number from 0.1 to 100, got \"0\"");
  CHECK(factor("operation: forward, over_medians: 1}\n  - {operation: forward, over_medians: 1") ==
        "c.yaml:19:5: factors: forward is in the list already");
}

TEST_CASE("what ran aside is kept apart, and backward beside it",
          "[scenarios][calibration_reader]") {
  const Scratch scratch;
  const std::string cast = "  - {operation: cast, traffic: 2 MB, time: 200 us}";
  const Calibration calibration = read(
      scratch, with("  - {operation: copy in",
                    cast + "\n  - {operation: cast, traffic: 2 MB, aside: true, time: 300 us}"));
  REQUIRE(calibration.tasks.size() == 3);
  CHECK_FALSE(calibration.tasks[1].aside);
  CHECK(calibration.tasks[2].aside);
  CHECK(calibration.tasks[2].time.median == 300us);
  CHECK(read(scratch, good_calibration).backward_beside_hook == 1);
  CHECK(read(scratch, good_calibration + "backward_beside_hook: 1.25\n").backward_beside_hook ==
        1.25);
  CHECK(refused(good_calibration + "backward_beside_hook: 0\n") ==
        "c.yaml:26:23: backward_beside_hook: expected a number from 1 to 100, got \"0\"");
  CHECK(refused(with("  - {operation: copy in", cast + "\n" + cast)) ==
        "c.yaml:17:5: tasks: there is an entry of this operation, gemm, traffic, type and aside "
        "already");
  for (const Operation operation : kernel_operations) {
    CAPTURE(name_of(operation));
    const std::string name(name_of(operation));
    const std::string said =
        refused(with("  - {operation: copy in",
                     "  - {operation: " + name + ", traffic: 2 MB, aside: true, time: 1 us}"));
    // As the files of comm hooks have them.
    const std::set<Operation> of_hooks{
        Operation::divide,     Operation::cast,     Operation::correct,       Operation::pack,
        Operation::draw,       Operation::multiply, Operation::orthogonalize, Operation::quantize,
        Operation::dequantize, Operation::select,   Operation::own_kernel};
    if (of_hooks.contains(operation))
      CHECK(said.empty());
    else
      CHECK(said.find("tasks.aside: `aside` is for what a comm hook computes, and " + name +
                      " is not: take it out") != std::string::npos);
  }
}

TEST_CASE("a calibration has what its file says", "[scenarios][calibration_reader]") {
  const Scratch scratch;
  const Calibration calibration = read(scratch, good_calibration);
  CHECK(calibration.backend == "gloo");
  CHECK(calibration.machine == "host: Linux 6");
  CHECK(calibration.cpu == "a CPU, 2 cores");
  CHECK(calibration.link == "lo");
  CHECK(calibration.versions == "ddpsim 0.1.0");
  CHECK(calibration.date == "2026-11-21T04:00:00Z");
  CHECK(calibration.workload == "resnet18");
  CHECK(!calibration.complete);
  CHECK(calibration.ranks == 2);
  CHECK(calibration.synchronous);
  CHECK(calibration.launch == Launch{1us, 9us, 300ns, 0us, 0us});
  const std::vector<MeasuredWork> tasks{measured(Operation::forward, Gemm{64, 256, 128, 1},
                                                 {786432}, DType::fp32, {830us, 800us, 1ms, 40, 1}),
                                        measured(Operation::copy_in, std::nullopt, {2'000'000},
                                                 DType::fp32, {200us, 200us, 200us, 0, 0})};
  CHECK(calibration.tasks == tasks);
  const std::vector<AllReduceCost> all_reduce{{4 * KiB, {60us, 55us, 71us, 40, 2}},
                                              {1 * MiB, {1ms, 1ms, 1ms, 0, 0}}};
  CHECK(calibration.all_reduce == all_reduce);
  const std::vector<MeasuredInterference> interference{{4 * MiB, 1.1, 0.95}};
  CHECK(calibration.interference == interference);
}

TEST_CASE("waits for gathers and reduce-scatters have keys of their own",
          "[scenarios][calibration_reader]") {
  const Scratch scratch;
  const std::string rest =
      "format: ddpsim.calibration/1\nend: ddpsim.calibration/1\nranks: 2\nsynchronous: true\n";
  const Calibration some = read(
      scratch, rest + "launch: {wait: 80 us, wait_all_gather: 30 us, wait_reduce_scatter: 0 us}\n");
  CHECK(some.launch.wait == 80us);
  CHECK(some.launch.wait_all_gather == 30us);
  CHECK(some.launch.wait_reduce_scatter == 0us);
  const Launch plain = read(scratch, rest + "launch: {wait: 80 us}\n").launch;
  CHECK(!plain.wait_all_gather);
  CHECK(!plain.wait_reduce_scatter);
}

TEST_CASE("all but format, ranks, synchronous and end may be missing",
          "[scenarios][calibration_reader]") {
  const Scratch scratch;
  const std::string ends = "format: ddpsim.calibration/1\nend: ddpsim.calibration/1\n";
  const std::string least = ends + "ranks: 3\nsynchronous: false\n";
  Calibration bare;
  bare.ranks = 3;
  bare.synchronous = false;
  CHECK(read(scratch, least) == bare);
  CHECK(read(scratch, least + "tasks: []\nall_reduce: []\ninterference: []\n") == bare);
  CHECK(refused("ranks: 3\nsynchronous: true\n") == "c.yaml:1:1: missing key \"format\"");
  CHECK(refused(ends + "synchronous: true\n") == "c.yaml:1:1: missing key \"ranks\"");
  CHECK(refused(ends + "ranks: 3\n") == "c.yaml:1:1: missing key \"synchronous\"");
}

TEST_CASE("how many collectives are under way is the calibration's, unless the cluster says",
          "[scenarios][calibration_reader]") {
  const Scratch scratch;
  std::string text = good_calibration;
  const auto put = [&](const std::string& before, const std::string& after) {
    text.replace(text.find(before), before.size(), after);
  };
  put("launch:", "collectives_at_once: 2\nlaunch:");
  put("{bytes: 1048576, time: 1 ms}", "{bytes: 1048576, time: 1 ms, streamed: 0.75 ms}");
  scratch.write("c.yaml", text);
  const auto cluster = [&](const std::string& more) {
    std::string scenario = calibrated_scenario;
    scenario.insert(scenario.find("compare"), more);
    return read_scenario(scratch.write("s.yaml", scenario)).cluster;
  };
  const CalibratedCluster plain = cluster("");
  CHECK(plain.collectives_at_once == 2);
  CHECK(plain.calibration->all_reduce[1].streamed == Duration{std::chrono::microseconds{750}});
  CHECK(!plain.calibration->all_reduce[0].streamed);
  CHECK(cluster("  collectives_at_once: 1\n").collectives_at_once == 1);
  // What hides behind others of a stream is latency; the rest is transfer.
  const CollectiveCost cost = CollectiveLaw(plain).all_reduce(MiB);
  CHECK(cost.transfer == Duration{std::chrono::microseconds{750}});
  CHECK(cost.time() == Duration{std::chrono::milliseconds{1}});
}

TEST_CASE("other collectives are read by kind, ranks and size", "[scenarios][calibration_reader]") {
  const Scratch scratch;
  const auto of_two = [](const std::string& entries) {
    return with("interference", "collectives: [" + entries + "]\ninterference:");
  };
  const std::string gather = "{operation: all-gather, ranks: 2, bytes: 4 KiB, time: 50 us}";
  CHECK(read(scratch,
             of_two(gather + ", {operation: send/receive, ranks: 2, bytes: 1 MiB, time: 2 ms, low: "
                             "1 ms, high: 3 ms, repeats: 7, outliers: 1}"))
            .collectives == std::vector<MeasuredCollective>{
                                {Operation::all_gather, 2, 4 * KiB, {50us, 50us, 50us, 0, 0}},
                                {Operation::send_receive, 2, 1 * MiB, {2ms, 1ms, 3ms, 7, 1}}});
  CHECK(refused(of_two(gather + ", " + gather)) ==
        "c.yaml:22:77: collectives: there is an entry of this operation, ranks and bytes already");
  CHECK(refused(of_two("{operation: all-gather, ranks: 3, bytes: 4 KiB, time: 50 us}")) ==
        "c.yaml:22:14: collectives: 2 ranks measured, and one of these is of 3");
  CHECK(refused(of_two("{operation: all-reduce, ranks: 2, bytes: 4 KiB, time: 50 us}")) ==
        "c.yaml:22:14: collectives: an all-reduce of all ranks belongs to all_reduce");
  CHECK_THAT(refused(of_two("{operation: forward, ranks: 2, bytes: 4 KiB, time: 50 us}")),
             Catch::StartsWith("c.yaml:22:27: collectives.operation: "));
  CHECK_THAT(refused(of_two("{operation: broadcast, ranks: 2, bytes: 4 KiB, time: 0 us}")),
             Catch::StartsWith("c.yaml:22:68: collectives.time: "));
}

TEST_CASE("a link of the scenario goes before all collectives of a calibration",
          "[scenarios][calibration_reader]") {
  const std::string measured = with(
      "interference",
      "collectives: [{operation: all-gather, ranks: 2, bytes: 4 KiB, time: 50 us}]\ninterference:");
  CHECK(cluster_with("", measured).calibration->collectives.size() == 1);
  CHECK(cluster_with("  intra_node: {latency: 1 us, bandwidth: 1 GB/s}\n", measured)
            .calibration->collectives.empty());
}

TEST_CASE("a calibration that was cut off is refused, wherever that was",
          "[scenarios][calibration_reader]") {
  const std::size_t last = good_calibration.rfind("end: ");
  CHECK(
      refused(good_calibration.substr(0, last)) ==
      "c.yaml:1:1: the last line, \"end: ddpsim.calibration/1\", is missing: the file was cut off, "
      "or is older than this mark; make it again");
  for (std::size_t size = 0; size + 1 < good_calibration.size(); ++size) {
    CAPTURE(size);
    CHECK(refused(good_calibration.substr(0, size)) != "");
    // Once the format is there everything is said to be cut off, and nothing to be no YAML.
    if (size > good_calibration.find("ddpsim.calibration/1") + 20)
      CHECK_THAT(refused(good_calibration.substr(0, size)), Catch::Contains("cut off"));
  }
  const auto cut_behind = [](const std::string& text) {
    return refused(good_calibration.substr(0, good_calibration.find(text) + text.size()));
  };
  const std::string here =
      ": the file was cut off here: its last line, \"end: ddpsim.calibration/1\", is missing; make "
      "it again";
  CHECK(cut_behind("launch: {kernel: 1 us,") == "c.yaml:12:23" + here);
  CHECK(
      cut_behind("end: ddpsim.cal") ==
      "c.yaml:25:6: end: the file was cut off here: expected ddpsim.calibration/1; make it again");
  CHECK(refused(with("end", "end: ddpsim.link/1")) ==
        "c.yaml:25:6: end: expected ddpsim.calibration/1");
}

TEST_CASE("a calibration is refused where it is wrong", "[scenarios][calibration_reader]") {
  CHECK(refused(with("format", "format: ddpsim.calibration/2")) ==
        "c.yaml:1:9: format: expected ddpsim.calibration/1");
  CHECK(refused(with("format", "format: ddpsim.link/1")) ==
        "c.yaml is a link, not a calibration: give it as --link c.yaml");
  CHECK(refused(with("ranks", "ranks: 0")) ==
        "c.yaml:10:8: ranks: expected a whole number from 1 to 1024, got \"0\"");
  CHECK(refused(with("ranks", "ranks: 99999999999999999999")) ==
        "c.yaml:10:8: ranks: expected a whole number from 1 to 1024, got \"99999999999999999999\"");
  CHECK(refused(with("synchronous", "synchronous: maybe")) ==
        "c.yaml:11:14: synchronous: expected true or false, got \"maybe\"");
  CHECK(refused(with("backend", "backnd: gloo")) ==
        "c.yaml:2:1: backnd: unknown key; did you mean \"backend\"?; known: format, backend, "
        "machine, cpu, link, versions, date, workload, complete, doubts, ranks, synchronous, "
        "collectives_at_once, launch, slowest_rank, backward_beside_hook, tasks, factors, "
        "all_reduce, collectives, interference, fits, end");
  CHECK(refused(with("backend", "cpu: twice")) == "c.yaml:4:1: repeated key \"cpu\"");
  CHECK(refused(with("launch", "launch: {kernel: 2 s}")) ==
        "c.yaml:12:18: launch.kernel: expected a launch of at most one second");
  CHECK(refused(with("launch", "launch: {kernel: -2 us}")) ==
        "c.yaml:12:18: launch.kernel: expected a time with its unit, such as \"250 ms\" or \"5 "
        "us\", got \"-2 us\"");
  CHECK(refused(with("launch", "launch: 6 us")) ==
        "c.yaml:12:9: launch: expected a mapping of keys to values");
}

TEST_CASE("a task is refused where it is wrong", "[scenarios][calibration_reader]") {
  // The copy stands in line 16.
  const auto task = [](const std::string& text) {
    return refused(with("  - {operation: copy in", "  - {" + text + "}"));
  };
  CHECK(
      task("operation: copy_in, traffic: 2 MB, time: 2 us") ==
      "c.yaml:16:17: tasks.operation: unknown name \"copy_in\"; did you mean \"copy in\"?; known: "
      "forward, backward, accumulate, copy in, concatenate, divide, copy out, optimizer, "
      "gradient hook, module hook, cast, correct, pack, draw, multiply, orthogonalize, quantize, "
      "dequantize, select, own kernel");
  CHECK_THAT(task("operation: hook, traffic: 2 MB, time: 2 us"),
             Catch::StartsWith("c.yaml:16:17: tasks.operation: unknown name \"hook\""));
  CHECK(task("operation: divide, traffic: 2048, time: 2 us") ==
        "c.yaml:16:34: tasks.traffic: expected a size with its unit, such as \"25 MiB\" or \"10 "
        "MB\" and above zero, got \"2048\"");
  CHECK(task("operation: divide, time: 2 us") == "c.yaml:16:5: tasks: missing key \"traffic\"");
  CHECK(task("operation: divide, traffic: 2 MB") == "c.yaml:16:5: tasks: missing key \"time\"");
  CHECK(task("operation: divide, traffic: 2 MB, time: 1e99 ms") ==
        "c.yaml:16:46: tasks.time: expected a time with its unit, such as \"250 ms\" or \"5 us\", "
        "got \"1e99 ms\"");
  CHECK(task("operation: divide, traffic: 2 MB, time: 1 ms, repeats: 1.5") ==
        "c.yaml:16:61: tasks.repeats: expected a whole number from 0 to 1000000000, got \"1.5\"");
  CHECK(task("operation: divide, traffic: 2 MB, time: 1 ms, type: fp64") ==
        "c.yaml:16:58: tasks.type: unknown name \"fp64\"; did you mean \"fp32\"?; known: fp32, "
        "tf32, bf16, fp16");
  const std::string four =
      "c.yaml:16:32: tasks.gemm: expected four whole numbers, [m, n, k, batch]";
  CHECK(task("operation: forward, gemm: [1, 2, 3], traffic: 2 MB, time: 1 ms") == four);
  CHECK(task("operation: forward, gemm: 1, traffic: 2 MB, time: 1 ms") == four);
  CHECK(task("operation: forward, gemm: [1, 2, 0, 1], traffic: 2 MB, time: 1 ms") ==
        "c.yaml:16:39: tasks.gemm: expected a whole number from 1 to 1099511627776, got \"0\"");
  CHECK(task("operation: forward, gemm: [64, 256, 128, 1], traffic: 768 KiB, time: 1 us") ==
        "c.yaml:16:5: tasks: there is an entry of this operation, gemm, traffic, type and aside "
        "already");
  CHECK(task("operation: forward, gemm: [64, 256, 128, 1], traffic: 768 KiB, type: bf16, time: 1 "
             "us")
            .empty());
}

TEST_CASE("tables grow in size and hold nothing absurd", "[scenarios][calibration_reader]") {
  // The tables' last entries stand in lines 19 and 21.
  const auto point = [](const std::string& text) {
    return refused(with("  - {bytes: 1048576", "  - {" + text + "}"));
  };
  CHECK(point("bytes: 4 KiB, time: 1 ms") ==
        "c.yaml:21:13: all_reduce.bytes: sizes must grow from entry to entry");
  CHECK(point("bytes: 8 KiB, time: 0 ms") ==
        "c.yaml:21:26: all_reduce.time: expected a time above zero");
  CHECK(point("bytes: 8 KiB, time: 1 ms, tme: 2 ms") ==
        "c.yaml:21:32: all_reduce.tme: unknown key; did you mean \"time\"?; known: bytes, time, "
        "low, high, repeats, outliers, streamed");
  CHECK(refused(with("ranks", "ranks: 1")) ==
        "c.yaml:20:3: all_reduce: all-reduces take at least two ranks");
  const auto slow = [](const std::string& text) {
    return refused(with("  - {bytes: 4 MiB, comp", "  - {bytes: 4 MiB, " + text + "}"));
  };
  CHECK(slow("compute_slowdown: 1.1") ==
        "c.yaml:23:5: interference: missing key \"communication_slowdown\"");
  CHECK(slow("compute_slowdown: nan, communication_slowdown: 1") ==
        "c.yaml:23:38: interference.compute_slowdown: expected a number from 0.01 to 100, got "
        "\"nan\"");
  CHECK(slow("compute_slowdown: 1, communication_slowdown: 1e9") ==
        "c.yaml:23:65: interference.communication_slowdown: expected a number from 0.01 to 100, "
        "got \"1e9\"");
  CHECK(refused(with("  - {bytes: 4 MiB, comp", "  - 7")) ==
        "c.yaml:23:5: interference: expected a mapping of keys to values");
}

TEST_CASE("a cluster may be its calibration alone", "[scenarios][calibration_reader]") {
  const CalibratedCluster cluster = cluster_with("");
  CHECK(cluster.device.name == "a CPU, 2 cores");
  CHECK(cluster.device.synchronous);
  CHECK(cluster.device.memory_bandwidth == gigabytes_per_second(10));  // 2 MB in 200 us
  // 2 x 64 x 256 x 128 in 830 us.
  CHECK(cluster.device.peak_of(DType::fp32).flops_per_second == Approx(4194304 / 830e-6));
  CHECK(cluster.nodes == 1);
  CHECK(cluster.ranks_per_node == 2);
  CHECK(cluster.launch == Launch{0us, 9us, 300ns, 0us, 0us});
  REQUIRE(cluster.calibration);
  CHECK(cluster.calibration->tasks.size() == 2);
  CHECK(CollectiveLaw(cluster).all_reduce(4 * KiB).time() == 60us);
}

TEST_CASE("the path of a calibration starts at the scenario", "[scenarios][calibration_reader]") {
  const Scratch scratch;
  std::filesystem::create_directory(scratch.path("inner"));
  scratch.write("inner/c.yaml", good_calibration);
  const std::string rest = "workload: {model: resnet18, batch: 2}\ncluster:\n  calibration: ";
  CHECK(refusal(scratch, rest + "inner/c.yaml\n").empty());
  CHECK(refusal(scratch, rest + "c.yaml\n") ==
        "s.yaml:3:16: cluster.calibration: c.yaml: no such file");
  CHECK(refusal(scratch, rest + "inner\n") ==
        "s.yaml:3:16: cluster.calibration: inner: not a file");
  CHECK(refusal(scratch, rest + "{ranks: 2}\n") ==
        "s.yaml:3:16: cluster.calibration: expected the path of a calibration file, got a mapping");
  CHECK(refusal(scratch, "workload: {model: resnet18, batch: 2}\ncluster: {device: generic-cpu}\n",
                {{"cluster.calibration", "none.yaml"}}) ==
        "--set cluster.calibration=none.yaml: none.yaml: no such file");
}

TEST_CASE("what the scenario says goes before the calibration", "[scenarios][calibration_reader]") {
  CHECK(cluster_with("  device: h100-sxm\n").device.name == "h100-sxm");
  CHECK(!cluster_with("  device: h100-sxm\n").device.synchronous);
  CHECK(cluster_with("  ranks_per_node: 4\n").ranks() == 4);
  CHECK(cluster_with("  nodes: 3\n").ranks() == 6);
  CHECK(cluster_with("  launch: {hook: 5 us}\n").launch == Launch{0us, 9us, 5us, 0us, 0us});
  CHECK(cluster_with("  device: h100-sxm\n  launch: 4 us\n").launch ==
        Launch{4us, 4us, 300ns, 0us, 0us});
  CHECK(cluster_with("  device: h100-sxm\n").launch == Launch{1us, 9us, 300ns, 0us, 0us});
  CHECK(cluster_with("  interference: {compute_slowdown: 1.5}\n").interference->compute_slowdown ==
        1.5);
  // A link of the scenario's own: its law, not the calibration's table.
  const auto law = [](const std::string& keys) {
    return std::string(CollectiveLaw(cluster_with(keys)).name());
  };
  CHECK(law("") == "table");
  CHECK(law("  collectives: table\n") == "table");
  CHECK(law("  intra_node: ethernet-10g\n") == "alpha-beta");
  CHECK(law("  ranks_per_node: 1\n  nodes: 2\n  inter_node: ethernet-10g\n") == "alpha-beta");
  const Cluster own = cluster_with("  intra_node: {all_reduce: [{bytes: 4 KiB, time: 1 us}]}\n");
  CHECK(CollectiveLaw(own).all_reduce(4 * KiB).time() == 1us);
}

TEST_CASE("what a calibration lacks the scenario must say", "[scenarios][calibration_reader]") {
  const std::string bare =
      "format: ddpsim.calibration/1\nranks: 2\nsynchronous: true\nend: ddpsim.calibration/1\n";
  CHECK(cluster_refused("", bare) ==
        "s.yaml:3:16: cluster.calibration: the calibration measured no kernels: write \"device\" "
        "as well");
  CHECK(cluster_refused("  device: generic-cpu\n", bare) ==
        "s.yaml:3:3: cluster: missing key \"intra_node\": what links the ranks of a node, such as "
        "nvlink4 or pcie4");
  CHECK(cluster_refused("  device: generic-cpu\n  intra_node: ethernet-10g\n", bare).empty());
  CHECK(cluster_refused("  collectives: alpha-beta\n") ==
        "s.yaml:4:16: cluster.collectives: alpha-beta needs a link with latency and bandwidth");
  CHECK(cluster_refused("  intra_node: ethernet-10g\n  collectives: table\n") ==
        "s.yaml:5:16: cluster.collectives: table needs a link with an all_reduce table");
  CHECK(cluster_refused("  intra_node: ethernet-10g\n  nodes: 2\n") ==
        "s.yaml:3:3: cluster: missing key \"inter_node\": what links the nodes, such as ib-ndr or "
        "ethernet-100g");
}

TEST_CASE("a name with control characters names a device on one line",
          "[scenarios][calibration_reader]") {
  CHECK(cluster_with("", with("cpu", "cpu: \"a\\nb\\e[2J\"")).device.name == "a\\nb\\x1b[2J");
  CHECK(cluster_with("", with("cpu", "# none")).device.name == "calibrated");
}

TEST_CASE("twenty thousand tasks are read in good time", "[scenarios][calibration_reader]") {
  std::string tasks = "tasks:\n";
  for (int i = 1; i <= 20'000; ++i)
    tasks += fmt::format("  - {{operation: divide, traffic: {} B, time: {} ns}}\n", i, i);
  const std::string header =
      "format: ddpsim.calibration/1\nranks: 1\nsynchronous: true\nend: ddpsim.calibration/1\n";
  const auto begin = std::chrono::steady_clock::now();
  CHECK(refused(header + tasks).empty());
  CHECK(refused(header + tasks + "  - {operation: divide, traffic: 7 B, time: 1 s}\n") ==
        "c.yaml:20006:5: tasks: there is an entry of this operation, gemm, traffic, type and aside "
        "already");
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(60));
}

TEST_CASE("a step is predicted from a calibration alone", "[scenarios][calibration_reader]") {
  const Scratch scratch;
  scratch.write("c.yaml", good_calibration);
  const Scenario scenario = read_scenario(scratch.write("s.yaml", calibrated_scenario));
  const StepModel model = model_of(scenario);
  CHECK(predict(model, scenario.training).metrics.step > 0us);
  // For copies alone 2 MB in 200 us is known: 0.1 us a kB.
  const Parameter& first = scenario.workload.parameters.front();
  const std::vector<Work> alone{model.works.table[model.works.copy_out.front().number]};
  const WorkCost copy_out = model.costs.price(alone, {}).works.front();
  CHECK(in_us(copy_out.work) == Approx(1e-4 * 2 * static_cast<double>(first.size().count)));
}

}  // namespace
}  // namespace ddpsim
