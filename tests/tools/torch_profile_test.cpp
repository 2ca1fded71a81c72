// `python -m ddpsim.profile` with real torch: what it writes is what torch says of the model, and
// what ddpsim reads.
#include <memory>

#include <catch2/catch.hpp>

#include "model/workload/workload.hpp"
#include "scenarios/reader/cluster/calibration_reader.hpp"
#include "scenarios/reader/scenario/scenario_reader.hpp"
#include "tests/tools/jobs.hpp"
#include "tests/tools/torch_forks.hpp"

namespace ddpsim {
namespace {

const std::filesystem::path data{DDPSIM_TEST_DATA};
const std::string package = (data.parent_path().parent_path() / "python").string();
const std::string profiler = package + "/ddpsim/profile/__main__.py";

std::string model(const std::string& name) {
  return (data / "torch_models" / name).string();
}

std::string small(const std::string& function) {
  return model("small.py") + ":" + function;
}

std::vector<std::string> profile_flags(const std::vector<std::string>& arguments) {
  std::vector<std::string> words{torch_python(), "-B", profiler};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return words;
}

/// Runs it in `scratch`; it has to succeed.
Outcome profiled(const Scratch& scratch, const std::vector<std::string>& arguments) {
  const Outcome outcome = execute(profile_flags(arguments), scratch.folder());
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  return outcome;
}

/// Several such profiles, with torch imported once.
std::vector<Outcome> all_profiled(const Scratch& scratch,
                                  const std::vector<std::vector<std::string>>& runs) {
  std::vector<PythonProgram> programs;
  for (const std::vector<std::string>& arguments : runs) {
    programs.push_back({{profiler}, {}});
    std::vector<std::string>& words = programs.back().words;
    words.insert(words.end(), arguments.begin(), arguments.end());
  }
  std::vector<Outcome> outcomes = torch_forks(scratch, programs);
  for (const Outcome& outcome : outcomes) {
    INFO(outcome.err);
    REQUIRE(outcome.code == 0);
  }
  return outcomes;
}

/// What the product reads from a workload profile in `scratch`.
Workload read(const Scratch& scratch, const std::string& file = "profile/workload.yaml") {
  scratch.write("scenario.yaml", "workload: {model: " + file +
                                     "}\ncluster: {device: generic-cpu, launch: sync, "
                                     "ranks_per_node: 2, intra_node: ethernet-10g}\n"
                                     "training: {find_unused_parameters: true}\n");
  const Outcome outcome = ddpsim({"run", "scenario.yaml", "--json", "-"}, scratch.folder());
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  return read_scenario(scratch.path("scenario.yaml")).workload;
}

std::vector<std::string> names(const Workload& workload) {
  std::vector<std::string> found;
  for (const Parameter& parameter : workload.parameters) found.push_back(parameter.name);
  return found;
}

std::vector<std::string> arrival(const Workload& workload) {
  std::vector<std::string> found;
  for (const int index : arrival_order(workload))
    found.push_back(workload.parameters[static_cast<std::size_t>(index)].name);
  return found;
}

TEST_CASE("a profile has torch's parameters, in its order, and the order their gradients arrive in",
          "[tools][torch_profile]") {
  if (torch_python().empty()) return;
  const Scratch scratch;
  const std::vector<std::string> functions{"perceptron", "tied", "frozen", "sparse", "half", "odd"};
  std::vector<PythonProgram> programs;
  for (const std::string& function : functions) {
    programs.push_back({{profiler, "--script", small(function), "--output", function}, {}});
    programs.push_back({{model("small.py"), function}, {}});
  }
  const std::vector<Outcome> found = torch_forks(scratch, programs);
  for (std::size_t f = 0; f < functions.size(); ++f) {
    CAPTURE(functions[f], found[2 * f].err, found[2 * f + 1].err);
    REQUIRE(found[2 * f].code == 0);
    REQUIRE(found[2 * f + 1].code == 0);
    const Workload workload = read(scratch, functions[f] + "/workload.yaml");
    const Json said = found[2 * f + 1].json();
    REQUIRE(workload.parameters.size() == said["parameters"].size());
    for (std::size_t i = 0; i < workload.parameters.size(); ++i) {
      CHECK(workload.parameters[i].name == said["parameters"][i]["name"]);
      CHECK(workload.parameters[i].shape ==
            said["parameters"][i]["shape"].get<std::vector<std::int64_t>>());
    }
    CHECK(arrival(workload) == said["arrival"].get<std::vector<std::string>>());
    // In order of arrival no gradient is ready before the last one, and none after backward.
    int ready = 0;
    for (const int index : arrival_order(workload)) {
      const int next = workload.parameters[static_cast<std::size_t>(index)].ready_after;
      CHECK(next >= ready);
      ready = next;
    }
    CHECK(ready < static_cast<int>(workload.layers[0].backward.size()));
    CHECK(workload.layers[0].forward[0].time > Duration::zero());
    CHECK(!workload.optimizer);
  }
  // A tied weight stands there once, under its first name, and is complete only with the
  // embedding's own part, the last of backward.
  const Workload tied = read(scratch, "tied/workload.yaml");
  CHECK(names(tied) == std::vector<std::string>{"embedding.weight", "inner.weight", "inner.bias"});
  CHECK(arrival(tied).back() == "embedding.weight");
  // A frozen parameter is left out.
  CHECK(names(read(scratch, "frozen/workload.yaml")) ==
        std::vector<std::string>{"2.weight", "2.bias", "4.weight", "4.bias"});
  // Sparse gradients and small types are said.
  const Workload sparse = read(scratch, "sparse/workload.yaml");
  CHECK(sparse.parameters[0].sparse);   // Embedding(sparse=True)
  CHECK(!sparse.parameters[1].sparse);  // Linear
  CHECK(read(scratch, "half/workload.yaml").parameters[0].dtype == DType::bf16);
}

TEST_CASE("a profile has rows of sparse gradients, buffers, the optimizer, and what gets none",
          "[tools][torch_profile]") {
  if (torch_python().empty()) return;
  const Scratch scratch;
  const std::vector<Outcome> outcomes =
      all_profiled(scratch, {{"--script", model("rules.py") + ":table", "--output", "table"},
                             {"--script", model("rules.py") + ":convolution", "--output", "norms"},
                             {"--script", small("unused"), "--output", "unused"},
                             {"--script", small("trained"), "--output", "trained"}});
  // A sparse gradient's rows are counted once each.
  const Parameter table = read(scratch, "table/workload.yaml").parameters.at(0);
  CHECK(table.sparse);
  CHECK(table.sparse_rows == 17);  // of 24 words, 17 are different ones

  // The batch norms' buffers, those of one type together: norms of 64, 128 and 256 channels, mean
  // and variance in four bytes, a counter in eight.
  const Workload norms = read(scratch, "norms/workload.yaml");
  REQUIRE(norms.buffers.size() == 2);
  CHECK(norms.buffers[0].tensors == 6);
  CHECK(norms.buffers[0].size == Bytes{2 * 4 * (64 + 128 + 256)});
  CHECK(norms.buffers[1].tensors == 3);
  CHECK(norms.buffers[1].size == Bytes{3 * 8});

  // A parameter without a gradient is named, and ready when backward ends.
  CHECK_THAT(outcomes[2].err, Catch::Contains("no gradient reached idle.weight, idle.bias") &&
                                  Catch::Contains("find_unused_parameters=True"));
  CHECK_THAT(content_of(scratch.path("unused/workload.yaml")),
             Catch::Contains("# no gradient reached idle.weight, idle.bias"));
  const Workload unused = read(scratch, "unused/workload.yaml");
  // Behind all that arrived, in registration order, as DDP marks them.
  CHECK(arrival(unused) == std::vector<std::string>{"last.bias", "last.weight", "used.bias",
                                                    "used.weight", "idle.weight", "idle.bias"});
  for (const std::size_t idle : {2, 3})
    CHECK(unused.parameters[idle].ready_after + 1 ==
          static_cast<int>(unused.layers[0].backward.size()));

  CHECK(read(scratch, "trained/workload.yaml").optimizer);
}

TEST_CASE("a profile says what it costs, and how far steps are apart; drift does not count",
          "[tools][torch_profile]") {
  if (torch_python().empty()) return;
  const Scratch scratch;
  const std::vector<Outcome> outcomes =
      all_profiled(scratch, {{"--script", small("trained"), "--steps", "8"},
                             {"--script", small("trained"), "--steps", "18", "--output", "few"},
                             {"--script", small("trained"), "--steps", "40", "--output", "many"}});
  // What the profiler itself costs is said on standard output and in the file.
  const std::string cost = "medians of 4 and 4 steps in turn";
  CHECK_THAT(outcomes[0].out,
             Catch::Contains("with gradient hooks a step takes ") && Catch::Contains(cost) &&
                 Catch::Contains("next: ddpsim tune profile/workload.yaml --link LINK"));
  CHECK_THAT(content_of(scratch.path("profile/workload.yaml")), Catch::Contains(cost));

  CHECK(read(scratch, "few/workload.yaml").step_spread == 0);  // too few to say
  CHECK(read(scratch, "many/workload.yaml").step_spread > 0);

  // Normal steps of 1 s +- 5 % without and with a drift, 1 % of them interrupted; and equal ones.
  const std::string script =
      "import random, sys; sys.path.insert(0, sys.argv[1]); from ddpsim.profile import passes\n"
      "dice = random.Random(1)\n"
      "steps = [dice.gauss(1, 0.05) + (dice.random() < 0.01) for _ in range(20000)]\n"
      "drifting = [step * (1 + i / 20000) for i, step in enumerate(steps)]\n"
      "for times in steps, drifting, [0.25] * 10: print(passes.step_spread(times))\n";
  const Outcome outcome = execute({torch_python(), "-B", "-c", script, package});
  INFO(outcome.err);
  std::istringstream said(outcome.out);
  double steady = 0, drifting = 0, equal = 1;
  said >> steady >> drifting >> equal;
  CHECK(steady == Approx(0.05).epsilon(0.05));
  CHECK(drifting == Approx(0.05).epsilon(0.05));
  CHECK(equal == 0);
}

/// Arguments of a loop of the user's own: the name of its profile, "" for none, and a fault.
PythonProgram loop_of(const std::string& output, const std::string& fault = "") {
  return {{model("training.py"), package, output, fault}, {}};
}

TEST_CASE(
    "in a loop of the user's own the profile is the same and the training too, to the last bit",
    "[tools][torch_profile]") {
  if (torch_python().empty()) return;
  const Scratch scratch;
  const std::vector<Outcome> all = torch_forks(
      scratch, {loop_of("loop.yaml"), loop_of(""), {{profiler, "--script", small("trained")}, {}}});
  const Outcome &with = all[0], &without = all[1];
  INFO(with.err << without.err << all[2].err);
  REQUIRE(with.code == 0);  // the loop also checks that nothing is left behind
  REQUIRE(without.code == 0);
  REQUIRE(all[2].code == 0);
  CHECK(lines_of(with.out).size() == 10 + 6);  // losses, parameters
  CHECK(with.out == without.out);

  const Workload loop = read(scratch, "loop.yaml");
  // Linear, ReLU, Dropout, Linear, ReLU, Linear
  CHECK(names(loop) ==
        std::vector<std::string>{"0.weight", "0.bias", "3.weight", "3.bias", "5.weight", "5.bias"});
  const Workload script = read(scratch);
  CHECK(loop.arrival == script.arrival);
  for (std::size_t i = 0; i < 6; ++i) CHECK(loop.parameters[i].shape == script.parameters[i].shape);
  CHECK(loop.optimizer);
}

TEST_CASE(
    "a loop with a fault goes on: a step that raises does not count, and what cannot be "
    "profiled is told in one line",
    "[tools][torch_profile]") {
  if (torch_python().empty()) return;
  const Scratch scratch;
  const std::vector<Outcome> all =
      torch_forks(scratch, {loop_of("raising.yaml", "raise"), loop_of("", "raise"),
                            loop_of("twice.yaml", "twice"), loop_of("nothing.yaml", "nothing")});
  const Outcome &with = all[0], &without = all[1], &twice = all[2], &nothing = all[3];
  CHECK(with.code == 0);
  CHECK(with.out == without.out);
  CHECK(read(scratch, "raising.yaml").parameters.size() == 6);
  CHECK(twice.code == 0);
  CHECK(twice.err ==
        "ddpsim.profile: no profile: a step called backward 2 times: put one forward and one "
        "backward into profiler.step()\n");
  CHECK(!std::filesystem::exists(scratch.path("twice.yaml")));
  CHECK(nothing.code == 0);
  CHECK(nothing.err ==
        "ddpsim.profile: no profile: 0 steps after 2 of warm-up; at least 4 are needed\n");
  CHECK(!std::filesystem::exists(scratch.path("nothing.yaml")));
}

TEST_CASE("the example of ddpsim.profile --help works", "[tools][torch_profile]") {
  if (torch_python().empty()) return;
  const Scratch scratch;
  const Outcome help = execute(profile_flags({"--help"}));
  REQUIRE(help.code == 0);
  // The indented lines from "import torch" to the blank one, without the indent.
  std::string example;
  bool inside = false;
  for (const std::string& line : lines_of(help.out)) {
    if (line == "    import torch") inside = true;
    if (line.empty()) inside = false;
    if (inside) example += line.substr(4) + "\n";
  }
  scratch.write("my_model.py", example);
  profiled(scratch, {"--script", "my_model.py:make"});
  // Linear(256, 256), Linear(256, 10): 256 * 256 + 256 + 2560 + 10 elements
  CHECK(read(scratch).elements() == 68362);
}

TEST_CASE("bad input of ddpsim.profile is one line and exit code 2", "[tools][torch_profile]") {
  if (torch_python().empty()) return;
  const Scratch scratch;
  scratch.write("broken.py", "def make(:\n");
  struct Case {
    std::vector<std::string> arguments;
    std::string says;
    Environment environment = {};
  };
  const std::vector<Case> cases{
      {{}, "give --script FILE:FUNCTION, or --link-only"},
      {{"--script", "none.py:make"}, "none.py: no such file; expected FILE:FUNCTION"},
      {{"--script", small("nope")}, "has no function nope"},
      {{"--script", "broken.py"}, "broken.py raised SyntaxError"},
      {{"--script", small("raises")}, "raised ValueError: the data set is not there"},
      {{"--script", small("leaves")}, "called sys.exit(7)"},
      {{"--script", small("alone")},
       "expected (model, batch), (model, batch, loss) or (model, batch, loss, optimizer), got 1 "
       "values"},
      {{"--script", small("no_module")}, "the model is a str, not a torch.nn.Module"},
      {{"--script", small("no_optimizer")}, "the optimizer is a str without step()"},
      {{"--script", small("vector")}, "got a tensor of shape [4, 4]"},
      {{"--script", small("number")}, "has to return one number"},
      {{"--script", small("detached")}, "the loss does not depend on any parameter"},
      {{"--script", small("still")}, "no parameter of the model requires a gradient"},
      {{"--script", small("doubles")}, "parameter 0.weight is float64"},
      {{"--script", small("mismatched")}, "a training step raised RuntimeError"},
      {{"--script", small("trained"), "--steps", "3"}, "at least 4"},
      {{"--script", small("trained"), "--largest", "64 MB"}, "such as \"64 MiB\""},
      {{"--script", small("trained"), "--output", "/proc/none"}, "/proc/none"},
      {{"--link-only"}, "--link-only measures between ranks"},
      {{"--link-only"}, "WORLD_SIZE: expected a number of ranks", {{"WORLD_SIZE", "two"}}},
      {{"--link-only"}, "MASTER_ADDR is not", {{"WORLD_SIZE", "2"}, {"RANK", "0"}}},
      {{"--script", small("trained"), "--backend", "nccl"}, "nccl goes with cuda"},
      {{"--link-only"}, "RANK: expected a number", {{"WORLD_SIZE", "2"}, {"RANK", "x"}}}};
  std::vector<PythonProgram> programs;
  for (const Case& each : cases) {
    programs.push_back({{profiler}, each.environment});
    std::vector<std::string>& words = programs.back().words;
    words.insert(words.end(), each.arguments.begin(), each.arguments.end());
  }
  const std::vector<Outcome> found = torch_forks(scratch, programs);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    CAPTURE(cases[i].arguments, cases[i].says);
    CHECK(found[i].code == 2);
    CHECK(found[i].out.empty());
    CHECK(lines_of(found[i].err).size() == 1);
    CHECK_THAT(found[i].err,
               Catch::StartsWith("ddpsim.profile: ") && Catch::Contains(cases[i].says));
  }
  CHECK(!std::filesystem::exists(scratch.path("profile")));
}

/// Two ranks of the profile on this machine.
class TwoRanks {
 public:
  TwoRanks(const Scratch& scratch, const std::vector<std::string>& arguments) {
    const std::string port = LocalPort(false).number();
    for (const std::string rank : {"0", "1"})
      ranks_.push_back(std::make_unique<Running>(profile_flags(arguments), scratch.folder(),
                                                 Environment{{"RANK", rank},
                                                             {"WORLD_SIZE", "2"},
                                                             {"MASTER_ADDR", "127.0.0.1"},
                                                             {"MASTER_PORT", port},
                                                             {"OMP_NUM_THREADS", "1"}}));
  }
  Outcome wait(std::size_t rank) { return ranks_[rank]->wait(); }

 private:
  std::vector<std::unique_ptr<Running>> ranks_;
};

TEST_CASE("two ranks write link, calibration and a scenario that runs as it is",
          "[tools][torch_profile]") {
  if (torch_python().empty()) return;
  const Scratch scratch;
  TwoRanks ranks(scratch, {"--script", small("trained"), "--seconds", "4", "--largest", "1 MiB"});
  const Outcome first = ranks.wait(0), second = ranks.wait(1);
  INFO(first.err << second.err);
  REQUIRE(first.code == 0);
  REQUIRE(second.code == 0);
  CHECK(second.out.empty());  // rank 0 speaks for the job
  CHECK_THAT(first.out, Catch::Contains("next: ddpsim tune profile/scenario.yaml"));

  const Outcome outcome = ddpsim({"run", "profile/scenario.yaml", "--json", "-"}, scratch.folder());
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  CHECK(outcome.json()["ranks"] == 2);
  const Scenario scenario = read_scenario(scratch.path("profile/scenario.yaml"));
  REQUIRE(scenario.cluster.calibration);
  const Calibration& calibration = *scenario.cluster.calibration;
  CHECK(calibration.synchronous);
  CHECK(calibration.backend == "torch gloo");
  CHECK(scenario.workload.step_spread == 0);  // how much later the slowest rank is was measured
  // 4 KiB to 1 MiB in powers of two.
  REQUIRE(calibration.all_reduce.size() == 9);
  // torch's Gloo has two threads for collectives.
  CHECK(calibration.collectives_at_once == 2);
  CHECK(scenario.cluster.collectives_at_once == 2);
  for (const AllReduceCost& point : calibration.all_reduce) {
    REQUIRE(point.streamed);
    CHECK(*point.streamed <= point.time.median);
    CHECK(*point.streamed > scaled(point.time.median, 0.49));
  }
  CHECK(calibration.all_reduce.front().size == Bytes{4096});
  CHECK(calibration.all_reduce.back().size == Bytes{1 << 20});
  CHECK(calibration.launch.collective > Duration::zero());
  // Copies and divisions of 4, 16, 64, 256 and 1024 KiB, each in four kinds; reading and writing
  // doubles the bytes. Then flat tensors of 64 KiB and 1 MiB.
  REQUIRE(calibration.tasks.size() == 22);
  CHECK(calibration.tasks[3].operation == Operation::divide);
  CHECK(calibration.tasks[20].operation == Operation::concatenate);
  CHECK(calibration.tasks[21].traffic == Bytes{2 << 20});
  CHECK(calibration.tasks[0].operation == Operation::copy_in);
  CHECK(calibration.tasks[0].traffic == Bytes{8192});
  for (const MeasuredInterference& point : calibration.interference) {
    CHECK(point.compute_slowdown >= 1);
    CHECK(point.communication_slowdown >= 1);
  }

  // The next steps it names.
  CHECK(ddpsim({"tune", "profile/scenario.yaml"}, scratch.folder()).code == 0);
  const Outcome tuned = ddpsim({"tune", "profile/workload.yaml", "--link", "profile/link.yaml",
                                "--ranks", "4", "--device", "generic-cpu"},
                               scratch.folder());
  INFO(tuned.err);
  // Beside other programs the smallest all-reduce may have taken longer than the largest.
  const bool no_table = tuned.err.find("more bytes take less time") != std::string::npos;
  CHECK(tuned.code == (no_table ? 2 : 0));
}

TEST_CASE("a profile's gradients keep their memory from step to step", "[tools][torch_profile]") {
  if (torch_python().empty()) return;
  // 40 layers of 1.4 MB, 57.7 MB of gradients: 14082 pages of 4 KiB, each a fault in every backward
  // if the C library gives them back.
  const std::string script =
      "import sys; sys.path.insert(0, sys.argv[1]); import torch; torch.set_num_threads(1)\n"
      "from ddpsim.profile import memory\n"
      "model = torch.nn.Sequential(*(torch.nn.Linear(600, 600) for _ in range(40)))\n"
      "optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)\n"
      "kept, found = memory.keep(), []\n"
      "for _ in range(8):\n"
      "    optimizer.zero_grad()\n"
      "    loss = model(torch.ones(4, 600)).sum()\n"
      "    before = memory.faults()\n"
      "    loss.backward()\n"
      "    found.append(memory.faults() - before)\n"
      "    optimizer.step()\n"
      "print(max(found[4:]) if kept else 0)\n";
  const Outcome outcome = execute({torch_python(), "-B", "-c", script, package});
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  CHECK(std::stoi(outcome.out) < 1400);
}

TEST_CASE("all-reduces that take longer than larger ones are measured again",
          "[tools][torch_profile]") {
  if (torch_python().empty()) return;
  const std::string script =
      "import sys; sys.path.insert(0, sys.argv[1]); from ddpsim.profile import all_reduce\n"
      "spread = lambda median: all_reduce.Spread([median])\n"
      "measured = {4: spread(1.0), 8: spread(5.0), 16: spread(2.0), 32: spread(4.0), 64: "
      "spread(3.9)}\n"
      "for second in 1.5, 6.0:\n"
      "    asked = []\n"
      "    measure = lambda size: asked.append(size) or spread(second)\n"
      "    times = all_reduce.without_disturbance(measured, measure)\n"
      "    print(asked, [times[size].median for size in measured])\n";
  const Outcome outcome = execute({torch_python(), "-B", "-c", script, package});
  INFO(outcome.err);
  // What stays slow is asked for twice; a difference of less than a tenth, never.
  CHECK(outcome.out == "[8] [1.0, 1.5, 2.0, 4.0, 3.9]\n[8, 8] [1.0, 5.0, 2.0, 4.0, 3.9]\n");
}

TEST_CASE("a profile says when a virtual machine's host took its processors",
          "[tools][torch_profile]") {
  if (torch_python().empty()) return;
  // Seconds that processors worked and that were stolen, at the beginning and in the end.
  const std::string script =
      "import sys; sys.path.insert(0, sys.argv[1]); from ddpsim.profile import steal\n"
      "for end in (61.0, 22.0), (98.0, 5.0), (0.0, 0.0):\n"
      "    readings = iter([(1.0, 2.0), end])\n"
      "    steal.used_seconds = lambda: next(readings)\n"
      "    print(*steal.Steal.doubts(steal.Steal().share()))\n";
  const Outcome outcome = execute({torch_python(), "-B", "-c", script, package});
  INFO(outcome.err);
  CHECK(
      outcome.out ==
      "the host of this virtual machine took 25 % of its processors' time meanwhile: measure again "
      "when it takes less\n\n\n");
}

TEST_CASE("without a model, ranks on CPUs do not say what the slowest of them costs",
          "[tools][torch_profile]") {
  if (torch_python().empty()) return;
  const Scratch scratch;
  TwoRanks ranks(scratch, {"--link-only", "--seconds", "2", "--largest", "64 KiB"});
  const Outcome first = ranks.wait(0), second = ranks.wait(1);
  INFO(first.err << second.err);
  REQUIRE(first.code == 0);
  REQUIRE(second.code == 0);
  const Calibration calibration = read_calibration(scratch.path("profile/calibration.yaml"));
  CHECK(calibration.slowest_rank == 1);
  // Beside other programs the time may not do for the last sizes.
  const bool was_short = first.err.find("are left out") != std::string::npos;
  CHECK((calibration.all_reduce.size() == 5) != was_short);
}

TEST_CASE("under torchrun the command, and three lines of a loop, are run by two real ranks",
          "[tools][torch_profile]") {
  if (torch_python().empty()) return;
  const Scratch scratch;
  const auto torchrun = [&](const std::vector<std::string>& arguments) {
    std::vector<std::string> words{torch_python(),
                                   "-B",
                                   "-m",
                                   "torch.distributed.run",
                                   "--master-port",
                                   LocalPort(false).number(),
                                   "--nproc-per-node",
                                   "2"};
    words.insert(words.end(), arguments.begin(), arguments.end());
    return execute(words, scratch.folder(),
                   {{"PYTHONPATH", package}, {"OMP_NUM_THREADS", "1"}, {"USE_LIBUV", "0"}});
  };
  const Outcome command = torchrun({"-m", "ddpsim.profile", "--script", small("trained"),
                                    "--seconds", "2", "--largest", "64 KiB"});
  INFO(command.err);
  REQUIRE(command.code == 0);
  CHECK_THAT(command.out, Catch::Contains("all-reduce over 2 ranks (gloo)"));
  CHECK(ddpsim({"run", "profile/scenario.yaml"}, scratch.folder()).code == 0);

  // The loop, then the function, within a process group of the user's own, which stays.
  const Outcome loop = torchrun({model("two_ranks.py")});
  INFO(loop.err);
  REQUIRE(loop.code == 0);
  CHECK(loop.out ==
        "rank 0: trained, profile/scenario.yaml\nrank 1: trained, profile/scenario.yaml\n");
  CHECK(read(scratch, "loop.yaml").parameters.size() == 4);
  CHECK_THAT(loop.err, Catch::Contains("wrote loop.yaml"));
  CHECK(loop.err.find("wrote loop.yaml") == loop.err.rfind("wrote loop.yaml"));  // rank 0 alone
}

TEST_CASE("a rank that dies ends the others with one line", "[tools][torch_profile]") {
  if (torch_python().empty()) return;
  const Scratch scratch;
  TwoRanks ranks(scratch, {"--script", small("dies"), "--timeout", "20"});
  CHECK(ranks.wait(1).code == 3);  // its own doing
  const Outcome left = ranks.wait(0);
  CHECK(left.code == 1);
  CHECK(lines_of(left.err).size() == 1);
  CHECK_THAT(left.err, Catch::Contains("rank 0: a collective failed; did another rank die"));
  CHECK(!std::filesystem::exists(scratch.path("profile")));
}

TEST_CASE("a rank that stalls, or never comes, ends the others within the timeout",
          "[tools][torch_profile]") {
  if (torch_python().empty()) return;
  const Scratch scratch;
  TwoRanks ranks(scratch, {"--script", small("sleeps"), "--timeout", "6"});
  for (const std::size_t rank : {0, 1}) {
    const Outcome outcome = ranks.wait(rank);  // the test program is killed after three minutes
    CHECK(outcome.code == 1);
    CHECK(lines_of(outcome.err).size() == 1);
  }
  // Torch has lines of its own about this.
  const Outcome alone = execute(profile_flags({"--link-only", "--timeout", "3"}), scratch.folder(),
                                {{"RANK", "1"},
                                 {"WORLD_SIZE", "2"},
                                 {"MASTER_ADDR", "127.0.0.1"},
                                 {"MASTER_PORT", LocalPort(false).number()}});
  CHECK(alone.code == 1);
  CHECK_THAT(lines_of(alone.err).back(), Catch::StartsWith("ddpsim.profile: rank 1: the ranks did "
                                                           "not find each other at 127.0.0.1:"));
}

TEST_CASE("ranks that look for each other without an end are told that they did not",
          "[tools][torch_profile]") {
  if (torch_python().empty()) return;
  // As on a machine so busy that torch's own time-out, which is shorter, does not come.
  const std::string script =
      "import sys, time; sys.path.insert(0, sys.argv[1])\n"
      "import torch; from ddpsim.profile.job import Job\n"
      "torch.distributed.init_process_group = lambda *_, **__: time.sleep(60)\n"
      "Job(torch.device('cpu'), 0.1)\n";
  const Outcome outcome = execute(
      {torch_python(), "-B", "-c", script, package}, "",
      {{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", "1"}});
  CHECK(outcome.code == 1);
  CHECK(outcome.err ==
        "ddpsim.profile: rank 1: the ranks did not find each other at 127.0.0.1:1 within 2.15 s\n");
}

}  // namespace
}  // namespace ddpsim
