#include "scenarios/reader/format/format.hpp"

#include <cmath>
#include <limits>
#include <regex>
#include <set>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "scenarios/reader/explain/reference.hpp"
#include "scenarios/reader/format/yaml.hpp"
#include "scenarios/reader/text/names.hpp"
#include "scenarios/reader/text/quantity_text.hpp"
#include "tests/scenarios/reader/refusal.hpp"

namespace ddpsim {
namespace {

const std::string a_profile =
    "format: ddpsim.workload/1\nforward: 1 ms\nbackward: 3 ms\nparameters:\n"
    "  - {name: a, shape: [262144], ready: 3 ms}\n";

/// What the good scenario's error says of an unknown key, before the keys that are known.
std::string told_of_unknown(const Scratch& scratch, const std::string& key,
                            const std::string& value) {
  const std::string begins = "unknown key; ";
  const std::string message = refusal(scratch, good_scenario, {{key, value}});
  const std::size_t begin = message.find(begins), end = message.find("; known: ");
  REQUIRE(begin != std::string::npos);
  REQUIRE(end != std::string::npos);
  return message.substr(begin + begins.size(), end - begin - begins.size());
}

TEST_CASE("every key of every format has a meaning and says what holds without it",
          "[scenarios][format]") {
  std::size_t keys = 0;
  for (const Format& format : all_formats())
    walk(format.root(),
         [&](const std::string& path, const MapDescription& map, const KeyDescription& key) {
           CAPTURE(format.name, path);
           ++keys;
           CHECK(map.find(key.name) != nullptr);
           CHECK(!key.type.empty());
           CHECK(key.about.meaning.ends_with("."));
           CHECK(!description_of(key.type).empty());
           const bool told = key.about.required || !key.about.unset.empty() ||
                             !key.about.otherwise.empty() || !map.single.empty();
           if (key.name != "source") CHECK(told);
           const bool choices = key.type.front().kind == Form::Kind::choice;
           if (key.about.unset.empty() && key.name != "source" && key.name != "base" && !choices)
             CHECK(!key.about.example.empty());
         });
  CHECK(keys > 150);
}

TEST_CASE("maps of one name are one map", "[scenarios][format]") {
  std::map<std::string, const MapDescription*> maps;
  for (const Format& format : all_formats())
    walk(format.root(), [&](const std::string&, const MapDescription& map, const KeyDescription&) {
      CAPTURE(map.name);
      CHECK(maps.emplace(map.name, &map).first->second == &map);
    });
}

TEST_CASE("the example of every key of a scenario is read", "[scenarios][format]") {
  // What a key needs besides itself, and what only a real file or plugin could give.
  const std::map<std::string, std::vector<Setting>> besides{
      {"cluster.inter_node", {{"cluster.nodes", "2"}}},
      {"cluster.nodes", {{"cluster.inter_node", "ib-ndr"}}},
      {"cluster.exceptions", {{"cluster.nodes", "8"}, {"cluster.inter_node", "ib-ndr"}}},
      {"workload.model", {{"workload.sequence", "512"}}},
      {"workload.activation_checkpointing",
       {{"workload.model", "gpt2"}, {"workload.sequence", "512"}}},
      {"training.buckets", {{"workload", "{model: {family: mlp, widths: [8, 8, 8]}, batch: 2}"}}},
      {"training.hooks", {{"workload", "{model: {family: mlp, widths: [8, 8]}, batch: 2}"}}},
      {"training.delay_all_reduce",
       {{"training.delay_all_reduce", "{parameters: [\"fc.*\"], hook: conv1.weight}"}}}};
  const Scratch scratch;
  int read = 0;
  walk(all_formats().front().root(),
       [&](const std::string& path, const MapDescription&, const KeyDescription& key) {
         const bool top = std::count(path.begin(), path.end(), '.') <= 1;
         if (!top || key.name == "calibration" || path == "measured.rows") return;
         std::vector<Setting> changes{
             {path, key.about.example.empty() ? key.about.unset : key.about.example}};
         if (changes.front().value.empty()) return;
         if (const auto found = besides.find(path); found != besides.end())
           changes.insert(changes.end(), found->second.begin(), found->second.end());
         if (path == "measured.source" || path == "measured.calibrate_on")
           changes.push_back({"measured.rows", "[{strategy: naive, step: 5 ms}]"});
         if (path == "training.delay_all_reduce") changes.erase(changes.begin());
         CAPTURE(path, changes.front().value);
         CHECK(refusal(scratch, good_scenario, changes).empty());
         ++read;
       });
  CHECK(read > 40);
}

TEST_CASE("a number of a scenario is taken from its least to its most, and nothing beyond",
          "[scenarios][format]") {
  const Scratch scratch;
  int refused = 0, taken = 0;
  walk(all_formats().front().root(),
       [&](const std::string& path, const MapDescription&, const KeyDescription& key) {
         if (key.type.size() != 1) return;
         const Form& form = key.type.front();
         const bool whole = form.kind == Form::Kind::integer;
         if (!whole && form.kind != Form::Kind::number) return;
         const std::string range =
             whole ? fmt::format("a whole number from {} to {}, got", form.lowest, form.highest)
                   : fmt::format("a number from {} to {}, got", form.least, form.most);
         // Where other keys are in the way the number is not looked at, and so not told.
         const auto check = [&](const std::string& value, bool good) {
           const std::string message = refusal(scratch, good_scenario, {{path, value}});
           CAPTURE(path, value, message);
           const bool told = message.find("number from ") != std::string::npos;
           if (good) CHECK_FALSE(told);
           if (told) CHECK_THAT(message, Catch::Contains(range));
           taken += message.empty() ? 1 : 0;
           refused += told ? 1 : 0;
         };
         const auto text = [&](double number) { return fmt::format("{}", number); };
         check(whole ? std::to_string(form.lowest - 1) : text(std::nextafter(form.least, -1e308)),
               false);
         check(whole ? std::to_string(form.lowest) : text(form.least), true);
         check(whole ? std::to_string(form.highest) : text(form.most), true);
         if (whole && form.highest < std::numeric_limits<std::int64_t>::max())
           check(std::to_string(form.highest + 1), false);
         if (!whole) check(text(std::nextafter(form.most, 1e308)), false);
       });
  CHECK(refused > 40);
  CHECK(taken > 20);
}

TEST_CASE("docs/scenario.md is what the formats say", "[scenarios][reference]") {
  // To renew it: ddpsim explain --markdown > docs/scenario.md
  const auto page = std::filesystem::path(DDPSIM_SCENARIOS).parent_path() / "docs/scenario.md";
  const bool same = reference_page() == content_of(page);
  CHECK(same);
}

TEST_CASE("a name is found in any case, exactly so first", "[scenarios][names]") {
  CHECK(position_of("AdamW", {"adam", "adamw", "adamw-fused"}) == 1U);
  CHECK(position_of("A", {"a", "A"}) == 1U);
  CHECK(position_of("a", {"A", "a"}) == 1U);
  CHECK(!position_of("adam-w", {"adam", "adamw"}));
  CHECK(!position_of("", {"a"}));
  CHECK(other_spelling_of("GPT-2", {"gpt2", "gpt2-xl"}) == "gpt2");
  CHECK(other_spelling_of("gpt2_XL", {"gpt2", "gpt2-xl"}) == "gpt2-xl");
  CHECK(other_spelling_of("ab", {"a-b", "a_b"}).empty());  // which of the two?
  CHECK(other_spelling_of("gpt3", {"gpt2"}).empty());
}

TEST_CASE("a family goes on with a dash or, behind a letter, with a digit", "[scenarios][names]") {
  const std::vector<std::string> names{"a10", "a100-40", "a100-80", "h200", "nvlink2", "nvlink3"};
  CHECK(family_of("A100", names) == std::vector<std::string>{"a100-40", "a100-80"});
  CHECK(family_of("a10", names).empty());  // a100 is no a10
  CHECK(family_of("NVLink", names) == std::vector<std::string>{"nvlink2", "nvlink3"});
  CHECK(family_of("h", names) == std::vector<std::string>{"h200"});
  CHECK(family_of("", names).empty());
}

TEST_CASE("names in a scenario match in any case", "[scenarios][names]") {
  const Scratch scratch;
  const Scenario scenario = read_scenario(scratch.write(
      "s.yaml",
      "workload: {model: ResNet18, batch: 8, dtype: FP32, optimizer: AdamW}\n"
      "cluster: {device: A100-80, ranks_per_node: 2, intra_node: NVLink3, launch: Sync, cpu: AMD}\n"
      "training: {strategy: Flat, first_bucket_cap: None, comm_hook: PowerSGD, micro_batches: 2, "
      "no_sync: True}\n"
      "compare: [Naive, FLAT]\n"));
  CHECK(scenario.workload.name == "resnet18");
  CHECK(scenario.optimizer == Optimizer::adamw);
  CHECK(scenario.cluster.device.name == "a100-80");
  CHECK(scenario.cluster.intra_node.name == "nvlink3");
  CHECK(scenario.cluster.device.synchronous);
  CHECK(scenario.cluster.cpu == CpuVendor::amd);
  CHECK(scenario.training.strategy == Strategy::flat);
  CHECK(!scenario.training.first_bucket_cap);
  CHECK(scenario.training.comm_hook.kind == CommHookKind::powersgd);
  CHECK(scenario.training.no_sync);
  CHECK(scenario.compare == std::vector{Strategy::naive, Strategy::flat});
}

TEST_CASE("a family of several is refused with its members, a family of one is that one",
          "[scenarios][names]") {
  const Scratch scratch;
  CHECK(refusal_at(scratch, 6, "  device: A100") ==
        "s.yaml:6:11: cluster.device: \"A100\" is a family: write one of a100-40, a100-80, "
        "a100-pcie-40, a100-pcie-80");
  CHECK(refusal_at(scratch, 8, "  intra_node: nvlink") ==
        "s.yaml:8:15: cluster.intra_node: \"nvlink\" is a family: write one of nvlink2, "
        "nvlink2-bridge, nvlink3, nvlink3-bridge, nvlink4, nvlink5");
  CHECK(refusal_at(scratch, 6, "  device: RTX-Pro").empty());
}

TEST_CASE("another program's key is answered with ours", "[scenarios][elsewhere]") {
  const Scratch scratch;
  const auto told = [&](const std::string& key, const std::string& value) {
    return told_of_unknown(scratch, key, value);
  };
  CHECK(told("training.bucket_cap_mb", "50") ==
        "DistributedDataParallel's bucket_cap_mb is training.bucket_cap here: write bucket_cap: 50 "
        "MiB");
  CHECK(told("bucket_cap_mb", "auto") ==
        "DistributedDataParallel's bucket_cap_mb is training.bucket_cap here");
  CHECK(told("training.gradient_accumulation_steps", "4") ==
        "Hugging Face's and DeepSpeed's gradient_accumulation_steps is training.micro_batches "
        "here: write micro_batches: 4");
  CHECK(told("gradient_accumulation", "4") ==
        "gradient_accumulation is training.micro_batches here: write micro_batches: 4");
  CHECK_THAT(told("training.checkpointing", "true"),
             Catch::StartsWith("of a transformer of the catalogue write "
                               "workload.activation_checkpointing; a described model "));
  CHECK_THAT(told("workload.gradient_checkpointing", "true"),
             Catch::Contains("where it is true write activation_checkpointing: full"));
  CHECK(told("accumulate_grad_batches", "8") ==
        "Lightning's accumulate_grad_batches is training.micro_batches here: write micro_batches: "
        "8");
  CHECK(told("cluster.nnodes", "2") == "torchrun's nnodes is cluster.nodes here: write nodes: 2");
  CHECK(told("cluster.nproc_per_node", "8") ==
        "torchrun's nproc_per_node is cluster.ranks_per_node here: write ranks_per_node: 8");
  CHECK(told("cluster.world_size", "16") ==
        "torch.distributed's world_size is cluster.ranks here: write ranks: 16");
  CHECK(told("cluster.num_processes", "16") ==
        "Accelerate's num_processes is cluster.ranks here: write ranks: 16");
  CHECK(told("workload.per_device_train_batch_size", "8") ==
        "Hugging Face's per_device_train_batch_size is workload.batch here: write batch: 8");
  CHECK(told("workload.train_batch_size", "256") ==
        "DeepSpeed's train_batch_size is workload.batch here; that is of all ranks and "
        "micro-batches together: divide by both");
  CHECK(told("workload.precision", "bf16-mixed") ==
        "Lightning's precision is workload.compute here; bf16-mixed is compute: bf16 over dtype: "
        "fp32");
  CHECK(told("workload.seq_len", "512") ==
        "seq_len is workload.sequence here: write sequence: 512");
  CHECK(told("training.lr", "1e-4") == "it does not change how long a step takes: leave it out");
  CHECK(told("training.gradient_clipping", "1.0") ==
        "DeepSpeed's gradient_clipping is workload.clip_gradients here; above 0 it is "
        "clip_gradients: true");
  CHECK(told("training.average_in_collective", "true") ==
        "Megatron's average_in_collective is training.average here; where it is true write "
        "average: all_reduce");
  CHECK(told("training.powerSGD_hook", "true") ==
        "PyTorch's powerSGD_hook is training.comm_hook here; write comm_hook: powersgd");
  CHECK_THAT(told("training.sync_batchnorm", "true"), Catch::Contains("`ddpsim describe` it"));
  CHECK_THAT(told("training.torch_compile", "true"), Catch::Contains("describe --fused"));
  CHECK_THAT(told("training.overlap_comm", "true"), Catch::Contains("write strategy: bucketed"));
  CHECK_THAT(told("training.overlap_grad_reduce", "true"),
             Catch::Contains("write strategy: bucketed"));
  CHECK_THAT(told("training.use_distributed_optimizer", "true"),
             Catch::Contains("write training.strategy: zero1"));
  CHECK_THAT(told("training.communication_data_type", "fp16"),
             Catch::Contains("training.comm_hook: bf16_compress"));
  CHECK_THAT(told("training.prescale_gradients", "true"), Catch::Contains("training.average"));
  CHECK_THAT(told("cluster.ddp_backend", "nccl"), Catch::Contains("write cluster.collectives"));
  CHECK(told("workload.clip_grad", "1.0") ==
        "Megatron's clip_grad is workload.clip_gradients here; above 0 it is clip_gradients: true");
  CHECK(told("workload.bf16", "false") ==
        "Hugging Face's and DeepSpeed's bf16 is workload.compute here; where it is true write "
        "compute: bf16");
  CHECK(told("workload.optim", "adamw_torch") ==
        "Hugging Face's optim is workload.optimizer here; adamw_torch and its kind are optimizer: "
        "adamw");
  CHECK(told("training.bucket_size", "40000000") ==
        "Megatron's bucket_size is training.bucket_cap here; that counts elements, this one bytes");
  CHECK_THAT(told("training.zero_stage", "2"), Catch::Contains("write training.strategy: zero1"));
  // Not meant: Lightning's `devices` is a number.
  CHECK(told("cluster.devices", "h100-sxm") == "did you mean \"device\"?");
}

TEST_CASE("a value of another program's key that ours does not take is told with one that it does",
          "[scenarios][elsewhere]") {
  const Scratch scratch;
  const auto told = [&](const std::string& key, const std::string& value) {
    return told_of_unknown(scratch, key, value);
  };
  CHECK(told("cluster.devices", "-1") ==
        "Lightning's devices is cluster.ranks_per_node here, which does not take -1: write a value "
        "such as ranks_per_node: 8");
  CHECK(told("devices", "auto") ==
        "Lightning's devices is cluster.ranks_per_node here, which does not take auto: write a "
        "value such as ranks_per_node: 8");
  CHECK(told("cluster.num_nodes", "-1") ==
        "Lightning's num_nodes is cluster.nodes here, which does not take -1: write a value such "
        "as nodes: 4");
  for (const char* key : {"training.accumulation_steps", "training.gradient_accumulation_steps",
                          "training.accumulate_grad_batches"})
    CHECK_THAT(told(key, "auto"),
               Catch::EndsWith("is training.micro_batches here, which does not take auto: write a "
                               "value such as micro_batches: 4"));
  CHECK_THAT(told("workload.train_micro_batch_size_per_gpu", "auto"),
             Catch::EndsWith("does not take auto: write a value such as batch: 8"));
  CHECK_THAT(told("training.bucket_cap_mb", "-1"),
             Catch::EndsWith("does not take -1 MiB: write a value such as bucket_cap: 50 MiB"));
  CHECK_THAT(told("cluster.accelerator", "gpu"),
             Catch::EndsWith("does not take gpu: write a value such as device: h100-sxm"));
  CHECK_THAT(told("training.DDP_SET_LAST_BUCKET_CAP", "1"),
             Catch::EndsWith("does not take 1: write a value such as last_bucket_cap: true"));
  CHECK_THAT(told("cluster.world_size", "auto"),
             Catch::EndsWith("does not take auto: write a value such as ranks: 16"));
  // What is told is taken.
  for (const auto& [key, value] :
       {std::pair<std::string, std::string>{"cluster.ranks_per_node", "8"},
        {"cluster.ranks", "16"},
        {"training.micro_batches", "4"},
        {"workload.batch", "8"},
        {"training.bucket_cap", "50 MiB"},
        {"cluster.device", "h100-sxm"},
        {"training.last_bucket_cap", "true"}})
    CHECK(refusal(scratch, good_scenario, {{key, value}}).empty());
}

TEST_CASE("a key of ours in a wrong place is told its own", "[scenarios][misplaced]") {
  const Scratch scratch;
  const auto refused = [&](const std::string& line) {
    return refusal(scratch, good_scenario + line + "\n");
  };
  const std::string place = "s.yaml:13:1: ";
  const auto at_the_top = [&](const std::string& line, const std::string& told) {
    const std::string key = line.substr(0, line.find(':'));
    CHECK(refused(line) == place + key + ": unknown key; " + told + known_in_scenario);
  };
  at_the_top("batch: 16", "batch is a key of workload: write workload: {batch: 16}");
  at_the_top("nodes: 4", "nodes is a key of cluster: write cluster: {nodes: 4}");
  at_the_top("ranks: 16", "ranks is a key of cluster: write cluster: {ranks: 16}");
  at_the_top("device: a100-80", "device is a key of cluster: write cluster: {device: a100-80}");
  at_the_top("bucket_cap: 50 MiB",
             "bucket_cap is a key of training: write training: {bucket_cap: 50 MiB}");
  at_the_top("strategy: flat", "strategy is a key of training: write training: {strategy: flat}");
  // A value that the key does not take is no advice.
  at_the_top("strategy: ddp",
             "strategy is a key of training: write training: {strategy: bucketed}");
  at_the_top("nodes: -1", "nodes is a key of cluster: write cluster: {nodes: 4}");
  at_the_top("comm_hook: {powersgd: {rank: 4}}", "comm_hook is a key of training: write it there");
  at_the_top("overlap: true",
             "overlap is a value of training.strategy: write training: {strategy: overlap}");
  at_the_top("source: a paper", "source is a key of cluster and of measured");
  at_the_top("latency: 5 us", "latency is a key of cluster.intra_node and of cluster.inter_node");
  CHECK(refused("dgx: 1") == place + "dgx: unknown key" + known_in_scenario);
}

TEST_CASE("a key of ours in a wrong mapping is told its own, before what is missing",
          "[scenarios][misplaced]") {
  const Scratch scratch;
  CHECK(refusal_at(scratch, 7, "  ranks_per_node: 2\n  bucket_cap: 50 MiB") ==
        "s.yaml:8:3: cluster.bucket_cap: unknown key; bucket_cap is a key of training: write "
        "training: {bucket_cap: 50 MiB}; known: system, source, calibration, device, nodes, "
        "ranks_per_node, ranks, intra_node, inter_node, cpu, collectives, interference, skew, "
        "jitter, exceptions, launch, host, collectives_at_once, through_host, price");
  CHECK_THAT(refusal_at(scratch, 10, "  compare: [flat]"),
             Catch::Contains("compare is a key of the scenario itself: write it beside workload "
                             "and cluster, not below them"));
  CHECK_THAT(refusal_at(scratch, 3, "  layers: 4\n  batch: 8"),
             Catch::Contains("layers is a key of workload.model; known: "));
  // The mapping that lacks the key is read, and refused, later.
  CHECK_THAT(refusal(scratch, spoiled(3, "  image: 64") + "batch: 8\n"),
             Catch::Contains("s.yaml:13:1: batch: unknown key; batch is a key of workload: write "
                             "workload: {batch: 8}"));
  // A slip of a key that is here goes before a key of the same name far away.
  CHECK_THAT(refusal_at(scratch, 7, "  ranks_per_node: 2\n  rank: 2"),
             Catch::Contains("unknown key; did you mean \"ranks_per_node\"?"));
  // A setting is told as a setting.
  CHECK(refusal(scratch, good_scenario, {{"bucket_cap", "50MiB"}}) ==
        "--set bucket_cap=50MiB: unknown key; bucket_cap is a key of training: write "
        "training.bucket_cap=50MiB" +
            known_in_scenario);
}

TEST_CASE("a comm hook by the name of PyTorch's function is told by ours",
          "[scenarios][elsewhere]") {
  const Scratch scratch;
  const auto told = [&](const std::string& hook) {
    return refusal(scratch, good_scenario, {{"training.comm_hook", hook}});
  };
  for (const auto& [theirs, ours] :
       {std::pair<std::string, std::string>{"powerSGD_hook", "powersgd"},
        {"fp16_compress_hook", "fp16_compress"},
        {"post_localSGD_hook", "post_local_sgd"},
        {"power_sgd", "powersgd"}})
    CHECK(told(theirs) == "--set training.comm_hook=" + theirs + ": " + theirs + " is " + ours +
                              " here: write " + ours);
  CHECK_THAT(told("{powerSGD_hook: {rank: 2}}"),
             Catch::EndsWith("PyTorch's powerSGD_hook is training.comm_hook here; write comm_hook: "
                             "powersgd"));
}

TEST_CASE("a missing key that another program spells differently is told by that name",
          "[scenarios][elsewhere]") {
  const Scratch scratch;
  CHECK_THAT(refusal_at(scratch, 3, "  global_batch_size: 64"),
             Catch::StartsWith("s.yaml:3:3: workload.global_batch_size: unknown key; Megatron's "
                               "global_batch_size is workload.batch here"));
  CHECK(refusal_at(scratch, 3, "  lr: 1e-4") == "s.yaml:2:3: workload: missing key \"batch\"");
}

TEST_CASE("a quantity's pattern takes what its parser takes", "[scenarios][quantity_text]") {
  const std::vector<std::string> numbers{"7",    "0",    "0.0", "00",   "010", "1.5",   ".5", "5.",
                                         "1e-3", "0e5",  "-1",  "-0.5", "+5",  "e5",    "1e", "0x5",
                                         "5_0",  "five", "nan", "inf",  "",    "1.1.1", "1,5"};
  const std::vector<std::string> blanks{"", " ", "   ", "\t"};
  const std::vector<std::string> units{"ms",      "µs",     "us",    "min",    "h",    "B",
                                       "MiB",     "mb",     "GB/s",  "Gbit/s", "Gb/s", "gb/s",
                                       "TFLOP/s", "TFLOPS", "TFLOP", "",       "ms x", "ms "};
  const auto value = [](Quantity quantity, const std::string& text) -> std::optional<double> {
    switch (quantity) {
      case Quantity::duration:
        if (const auto time = parse_duration(text)) return in_seconds(*time);
        return std::nullopt;
      case Quantity::bytes:
        if (const auto size = parse_bytes(text)) return static_cast<double>(size->count);
        return std::nullopt;
      case Quantity::bandwidth:
        if (const auto rate = parse_bandwidth(text)) return rate->bytes_per_second;
        return std::nullopt;
      case Quantity::flop_rate:
        if (const auto rate = parse_flop_rate(text)) return rate->flops_per_second;
        return std::nullopt;
    }
    return std::nullopt;
  };
  int taken = 0;
  for (const Quantity quantity :
       {Quantity::duration, Quantity::bytes, Quantity::bandwidth, Quantity::flop_rate}) {
    const std::regex any(quantity_pattern(quantity, Sign::any)),
        not_negative(quantity_pattern(quantity, Sign::not_negative)),
        positive(quantity_pattern(quantity, Sign::positive));
    for (const std::string& number : numbers)
      for (const std::string& blank : blanks)
        for (const std::string& unit : units) {
          const std::string text = number + blank + unit;
          // A fraction of a byte is cut off to none.
          if (unit == "B" && (number == ".5" || number == "-0.5" || number == "1e-3")) continue;
          CAPTURE(text);
          const auto parsed = value(quantity, text);
          CHECK(std::regex_match(text, any) == parsed.has_value());
          CHECK(std::regex_match(text, not_negative) == (parsed && *parsed >= 0));
          CHECK(std::regex_match(text, positive) == (parsed && *parsed > 0));
          taken += parsed ? 1 : 0;
        }
  }
  CHECK(taken > 300);
}

TEST_CASE("a price's pattern takes what its parser takes above zero",
          "[scenarios][quantity_text]") {
  const std::regex pattern(price_pattern());
  int taken = 0;
  for (const std::string text :
       {"2.5 USD/h",  "2.5USD/h",   "2.5   EUR/h", ".5 GBP/h",     "1e-3 USD/h",
        "0 USD/h",    "-1 USD/h",   "2.5 usd/h",   "2.5 US/h",     "2.5 USDT/h",
        "2.5 USD",    "2.5",        "USD/h",       "2.5 USD/hour", "",
        "2.5 USD/h ", " 2.5 USD/h", "2.5 $/h",     "2.5\tUSD/h",   "/h",
        "D/h",        "nan USD/h",  "2.5 AZN/h",   "2.5 @AB/h",    "2.5 AB[/h"}) {
    CAPTURE(text);
    const auto price = parse_price(text);
    CHECK(std::regex_match(text, pattern) == (price && price->per_hour > 0));
    taken += price ? 1 : 0;
  }
  CHECK(taken == 8);  // those of the first line and a half, and the manat
  const auto price = parse_price("2.5 USD/h");
  REQUIRE(price);
  CHECK(price->per_hour == 2.5);
  CHECK(price->currency == "USD");
}

TEST_CASE("a number's pattern takes what its parser takes", "[scenarios][quantity_text]") {
  const std::regex integer(integer_pattern()), number(number_pattern());
  for (const std::string text :
       {"0",  "-12", "010", "1.5",  "-.5", "5.",  "1e3", "1E+3",  "1e",  "",
        " 1", "1 ",  "+1",  "0x10", "one", "nan", "inf", "1,000", "5 %", "--1"}) {
    CAPTURE(text);
    CHECK(std::regex_match(text, integer) == parse_integer(text).has_value());
    CHECK(std::regex_match(text, number) == parse_number(text).has_value());
  }
}

}  // namespace
}  // namespace ddpsim
