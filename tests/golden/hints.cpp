#include "tests/golden/hints.hpp"

#include <map>
#include <set>

namespace ddpsim::golden {
namespace {

/// Of keys of any mapping that are for people alone, or mark a file.
const std::set<std::string> remarks{"source", "written_by", "format", "end",
                                    "name",   "note",       "doubts"};

using Hints = std::map<std::string, Hint>;

const Hints of_scenarios{
    {"scenario.training", {95}}, {"scenario.compare", {80}}, {"scenario.measured", {0}}};

const Hints of_clusters{
    {"cluster.system", {30}},
    {"cluster.calibration", {0}},
    {"cluster.device", {100}},
    {"cluster.nodes", {60, {"1", "2", "2", "3", "4", "8", "16", "64"}}},
    {"cluster.ranks_per_node", {85, {"1", "2", "3", "4", "6", "8"}}},
    {"cluster.ranks", {0, {"2", "4", "8", "16", "32"}}},
    {"cluster.intra_node", {100}},
    {"cluster.inter_node", {100}},
    {"cluster.cpu", {15}},
    {"cluster.collectives", {25}},
    {"cluster.interference", {15}},
    {"cluster.skew", {30, {"0", "0.3 %", "0.01", "2 %", "10 %"}}},
    {"cluster.jitter", {0}},
    {"cluster.exceptions", {0}},
    {"cluster.launch", {20}},
    {"launch.wait_all_gather", {0}},
    {"launch.wait_reduce_scatter", {0}},
    {"cluster.host", {15, {"reference", "{base: reference, factor: 1.4}", "{factor: 0.8}"}}},
    {"cluster.collectives_at_once", {7}},
    {"cluster.through_host", {4}},
    {"cluster.price", {15}},
    {"device.base", {100}},
    {"device.operations", {10, {"none", "h200", "{scaled_from: h200}"}}},
    {"device.synchronous", {3}},
    {"link.base", {70}},
    {"link.kind", {35}},
    {"link.bandwidth", {50}},
    {"link.latency", {40}},
    {"link.carries", {20, {"0.6", "80 %", "0.95", "0.33"}}},
    {"link.nics", {25, {"1", "2", "4", "8"}}},
    {"link.ranks", {8, {"2", "4", "8"}}},
    {"link.all_reduce",
     {12,
      {"[{bytes: 4 KiB, time: 60 us}, {bytes: 1 MiB, time: 300 us}, {bytes: 64 MiB, time: 9 ms}]",
       "[{bytes: 1024, time: 90 us}, {bytes: 16 MiB, time: 4 ms}]", "[{bytes: 1 MiB, time: 2 ms}]",
       "profiles/all_reduce.csv"}}},
    {"collectives.algorithm", {50}},
    {"collectives.protocol", {50}},
    {"collectives.channels", {40}},
    {"collectives.law", {60}},
    {"collectives.release", {30}},
    {"collectives.cta_policy", {0}},
    {"host.factor", {100}}};

/// Networks that are quickly predicted; each model of the catalogue has a family of its own.
const Words quick_models{"resnet18",
                         "dlrm",
                         "vgg16",
                         "ssd300",
                         "{base: gpt2, layers: 2}",
                         "{base: bert-base, layers: 2}",
                         "{base: llama3-8b, layers: 1}",
                         "{base: cs336-small, layers: 3}",
                         "{base: t5-small, layers: 2}",
                         "{base: vit-b-16, layers: 3}",
                         "{base: whisper-tiny, layers: 2}",
                         "{base: mixtral-8x7b, layers: 1}",
                         "{base: resnet50, blocks: [1, 2, 2, 1]}",
                         "{base: efficientnet-b0, depth: 0.3}",
                         "{family: mlp, widths: [2048, 4096, 512, 512, 1]}"};

const Hints of_workloads{
    {"workload.model", {100, quick_models}},
    {"workload.batch", {100, {"1", "2", "3", "4", "8", "16", "32", "64"}}},
    {"workload.sequence", {100, {"32", "100", "128", "256", "512", "1024"}}},
    {"workload.image", {40, {"64", "96", "128", "192", "224", "256", "320"}}},
    {"workload.channels_last", {30}},
    {"workload.activation_checkpointing", {0}},
    {"workload.frozen", {0}},
    {"workload.dtype", {40}},
    {"workload.compute", {50}},
    {"workload.optimizer", {65}},
    {"workload.clip_gradients", {25}},
    {"workload.times", {8}},
    {"described_frozen_parameter.forward", {0}},
    {"described_frozen_parameter.backward", {0}},
    {"model.base", {0}},
    {"model.layers", {100, {"1", "2", "3", "5"}}},
    {"model.d_model", {100, {"64", "128", "192", "256", "512", "768"}}},
    {"model.d_ff", {100, {"128", "200", "512", "1024", "3072"}}},
    {"model.heads", {100, {"1", "2", "4", "8"}}},
    {"model.kv_heads", {40, {"1", "2", "4"}}},
    {"model.vocabulary", {100, {"500", "1000", "32000", "50257"}}},
    {"model.activation", {0}},
    {"model.positions", {100, {"1024", "1500", "4096"}}},
    {"model.source_positions", {40, {"100", "750", "1500"}}},
    {"model.mels", {40, {"80", "128"}}},
    {"model.blocks", {100, {"[1, 1, 1, 1]", "[2, 2, 2, 2]", "[3, 4, 6, 3]", "[1, 2, 3, 1]"}}},
    {"model.groups", {30, {"1", "2", "4", "32"}}},
    {"model.width_per_group", {30, {"4", "8", "64", "128"}}},
    {"model.channels",
     {100, {"[64, 64, 0, 128, 128, 0]", "[16, 0, 32, 0, 64, 64, 0]", "[64, 0, 128, 256, 0]"}}},
    {"model.widths", {100, {"[1024, 1024, 10]", "[64, 128, 256, 8]", "[2048, 4096, 512, 512, 1]"}}},
    {"model.width", {50, {"1.0", "1.2", "0.5", "1.4", "32", "64", "128"}}},
    {"model.depth", {100, {"1.0", "1.4", "0.5"}}},
    {"model.patch", {100, {"8", "16", "32"}}},
    {"model.classes", {30, {"10", "91", "1000", "21843"}}},
    {"model.decoder_layers", {40, {"1", "2", "4"}}},
    {"model.decoder_sequence", {40, {"16", "114", "200"}}},
    {"model.head_size", {40, {"32", "64", "100"}}},
    {"model.experts", {100, {"2", "4", "8"}}},
    {"model.experts_per_token", {100, {"1", "2"}}},
    {"model.tables", {50, {"1", "4", "26"}}},
    {"model.rows", {50, {"1000", "100000"}}},
    {"model.bottom", {50, {"[512, 256]", "[64]", "[100, 50, 20]"}}},
    {"model.top", {50, {"[512, 256]", "[64]", "[100, 50, 20]"}}},
    {"model.picture_height", {50, {"320", "800", "1088"}}},
    {"model.picture_width", {50, {"320", "800", "1088"}}},
    {"model.boxes", {50, {"512", "256", "100"}}},
    {"model.masks", {50, {"128", "64", "20"}}}};

const Words parameters{R"("*")", R"("*weight")", R"("*bias")", R"("*1*")", R"("*.0.*")"};
const Words layers{R"("*")", R"("*1*")", R"("*0*")"};

const Hints of_trainings{
    {"training.strategy", {60, {"none", "naive", "flat", "overlap", "bucketed"}}},
    {"training.units", {0}},
    {"training.reshard_after_forward", {0}},
    {"training.reshard_after_backward", {0}},
    {"training.forward_prefetch", {0}},
    {"training.backward_prefetch", {0}},
    {"training.replicate", {0}},
    {"training.reduce_scatter_max_input_buffers", {0}},
    {"training.separate_reduce_scatter_group", {0}},
    {"training.cuda_device_max_connections", {0}},
    {"training.requires_all_reduce", {0}},
    {"training.mp_policy", {0}},
    {"training.offload_policy", {0}},
    {"training.fsdp", {0}},
    {"training.zero1", {0}},
    {"training.zero2", {0}},
    {"training.zero3", {0}},
    {"training.pytorch", {35}},
    {"training.bucket_cap",
     {55, {"1 B", "300 kB", "1 MiB", "4 MiB", "10 MB", "25 MiB", "50 MiB", "160 MiB", "2 GiB"}}},
    {"training.first_bucket_cap", {12, {"none", "100 kB", "1 MiB", "8 MiB", "64 MiB"}}},
    {"training.bucket_caps", {6, {"[1 MiB, 4 MiB, 25 MiB]", "[500 kB, 2 MiB]", "[10 MiB]"}}},
    {"training.buckets", {0, {"[[2.bias, 2.weight], [0.bias, 0.weight]]"}}},
    {"training.parameter_groups", {4, {"1", "2", "3", "5"}}},
    {"training.micro_batches", {20, {"1", "2", "3", "4"}}},
    {"training.no_sync", {15}},
    {"training.gradient_as_bucket_view", {20}},
    {"training.batched_grad_copy", {8}},
    {"training.comm_hook", {20}},
    {"training.delay_all_reduce", {0}},
    {"training.iteration", {10, {"1", "2", "3", "5", "100", "1001", "5000"}}},
    {"training.input", {12}},
    {"powersgd.rank", {60, {"1", "2", "4", "8", "32"}}},
    {"powersgd.start_iteration", {40, {"2", "10", "1000"}}},
    {"powersgd.min_compression_rate", {30, {"0.5", "2", "10", "100"}}},
    {"comm_hook.plugin", {0}},
    {"comm_step.plugin", {0}},
    {"hook.plugin", {0}},
    {"hook_chunks.layer", {100, layers}},
    {"hook_chunks.output", {30, {"4 MiB", "300 kB"}}},
    {"own_kernel.name", {100, {"mask"}}}};

const Hints* all[] = {&of_scenarios, &of_clusters, &of_workloads, &of_trainings};

}  // namespace

std::optional<Hint> hint_of(const MapDescription& map, const KeyDescription& key) {
  const std::string room = map.name.starts_with("model_") ? "model" : map.name;
  const std::string place = room + "." + key.name;
  for (const Hints* hints : all)
    if (const auto found = hints->find(place); found != hints->end()) return found->second;
  if (map.name.starts_with("hook_") && key.name == "parameter") return Hint{50, parameters};
  if (map.name.starts_with("hook_") && key.name == "layer") return Hint{60, layers};
  if (!key.about.required && remarks.contains(key.name)) return Hint{0};
  return std::nullopt;
}

}  // namespace ddpsim::golden
