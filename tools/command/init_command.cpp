#include <algorithm>

#include <fmt/format.h>

#include "scenarios/reader/catalogue/catalogue.hpp"
#include "scenarios/reader/catalogue/entry_keys.hpp"
#include "scenarios/reader/cluster/cluster_reader.hpp"
#include "scenarios/reader/cluster/device_reader.hpp"
#include "scenarios/reader/scenario/not_a_scenario.hpp"
#include "scenarios/reader/scenario/scenario_reader.hpp"
#include "scenarios/reader/text/input_error.hpp"
#include "scenarios/reader/workload/model_reader.hpp"
#include "tools/command/command.hpp"
#include "tools/command/link_flags.hpp"
#include "tools/command/questions.hpp"
#include "tools/report/writers/notes.hpp"
#include "tools/report/writers/output.hpp"
#include "tools/study/flag_values.hpp"
#include "tools/study/starter.hpp"

namespace ddpsim {
namespace {

namespace po = boost::program_options;

constexpr const char* usual_file = "scenario.yaml";
constexpr const char* usual_cluster = "dgx-h100";
constexpr int most_init_nodes = 100'000, most_init_ranks = 1024, most_samples = 10'000'000;

const Usage init_usage{
    "ddpsim init [flags] [FILE.yaml|-]",
    "Writes a scenario to start from: one that runs, with a comment beside each key that people "
    "change. Without flags,\n"
    "on a terminal, it asks what is trained and on what. The batch is, unless given, the largest "
    "of 32 pictures or 8\n"
    "texts, halved until a step fits the device. The file is scenario.yaml unless named, and is "
    "never replaced without\n"
    "--force; - is stdout.",
    "ddpsim init --model gpt2-xl --cluster dgx-h100 --nodes 4"};

struct InitFlags {
  std::string model, cluster, device, nodes, ranks_per_node, batch, strategy;
  std::vector<std::string> links;
  bool force = false;

  bool any() const {
    return !links.empty() ||
           std::ranges::any_of(
               std::array{&model, &cluster, &device, &nodes, &ranks_per_node, &batch, &strategy},
               [](const std::string* each) { return !each->empty(); });
  }
};

po::options_description described(InitFlags& flags) {
  po::options_description own;
  auto add = own.add_options();
  add("model", po::value(&flags.model)->value_name("MODEL"),
      "what is trained: a name of `ddpsim list models` (gpt2 unless given), or the path of a "
      "workload profile, workload description or model description");
  add("cluster", po::value(&flags.cluster)->value_name("CLUSTER"),
      "a ready cluster: a name of `ddpsim list clusters` (dgx-h100 unless given), or a path");
  add("device", po::value(&flags.device)->value_name("DEVICE"),
      "in place of a ready cluster: a name of `ddpsim list devices`, or a path");
  add("nodes", po::value(&flags.nodes)->value_name("N"),
      "how many nodes there are (as many as the ready cluster says, else 1)");
  add("ranks-per-node", po::value(&flags.ranks_per_node)->value_name("N"),
      "with --device: how many ranks a node has (1)");
  add("link", po::value(&flags.links)->value_name("LINK"),
      "with --device: what joins the ranks, a name of `ddpsim list links` or a path; a network "
      "joins nodes, other links the ranks of one (give one of each for both)");
  add("batch", po::value(&flags.batch)->value_name("N"), "how many samples a rank takes");
  add("strategy", po::value(&flags.strategy)->value_name("STRATEGY"),
      "bucketed (DistributedDataParallel, unless given), or fsdp: fully_shard, for a model that "
      "does not fit as a replica on each rank");
  add("force", po::bool_switch(&flags.force), "replace the file if it is there");
  return own;
}

/// What a flag names: an error says so.
Yaml named(const char* flag, const std::string& value) {
  return Yaml::of_setting({"name", value, fmt::format("{} {}", flag, shown(value))});
}

void check_model(const Yaml& model) {
  std::error_code error;
  const std::string& name = model.scalar();
  if (!is_of_catalogue(name, model_entries) && std::filesystem::is_regular_file(name, error) &&
      is_workload_profile(name))
    return;
  read_model(entry_with_bases(model, model_entries));
}

/// Throws InputError where links are missing for that many nodes and ranks, or where there is one
/// that joins nothing.
void check_links(const Starter& starter) {
  const auto& [inside, between] = starter.links;
  if (starter.ranks_per_node > 1 && inside.empty())
    throw InputError(fmt::format(
        "--ranks-per-node {} needs --link: what joins the ranks of a node, such as --link nvlink4",
        starter.ranks_per_node));
  if (starter.nodes > 1 && between.empty())
    throw InputError(fmt::format(
        "--nodes {} needs --link: what joins nodes, such as --link ethernet-100g", starter.nodes));
  if (starter.ranks_per_node == 1 && !inside.empty())
    throw InputError(fmt::format(
        "--link {} joins the ranks of a node: say how many there are, --ranks-per-node N", inside));
  if (starter.nodes == 1 && !between.empty())
    throw InputError(
        fmt::format("--link {} joins nodes: say how many there are, --nodes N", between));
}

/// A ready cluster may say how many nodes there are, which `given` goes before: "", or the flag as
/// its user wrote it. Throws InputError where the cluster lists the ranks of each node, and of
/// another number of nodes.
void count_nodes(Starter& starter, const ReadyCluster& ready, const std::string& given) {
  if (given.empty()) {
    starter.nodes = ready.nodes.value_or(1);
    return;
  }
  if (!ready.cluster.ranks_per_node.equal() && starter.nodes != ready.cluster.nodes)
    throw InputError(fmt::format(
        "{}: {} lists the ranks of {} nodes: leave --nodes out, or name another cluster", given,
        shown(starter.cluster), ready.cluster.nodes));
}

Strategy started_strategy(const std::string& name) {
  std::vector<std::string_view> known;
  for (const Strategy each : all_strategies) {
    if (each != Strategy::bucketed && !shards(each)) continue;
    if (name_of(each) == name) return each;
    known.push_back(name_of(each));
  }
  throw InputError(
      fmt::format("--strategy {}: expected one of {}; `compare` in the file says which others "
                  "are predicted beside it",
                  shown(name), fmt::join(known, ", ")));
}

Starter starter_of(const InitFlags& flags) {
  Starter starter;
  if (!flags.model.empty()) starter.model = flags.model;
  check_model(named("--model", starter.model));
  if (!flags.cluster.empty() && !flags.device.empty())
    throw InputError("--cluster says which device there is: leave --device out");
  if (!flags.nodes.empty()) starter.nodes = count_of("--nodes", flags.nodes, 1, most_init_nodes);
  if (!flags.batch.empty()) starter.batch = count_of("--batch", flags.batch, 1, most_samples);
  if (!flags.strategy.empty()) starter.strategy = started_strategy(flags.strategy);
  if (flags.device.empty()) {
    if (!flags.links.empty() || !flags.ranks_per_node.empty())
      throw InputError("--link and --ranks-per-node go with --device; a ready cluster has its own");
    starter.cluster = flags.cluster.empty() ? usual_cluster : flags.cluster;
    const ReadyCluster ready = read_ready_cluster(named("--cluster", starter.cluster));
    count_nodes(starter, ready, flags.nodes.empty() ? "" : fmt::format("--nodes {}", flags.nodes));
    return starter;
  }
  starter.device = flags.device;
  read_device(named("--device", starter.device));
  if (!flags.ranks_per_node.empty())
    starter.ranks_per_node = count_of("--ranks-per-node", flags.ranks_per_node, 1, most_init_ranks);
  starter.links = links_of(flags.links);
  check_links(starter);
  return starter;
}

int ask_count(const std::string& question, int most) {
  const auto checked = [&](const std::string& answer) {
    return count_of("the number", answer, 1, most);
  };
  return checked(ask(question, "1", [&](const std::string& answer) { checked(answer); }));
}

/// `place`: 0, inside a node; 1, between nodes.
std::string ask_link(const std::string& question, const std::string& usual, std::size_t place) {
  return ask(question, usual, [&](const std::string& answer) {
    if (links_of({answer})[place].empty())
      throw InputError(fmt::format("{} joins {}", answer,
                                   place == 0 ? "nodes: name a link inside one, such as nvlink4"
                                              : "the ranks of a node: name a network, such as "
                                                "ethernet-100g"));
  });
}

/// What joins these devices in the ready clusters that have them.
std::string usual_link(const std::string& device) {
  for (const std::string& name : catalogue_names(cluster_entries)) {
    const Cluster cluster = read_ready_cluster(name).cluster;
    if (cluster.device.name == device) return without_mark(cluster.intra_node.name);
  }
  return "pcie4";
}

Starter asked_starter() {
  Starter starter;
  starter.model = ask("What is trained? A name of `ddpsim list models`, or a file", "gpt2",
                      [](const std::string& answer) { check_model(Yaml::of_text(answer)); });
  const std::vector<std::string> devices = catalogue_names(device_entries);
  const auto is_device = [&](const std::string& name) {
    return std::ranges::find(devices, name) != devices.end();
  };
  const std::string place =
      ask("On what? A cluster of `ddpsim list clusters` or a device of `ddpsim list devices`",
          usual_cluster, [&](const std::string& name) {
            if (!is_device(name)) read_ready_cluster(name);
          });
  (is_device(place) ? starter.device : starter.cluster) = place;
  if (!starter.cluster.empty()) count_nodes(starter, read_ready_cluster(starter.cluster), "");
  if (starter.nodes == 1) starter.nodes = ask_count("How many nodes?", most_init_nodes);
  if (starter.cluster.empty()) {
    starter.ranks_per_node = ask_count("How many ranks has a node?", most_init_ranks);
    if (starter.ranks_per_node > 1)
      starter.links[0] =
          ask_link("What joins the ranks of a node? `ddpsim list links`", usual_link(place), 0);
    if (starter.nodes > 1) starter.links[1] = ask_link("What joins the nodes?", "ethernet-100g", 1);
  }
  return starter;
}

}  // namespace

int init_command(const std::vector<std::string>& arguments) {
  CommonOptions options;
  InitFlags flags;
  if (!parse(arguments, init_usage, 0, described(flags), options)) return exit_done;
  if (options.files.size() > 1) throw InputError("init writes one file; see ddpsim init --help");
  const std::string file = options.files.empty() ? usual_file : options.files.front();
  const bool to_stdout = file == "-";
  std::error_code error;
  if (!to_stdout && !flags.force && std::filesystem::exists(file, error))
    throw InputError(
        fmt::format("{} is there already: name another file, or --force replaces this one", file));
  check_is_no_ingredient(file);  // "init resnet50" is no file to write
  check_places({{"init", file}}, {flags.model, flags.cluster, flags.device});

  const Starter starter = flags.any() || !can_ask() ? starter_of(flags) : asked_starter();
  const StarterScenario made = starter_scenario(starter, to_stdout ? usual_file : file);
  if (!made.fits)
    note(
        fmt::format("note: a step does not fit the device's memory even with the batch written; {}",
                    made.fits_sharded ? "sharded among the ranks it does: add --strategy fsdp"
                                      : "`ddpsim run` says by how much"));
  Outputs outputs;
  outputs.add(file, made.text);
  if (!to_stdout)
    outputs.add_text(
        fmt::format("{} is written. {}.\nnext: ddpsim run {}\n", file, made.summary, file));
  outputs.commit();
  return exit_done;
}

}  // namespace ddpsim
