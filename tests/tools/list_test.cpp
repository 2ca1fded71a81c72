#include <map>
#include <set>

#include <catch2/catch.hpp>

#include "model/parallel/strategy.hpp"
#include "tests/tools/program.hpp"

namespace ddpsim {
namespace {

/// The first column of a list, from its JSON.
std::set<std::string> names_in(const std::string& kind, const std::string& column) {
  const Outcome outcome = ddpsim({"list", kind, "--json", "-"});
  REQUIRE(outcome.code == 0);
  const Json rows = outcome.json();
  std::set<std::string> names;
  for (const Json& row : rows) CHECK(names.insert(row.at(column)).second);
  return names;
}

std::set<std::string> files_in(const std::string& folder) {
  std::set<std::string> names;
  for (const std::string& file : shipped_files("catalogue/" + folder))
    names.insert(std::filesystem::path(file).stem().string());
  return names;
}

TEST_CASE("list shows every entry of the catalogue", "[tools][list]") {
  CHECK(names_in("models", "model") == files_in("models"));
  CHECK(names_in("devices", "device") == files_in("devices"));
  CHECK(names_in("links", "link") == files_in("links"));
  CHECK(names_in("clusters", "cluster") == files_in("clusters"));
}

TEST_CASE("list says which devices copy to each other over PCIe", "[tools][list]") {
  std::map<std::string, std::string> peers;
  for (const Json& row : ddpsim({"list", "devices", "--json", "-"}).json())
    peers[row["device"]] = row["peer_to_peer"];
  CHECK(peers["a40"] == "yes");
  CHECK(peers["t4"] == "no");
  CHECK(peers["generic-cpu"] == "-");
}

TEST_CASE("list shows hooks and backends", "[tools][list]") {
  const Json hooks = ddpsim({"list", "hooks", "--json", "-"}).json();
  std::set<std::string> comm_hooks, own_hooks;
  for (const Json& row : hooks) {
    if (row.contains("comm hook")) {
      CHECK(comm_hooks.insert(row["comm hook"]).second);
      CHECK(row.contains("payload of a bucket (bytes)"));
      CHECK(!row["source"].get<std::string>().empty());
    } else {
      CHECK(own_hooks.insert(row["hook of training.hooks"]).second);
    }
  }
  CHECK(comm_hooks == std::set<std::string>{"none", "allreduce", "noop", "fp16_compress",
                                            "bf16_compress", "powersgd", "batched_powersgd",
                                            "quantization_pertensor", "quantization_perchannel",
                                            "post_local_sgd", "optimizer_overlap", "zero_step",
                                            "zero_step_interleaved", "steps", "plugin"});
  CHECK(own_hooks ==
        std::set<std::string>{"clip", "scale", "noise", "decay", "record", "chunks", "plugin"});
  CHECK(names_in("backends", "backend") == std::set<std::string>{"gloo", "nccl", "threads"});
}

TEST_CASE("list shows the strategies with what each does", "[tools][list]") {
  std::map<std::string, std::string> meanings;
  for (const Json& row : ddpsim({"list", "strategies", "--json", "-"}).json())
    meanings[row.at("strategy")] = row.at("meaning");
  CHECK(meanings.size() == all_strategies.size());
  CHECK_THAT(meanings["none"], Catch::StartsWith("no communication"));
  CHECK_THAT(meanings["bucketed"], Catch::StartsWith("DistributedDataParallel"));
  for (const auto& [name, meaning] : meanings) {
    CAPTURE(name);
    CHECK(strategy_named(name));
    // What the key says of it too, over several lines.
    const std::string first_words = meaning.substr(0, 30);
    CHECK_THAT(ddpsim({"explain", "training.strategy"}).out, Catch::Contains(first_words));
  }
}

TEST_CASE("every list prints a table with a line for each of its names", "[tools][list]") {
  for (const char* kind : {"models", "devices", "links", "clusters", "hosts", "operations",
                           "strategies", "backends", "results"}) {
    CAPTURE(kind);
    const Outcome table = ddpsim({"list", kind});
    CHECK(table.code == 0);
    CHECK(table.err.empty());
    const Outcome json = ddpsim({"list", kind, "--json", "-"});
    const std::size_t entries = json.json().size();
    CHECK(entries > 0);
    // A header and a rule; where there are sources, a blank line, a title and a line for each.
    const bool sources = json.json()[0].contains("source");
    CHECK(lines_of(table.out).size() == entries + 2 + (sources ? entries + 2 : 0));
  }
}

TEST_CASE("a model is listed with its tensors, elements and source", "[tools][list]") {
  const Outcome outcome = ddpsim({"list", "models"});
  for (const std::string& line : lines_of(outcome.out))
    if (line.rfind("gpt2 ", 0) == 0)
      CHECK_THAT(line, Catch::Contains("148") && Catch::Contains("124439808"));
  CHECK_THAT(outcome.out, Catch::Contains("\ngpt2 "));
  CHECK_THAT(outcome.out, Catch::Contains("\ngpt2: openai-community/gpt2, config.json"));
}

TEST_CASE("a list leaves out what cannot be read, and names it", "[tools][list]") {
  const Scratch scratch;
  std::filesystem::copy(shipped("catalogue"), scratch.path("catalogue"),
                        std::filesystem::copy_options::recursive);
  const auto list = [&](const std::string& kind) {
    return execute({DDPSIM_PROGRAM, "list", kind, "--json", "-"}, {},
                   {{"DDPSIM_CATALOGUE", scratch.path("catalogue").string()}});
  };
  const std::size_t clusters = list("clusters").json().size(),
                    devices = list("devices").json().size();
  // As `import nccl-log` writes a cluster: NCCL does not name the GPUs.
  scratch.write("catalogue/clusters/our.yaml",
                "nodes: 2\nranks_per_node: 8\nintra_node: nvlink4\ninter_node: ib-ndr\n");
  const Outcome with_ours = list("clusters");
  CHECK(with_ours.code == 2);
  CHECK(with_ours.json().size() == clusters);
  CHECK(with_ours.err ==
        "ddpsim: left out of this list: " + scratch.path("catalogue/clusters/our.yaml").string() +
            ":1:1: missing key \"device\": add the key, or give --device NAME beside --cluster "
            "our\n");
  scratch.write("catalogue/devices/own.yaml", "base: t4\nmultiprocessors: many\n");
  const Outcome of_devices = list("devices");
  CHECK(of_devices.code == 2);
  CHECK(of_devices.json().size() == devices);
  CHECK_THAT(of_devices.err, Catch::Contains("own.yaml:2:18: "));
}

TEST_CASE("an entry that is based on another has its own source", "[tools][list]") {
  const Scratch scratch;
  std::filesystem::copy(shipped("catalogue"), scratch.path("catalogue"),
                        std::filesystem::copy_options::recursive);
  const auto sources = [&](const std::string& kind) {
    return execute({DDPSIM_PROGRAM, "list", kind}, {},
                   {{"DDPSIM_CATALOGUE", scratch.path("catalogue").string()}})
        .out;
  };
  for (const auto& [folder, based] :
       {std::pair("devices", "base: t4\n"), std::pair("links", "base: nvlink4\n"),
        std::pair("models", "base: gpt2\n"), std::pair("hosts", "base: reference\n"),
        std::pair("clusters", "system: dgx-h100\n")}) {
    CAPTURE(folder);
    const std::string base = std::string(based).substr(std::string(based).find(' ') + 1),
                      catalogue = std::string("catalogue/") + folder;
    scratch.write(catalogue + "/told.yaml", based + std::string("source: a data sheet\n"));
    scratch.write(catalogue + "/untold.yaml", based);
    CHECK_THAT(sources(folder), Catch::Contains("\ntold: a data sheet; the rest as " + base) &&
                                    Catch::Contains("\nuntold: not said; the rest as " + base));
  }
}

TEST_CASE(
    "list shows the nodes and the price of a ready cluster that has them, and no empty source",
    "[tools][list]") {
  const Scratch scratch;
  std::filesystem::copy(shipped("catalogue"), scratch.path("catalogue"),
                        std::filesystem::copy_options::recursive);
  const auto list = [&](const std::vector<std::string>& more = {}) {
    std::vector<std::string> words{DDPSIM_PROGRAM, "list", "clusters", "--wide"};
    words.insert(words.end(), more.begin(), more.end());
    return execute(words, {}, {{"DDPSIM_CATALOGUE", scratch.path("catalogue").string()}});
  };
  CHECK_THAT(list().out, !Catch::Contains("nodes") && !Catch::Contains("price"));
  scratch.write("catalogue/clusters/our-site.yaml",
                "device: h100-sxm\nranks_per_node: 8\nnodes: 4\nintra_node: nvlink4\n"
                "inter_node: {base: ib-ndr, nics: 8}\nprice: 2.5 USD/h\n");
  scratch.write("catalogue/clusters/halves.yaml", "system: our-site\nranks_per_node: [8, 4]\n");
  const std::string table = list().out;
  CHECK_THAT(table, Catch::Contains("nodes      price") &&
                        Catch::Matches("(.|\n)*our-site .* 4  2.5 USD/h\n(.|\n)*") &&
                        Catch::Matches("(.|\n)*halves .* 2  2.5 USD/h\n(.|\n)*"));
  CHECK_THAT(table, Catch::Contains("\ndgx-h100: ") && !Catch::Contains("our-site:") &&
                        !Catch::Contains("halves:"));
  for (const Json& row : list({"--json", "-"}).json()) {
    const bool ours = row.at("cluster") == "our-site";
    CHECK((ours || row.at("cluster") == "halves") == row.at("price").is_string());
    if (ours) CHECK(row.at("nodes") == 4);
    if (row.at("cluster") == "dgx-h100")
      CHECK((row.at("nodes").is_null() && row.at("price").is_null()));
  }
}

TEST_CASE("list says nothing of a network that a cluster lacks, nor of what NCCL does not count",
          "[tools][list]") {
  const Scratch scratch;
  std::filesystem::copy(shipped("catalogue"), scratch.path("catalogue"),
                        std::filesystem::copy_options::recursive);
  scratch.write("catalogue/clusters/ws.yaml",
                "device: rtx4090\nranks_per_node: 2\nintra_node: pcie4\n");
  const auto list = [&](const std::string& kind, const std::vector<std::string>& more) {
    std::vector<std::string> words{DDPSIM_PROGRAM, "list", kind};
    words.insert(words.end(), more.begin(), more.end());
    return execute(words, {}, {{"DDPSIM_CATALOGUE", scratch.path("catalogue").string()}});
  };
  CHECK_THAT(list("clusters", {"--wide"}).out,
             Catch::Matches("(.|\n)*\nws +rtx4090 +2 +pcie4 +- +- +- *\n(.|\n)*"));
  for (const Json& row : list("clusters", {"--json", "-"}).json())
    for (const char* column : {"inter_node", "NICs", "line rate of each"})
      CHECK(row.at(column).is_null() == (row.at("cluster") == "ws"));
  for (const Json& row : list("links", {"--json", "-"}).json()) {
    CAPTURE(row);
    CHECK(row.at("NCCL counts") != "0 B/s");
    if (row.at("kind") == "plain") CHECK(row.at("NCCL counts").is_null());
    if (row.at("link") == "ib-ndr") CHECK(row.at("NCCL counts").is_string());
  }
  CHECK_THAT(list("links", {}).out, !Catch::Contains("0 B/s "));
}

TEST_CASE("a file of the catalogue with another ending is left out by name", "[tools][list]") {
  const Scratch scratch;
  std::filesystem::copy(shipped("catalogue"), scratch.path("catalogue"),
                        std::filesystem::copy_options::recursive);
  const Environment environment{{"DDPSIM_CATALOGUE", scratch.path("catalogue").string()}};
  const std::string file =
                        scratch.write("catalogue/clusters/our.yml", "system: dgx-h100\n").string(),
                    problem = ": entries of the catalogue end in .yaml: rename the file so";
  const Outcome list = execute({DDPSIM_PROGRAM, "list", "clusters"}, {}, environment);
  CHECK(list.code == 2);
  CHECK(list.err == "ddpsim: left out of this list: " + file + problem + "\n");
  CHECK(execute({DDPSIM_PROGRAM, "list", "links"}, {}, environment).code == 0);
  const Outcome doctor = execute({DDPSIM_PROGRAM, "doctor", "--seconds", "0"}, {}, environment);
  CHECK(doctor.code == 1);
  CHECK_THAT(doctor.err, Catch::Contains(file + problem));
}

TEST_CASE("an unknown list is refused with the nearest", "[tools][list]") {
  const Outcome outcome = ddpsim({"list", "modles"});
  CHECK(outcome.code == 2);
  CHECK(outcome.out.empty());
  CHECK(outcome.err ==
        "ddpsim: unknown list \"modles\"; did you mean \"models\"?; known: models, devices, links, "
        "clusters, hosts, operations, strategies, hooks, backends, results\n");
  for (const std::vector<std::string>& wrong :
       {std::vector<std::string>{"list"}, {"list", "models", "devices"}}) {
    const Outcome refused = ddpsim(wrong);
    CHECK(refused.code == 2);
    CHECK(refused.err ==
          "ddpsim: list needs one of: models, devices, links, clusters, hosts, operations, "
          "strategies, hooks, backends, results\n");
  }
}

}  // namespace
}  // namespace ddpsim
