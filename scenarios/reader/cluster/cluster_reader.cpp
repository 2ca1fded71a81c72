#include "scenarios/reader/cluster/cluster_reader.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string_view>

#include <fmt/format.h>

#include "model/base/printable.hpp"
#include "model/cost/calibration_fit.hpp"
#include "model/cost/gloo_law.hpp"
#include "model/cost/port_law.hpp"
#include "model/cost/table_port.hpp"
#include "scenarios/reader/catalogue/catalogue.hpp"
#include "scenarios/reader/catalogue/entry_keys.hpp"
#include "scenarios/reader/cluster/calibration_reader.hpp"
#include "scenarios/reader/cluster/cluster_shape.hpp"
#include "scenarios/reader/cluster/device_reader.hpp"
#include "scenarios/reader/cluster/exceptions_reader.hpp"
#include "scenarios/reader/cluster/host_reader.hpp"
#include "scenarios/reader/cluster/launch_reader.hpp"
#include "scenarios/reader/cluster/link_reader.hpp"
#include "scenarios/reader/format/map.hpp"

namespace ddpsim {
namespace {

/// A cluster, with what the scenario says of `launch` and of the number of ranks.
struct ClusterDraft : CalibratedCluster {
  LaunchChange launch_change;
  Host host;
  std::optional<double> given_skew;
  std::vector<GivenException> given_exceptions;
  std::optional<int> at_once;
  std::optional<Price> price;
  std::string source;
  std::vector<Yaml> layers;  ///< the ready cluster's mapping, if there is one, then the scenario's

  /// The value of a key: the scenario's, else the ready cluster's.
  std::optional<Yaml> given(std::string_view key) const {
    for (auto layer = layers.rbegin(); layer != layers.rend(); ++layer)
      if (auto value = YamlMap(*layer).find(key)) return value;
    return std::nullopt;
  }
};

/// The algorithms of NCCL and Gloo, by name. A ring is either's: the law says whose.
enum class Algorithm : std::uint8_t { tree, ring, nvls, nvls_tree, halving_doubling };
constexpr std::array all_algorithms{Algorithm::tree, Algorithm::ring, Algorithm::nvls,
                                    Algorithm::nvls_tree, Algorithm::halving_doubling};
constexpr std::string_view name_of(Algorithm algorithm) {
  constexpr std::array<std::string_view, all_algorithms.size()> names{
      "tree", "ring", "nvls", "nvls_tree", "halving_doubling"};
  return names[static_cast<std::size_t>(algorithm)];
}

void force(ForcedChoice& forced, Algorithm algorithm) {
  for (const NcclAlgorithm of_nccl : all_nccl_algorithms)
    if (name_of(of_nccl) == name_of(algorithm)) forced.algorithm = of_nccl;
  for (const GlooAlgorithm of_gloo : all_gloo_algorithms)
    if (name_of(of_gloo) == name_of(algorithm)) forced.gloo = of_gloo;
}

/// `collectives`: the law, and what is forced upon NCCL or asked of Gloo.
struct Collectives {
  CollectiveModel law = CollectiveModel::automatic;
  ForcedChoice forced;
};

const Map<FixedInterference>& fixed_interference_map() {
  static const auto map =
      Map<FixedInterference>("interference",
                             "How much computation and communication slow each other while both "
                             "are active. A factor of 1 means not at all.")
          .key("compute_slowdown", value::number(1, 100), &FixedInterference::compute_slowdown,
               {.meaning = "The factor on the time of a kernel that runs beside a collective.",
                .example = "1.15"})
          .key("communication_slowdown", value::number(1, 100),
               &FixedInterference::communication_slowdown,
               {.meaning = "The factor on the time of a collective that runs beside kernels.",
                .example = "1.05"});
  return map;
}

/// `auto`, or a mapping.
Value<std::optional<FixedInterference>> fixed_interference() {
  const auto mapping = value::mapping(&fixed_interference_map);
  return {value::either({{value::word("auto", "the law, or what was measured")}, mapping.type}),
          [=](const Yaml& given) -> std::optional<FixedInterference> {
            if (given.is_map()) return mapping.read(given);
            given.text("auto or a mapping");
            if (!given.is_word("auto"))
              given.fail("expected auto or {compute_slowdown: 1.15, communication_slowdown: 1.05}");
            return std::nullopt;
          },
          {}};
}

Value<CollectiveModel> law_value() {
  auto value = value::one_of(
      all_collective_models,
      {"by the link that decides, which is `inter_node` between several nodes and `intra_node` on "
       "one: a table if it has one, NCCL's if its kind is known or `algorithm`, `protocol` or "
       "`channels` are given, else alpha-beta",
       "the quickest of NCCL's algorithms and protocols, by the bytes through each port and the "
       "steps; or an NVLS tree where NCCL's tuner takes one",
       "a ring of the link's latency and bandwidth", "the measured table of the link",
       "Gloo's ring, or halving and doubling, over TCP between CPUs: by the bytes through each "
       "port "
       "and the hosts' memory, and the steps"});
  value.read = [one_of = value.read](const Yaml& given) {
    if (given.is_word("steps"))
      given.fail(
          "steps (every ring step simulated) is not built yet; use auto, nccl, alpha-beta, table "
          "or gloo");
    return one_of(given);
  };
  return value;
}

const Map<Collectives>& collectives_map() {
  static const auto map =
      Map<Collectives>("collectives",
                       "By which law collectives are priced, and what NCCL is forced to take or "
                       "Gloo takes.")
          .key("law", law_value(), &Collectives::law, {.meaning = "The law."})
          .key_taken(
              "algorithm",
              value::one_of(all_algorithms,
                            {"a double binary tree of nodes", "rings",
                             "NVLink's switch adds up, within a node",
                             "the same, with a double tree between nodes",
                             "Gloo's: to partners at twice the distance, with half of the bytes"}),
              [](Collectives& c, Algorithm given) { force(c.forced, given); },
              {.meaning = "The algorithm of every all-reduce: Gloo has `ring` and "
                          "`halving_doubling`, NCCL the others and `ring`.",
               .otherwise =
                   "the quickest that NCCL has, or an NVLS tree where NCCL's tuner takes one, even "
                   "if it is slower; with Gloo a ring, as in PyTorch",
               .example = "ring",
               .elsewhere = {{"NCCL_ALGO", "NCCL's"}}})
          .key_taken("protocol",
                     value::one_of(all_nccl_protocols,
                                   {"low latency: a flag is sent with every 4 bytes",
                                    "a flag is sent with every 120 bytes", "whole chunks"}),
                     [](Collectives& c, NcclProtocol given) { c.forced.protocol = given; },
                     {.meaning = "The protocol of every collective.",
                      .otherwise = "the quickest",
                      .example = "simple",
                      .elsewhere = {{"NCCL_PROTO", "NCCL's"}}})
          .key_taken("channels", value::whole<int>(1, 64),
                     [](Collectives& c, int given) { c.forced.channels = given; },
                     {.meaning = "The most channels that a collective may use; each is a thread "
                                 "block and takes an SM.",
                      .otherwise = "as many as NCCL chooses",
                      .example = "16",
                      .elsewhere = {{"NCCL_MAX_NCHANNELS", "NCCL's"}}})
          .key_taken("cta_policy",
                     value::one_of(all_cta_policies,
                                   {"kernels move what is gathered",
                                    "copy engines do, within a node of an NVSwitch: no SM is "
                                    "taken, and it takes longer"}),
                     [](Collectives& c, CtaPolicy given) { c.forced.cta_policy = given; },
                     {.meaning = "How NCCL all-gathers in symmetric memory "
                                 "(`set_symm_mem_for_comm` of fully_shard): all other collectives "
                                 "are as ever.",
                      .unset = "default",
                      .example = "zero",
                      .source = "NCCL 2.28.9, src/ce_coll.cc; what copies take: "
                                "github.com/KuangjuX/NVSHMEM-Tutorial, issue 23, pull requests 29 "
                                "and 31",
                      .elsewhere = {{"NCCL_CTA_POLICY", "NCCL's"}}})
          .key_taken("release",
                     value::one_of(all_nccl_releases,
                                   {"and earlier ones: trees for small messages alone, as long as "
                                    "their steps take longer than their bytes, and rings for all "
                                    "others",
                                    "from 2.5 on: from some MiB on an NVLS tree where 2.28 still "
                                    "takes a tree",
                                    "and later ones"}),
                     [](Collectives& c, NcclRelease given) { c.forced.release = given; },
                     {.meaning = "The release of NCCL, which chooses between rings, trees and NVLS "
                                 "trees.",
                      .unset = "2.28",
                      .example = "2.26",
                      .source = "src/graph/tuning.cc: the latency of an NVLS tree's step between "
                                "nodes, 14 us before 2.28 and 20.9 us since; NCCL's user guide: "
                                "NCCL_TREE_THRESHOLD, of 2.4"});
  return map;
}

/// A law, or a mapping.
Value<Collectives> collectives_value() {
  const auto law = law_value();
  const auto mapping = value::mapping(&collectives_map);
  return {value::either({law.type, mapping.type}),
          [=](const Yaml& given) -> Collectives {
            if (given.is_map()) return mapping.read(given);
            return {law.read(given), {}};
          },
          {}};
}

/// The cluster and what it is based on, as layers.
std::vector<Yaml> cluster_layers(const Yaml& given) {
  return layers_of(entry_with_bases(given, cluster_entries, "system"));
}

/// The cluster that was measured.
CalibratedCluster calibrated(const Yaml& given) {
  CalibratedCluster cluster = cluster_of(read_calibration(given));
  cluster.device.name = printable(cluster.device.name);
  return cluster;
}

/// Whether Gloo can run on what links the ranks.
void check_gloo(const ClusterDraft& cluster, const Yaml& value) {
  const ForcedChoice& forced = cluster.forced;
  if (forced.protocol || forced.channels)
    value.fail("protocol and channels are NCCL's: take law: nccl");
  if (forced.algorithm && !forced.gloo)
    value.fail(fmt::format("{} is NCCL's: of Gloo take ring or halving_doubling",
                           name_of(*forced.algorithm)));
  if (cluster.device.compute_capability > 0 && !cluster.given("through_host"))
    value.fail("gloo runs on hosts: name a CPU as the device, or through_host");
  try {
    GlooLaw{cluster};
  } catch (const std::invalid_argument& error) {
    value.fail(error.what());
  }
}

/// All-reduces of one rank crossed no link, and say nothing of several ranks.
void check_table(const ClusterDraft& cluster, const Link& link) {
  const bool used = cluster.collectives == CollectiveModel::automatic ||
                    cluster.collectives == CollectiveModel::table;
  if (cluster.ranks() == 1 || !used || link.all_reduce.empty() || link.table_ranks != 1) return;
  if (const auto value = cluster.given(cluster.nodes > 1 ? "inter_node" : "intra_node"))
    value->fail(
        fmt::format("expected all-reduces that two or more ranks measured; {} has ranks: 1, so "
                    "nothing crossed a link: name another link (`ddpsim list links`)",
                    link.name));
}

/// Throws InputError where a layer has what may be meant to be the key, which none has.
void refuse_slips(const ClusterDraft& cluster, std::string_view key) {
  for (const Yaml& layer : cluster.layers) YamlMap(layer).refuse_slip(key, cluster_keys());
}

/// What links the ranks, and whether the law of collectives can work with it.
void check_links(ClusterDraft& cluster, const YamlMap& map) {
  const bool intra = cluster.given("intra_node").has_value();
  const bool inter = cluster.given("inter_node").has_value();
  if (cluster.calibration && (intra || inter)) {
    cluster.calibration->all_reduce.clear();
    cluster.calibration->collectives.clear();
  }
  const bool linked = cluster.calibration && !cluster.calibration->all_reduce.empty();
  if (!linked && !intra && cluster.ranks_per_node.largest() > 1) {
    refuse_slips(cluster, "intra_node");
    map.node().fail(
        "missing key \"intra_node\": what links the ranks of a node, such as nvlink4 or pcie4");
  }
  if (!linked && !inter && cluster.nodes > 1) {
    refuse_slips(cluster, "inter_node");
    map.node().fail(
        "missing key \"inter_node\": what links the nodes, such as ib-ndr or ethernet-100g");
  }
  const Link& link = cluster.nodes > 1 ? cluster.inter_node : cluster.intra_node;
  if (const auto value = cluster.given("collectives")) {
    if (cluster.collectives == CollectiveModel::table && link.all_reduce.empty() && !linked)
      value->fail("table needs a link with an all_reduce table");
    if (cluster.collectives == CollectiveModel::alpha_beta && link.bandwidth.bytes_per_second <= 0)
      value->fail("alpha-beta needs a link with latency and bandwidth");
    if (cluster.collectives == CollectiveModel::nccl && cluster.device.compute_capability == 0)
      value->fail("nccl needs a CUDA device");
    const ForcedChoice& forced = cluster.forced;
    if (forced.cta_policy != CtaPolicy::usual) {
      if (cluster.collectives != CollectiveModel::nccl &&
          cluster.collectives != CollectiveModel::automatic)
        value->fail("cta_policy is NCCL's: take law: nccl");
      if (cluster.device.compute_capability == 0)
        value->fail("cta_policy is NCCL's, which needs a CUDA device");
    }
    if (cluster.collectives == CollectiveModel::gloo) {
      check_gloo(cluster, *value);
    } else if (forced.gloo && !forced.algorithm) {
      value->fail("halving_doubling is Gloo's: take law: gloo");
    } else if (forced.algorithm || forced.protocol || forced.channels) {
      if (cluster.collectives != CollectiveModel::nccl &&
          cluster.collectives != CollectiveModel::automatic)
        value->fail("algorithm, protocol and channels are NCCL's: take law: nccl");
      if (cluster.device.compute_capability == 0)
        value->fail("algorithm, protocol and channels are NCCL's, which needs a CUDA device");
      // What was measured has its algorithm, protocol and channels in it: under auto it prices.
      if (cluster.collectives != CollectiveModel::automatic || (link.all_reduce.empty() && !linked))
        cluster.collectives = CollectiveModel::nccl;
    }
    if (cluster.collectives == CollectiveModel::nccl) try {
        PortLaw{cluster};
      } catch (const std::invalid_argument& error) {
        value->fail(error.what());
      }
  }
  if (const auto value = cluster.given("through_host")) {
    if (cluster.device.synchronous)
      value->fail("a CPU's memory is the host's: through_host is for GPUs");
    if (cluster.collectives == CollectiveModel::nccl)
      value->fail("collectives on the hosts are not NCCL's: take collectives: nccl out");
    // By the links as they are written: no NCCL, and no SMs taken from kernels.
    if (cluster.collectives == CollectiveModel::automatic)
      cluster.collectives =
          !link.all_reduce.empty() || linked ? CollectiveModel::table : CollectiveModel::alpha_beta;
    if (!cluster.interference && !linked) cluster.interference = FixedInterference{};
  }
  if (!linked) check_table(cluster, link);
}

/// Does a setting say how many nodes and ranks there are, or name a ready cluster, which says so?
bool is_size_set(const ClusterDraft& cluster) {
  const std::array keys{"nodes", "ranks", "ranks_per_node", "system"};
  return std::ranges::any_of(keys, [&](const char* key) {
    const auto value = cluster.given(key);
    return value && value->is_setting();
  });
}

void finish_cluster(ClusterDraft& cluster, const YamlMap& map) {
  // A calibration has looked at its ranks: nothing is assumed beside it.
  cluster.skew = cluster.given_skew.value_or(cluster.calibration ? 0 : usual_skew);
  cluster.skew_is_usual = !cluster.given_skew && !cluster.calibration;
  if (cluster.device.memory_bandwidth.bytes_per_second <= 0) {
    if (const auto calibration = cluster.given("calibration"))
      calibration->fail("the calibration measured no kernels: write \"device\" as well");
    map.refuse_slip("device", cluster_keys());
    map.node().fail("missing key \"device\"");
  }
  const ClusterSize size = size_of(cluster.layers);
  if (size.nodes) cluster.nodes = *size.nodes;
  if (size.ranks_per_node) cluster.ranks_per_node = *size.ranks_per_node;
  Link& inside = cluster.intra_node;
  if (inside.carries == 0 && (!inside.kind_from.empty() || rate_is_of_table(cluster)))
    inside.carries = port_share_of_bus(cluster);
  cluster.collectives_at_once =
      cluster.at_once.value_or(cluster.calibration ? cluster.calibration->collectives_at_once : 1);
  if (cluster.launch_change.synchronous) cluster.device.synchronous = true;
  cluster.launch = cluster.calibration ? cluster.calibration->launch : default_launch;
  if (cluster.device.synchronous) cluster.launch.kernel = Duration::zero();  // a call, no launch
  for (Duration* time : {&cluster.launch.kernel, &cluster.launch.collective, &cluster.launch.hook})
    *time = scaled(*time, cluster.host.factor);
  cluster.launch_change.apply(cluster.launch);
  check_links(cluster, map);
  if (const auto exceptions = cluster.given("exceptions"))
    cluster.exceptions = placed(cluster.given_exceptions, *exceptions, cluster,
                                !exceptions->is_setting() && is_size_set(cluster));
}

void add_machines(Map<ClusterDraft>& map) {
  const auto device_type = [] {
    return Type{{.kind = Form::Kind::entry, .catalogue = device_entries},
                value::map([]() -> const auto& { return device_map().description(); })};
  };
  map.key_read("system", {{.kind = Form::Kind::entry, .catalogue = cluster_entries}},
               [](ClusterDraft&, const Yaml&) {},  // read_cluster has followed it
               {.meaning = "A ready cluster: its device, ranks of a node and links, unless other "
                           "keys beside it say otherwise. A mapping beside it, such as "
                           "`inter_node: {nics: 4}`, changes the keys that it has and leaves the "
                           "others as the system's. `cluster: dgx-h100` is short for "
                           "`cluster: {system: dgx-h100}`, which is one node.",
                .otherwise = "the keys say all",
                .example = "dgx-h100"})
      .key("source", value::text(), &ClusterDraft::source,
           {.meaning = "Where the figures come from, for people."})
      .key_read("calibration", {value::form(Form::Kind::path)},
                [](ClusterDraft& cluster, const Yaml& given) {
                  static_cast<CalibratedCluster&>(cluster) = calibrated(given);
                },
                {.meaning = "A calibration that `ddpsim calibrate` wrote. What it measured goes "
                            "before the laws of kernels, collectives and interference. Other keys "
                            "beside it say what differs from the machine that was measured: "
                            "`intra_node` or `inter_node` replace its all-reduces.",
                 .otherwise = "the laws alone price a step",
                 .example = "calibration.yaml"})
      .key_read(
          "device", device_type(),
          [](ClusterDraft& cluster, const Yaml& given) { cluster.device = read_device(given); },
          {.meaning = "The accelerator of each rank.",
           .otherwise = "needed, unless a calibration measured one",
           .example = "h100-sxm",
           .elsewhere = {{"gpu", ""}, {"gpu_type", ""}, {"accelerator", "Lightning's"}}})
      .key("nodes", value::whole(1, most_nodes), &ClusterDraft::nodes,
           {.meaning = "How many machines there are.",
            .example = "4",
            .elsewhere = {{"nnodes", "torchrun's"},
                          {"num_nodes", "Lightning's"},
                          {"num_machines", "Accelerate's"}}})
      .key("ranks_per_node", ranks_of_nodes(), &ClusterDraft::ranks_per_node,
           {.meaning = "How many ranks, each with a device of its own, a node has. Where nodes "
                       "differ, a list of one number for each node, such as `[8, 4]`; `nodes` "
                       "follows from it. With a calibration: as many as it measured, unless said "
                       "here.",
            .example = "8",
            .elsewhere = {{"nproc_per_node", "torchrun's"},
                          {"devices", "Lightning's", "{}"},
                          {"gpus_per_node", "Slurm's"},
                          {"gpus", "Lightning's", "{}"},
                          {"num_gpus", "DeepSpeed's"},
                          {"local_world_size", "torchrun's"},
                          {"num_gpus_per_node", ""},
                          {"slots_per_node", "Horovod's"}}})
      .key_read("ranks", value::whole(1, most_nodes * most_ranks_per_node).type,
                [](ClusterDraft&, const Yaml&) {},  // size_of has divided them
                {.meaning =
                     "How many ranks there are in all, in place of `nodes` or `ranks_per_node` "
                     "or both. Beside one of the two the other follows. Beside a `system`, of the "
                     "catalogue or a file with `ranks_per_node`, whole nodes are filled, however "
                     "many it has. Of a `system` that says `ranks` itself, `nodes` beside it makes "
                     "more or fewer of its nodes, and `ranks_per_node` makes them larger or "
                     "smaller. With nothing but `inter_node` each rank is a node; with "
                     "nothing but `intra_node` all are on one. Where that leaves a choice it is "
                     "an error that says what to write.",
                 .otherwise = "`nodes` times `ranks_per_node`, or the sum of its list",
                 .example = "16",
                 .elsewhere = {{"world_size", "torch.distributed's"},
                               {"num_processes", "Accelerate's"}}});
}

void add_links(Map<ClusterDraft>& map) {
  const auto link_type = [] {
    return Type{{.kind = Form::Kind::entry, .catalogue = link_entries},
                value::map([]() -> const auto& { return link_map().description(); })};
  };
  map.key_read(
         "intra_node", link_type(),
         [](ClusterDraft& cluster, const Yaml& given) {
           cluster.intra_node = read_link_in_place(given, cluster.intra_node);
         },
         {.meaning = "What connects the devices of a node. Beside a `system` a measured table that "
                     "says no `kind` keeps the kind and the switch of the system's link.",
          .otherwise = "needed, if a node has several ranks and no calibration measured "
                       "all-reduces",
          .example = "nvlink4"})
      .key_read(
          "inter_node", link_type(),
          [](ClusterDraft& cluster, const Yaml& given) {
            const int nics = cluster.inter_node.nics;
            cluster.inter_node = read_link(given);
            if (cluster.inter_node.nics == 0) cluster.inter_node.nics = nics;
          },
          {.meaning = "What connects the nodes. Beside a `system` another link keeps the number of "
                      "the system's NICs, unless it says `nics` itself.",
           .otherwise = "needed, if there are several nodes and no calibration measured "
                        "all-reduces",
           .example = "ib-ndr"})
      .key("cpu", value::one_of(all_cpu_vendors), &ClusterDraft::cpu,
           {.meaning = "Who made the hosts' processors. NCCL's model takes another bandwidth "
                       "between sockets for each.",
            .source = "NCCL 2.28.9, src/graph/topo.h"});
}

/// How long what runs on devices and links takes, where laws leave a choice.
void add_costs(Map<ClusterDraft>& map) {
  map.key_taken("collectives", collectives_value(),
                [](ClusterDraft& cluster, const Collectives& given) {
                  cluster.collectives = given.law;
                  cluster.forced = given.forced;
                },
                {.meaning = "By which law collectives are priced; as a mapping, also what NCCL is "
                            "forced to take or Gloo takes.",
                 .unset = "auto",
                 .example = "{law: nccl, algorithm: ring, protocol: simple, channels: 16}",
                 .elsewhere = {{"backend", "torch.distributed's"}},
                 .short_for = {"law"}})
      .key_taken("interference", fixed_interference(),
                 [](ClusterDraft& cluster, std::optional<FixedInterference> fixed) {
                   if (fixed) cluster.interference = fixed;
                 },
                 {.meaning = "How much computation and communication slow each other while both "
                             "are active: by the law (or, with a calibration, as it was measured), "
                             "or by two factors.",
                  .unset = "auto",
                  .example = "{compute_slowdown: 1.15, communication_slowdown: 1.05}",
                  .source = "NVIDIA/nccl issues 1428 and 1433; arXiv 2507.03114; "
                            "github:kopernik278/nccl-network-benchmark@69fb1ef"})
      .key_taken(
          "skew", value::share(0, 1),
          [](ClusterDraft& cluster, double skew) { cluster.given_skew = skew; },
          {.meaning = "How much the ranks differ in computing speed: the standard deviation of "
                      "their times, as a share of them. The slowest of several ranks sets the "
                      "pace. A workload profile's `step_spread`, and a calibration that "
                      "measured the slowest rank, go before it.",
           .unset = fmt::format("{:g} %", 100 * usual_skew),
           .otherwise = fmt::format("{:g} % with `training.input: decoded`",
                                    100 * usual_skew_of_decoded_input),
           .example = "2 %",
           .source = "public runs on one to eight GPUs of a host: docs/accuracy.md"})
      .key("jitter", value::share(0, 0.3), &ClusterDraft::jitter,
           {.meaning = "How much each rank's computing time changes from step to step: the "
                       "standard deviation, as a share of it. A step waits for the rank that is "
                       "slowest in it, so that `skew` and `jitter` together make a step longer, "
                       "and `run --seeds` says what steps then take: the median, and which length "
                       "one in ten and one in a hundred passes.",
            .otherwise = "as a workload profile's `step_spread` says; else all steps are alike",
            .example = "1 %"})
      .key("exceptions", exceptions_value(), &ClusterDraft::given_exceptions,
           {.meaning =
                "Ranks that differ from the rest: one that computes at another pace, a node "
                "with slower NICs, a host that pauses in each step. Each rank is in one of "
                "them at most. `run --why` says which buckets wait for which of them, and "
                "what the step would be without. `validate` makes real ranks on CPUs as slow.",
            .otherwise = "ranks differ by `skew` and `jitter` alone",
            .example = "[{rank: 5, compute: 1.3x}, {node: 1, nic: 100 Gbit/s}]"})
      .key("launch", launch_value(), &ClusterDraft::launch_change,
           {.meaning = "What the host pays to enqueue a kernel or a collective: one time for both, "
                       "a time for each kind of call, or `sync` for CPUs, whose kernels run on the "
                       "host thread. `sync` is not CUDA_LAUNCH_BLOCKING, which is not simulated: a "
                       "GPU with `sync` is priced as a CPU, and gets a note.",
            .otherwise = "as its keys say, or as the calibration measured",
            .example = "{kernel: 6 us, collective: 35 us, hook: 12 us}",
            .source = "6 us and 12 us: see model/cost/kernel_cost.hpp; 35 us: pytorch pull request "
                      "147820",
            .short_for = {"kernel", "collective"}})
      .key_read("host",
                Type{{.kind = Form::Kind::entry, .catalogue = host_entries},
                     value::map([]() -> const auto& { return host_map().description(); })},
                [](ClusterDraft& cluster, const Yaml& given) { cluster.host = read_host(given); },
                {.meaning = "The hosts' processors: by how much all that the host pays (to enqueue "
                            "kernels and collectives, to run hooks) takes longer than on the "
                            "reference host. Times that `launch` gives stand as they are.",
                 .unset = "reference",
                 .example = "{base: reference, factor: 1.4}",
                 .source = "tests/data/h200; hosts of one kind differ by a third: docs/devices.md"})
      .key(
          "collectives_at_once", value::whole(1, 8), &ClusterDraft::at_once,
          {.meaning = "How many collectives of one communicator may be under way at once, begun in "
                      "order. PyTorch's Gloo has two threads for them, NCCL one stream.",
           .otherwise = "as the calibration says; else 1",
           .example = "2"})
      .key("through_host", value::bandwidth(), &ClusterDraft::through_host,
           {.meaning = "Collectives run on the hosts, over copies out of each GPU and back at this "
                       "rate, as PyTorch's Gloo does with CUDA tensors. The links are then those "
                       "between hosts.",
            .otherwise = "collectives run on the devices",
            .example = "20 GB/s"})
      .key("price", value::price(), &ClusterDraft::price,
           {.meaning = "What an hour of one rank's device costs, its share of the host and the "
                       "network included. Results then say what a billion tokens, or a million "
                       "samples, cost. No prediction depends on it.",
            .otherwise = "no result speaks of money",
            .example = "2.5 USD/h"});
}

Map<ClusterDraft> make_cluster_map() {
  Map<ClusterDraft> map("cluster", "The devices, and what connects them.");
  add_machines(map);
  add_links(map);
  add_costs(map);
  map.needs({"device", "calibration", "system"})
      .excludes("system", {"calibration"},
                "a calibration and a system describe two machines: take one of them out")
      .excludes("host", {"calibration"},
                "the calibration measured its own host, so its times need no factor: take host out")
      .needs_also(
          {{.key = "intra_node"},
           {.key = "calibration"},
           {.key = "system"},
           {.key = "ranks_per_node",
            .value = {value::integer_form(1, 1), value::list({value::integer_form(1, 1)}, 1)},
            .or_absent = true}})
      .needs_also({{.key = "inter_node"},
                   {.key = "calibration"},
                   {.key = "system"},
                   {.key = "nodes", .value = {value::integer_form(1, 1)}, .or_absent = true}})
      .needs_also({{.key = "inter_node"},
                   {.key = "calibration"},
                   {.key = "system"},
                   {.key = "ranks_per_node",
                    // Anything but a list of several nodes; the key's own range is told once.
                    .value = {value::form(Form::Kind::text),
                              value::list({value::form(Form::Kind::anything)}, 0, 1)},
                    .or_absent = true}})
      .check(finish_cluster);
  return map;
}

const Map<ClusterDraft>& cluster_map() {
  static const Map<ClusterDraft> map = make_cluster_map();
  return map;
}

}  // namespace

const MapDescription& cluster_keys() {
  return cluster_map().description();
}

CalibratedCluster read_cluster(const Yaml& given, std::optional<Price>& price) {
  ClusterDraft cluster;
  cluster.layers = cluster_layers(given);
  cluster_map().read(std::vector<Yaml>(cluster.layers), cluster);
  price = cluster.price;
  return cluster;
}

ReadyCluster read_ready_cluster(const std::string& name) {
  return read_ready_cluster(Yaml::of_text(name));
}

ReadyCluster read_ready_cluster(const Yaml& named) {
  ClusterDraft cluster;
  cluster.layers = cluster_layers(named);
  cluster_map().read(std::vector<Yaml>(cluster.layers), cluster);
  const auto each = cluster.given("ranks_per_node");
  const bool sized = cluster.given("nodes") || cluster.given("ranks") || (each && each->is_list());
  return {named.scalar(), source_of(entry_with_bases(named, cluster_entries, "system")), cluster,
          sized ? std::optional(cluster.nodes) : std::nullopt, cluster.price};
}

}  // namespace ddpsim
