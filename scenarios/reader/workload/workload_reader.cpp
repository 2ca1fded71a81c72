#include "scenarios/reader/workload/workload_reader.hpp"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

#include "model/kernel/operation_table.hpp"
#include "model/kernel/price_by_class.hpp"
#include "model/parallel/memory/peak_memory.hpp"
#include "model/parallel/user_hook.hpp"
#include "model/workload/freeze.hpp"
#include "scenarios/reader/catalogue/catalogue.hpp"
#include "scenarios/reader/format/map.hpp"
#include "scenarios/reader/text/nearest.hpp"
#include "scenarios/reader/workload/description_reader.hpp"
#include "scenarios/reader/workload/model_reader.hpp"
#include "scenarios/reader/workload/profile_reader.hpp"

namespace ddpsim {
namespace {

constexpr int largest_size = 10'000'000;

/// `workload:` as it is written, before it becomes a Workload.
struct WorkloadDraft {
  WorkloadSize size;
  std::optional<DType> compute;
  std::optional<Optimizer> optimizer;
  std::optional<Duration> optimizer_time;
  std::optional<bool> clip_gradients;
  std::vector<Yaml> frozen;  ///< names of parameters
  MeasuredTimes times;
};

bool is_profile(const Entry& entry) {
  return entry.name != "inline" && YamlMap(entry.yaml).has("format");
}

bool is_description(const Entry& entry) {
  return is_profile(entry) && YamlMap(entry.yaml).find("format")->scalar() == "ddpsim.workload/2";
}

const Map<MeasuredTimes>& times_map() {
  static const auto map =
      Map<MeasuredTimes>("times",
                         "Measured totals without communication, of one micro-batch and of the "
                         "optimizer. Layers are scaled so that they add up to them.")
          .key("forward", value::time(), &MeasuredTimes::forward,
               {.meaning = "The forward pass of one micro-batch.",
                .otherwise = "as the laws price it",
                .example = "250 ms"})
          .key("backward", value::time(), &MeasuredTimes::backward,
               {.meaning = "The backward pass of one micro-batch.",
                .otherwise = "as the laws price it",
                .example = "507 ms"})
          .key("optimizer", value::time(), &MeasuredTimes::optimizer,
               {.meaning = "The optimizer's update.",
                .otherwise = "as the laws price it",
                .example = "106 ms"});
  return map;
}

void add_model(Map<WorkloadDraft>& map) {
  map.key_read("model",
               {{.kind = Form::Kind::entry, .catalogue = model_entries}, value::map(&model_keys)},
               [](WorkloadDraft&, const Yaml&) {},  // read_workload has read it before
               {.meaning = "The network: a model of the catalogue, a model description, or the "
                           "path of a workload profile or of a workload description (`ddpsim "
                           "describe`).",
                .example = "gpt2",
                .required = true,
                .elsewhere = {{"model_name", "Hugging Face's"},
                              {"model_name_or_path", "Hugging Face's"},
                              {"arch", "torchvision's"}}});
}

/// none: 0; full: 1; every so many-th block.
Value<int> checkpoints_value() {
  const auto number = value::whole(2, 10'000);
  return {value::either({number.type,
                         {value::word("none", "autograd keeps what it needs"),
                          value::word("full", "every block is a checkpoint"),
                          value::word("selective",
                                      "every block is one that keeps attention's "
                                      "result and that of every second product with "
                                      "a weight, as torchtitan's option op")}}),
          [read = number.read](const Yaml& given) {
            if (given.is_word("none")) return 0;
            if (given.is_word("full")) return 1;
            if (given.is_word("selective")) return selective_checkpoints;
            if (!given.is_scalar() || !parse_integer(given.scalar()))
              given.fail(
                  "expected none, full, selective, or a number such as 2, for every second block");
            return static_cast<int>(read(given));
          },
          {}};
}

void add_size(Map<WorkloadDraft>& map) {
  const auto size = [](auto member) {
    return [member](auto& draft) -> auto& {
      return draft.size.*member;
    };
  };
  const std::vector<std::string> formats{"32-bit floating point",
                                         "fp32 in memory, multiplied with 10 bits of mantissa",
                                         "bfloat16", "IEEE half precision"};
  auto stored = value::one_of(all_dtypes, formats);
  stored.type.front().choices.erase(stored.type.front().choices.begin() + 1);
  stored.read = [](const Yaml& given) {
    const auto type = given.one_of<DType>(all_dtypes);
    if (type == DType::tf32)
      given.fail(
          "tf32 is how GEMMs compute, not how parameters are stored: write dtype: fp32 and "
          "compute: tf32");
    return type;
  };
  map.key("batch", value::whole(1, largest_size), size(&WorkloadSize::batch),
          {.meaning = "How many samples a rank takes in one micro-batch.",
           .otherwise = "needed, unless the model is a workload profile or a workload description",
           .example = "8",
           .elsewhere = {{"per_device_train_batch_size", "Hugging Face's"},
                         {"train_micro_batch_size_per_gpu", "DeepSpeed's"},
                         {"micro_batch_size", "Megatron's"},
                         {"batch_size", "a DataLoader's"},
                         {"train_batch_size", "DeepSpeed's", "-",
                          "that is of all ranks and micro-batches together: divide by both"},
                         {"global_batch_size", "Megatron's", "-",
                          "that is of all ranks and micro-batches together: divide by both"}}})
      // A network takes tokens or pictures; the other key may stand there, for scenarios that swap
      // models.
      .key("sequence", value::whole(1, largest_size), size(&WorkloadSize::sequence),
           {.meaning = "How many tokens a sample has. Only transformers look at it.",
            .otherwise = "needed for transformers",
            .example = "512",
            .elsewhere = {{"seq_len", ""},
                          {"seq_length", "Megatron's"},
                          {"sequence_length", ""},
                          {"max_seq_length", "Hugging Face's"},
                          {"max_length", "Hugging Face's"},
                          {"block_size", "nanoGPT's"},
                          {"context_length", "CS336's"}}})
      .key("image", value::whole(32, 16384), size(&WorkloadSize::image),
           {.meaning = "The side of a square input picture, in pixels. Only convolutional networks "
                       "look at it; detectors resize their pictures themselves.",
            .elsewhere = {{"image_size", "torchvision's"}, {"img_size", "timm's"}}})
      .key("channels_last", value::boolean(), size(&WorkloadSize::channels_last),
           {.meaning = "Whether pictures lie in a GPU's memory with their channels together "
                       "(torch.channels_last). Only convolutional networks look at it; a workload "
                       "description says it of each kernel.",
            .example = "true",
            .elsewhere = {{"memory_format", "PyTorch's", "-", "nhwc is channels_last: true"}}})
      .key("activation_checkpointing", checkpoints_value(), size(&WorkloadSize::checkpointed),
           {.meaning = "Which blocks of a transformer of the catalogue keep their input alone and "
                       "run forward again in the backward pass: none, all of them (full), or every "
                       "so many-th; or all keep more than that (selective). A workload description "
                       "has its checkpoints in it.",
            .unset = "none",
            .example = "full",
            .source = "torch.utils.checkpoint; every so many-th and selective as torchtitan's "
                      "selective options",
            .elsewhere = {{"gradient_checkpointing", "Hugging Face's", "-",
                           "where it is true write activation_checkpointing: full"},
                          {"recompute_granularity", "Megatron's", "-",
                           "full is activation_checkpointing: full; its selective is not modelled"},
                          {"recompute_activations", "Megatron's", "-",
                           "selective recomputation is not modelled"}}})
      .key_read("frozen", {value::list({value::form(Form::Kind::text)})},
                [](WorkloadDraft& draft, const Yaml& given) {
                  draft.frozen = given.list("a list of parameters' names, with * for any text");
                },
                {.meaning = "The parameters of a model of the catalogue that are not trained, by "
                            "name, with * for any text. They get no gradient and no update, and "
                            "layers in front of all that are trained run no backward pass. A "
                            "workload description has its frozen parameters in it.",
                 .otherwise = "all are trained",
                 .example = "[conv1.weight]"})
      .key("dtype", stored, size(&WorkloadSize::dtype),
           {.meaning = "How parameters, gradients and activations are stored.",
            .elsewhere = {{"torch_dtype", "Hugging Face's", "-"},
                          {"params_dtype", "Megatron's", "-"}}})
      .key("compute", value::one_of(all_dtypes, formats), &WorkloadDraft::compute,
           {.meaning = "How matrices are multiplied, where that differs from `dtype`: bf16 over "
                       "fp32 is what autocast does.",
            .otherwise = "as `dtype`",
            .example = "bf16",
            .elsewhere = {
                {"precision", "Lightning's", "-", "bf16-mixed is compute: bf16 over dtype: fp32"},
                {"bf16", "Hugging Face's and DeepSpeed's", "-",
                 "where it is true write compute: bf16"},
                {"fp16", "Hugging Face's and DeepSpeed's", "-",
                 "where it is true write compute: fp16"},
                {"tf32", "Hugging Face's", "-", "where it is true write compute: tf32"},
                {"mixed_precision", "Accelerate's", "-",
                 "write compute: bf16 or compute: fp16, and nothing for no"},
                {"autocast", "torch.amp's", "-", "where it is on write compute: bf16"},
                {"allow_tf32", "torch.backends'", "-", "where it is true write compute: tf32"},
                {"float32_matmul_precision", "PyTorch's", "-", "high is compute: tf32"}}});
}

/// The name of a law, or a duration.
void read_optimizer(WorkloadDraft& draft, const Yaml& given) {
  const std::string text = given.text("an optimizer or a time");
  if (text.front() >= '0' && text.front() <= '9')
    draft.optimizer_time = given.duration();
  else
    draft.optimizer = given.one_of<Optimizer>(all_optimizers);
}

void add_times(Map<WorkloadDraft>& map) {
  const auto law = value::one_of(
      all_optimizers,
      {"there is no update", "SGD with momentum and weight decay, as PyTorch's foreach code",
       "SGD without momentum and weight decay, as PyTorch's foreach code",
       "Adam, as PyTorch's foreach code", "AdamW, as PyTorch's foreach code",
       "AdamW in one fused kernel per group of tensors",
       "a Python loop of AdamW over tensors, as in CS336", "LAMB, as apex's FusedLAMB",
       "Adafactor, as PyTorch's loop over tensors",
       "Muon for the matrices of hidden layers, as PyTorch's loop over tensors, and AdamW for all "
       "else",
       "RMSprop without momentum, as PyTorch's foreach code", "NovoGrad, as apex's FusedNovoGrad",
       "Lion, as its authors' loop over tensors",
       "Adam with states of 8 bits, as bitsandbytes' loop over tensors"});
  map.key_read("optimizer", value::either({law.type, value::time().type}), read_optimizer,
               {.meaning = "The optimizer, whose update is priced by its reads and writes, or the "
                           "measured time of an update.",
                .otherwise = "adamw; for a workload profile, what was measured; for a workload "
                             "description, what was described",
                .example = "adamw-fused",
                .source = "the operations of each: model/workload/optimizer.hpp",
                .elsewhere = {{"optim", "Hugging Face's", "-",
                               "adamw_torch and its kind are optimizer: adamw"}}})
      .key("clip_gradients", value::boolean(), &WorkloadDraft::clip_gradients,
           {.meaning = "Whether gradients are clipped by the norm of all of them before the "
                       "update, as torch.nn.utils.clip_grad_norm_ does; it counts as the "
                       "optimizer's. A measured time of an update has it in it.",
            .otherwise = "false; for a workload description, as described",
            .example = "true",
            .elsewhere =
                {{"gradient_clipping", "DeepSpeed's", "-", "above 0 it is clip_gradients: true"},
                 {"gradient_clip_val", "Lightning's", "-", "above 0 it is clip_gradients: true"},
                 {"max_grad_norm", "Hugging Face's", "-", "above 0 it is clip_gradients: true"},
                 {"clip_grad", "Megatron's", "-", "above 0 it is clip_gradients: true"},
                 {"clip_grad_norm", "", "-", "above 0 it is clip_gradients: true"}}})
      .key("times", value::mapping(&times_map), &WorkloadDraft::times,
           {.meaning = "Measured totals without communication, of one micro-batch, which scale "
                       "the laws.",
            .otherwise = "the laws price the step",
            .example = "{forward: 250 ms, backward: 507 ms}"});
}

const Map<WorkloadDraft>& workload_map() {
  static const Map<WorkloadDraft> map = [] {
    Map<WorkloadDraft> all("workload", "The network that is trained, at a given size.");
    add_model(all);
    add_size(all);
    add_times(all);
    all.needs_also({{.key = "batch"},
                    {.key = "model", .value = {{.kind = Form::Kind::entry, .catalogue = ""}}}});
    all.check([](WorkloadDraft&, const YamlMap& entries) {
      YamlMap::check_there({entries}, "batch", workload_keys());
    });
    return all;
  }();
  return map;
}

/// A profile was measured at one size, in its own number formats.
const Map<WorkloadDraft>& profiled_map() {
  static const Map<WorkloadDraft> map = [] {
    Map<WorkloadDraft> some("profiled_workload",
                            "A network that is described by a workload profile, which was measured "
                            "at one size.");
    add_model(some);
    add_times(some);
    return some;
  }();
  return map;
}

/// A description was made at one size, in its own number formats: a scenario may repeat them. Only
/// how fp32 is multiplied is the scenario's to say.
const Map<WorkloadDraft>& described_map() {
  static const Map<WorkloadDraft> map = [] {
    Map<WorkloadDraft> some("described_workload",
                            "A network that is described by a workload description, which was made "
                            "at one size.");
    add_model(some);
    add_size(some);
    add_times(some);
    return some;
  }();
  return map;
}

void refuse_other_size(const WorkloadDraft& draft, const WorkloadDescription& description,
                       const YamlMap& map) {
  const auto fixed = [&](const char* key, bool same, const std::string& described) {
    if (const auto given = map.find(key); given && !same)
      given->fail(
          fmt::format("the model was described with {}: take the key out, or describe the model "
                      "again (ddpsim describe) with another value",
                      described));
  };
  fixed("batch", draft.size.batch == description.batch, fmt::format("batch {}", description.batch));
  fixed("sequence", draft.size.sequence == description.sequence.value_or(0),
        description.sequence ? fmt::format("sequence {}", *description.sequence)
                             : "samples that are no sequences");
  fixed("image", false, "pictures of one size");
  fixed("channels_last", false, "the layout that its pictures have");
  fixed("activation_checkpointing", false, "the checkpoints that it has");
  fixed("frozen", false, "the parameters that it trains");
  fixed("dtype", draft.size.dtype == description.dtype,
        fmt::format("dtype {}", name_of(description.dtype)));
  const DType described = description.compute.value_or(description.dtype);
  const bool narrow = size_of(described) < size_of(DType::fp32);
  const bool fits = draft.compute && (narrow ? *draft.compute == described
                                             : size_of(*draft.compute) == size_of(DType::fp32));
  fixed("compute", fits, fmt::format("compute {}", name_of(described)));
}

/// Throws InputError, at the workload, if the device lacks how a kernel multiplies.
void refuse_other_devices(const Yaml& given, const WorkloadDescription& description,
                          std::optional<DType> compute, const Device& device) {
  for (const DescribedKernel& kernel : description.kernels) {
    if (kernel.kind == KernelKind::memory) continue;
    const DType type = multiplied_as(kernel, compute, device);
    if (device.peak_of(type).flops_per_second <= 0)
      given.fail(
          fmt::format("device {} does not multiply {}, in which the model was described: "
                      "describe it anew in another type",
                      device.name, name_of(type)));
  }
}

/// What is to be said of kernels whose times were measured on the device, or on another; "": none
/// were.
std::string operations_note(const WorkloadDescription& description, std::optional<DType> compute,
                            const Device& device) {
  if (!device.operations) return "";
  int priced = 0, measured = 0, beyond = 0;
  for (const DescribedKernel& kernel : description.kernels) {
    const auto time = class_time(kernel, compute, device, description.release);
    if (!time) continue;
    ++priced;
    if (time->source != KernelSource::law) ++measured;
    if (time->source == KernelSource::beyond) ++beyond;
  }
  if (measured == 0) return "";
  std::string note =
      fmt::format("{} of {} distinct kernels priced by measured operations", measured, priced);
  if (const auto& other = device.operations->measured_on())
    note += fmt::format(" of {}, scaled to {} by the laws", other->name, device.name);
  if (beyond > 0)
    note += fmt::format(
        ", {} of them beyond the sizes that were measured, by the laws from the "
        "nearest",
        beyond);
  return note;
}

/// How many kernels activation checkpoints run again in the backward pass, by their first run.
int recomputed_kernels(const WorkloadDescription& description) {
  return static_cast<int>(std::ranges::count_if(description.kernels, &DescribedKernel::recomputed));
}

void read_described(const Yaml& given, const Entry& entry, WorkloadDraft& draft,
                    Scenario& scenario) {
  const WorkloadDescription description = read_workload_description(entry.yaml);
  described_map().read(given, draft);
  refuse_other_size(draft, description, YamlMap(given));
  const Device& device = scenario.cluster.device;
  refuse_other_devices(given, description, draft.compute, device);
  scenario.workload = workload_of(description, entry.name, draft.compute, device);
  scenario.optimizer = description.optimizer.value_or(Optimizer::none);
  scenario.workload.clip_gradients = description.clip_gradients;
  scenario.batch = description.batch;
  scenario.sequence = description.sequence.value_or(0);
  const MaskedFlops flops = masked_flops(description);
  scenario.described = Described{.source = description.source,
                                 .batch = description.batch,
                                 .sequence = description.sequence.value_or(0),
                                 .compute = description.compute,
                                 .recomputed = recomputed_kernels(description),
                                 .attention = description.attention,
                                 .notes = description.notes,
                                 .partial = description.partial,
                                 .attention_flops = flops.counted,
                                 .masked_flops = flops.masked};
  if (const std::string note = operations_note(description, draft.compute, device); !note.empty())
    scenario.described->notes.push_back(note);
  if (!description.marks_recomputed)
    scenario.described->notes.emplace_back(
        "this file was written before kernels that the backward pass runs again (activation "
        "checkpoints) were marked: HFU counts them, and MFU is not known; describe the model again "
        "to have both");
  for (const DescribedCollective& each : description.collectives) {
    if (is_priced(each)) continue;
    scenario.described->collectives += each.count;
    scenario.described->collective_bytes += each.count * Bytes{each.bytes};
  }
}

Workload built(const std::string& name, const ModelDescription& model, const WorkloadSize& size) {
  Workload workload = build_workload(name, model.architecture, size);
  if (!model.source.empty()) workload.source = model.source;
  return workload;
}

/// The network with those parameters frozen that the draft names.
Workload with_frozen(const WorkloadDraft& draft, Workload workload) {
  if (draft.frozen.empty()) return workload;
  std::vector<bool> which(workload.parameters.size(), false);
  for (const Yaml& item : draft.frozen) {
    const std::string pattern = item.text("a parameter's name");
    bool is_found = false;
    std::vector<std::string> names;
    for (std::size_t p = 0; p < which.size(); ++p) {
      names.push_back(workload.parameters[p].name);
      if (!matches(pattern, names.back())) continue;
      which[p] = is_found = true;
    }
    const std::string guess = is_found ? "" : nearest(pattern, names);
    if (!is_found)
      item.fail(fmt::format("{} has no parameter named \"{}\"{}", workload.name,
                            pattern.substr(0, 100),
                            guess.empty() ? "" : fmt::format("; did you mean \"{}\"?", guess)));
  }
  try {
    return freeze(std::move(workload), which);
  } catch (const std::invalid_argument& problem) {
    draft.frozen.front().fail(problem.what());
  }
}

}  // namespace

const MapDescription& workload_keys() {
  return workload_map().description();
}

void read_workload(const Yaml& given, Scenario& scenario) {
  const YamlMap map(given);
  YamlMap::check_there({map}, "model", workload_map().description());
  const Yaml model = *map.find("model");
  const std::vector<Entry> entries = entry_with_bases(model, model_entries);
  // A profile holds what was measured, its optimizer among it, if there was one.
  scenario.optimizer = is_profile(entries.front()) ? Optimizer::none : Optimizer::adamw;
  WorkloadDraft draft;
  if (is_description(entries.front())) {
    read_described(given, entries.front(), draft, scenario);
  } else if (is_profile(entries.front())) {
    const WorkloadProfile profile = read_workload_profile(entries.front().yaml);
    scenario.workload = workload_of(profile, entries.front().name);
    scenario.measured = profile.measured;
    profiled_map().read(given, draft);
  } else {
    const ModelDescription description = read_model(entries);
    workload_map().read(given, draft);
    draft.size.compute = draft.compute.value_or(draft.size.dtype);
    const std::optional<TokenBlocks> blocks = blocks_of(description.architecture);
    if (blocks) YamlMap::check_there({map}, "sequence", workload_map().description());
    if (const auto given_there = map.find("activation_checkpointing");
        draft.size.checkpointed == selective_checkpoints &&
        !can_checkpoint_selectively(description.architecture))
      given_there->fail("selective is modelled for blocks of family llama: write full");
    if (const auto given_there = map.find("activation_checkpointing");
        draft.size.checkpointed > 0 && !can_checkpoint(description.architecture))
      given_there->fail(
          "activation_checkpointing is modelled for blocks of the families cs336, llama, gpt2, "
          "bert, mixtral and vit: leave it out");
    if (blocks && draft.size.checkpointed > blocks->layers)
      map.find("activation_checkpointing")
          ->fail(
              fmt::format("expected at most {}: the model has that many blocks", blocks->layers));
    try {
      scenario.workload = built(entries.front().name, description, draft.size);
    } catch (const std::invalid_argument& problem) {
      model.fail(problem.what());
    }
    scenario.workload = with_frozen(draft, std::move(scenario.workload));
    scenario.code = description.code;
    scenario.batch = draft.size.batch;
    if (blocks) {
      scenario.sequence = draft.size.sequence;
      scenario.d_model = blocks->d_model;
      scenario.num_layers = blocks->layers;
    }
    const Device& device = scenario.cluster.device;
    if (device.peak_of(draft.size.compute).flops_per_second <= 0)
      given.fail(fmt::format("device {} does not multiply {}: choose another compute type",
                             device.name, name_of(draft.size.compute)));
    price_by_class(scenario.workload, device);
  }
  if (draft.optimizer) scenario.optimizer = *draft.optimizer;
  if (draft.optimizer || draft.optimizer_time) scenario.workload.optimizer = draft.optimizer_time;
  if (draft.clip_gradients) scenario.workload.clip_gradients = *draft.clip_gradients;
  scenario.times = draft.times;
  if (has_shapes(scenario.workload))
    scenario.workload.workspaces = cublas_workspaces(scenario.cluster.device.compute_capability);
}

namespace {

/// Mixed precision leaves what is no real number with a fraction as it is.
bool is_cast(const Parameter& parameter) {
  return parameter.dtype != DType::complex64 && parameter.dtype != DType::complex128;
}

/// A described network as it is, its parameters of another type.
Workload with_parameters_in(DType type, Workload workload) {
  for (Parameter& parameter : workload.parameters)
    if (is_cast(parameter)) parameter.dtype = type;
  return workload;
}

/// What a model of the catalogue is with parameters and products of that type.
Workload built_in(DType type, const Yaml& given, const std::vector<Entry>& entries,
                  const Scenario& scenario, const Yaml& place) {
  const Device& device = scenario.cluster.device;
  if (device.peak_of(type).flops_per_second <= 0)
    place.fail(fmt::format("device {} does not multiply {}: choose another type", device.name,
                           name_of(type)));
  WorkloadDraft draft;
  workload_map().read(given, draft);
  draft.size.dtype = draft.size.compute = type;
  Workload workload =
      with_frozen(draft, built(entries.front().name, read_model(entries), draft.size));
  price_by_class(workload, device);
  return workload;
}

}  // namespace

std::shared_ptr<const Workload> read_cast_workload(const Yaml& given, const Scenario& scenario,
                                                   DType type, const Yaml& place) {
  const Workload& stored = scenario.workload;
  const bool is_so = std::ranges::all_of(stored.parameters, [&](const Parameter& parameter) {
    return parameter.dtype == type || !is_cast(parameter);
  });
  if (is_so) return nullptr;
  const std::vector<Entry> entries = entry_with_bases(*YamlMap(given).find("model"), model_entries);
  if (!is_profile(entries.front())) {
    auto cast = std::make_shared<Workload>(built_in(type, given, entries, scenario, place));
    cast->buffers = stored.buffers;
    cast->frozen = stored.frozen;
    cast->frozen_parameters = stored.frozen_parameters;
    cast->workspaces = stored.workspaces;
    return cast;
  }
  const bool is_autocast = scenario.described && scenario.described->compute == type;
  if (!is_autocast)
    place.fail(fmt::format(
        "{} was {} with parameters that are not {}, and how it runs with such is not known: {}",
        stored.name, scenario.described ? "described" : "measured", name_of(type),
        scenario.described
            ? fmt::format("describe it under autocast to {0} (ddpsim describe --autocast {0})",
                          name_of(type))
            : "take a model of the catalogue, or a description of this one under autocast"));
  return std::make_shared<const Workload>(with_parameters_in(type, stored));
}

Workload read_catalogue_model(const std::string& name) {
  const ModelDescription model = read_model(entry_with_bases(Yaml::of_text(name), model_entries));
  WorkloadSize size;
  if (const auto* mixtral = std::get_if<MixtralShape>(&model.architecture))
    size.sequence = mixtral->experts;  // no expert is left without tokens
  return built(name, model, size);
}

}  // namespace ddpsim
