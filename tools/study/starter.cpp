#include "tools/study/starter.hpp"

#include <algorithm>
#include <cctype>
#include <optional>
#include <string_view>
#include <variant>

#include <fmt/format.h>

#include "model/parallel/memory/peak_memory.hpp"
#include "model/parallel/policy/fsdp_refusals.hpp"
#include "scenarios/reader/cluster/cluster_reader.hpp"
#include "scenarios/reader/cluster/device_reader.hpp"
#include "scenarios/reader/scenario/scenario_reader.hpp"
#include "scenarios/reader/text/catalogue_folder.hpp"
#include "scenarios/reader/text/memory_file.hpp"
#include "scenarios/reader/text/yaml_text.hpp"
#include "scenarios/reader/workload/model_reader.hpp"
#include "sim/predict/predict.hpp"

namespace ddpsim {
namespace {

/// Is it a file's, and no name of an entry of that kind?
bool is_file(const std::string& name, std::string_view kind) {
  std::error_code error;
  return std::filesystem::is_regular_file(name, error) && !is_of_catalogue(name, kind);
}

/// A text as a value of YAML: quoted, unless it reads as it stands.
std::string value_of(const std::string& text) {
  const auto letter = [](unsigned char c) { return std::isalnum(c) != 0; };
  const auto simple = [&](unsigned char c) {
    return letter(c) || c == '-' || c == '_' || c == '.' || c == '/' || c == ' ';
  };
  if (!text.empty() &&
      (letter(text.front()) || text.starts_with("./") || text.starts_with("../")) &&
      letter(text.back()) && std::ranges::all_of(text, simple))
    return text;
  YAML::Emitter out;
  write_text(out, text);
  return out.c_str();
}

/// What names a file from here names it from `folder`; what names an entry of that kind stays.
std::string named_from(const std::filesystem::path& folder, const std::string& name,
                       std::string_view kind) {
  if (!is_file(name, kind)) return value_of(name);
  const std::string path = std::filesystem::absolute(name).lexically_proximate(folder).string();
  // A lone word would be looked for in the catalogue.
  return value_of(path.find('/') == std::string::npos ? "./" + path : path);
}

/// `key: value`, and what it means in a column of its own.
std::string line(std::string_view key, const std::string& value, std::string_view meaning = "") {
  const std::string said = fmt::format("  {}: {}", key, value);
  return meaning.empty() ? said + "\n" : fmt::format("{:<31} # {}\n", said, meaning);
}

/// How a network is fed and trained, where its own file does not say.
struct Feed {
  int samples = 8;   ///< of a rank, if they fit
  int sequence = 0;  ///< tokens of a sample; 0: it takes none
  bool pictures = false;
  const char* optimizer = "adamw";
};

Feed feed_of(const Architecture& architecture) {
  constexpr int usual_sequence = 1024, encoder_sequence = 512, pictures = 32;
  if (const auto* transformer = std::get_if<TransformerShape>(&architecture))
    return {.sequence = transformer->positions > 0
                            ? std::min(transformer->positions, usual_sequence)
                            : usual_sequence};
  if (std::holds_alternative<T5Shape>(architecture)) return {.sequence = encoder_sequence};
  if (const auto* whisper = std::get_if<WhisperShape>(&architecture))
    return {.sequence = whisper->positions};
  if (std::holds_alternative<MixtralShape>(architecture)) return {.sequence = usual_sequence};
  if (std::holds_alternative<DlrmShape>(architecture)) return {.samples = 2048, .optimizer = "sgd"};
  if (std::holds_alternative<SsdShape>(architecture)) return {.samples = 32, .optimizer = "sgd"};
  if (std::holds_alternative<MaskRcnnShape>(architecture))
    return {.samples = 2, .optimizer = "sgd"};
  const bool vit = std::holds_alternative<VitShape>(architecture);
  return {.samples = pictures,
          .pictures = !std::holds_alternative<MlpShape>(architecture),
          .optimizer = vit ? "adamw" : "sgd"};
}

/// Nothing where the file is a profile or a description of a step, which holds all of that.
std::optional<Feed> feed_of(const std::string& model) {
  if (is_file(model, model_entries) && is_workload_profile(model)) return std::nullopt;
  return feed_of(read_model(entry_with_bases(Yaml::of_text(model), model_entries)).architecture);
}

Device device_of(const Starter& starter) {
  return starter.cluster.empty() ? read_device(Yaml::of_text(starter.device))
                                 : read_ready_cluster(starter.cluster).cluster.device;
}

/// The keys of `workload:` and `cluster:` with what they mean.
class StarterText {
 public:
  StarterText(const Starter& starter, const std::filesystem::path& place)
      : starter_(starter),
        folder_(std::filesystem::absolute(place).parent_path()),
        file_(place.filename().string()),
        feed_(feed_of(starter.model)),
        device_(device_of(starter)) {}

  bool takes_batch() const { return feed_.has_value(); }
  int most_samples() const { return feed_->samples; }

  std::string with_batch(int batch) const {
    return head() + workload(batch) + cluster() + training();
  }

 private:
  std::string head() const {
    const std::string second =
        shards(starter_.strategy)
            ? fmt::format("#   ddpsim plan {0} --gpus 8..64*2    finds what fits and is quickest",
                          file_)
            : fmt::format(
                  "#   ddpsim tune {0}       finds the best bucket sizes, and prints what "
                  "to paste",
                  file_);
    return fmt::format(
        R"(# What is trained, on what, and how. `ddpsim explain KEY` tells what a key means.
#   ddpsim run {0}        predicts a step under each strategy
{2}
#   ddpsim explore {0}    has sliders for caps, ranks and links, in a browser
name: {1}
)",
        file_, value_of(title()), second);
  }

  /// What is trained: what it is trained on may change with a flag.
  std::string title() const {
    return is_file(starter_.model, model_entries)
               ? std::filesystem::path(starter_.model).stem().string()
               : starter_.model;
  }

  std::string workload(int batch) const {
    const std::string model = named_from(folder_, starter_.model, model_entries);
    if (!feed_) return "workload:\n" + line("model", model, "holds its batch, types and optimizer");
    std::string text = "workload:\n" +
                       line("model", model, "ddpsim list models; or a file of your own") +
                       line("batch", fmt::format("{}", batch), "samples of each rank");
    if (feed_->sequence > 0)
      text += line("sequence", fmt::format("{}", feed_->sequence), "tokens of a sample");
    if (feed_->pictures) text += line("image", "224", "side of a picture, in pixels");
    text += line("dtype", "fp32", "of parameters and gradients ...");
    for (const DType type : {DType::bf16, DType::fp16}) {
      if (device_.peak_of(type) <= FlopRate{}) continue;
      text += line("compute", std::string(name_of(type)),
                   "... while matrices are multiplied as under autocast");
      break;
    }
    return text +
           line("optimizer", feed_->optimizer, "ddpsim explain workload.optimizer lists them");
  }

  std::string cluster() const {
    std::string text = "cluster:\n";
    const auto count = [](int number) { return fmt::format("{}", number); };
    if (!starter_.cluster.empty())
      text += line("system", named_from(folder_, starter_.cluster, cluster_entries),
                   "ddpsim list clusters") +
              line("nodes", count(starter_.nodes));
    else
      text += line("device", named_from(folder_, starter_.device, device_entries),
                   "ddpsim list devices") +
              line("nodes", count(starter_.nodes)) +
              line("ranks_per_node", count(starter_.ranks_per_node),
                   "a rank is a process with a device of its own");
    if (!starter_.links[0].empty())
      text += line("intra_node", named_from(folder_, starter_.links[0], link_entries),
                   "ddpsim list links");
    if (!starter_.links[1].empty())
      text += line("inter_node", named_from(folder_, starter_.links[1], link_entries),
                   "{base: ib-ndr, nics: 8} has eight to a node");
    return text +
           "  # price: 2.5 USD/h            # of a rank's device; results then say the cost\n";
  }

  /// What every strategy may have measured.
  static std::string measured(std::string_view rows, std::string_view example) {
    constexpr const char* text = R"(# A measured step makes predictions better. With one, remove )"
                                 R"(the marks before these lines.
# measured:
#   rows:                       # {}
#     - {{strategy: {}, step: 531.7 ms}}
)";
    return fmt::format(fmt::runtime(text), rows, example);
  }

  std::string training() const {
    if (shards(starter_.strategy)) return sharded_training();
    return R"(training:
  micro_batches: 1              # gradient accumulation; no_sync: true sends the last one's alone
  # bucket_cap: 50 MiB          # PyTorch's bucket_cap_mb; without it 25 MiB, and 1 for the first
  # comm_hook: bf16_compress    # ddpsim list hooks
compare: [none, naive, flat, overlap, bucketed]
)" + measured("of none (computation), naive (with communication: 85 ms), ...", "naive");
  }

  std::string sharded_training() const {
    std::string text =
        "training:\n" + line("strategy", std::string(name_of(starter_.strategy)),
                             "each rank keeps a part of all parameters: docs/sharding.md");
    if (starter_.strategy == Strategy::fsdp) {
      // A file's passes are in its own types.
      if (feed_ && device_.peak_of(DType::bf16) > FlopRate{})
        text += line("mp_policy", "{param_dtype: bf16, reduce_dtype: fp32}", "of gathers, of sums");
      text +=
          R"(  # reshard_after_forward: true # free parameters behind forward; auto: but the root's
  # units: ["*"]                # modules that fully_shard is called with; else each block
  # replicate: 2                # replicas, each sharded among its own ranks (HSDP)
)";
    }
    return text + line("micro_batches", "1", "gradient accumulation") +
           fmt::format("compare: [none, bucketed, {}]\n", name_of(starter_.strategy)) +
           measured("of none (computation), or of the step as it is", name_of(starter_.strategy));
  }

  const Starter& starter_;
  std::filesystem::path folder_;
  std::string file_;
  std::optional<Feed> feed_;
  Device device_;
};

Scenario read_as(const std::string& text, const std::filesystem::path& place) {
  const MemoryFile file(place, text);
  return read_scenario(place);
}

/// Does a step of that strategy fit on the device? Where the device's memory is not known it does.
bool fits(const Scenario& scenario, Strategy strategy) {
  Training training = scenario.training;
  training.strategy = strategy;
  const Step step = predict(model_of(scenario), training);
  const Bytes memory = scenario.cluster.device.memory;
  return memory <= Bytes{} ||
         ddpsim::fits(step_memory(scenario.workload, scenario.optimizer, training, step.job()).peak,
                      memory);
}

bool can_shard(const Scenario& scenario) {
  Training training = scenario.training;
  training.strategy = Strategy::fsdp;
  return !fsdp_refusal(WorkloadGradients(scenario.workload), training, device_of(scenario.cluster));
}

}  // namespace

StarterScenario starter_scenario(const Starter& starter, const std::filesystem::path& place) {
  const StarterText starting(starter, place);
  int batch = starter.batch;
  if (starting.takes_batch() && batch == 0) {
    batch = starting.most_samples();
    while (batch > 1 && !fits(read_as(starting.with_batch(batch), place), starter.strategy))
      batch /= 2;
  }
  StarterScenario made{.text = starting.with_batch(batch), .summary = {}};
  const Scenario scenario = read_as(made.text, place);
  const RanksPerNode& each = scenario.cluster.ranks_per_node;
  const auto counted = [](int count, const char* noun) {
    return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
  };
  made.summary =
      fmt::format("{}: {} of {} rank{}", scenario.name, counted(scenario.cluster.nodes, "node"),
                  to_string(each), each.largest() == 1 ? "" : "s");
  if (scenario.batch > 0) made.summary += ", " + counted(scenario.batch, "sample") + " each";
  made.fits = fits(scenario, starter.strategy);
  made.fits_sharded = !made.fits && !shards(starter.strategy) && scenario.cluster.ranks() > 1 &&
                      can_shard(scenario) && fits(scenario, Strategy::fsdp);
  return made;
}

}  // namespace ddpsim
