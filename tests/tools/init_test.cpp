// `ddpsim init`: what it writes runs, with flags and with answers to its questions on a terminal.
#include <catch2/catch.hpp>
#include <fmt/format.h>
#include <poll.h>
#include <pty.h>

#include "tests/tools/program.hpp"

namespace ddpsim {
namespace {

/// `ddpsim init` on a terminal in `folder`: what it showed, and its exit code. `typed` is what
/// somebody types; the end of input follows.
Outcome on_terminal(const std::string& typed, const std::filesystem::path& folder,
                    const std::vector<std::string>& arguments = {"init"}) {
  int terminal = -1;
  const pid_t child = forkpty(&terminal, nullptr, nullptr, nullptr);
  if (child < 0) throw std::runtime_error("forkpty failed");
  if (child == 0) {
    std::vector<char*> words{const_cast<char*>(DDPSIM_PROGRAM)};
    for (const std::string& argument : arguments)
      words.push_back(const_cast<char*>(argument.c_str()));
    words.push_back(nullptr);
    if (chdir(folder.c_str()) != 0) _exit(126);
    alarm(60);
    execv(words[0], words.data());
    _exit(127);
  }
  const std::string input = typed + "\x04";  // end of transmission: the terminal's end of input
  REQUIRE(write(terminal, input.data(), input.size()) == static_cast<ssize_t>(input.size()));
  Outcome outcome;
  char bytes[4096];
  for (ssize_t count; (count = read(terminal, bytes, sizeof bytes)) > 0;)
    outcome.out.append(bytes, static_cast<std::size_t>(count));
  int status = 0;
  waitpid(child, &status, 0);
  close(terminal);
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return outcome;
}

Json predicted(const Scratch& scratch, const std::string& file) {
  const Outcome outcome = ddpsim({"run", file, "--json", "-"}, scratch.folder());
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  return outcome.json();
}

TEST_CASE("every model of the catalogue gets a scenario that runs", "[tools][init]") {
  const Scratch scratch;
  for (const Json& model : ddpsim({"list", "models", "--json", "-"}).json()) {
    const auto name = model["model"].get<std::string>();
    CAPTURE(name);
    const Outcome outcome = ddpsim({"init", "--model", name, name + ".yaml"}, scratch.folder());
    CHECK(outcome.code == 0);
    CHECK_THAT(outcome.out, Catch::StartsWith(name + ".yaml is written. " + name + ": 1 node of "));
    const Outcome listed = ddpsim({"schedule", name + ".yaml", "-q"}, scratch.folder());
    INFO(listed.err);
    CHECK(listed.code == 0);
  }
}

TEST_CASE("every ready cluster and every device gets a scenario that runs", "[tools][init]") {
  const Scratch scratch;
  for (const Json& cluster : ddpsim({"list", "clusters", "--json", "-"}).json()) {
    const auto name = cluster["cluster"].get<std::string>();
    CAPTURE(name);
    CHECK(ddpsim({"init", "--cluster", name, "--nodes", "2", name + ".yaml"}, scratch.folder())
              .code == 0);
    const Json result = predicted(scratch, name + ".yaml");
    CHECK(result["cluster"]["nodes"] == 2);
    CHECK(result["results"].size() == 5);
  }
  for (const Json& device : ddpsim({"list", "devices", "--json", "-"}).json()) {
    const auto name = device["device"].get<std::string>();
    CAPTURE(name);
    CHECK(ddpsim({"init", "--device", name, name + ".yaml"}, scratch.folder()).code == 0);
    CHECK(predicted(scratch, name + ".yaml")["cluster"]["device"] == name);
  }
}

TEST_CASE("a cluster that lists the ranks of each node says how many nodes there are",
          "[tools][init]") {
  const Scratch scratch;
  scratch.write("uneven.yaml",
                "device: a100-40\nranks_per_node: [8, 4]\nintra_node: nvlink3\n"
                "inter_node: ib-hdr\n");
  const auto init = [&](std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"init", "--cluster", "uneven.yaml", "--force", "s.yaml"});
    return ddpsim(flags, scratch.folder());
  };
  CHECK(init({}).code == 0);
  CHECK(predicted(scratch, "s.yaml")["cluster"]["nodes"] == 2);
  CHECK(init({"--nodes", "2"}).code == 0);
  const Outcome refused = init({"--nodes", "3"});
  CHECK(refused.code == 2);
  CHECK(refused.err ==
        "ddpsim: --nodes 3: uneven.yaml lists the ranks of 2 nodes: leave --nodes out, or name "
        "another cluster\n");
}

TEST_CASE("a cluster that says how many nodes it has gets so many", "[tools][init]") {
  const Scratch scratch;
  scratch.write("site.yaml",
                "device: h100-sxm\nnodes: 4\nranks_per_node: 8\nintra_node: nvlink4\n"
                "inter_node: ib-ndr\n");
  const auto nodes = [&](std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"init", "--cluster", "site.yaml", "--force", "s.yaml"});
    const Outcome outcome = ddpsim(flags, scratch.folder());
    CAPTURE(outcome.err);
    REQUIRE(outcome.code == 0);
    return predicted(scratch, "s.yaml")["cluster"]["nodes"].get<int>();
  };
  CHECK(nodes({}) == 4);
  CHECK(nodes({"--nodes", "2"}) == 2);
}

TEST_CASE("what the lines after their marks say can be said", "[tools][init]") {
  const Scratch scratch;
  REQUIRE(ddpsim({"init"}, scratch.folder()).code == 0);
  std::string text = content_of(scratch.path("scenario.yaml"));
  for (const std::string mark : {"  # price", "  # bucket_cap", "  # comm_hook",
                                 "# measured:", "#   rows:", "#     - {strategy"}) {
    const std::size_t at = text.find("\n" + mark);
    CAPTURE(mark);
    REQUIRE(at != std::string::npos);
    text.erase(text.find('#', at), 2);
  }
  const std::string one = "micro_batches: 1 ";
  REQUIRE(text.find(one) != std::string::npos);
  text.replace(text.find(one), one.size(), "micro_batches: 4 ");
  scratch.write("all.yaml", text);
  const Json result = predicted(scratch, "all.yaml");
  for (const Json& row : result["results"]) {
    CHECK(row["currency"] == "USD");
    if (row["strategy"] == "naive") CHECK(row["collectives"] == 4 * 148);  // of each micro-batch
    if (row["strategy"] == "naive") CHECK(row["step_ms"] == Approx(531.7).epsilon(1e-6));
    // In each of four micro-batches the switches add up what each rank sends once (NVLS): two
    // bytes of every gradient.
    if (row["strategy"] == "bucketed") CHECK(row["wire_bytes"] == 4 * 2 * 124439808);
  }
}

TEST_CASE("the batch is halved until a step fits, and a note says where none does",
          "[tools][init]") {
  const Scratch scratch;
  // AdamW on fp32: 16 bytes a parameter. Llama 2 7B takes 108 GB without activations: more than an
  // H100's 80, less than a B200's 180.
  const Outcome tight =
      ddpsim({"init", "--model", "llama2-7b", "--cluster", "dgx-h100", "h.yaml"}, scratch.folder());
  CHECK(tight.code == 0);
  CHECK_THAT(tight.err, Catch::StartsWith("note: a step does not fit"));
  CHECK_THAT(content_of(scratch.path("h.yaml")), Catch::Contains("batch: 1 "));
  const Outcome wide =
      ddpsim({"init", "--model", "llama2-7b", "--cluster", "dgx-b200", "b.yaml"}, scratch.folder());
  CHECK(wide.code == 0);
  CHECK(wide.err.empty());
  const Json answer = predicted(scratch, "b.yaml");
  for (const Json& row : answer["results"])
    if (row["strategy"] == "bucketed") CHECK(row["fits_device"] == true);
}

TEST_CASE("a file of one's own is named from where the scenario lies", "[tools][init]") {
  const Scratch scratch;
  std::filesystem::create_directory(scratch.path("runs"));
  scratch.write("my network", content_of(shipped("examples/profiles/profile.yaml")));
  REQUIRE(ddpsim({"init", "--model", "my network", "--device", "v100", "--ranks-per-node", "2",
                  "--link", "nvlink2", "runs/it.yaml"},
                 scratch.folder())
              .code == 0);
  CHECK_THAT(content_of(scratch.path("runs/it.yaml")), Catch::Contains("model: ../my network"));
  CHECK(predicted(scratch, "runs/it.yaml")["cluster"]["ranks_per_node"] == 2);
}

TEST_CASE("a file that is there stays, unless --force replaces it", "[tools][init]") {
  const Scratch scratch;
  scratch.write("scenario.yaml", "mine");
  const Outcome refused = ddpsim({"init"}, scratch.folder());
  CHECK(refused.code == 2);
  CHECK(refused.err ==
        "ddpsim: scenario.yaml is there already: name another file, or --force replaces this "
        "one\n");
  CHECK(content_of(scratch.path("scenario.yaml")) == "mine");
  CHECK(ddpsim({"init", "--force"}, scratch.folder()).code == 0);
  CHECK(predicted(scratch, "scenario.yaml")["ranks"] == 8);
  const Outcome shown = ddpsim({"init", "-"}, scratch.folder());
  CHECK(shown.code == 0);
  CHECK(shown.out == content_of(scratch.path("scenario.yaml")));
}

TEST_CASE("flags that do not go together are told in a line, and nothing is written",
          "[tools][init]") {
  const Scratch scratch;
  const auto refused = [&](std::vector<std::string> flags, const std::string& told) {
    flags.insert(flags.begin(), "init");
    const Outcome outcome = ddpsim(flags, scratch.folder());
    CHECK(outcome.code == 2);
    CHECK_THAT(outcome.err, Catch::StartsWith("ddpsim: " + told));
    CHECK(lines_of(outcome.err).size() == 1);
    CHECK(std::filesystem::is_empty(scratch.folder()));
  };
  refused({"--model", "gtp2"}, "--model gtp2: unknown name \"gtp2\"; did you mean \"gpt2\"?");
  refused({"--cluster", "dgx-h10"}, "--cluster dgx-h10: unknown name \"dgx-h10\"; did you mean");
  refused({"--device", "v10"}, "--device v10: unknown name \"v10\"; did you mean \"v100\"?");
  refused({"--device", "v100", "--cluster", "dgx-h100"}, "--cluster says which device there is");
  refused({"--link", "nvlink4"}, "--link and --ranks-per-node go with --device");
  refused({"--device", "v100", "--nodes", "2"}, "--nodes 2 needs --link: what joins nodes");
  refused({"--device", "v100", "--ranks-per-node", "2", "--link", "ib-hdr"},
          "--ranks-per-node 2 needs --link: what joins the ranks of a node");
  refused({"--device", "v100", "--link", "ib-hdr"}, "--link ib-hdr joins nodes: say how many");
  refused({"--device", "v100", "--link", "pcie3"}, "--link pcie3 joins the ranks of a node");
  refused({"--batch", "0"}, "--batch 0: expected");
  refused({"a.yaml", "b.yaml"}, "init writes one file");
  refused({"nowhere/a.yaml"}, "nowhere/a.yaml: ");
}

TEST_CASE("on a terminal it asks, says what is wrong with an answer, and asks again",
          "[tools][init]") {
  const Scratch scratch;
  const Outcome outcome = on_terminal(
      "resnet5\nresnet50\nv100\n2\nmany\n4\nib-hdr\n\nethernet-25g\n", scratch.folder());
  CAPTURE(outcome.out);
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.out, Catch::Contains("What is trained?"));
  CHECK_THAT(outcome.out, Catch::Contains("unknown name \"resnet5\""));
  CHECK_THAT(outcome.out, Catch::Contains("the number many: expected"));
  CHECK_THAT(outcome.out, Catch::Contains("ib-hdr joins nodes: name a link inside one"));
  CHECK_THAT(outcome.out, Catch::Contains("scenario.yaml is written. resnet50: 2 nodes of"));
  const Json result = predicted(scratch, "scenario.yaml");
  CHECK(result["ranks"] == 8);
  CHECK(result["cluster"]["nodes"] == 2);
  CHECK_THAT(content_of(scratch.path("scenario.yaml")), Catch::Contains("intra_node: pcie4"));
}

TEST_CASE("an empty answer takes what stands in brackets, and no answer writes nothing",
          "[tools][init]") {
  const Scratch scratch;
  const Outcome ended = on_terminal("gpt2\n", scratch.folder());
  CAPTURE(ended.out);
  CHECK(ended.code == 2);
  CHECK_THAT(ended.out, Catch::Contains("the questions were not answered: nothing is written"));
  CHECK(std::filesystem::is_empty(scratch.folder()));
  CHECK(on_terminal("\n\n\n", scratch.folder()).code == 0);
  const Json result = predicted(scratch, "scenario.yaml");
  CHECK(result["cluster"]["device"] == "h100-sxm");
  CHECK(result["ranks"] == 8);
  // A flag says enough: nobody is asked.
  const Outcome flags = on_terminal("", scratch.folder(), {"init", "--model", "vgg16", "vgg.yaml"});
  CHECK(flags.code == 0);
  CHECK_THAT(flags.out, !Catch::Contains("?"));
}

TEST_CASE("a scenario is called by what it trains, whatever it trains on", "[tools][init]") {
  const Outcome made = ddpsim({"init", "--model", "gpt2-xl", "--cluster", "dgx-a100", "-"});
  CHECK(made.code == 0);
  CHECK_THAT(made.out, Catch::Contains("\nname: gpt2-xl\n"));
}

}  // namespace
}  // namespace ddpsim
