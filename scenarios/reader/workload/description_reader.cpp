#include "scenarios/reader/workload/description_reader.hpp"

#include <cmath>
#include <filesystem>
#include <limits>
#include <stdexcept>

#include <fmt/format.h>

#include "scenarios/reader/format/file_end.hpp"
#include "scenarios/reader/format/map.hpp"
#include "scenarios/reader/workload/device_kernel_reader.hpp"

namespace ddpsim {
namespace {

// What no real step comes near, and what keeps every later sum inside 64 bits.
constexpr std::int64_t most_elements = std::int64_t{1} << 40;
constexpr std::int64_t most_bytes = std::int64_t{1} << 50;  ///< of one kernel
constexpr double most_step_bytes = 0x1p60;
constexpr double most_step_flops = 1e19;
constexpr double most_parameters = 0x1p48;     ///< of all parameters
constexpr std::size_t most_entries = 200'000;  ///< of a list of mappings

/// A list of mappings that is counted before it is read: aliases make short files long.
template <typename V>
Value<std::vector<V>> counted(Value<std::vector<V>> value) {
  value.read = [read = value.read](const Yaml& given) {
    if (given.is_list() && given.size() > most_entries)
      given.fail(
          fmt::format("a list of {}: at most {} entries are read", given.size(), most_entries));
    return read(given);
  };
  return value;
}

Value<double> flops_value() {
  return value::number(0, most_step_flops);
}

// --- kernels ---

void finish_kernel(DescribedKernel& kernel, const YamlMap& map) {
  const bool product = kernel.kind == KernelKind::gemm || kernel.kind == KernelKind::conv;
  const auto only_of = [&](const char* key, bool wanted) {
    if (wanted && !map.has(key))
      map.node().fail(
          fmt::format("a kernel of kind {} needs the key \"{}\"", name_of(kernel.kind), key));
    if (const auto there = map.find(key); there && !wanted)
      there->fail(fmt::format("a kernel of kind {} has no {}", name_of(kernel.kind), key));
  };
  only_of("gemm", product);
  only_of("attention", kernel.kind == KernelKind::attention);
  const auto at_most_of = [&](const char* key, KernelKind kind) {
    if (const auto there = map.find(key); there && kernel.kind != kind)
      there->fail(fmt::format("a kernel of kind {} has no {}", name_of(kernel.kind), key));
  };
  at_most_of("conv", KernelKind::conv);
  at_most_of("pattern", KernelKind::memory);
  if (kernel.operations > kernel.launches)
    map.at("operations")
        .fail(fmt::format("expected at most {}, as many as there are launches", kernel.launches));
  const double counted = product ? kernel.gemm->gemm.flops()
                         : kernel.kind == KernelKind::attention
                             ? counted_flops(kernel.attention->shape)
                             : 0;
  const auto flops = map.find("flops");
  if (counted > most_step_flops)
    map.node().fail(
        fmt::format("{:.3g} multiplications and additions: no step has so many", counted));
  if (flops && counted > 0 && std::abs(kernel.flops - counted) > 1e-9 * counted)
    flops->fail(
        fmt::format("the shape makes it {:.0f}{}", counted, product ? " (2 m n k batch)" : ""));
  if (counted > 0) kernel.flops = counted;
}

/// Reads a key that no longer says anything.
void ignored(DescribedKernel&, const Yaml&) {}

const Map<DescribedKernel>& described_kernel_map() {
  const auto bytes = [] { return value::whole<std::int64_t>(0, most_bytes); };
  static const auto map =
      Map<DescribedKernel>("described_kernel", "A kernel of the step, each distinct one once.")
          .key("op", value::text("the name of an operation"), &DescribedKernel::op,
               {.meaning = "The operation of PyTorch that launches it.",
                .example = "aten.addmm",
                .required = true})
          .key("kind",
               value::one_of(all_kernel_kinds,
                             {"a matrix product", "a convolution, as the product it is",
                              "attention in a fused kernel",
                              "it only moves bytes: elementwise work, norms, copies"}),
               &DescribedKernel::kind,
               {.meaning = "The kind of kernel, which decides how it is priced.",
                .example = "gemm",
                .required = true})
          .key("gemm", value::mapping(&product_map), &DescribedKernel::gemm,
               {.meaning = "The shape of a product or a convolution.",
                .otherwise = "needed for gemm and conv",
                .example = "{m: 4096, n: 768, k: 768, batch: 1}"})
          .key(
              "attention", value::mapping(&attention_map), &DescribedKernel::attention,
              {.meaning = "The shape of attention.",
               .otherwise = "needed for attention",
               .example = "{batch: 8, heads: 12, queries: 512, keys: 512, size: 64, causal: true}"})
          .key("conv", value::mapping(&convolution_map), &DescribedKernel::conv,
               {.meaning = "The shape of a convolution, beside the product that it is.",
                .otherwise = "it is priced as its product",
                .example = "{direction: forward, pictures: 64, channels: 256, pixels: 3136, "
                           "outputs: 512, places: 784, window: 9}"})
          .key("pattern", value::mapping(&pattern_map), &DescribedKernel::pattern,
               {.meaning = "What a kernel of kind memory does.",
                .otherwise = "an operation on each element",
                .example = "{of: layer_norm, rows: 8192, columns: 1024}"})
          .key("host", value::time_or_zero(), &DescribedKernel::host,
               {.meaning = "What its call of PyTorch costs the reference host where it is called "
                           "again and again, with calls before it that launch nothing.",
                .otherwise = "7.58 us for each of `operations` and 5 us for each other launch",
                .example = "25.4 us"})
          .key("type", value::one_of(all_dtypes), &DescribedKernel::type,
               {.meaning = "How it multiplies. A convolution in fp32 runs as tf32 on devices that "
                           "have it, as PyTorch has it by default; `workload.compute` says "
                           "otherwise.",
                .always_written = true})
          .key("read", bytes(), &DescribedKernel::read,
               {.meaning = "Bytes read from device memory, of all its launches.",
                .example = "123456",
                .required = true})
          .key("written", bytes(), &DescribedKernel::written,
               {.meaning = "Bytes written to device memory, of all its launches.",
                .example = "1234",
                .required = true})
          .key("flops", flops_value(), &DescribedKernel::flops,
               {.meaning = "Multiplications and additions, as PyTorch's counter has them: no mask "
                           "is discounted."})
          .key("launches", value::whole(1, 100'000), &DescribedKernel::launches,
               {.meaning = "How many kernels the host enqueues for it."})
          .key("launches_in_fp32", value::whole(1, 100'000), &DescribedKernel::launches_in_fp32,
               {.meaning = "How many they are where a convolution multiplies in fp32, on devices "
                           "without TF32 or where it is not wanted: cuDNN transforms, scales and "
                           "computes offsets there.",
                .otherwise = "as many as `launches`",
                .example = "4"})
          .key("operations", value::whole(0, 100'000), &DescribedKernel::operations,
               {.meaning = "How many of them begin an operation of PyTorch, which costs the host "
                           "more than a launch: 0 of a kernel that a library launches right behind "
                           "another, such as the sum of a product in parts.",
                .example = "0"})
          .key("tensor_cores", value::boolean(), &DescribedKernel::tensor_cores,
               {.meaning = "Whether tensor cores can multiply it in TF32. A convolution's forward "
                           "pass whose channels do not come in fours they cannot, such as that of "
                           "pictures of three colours: it multiplies in fp32."})
          .key("multiprocessors", value::whole(1, 1'000'000), &DescribedKernel::multiprocessors,
               {.meaning = "The fewest multiprocessors of a GPU that launches it. A product of few "
                           "tiles is cut into parts where it would leave more than half of them "
                           "idle, and only there is there a sum of parts.",
                .otherwise = "every device launches it",
                .example = "97"})
          .key("recomputed", value::boolean(), &DescribedKernel::recomputed,
               {.meaning = "Whether the backward pass runs a kernel of the forward pass again, as "
                           "activation checkpoints do: its product counts in HFU, and not in "
                           "MFU."})
          .key_taken(
              "capability", value::number(1, 20),
              [](DescribedKernel& kernel, double version) {
                kernel.capability = static_cast<int>(std::lround(version * 10));
              },
              {.meaning =
                   "The least compute capability, CUDA's, of a GPU that launches it: "
                   "kernels of Hopper's have helpers before them. GPUs of 12.0 and "
                   "later have kernels of Ampere's kind and launch none such. Files of earlier "
                   "releases have multiprocessors: 109 for it.",
               .otherwise = "every device launches it",
               .example = "9.0"})
          .key_read("by_picture", value::boolean().type, ignored,
                    {.meaning = "Only files of earlier releases have this key. It has no effect.",
                     .otherwise = "the same",
                     .example = "true"})
          .key_read("blocks", value::whole(1, 1'000'000).type, ignored,
                    {.meaning = "Only files of earlier releases have this key. It has no effect.",
                     .otherwise = "the same",
                     .example = "64"})
          .key("time", value::time_or_zero(), &DescribedKernel::time,
               {.meaning = "How long all its launches take together, where that was measured. It "
                           "goes before every law, on any device: such a description is of the "
                           "device that it was measured on.",
                .otherwise = "the laws say",
                .example = "120 us"})
          .check(finish_kernel);
  return map;
}

// --- layers ---

/// An index, or [index, count].
Value<KernelRun> run_value() {
  const auto kernel = value::whole(0, std::numeric_limits<int>::max());
  const auto count = value::whole(1, static_cast<std::int64_t>(most_described_kernels));
  const std::string expected = "the index of a kernel, or [index, count]";
  Form pair = value::list(value::either({kernel.type, count.type}), 2, 2);
  return {value::either({kernel.type, {pair}}),
          [=](const Yaml& given) -> KernelRun {
            if (!given.is_list()) return {kernel.read(given), 1};
            const std::vector<Yaml> both = given.list(expected);
            if (both.size() != 2) given.fail("expected " + expected);
            return {kernel.read(both[0]), count.read(both[1])};
          },
          [](YAML::Emitter& out, const KernelRun& run) {
            if (run.count == 1)
              out << run.kernel;
            else
              out << YAML::Flow << YAML::BeginSeq << run.kernel << run.count << YAML::EndSeq;
          }};
}

const Map<DescribedLayer>& layer_map() {
  static const auto map =
      Map<DescribedLayer>("described_layer",
                          "A module of the network and the kernels of its passes.")
          .key("name", value::text("a name"), &DescribedLayer::name,
               {.meaning = "The module's path.", .example = "blocks.0", .required = true})
          .key("forward", value::list_of(run_value(), "a list of kernel indices"),
               &DescribedLayer::forward,
               {.meaning = "The kernels of its forward pass in the order they run, by their index "
                           "in `kernels`; [index, count]: that one so many times in a row.",
                .otherwise = "there are none",
                .example = "[0, 1, [2, 3], 4]"})
          .key("backward", value::list_of(run_value(), "a list of kernel indices"),
               &DescribedLayer::backward,
               {.meaning = "The kernels of its backward pass, likewise.",
                .otherwise = "there are none",
                .example = "[7, 8]"})
          .key("kept", value::whole<std::int64_t>(0, most_bytes), &DescribedLayer::kept,
               {.meaning = "Bytes that autograd keeps of its forward pass until its backward pass, "
                           "each storage with the layer that keeps it first; without parameters.",
                .otherwise = "not known, and then neither is the memory of a step",
                .example = "12345678"})
          .key("forward_peak", value::whole<std::int64_t>(0, most_bytes),
               &DescribedLayer::forward_peak,
               {.meaning = "The most bytes alive at one time in its forward pass, of the whole "
                           "step: all that was made since the step began and is still held.",
                .otherwise = "what is kept, and the largest result of a kernel",
                .example = "23456789"})
          .key("backward_peak", value::whole<std::int64_t>(0, most_bytes),
               &DescribedLayer::backward_peak,
               {.meaning = "Likewise in its backward pass, less the gradients of parameters that "
                           "are there when it ends.",
                .otherwise = "what is kept, and the largest gradient and that of the input",
                .example = "34567890"})
          .key("forward_peak_in_fp32", value::whole<std::int64_t>(0, most_bytes),
               &DescribedLayer::forward_peak_in_fp32,
               {.meaning = "`forward_peak` where convolutions multiply in fp32, on devices without "
                           "TF32 or where it is not wanted: cuDNN transforms them there.",
                .otherwise = "as `forward_peak`",
                .example = "45678901"})
          .key("backward_peak_in_fp32", value::whole<std::int64_t>(0, most_bytes),
               &DescribedLayer::backward_peak_in_fp32,
               {.meaning = "`backward_peak` where convolutions multiply in fp32, likewise.",
                .otherwise = "as `backward_peak`",
                .example = "45678901"});
  return map;
}

std::int64_t entries_of(const std::vector<KernelRun>& runs) {
  std::int64_t entries = 0;
  for (const KernelRun& run : runs) entries += run.count;
  return entries;
}

/// Layers, read while they are no more than a step has: aliases and repetitions cost nothing to
/// write.
Value<std::vector<DescribedLayer>> layers_value() {
  const std::string expected = "a list of layers in forward order";
  auto layers = value::list_of(value::mapping(&layer_map), expected);
  layers.read = [expected](const Yaml& given) {
    std::vector<DescribedLayer> all;
    std::int64_t entries = 0;
    for (const Yaml& each : given.list(expected)) {
      const DescribedLayer& layer = all.emplace_back(layer_map().read(each));
      entries += entries_of(layer.forward) + entries_of(layer.backward);
      if (entries > most_described_kernels)
        each.fail(
            fmt::format("up to this layer there are {} kernels, each repetition counted: at "
                        "most {} are read",
                        entries, most_described_kernels));
    }
    return all;
  };
  return counted(std::move(layers));
}

// --- parameters ---

/// `[3, 5]`: the first and the last entry of a pass that a module runs.
Value<KernelRange> entries_value() {
  const auto entry = value::whole(0, std::numeric_limits<int>::max());
  const auto list = value::list_of(entry, "the first and the last entry, such as [3, 5]");
  return {{value::list(entry.type, 2, 2)},
          [read = list.read](const Yaml& given) {
            const std::vector<int> ends = read(given);
            if (ends.size() != 2 || ends.front() > ends.back())
              given.fail("expected the first and the last entry, such as [3, 5]");
            return KernelRange{ends.front(), ends.back()};
          },
          [write = list.write](YAML::Emitter& out, const KernelRange& range) {
            write(out, {range.first, range.last});
          }};
}

template <class AnyParameter>
void add_entries(Map<AnyParameter>& map) {
  map.key("forward", entries_value(), &AnyParameter::forward,
          {.meaning = "The first and the last entry of that layer's forward pass that its module "
                      "runs, from 0 and with every repetition counted: what gathers parameters "
                      "does so before.",
           .otherwise = "all of the layer's",
           .example = "[3, 4]"})
      .key("backward", entries_value(), &AnyParameter::backward,
           {.meaning = "Likewise of its backward pass.",
            .otherwise = "all of the layer's",
            .example = "[8, 12]"});
}

void finish_parameter(DescribedParameter& parameter, const YamlMap& map) {
  if (const auto rows = map.find("rows"); rows && !parameter.sparse)
    rows->fail("rows are a sparse gradient's: say sparse: true");
  double elements = 1;
  for (const std::int64_t extent : parameter.shape) elements *= static_cast<double>(extent);
  if (elements > most_parameters)
    map.find("shape")->fail(
        fmt::format("{:.3g} elements are more than any memory holds", elements));
  for (const char* key : {"forward", "backward"})
    if (const auto entries = map.find(key); entries && parameter.unused)
      entries->fail("the parameter is unused, and nothing runs for it: take this out");
  if (parameter.unused) return;
  map.at("layer");
  map.at("after");
}

const Map<DescribedParameter>& parameter_map() {
  constexpr int most = std::numeric_limits<int>::max();
  static const auto map = [] {
    Map<DescribedParameter> all("described_parameter", "A parameter that is trained.");
    all.key("name", value::text("a name"), &DescribedParameter::name,
            {.meaning = "Its name, as named_parameters() spells it.",
             .example = "blocks.0.weight",
             .required = true})
        .key("shape",
             value::list_of(value::whole<std::int64_t>(1, most_elements),
                            "a list of whole numbers, such as [768, 768]"),
             &DescribedParameter::shape,
             {.meaning = "Its shape.", .example = "[768, 768]", .required = true})
        .key("dtype", value::one_of(stored_dtypes), &DescribedParameter::dtype,
             {.meaning = "How it and its gradient are stored.", .always_written = true})
        .key("layer", value::whole(0, most), &DescribedParameter::layer,
             {.meaning = "The layer, by its index in `layers`, whose backward pass completes its "
                         "gradient.",
              .otherwise = "needed, unless the parameter is unused",
              .example = "3"})
        .key("after", value::whole(0, most), &DescribedParameter::after,
             {.meaning = "The entry of that layer's backward pass, from 0 and with every "
                         "repetition counted, behind which its gradient is complete.",
              .otherwise = "needed, unless the parameter is unused",
              .example = "12"})
        .key("sparse", value::boolean(), &DescribedParameter::sparse,
             {.meaning = "Whether its gradient is sparse, as an embedding's may be: it is "
                         "reduced by itself."})
        .key("rows", value::whole<std::int64_t>(1, most_elements), &DescribedParameter::sparse_rows,
             {.meaning = "How many rows a sparse gradient sends.",
              .otherwise = "all of them",
              .example = "512"})
        .key("unused", value::boolean(), &DescribedParameter::unused,
             {.meaning = "Whether no gradient reaches it in this step."})
        .needs_also({{.key = "layer"}, {.key = "unused", .value = {value::word("true")}}})
        .needs_also({{.key = "after"}, {.key = "unused", .value = {value::word("true")}}})
        .check(finish_parameter);
    add_entries(all);
    return all;
  }();
  return map;
}

const Map<DescribedCollective>& described_collective_map() {
  static const auto map =
      Map<DescribedCollective>(
          "described_collective",
          "A collective that the model itself sends, beside those of "
          "DistributedDataParallel and in their communicator. It waits for the "
          "kernels before it, and those behind it wait for its result.")
          .key("op", value::text("the name of a collective"), &DescribedCollective::op,
               {.meaning = "Which collective it is. all_reduce, all_gather, reduce_scatter and "
                           "broadcast are priced; results have a note about others.",
                .example = "all_gather",
                .required = true})
          .key("pass", value::one_of(all_step_passes), &DescribedCollective::pass,
               {.meaning = "In which pass it is sent.", .example = "forward", .required = true})
          .key("module", value::text(), &DescribedCollective::module,
               {.meaning = "The path of the module that sends it.",
                .otherwise = "the model itself, or its loss",
                .example = "norms.1"})
          .key("bytes", value::whole<std::int64_t>(0, most_bytes), &DescribedCollective::bytes,
               {.meaning = "Bytes that a rank gives.", .example = "516", .required = true})
          .key("count", value::whole(1, 1'000'000), &DescribedCollective::count,
               {.meaning = "How many times in a row it is sent there."})
          .key("layer", value::whole(0, std::numeric_limits<int>::max()),
               &DescribedCollective::layer,
               {.meaning = "The layer, by its index in `layers`, in whose pass it is sent.",
                .otherwise = "it is not priced: files of earlier releases do not tell",
                .example = "3"})
          .key("after", value::whole(0, std::numeric_limits<int>::max()),
               &DescribedCollective::after,
               {.meaning = "The entry of that layer's pass, from 0 and with every repetition "
                           "counted, behind which it is sent.",
                .otherwise = "needed with `layer`",
                .example = "12"});
  return map;
}

const Map<BufferGroup>& frozen_map() {
  static const auto map =
      Map<BufferGroup>("described_frozen",
                       "Tensors of one type that live on the device and are not trained, beside "
                       "buffers.")
          .key("tensors", value::whole(1, 1'000'000), &BufferGroup::tensors,
               {.meaning = "How many there are.", .example = "190", .required = true})
          .key("bytes", value::whole<std::int64_t>(1, most_elements),
               [](auto& group) -> auto& { return group.size.count; },
               {.meaning = "How many bytes they have together.",
                .example = "1594613760",
                .required = true});
  return map;
}

const Map<FrozenParameter>& frozen_parameter_map() {
  static const auto map = [] {
    Map<FrozenParameter> all("described_frozen_parameter", "A parameter that is not trained.");
    all.key("name", value::text("a name"), &FrozenParameter::name,
            {.meaning = "Its name, as named_parameters() spells it.",
             .example = "embed.weight",
             .required = true})
        .key("shape",
             value::list_of(value::whole<std::int64_t>(1, most_elements),
                            "a list of whole numbers, such as [768, 768]"),
             &FrozenParameter::shape,
             {.meaning = "Its shape.", .example = "[768, 768]", .required = true})
        .key("dtype", value::one_of(stored_dtypes), &FrozenParameter::dtype,
             {.meaning = "How it is stored.", .always_written = true})
        .key("layer", value::whole(0, std::numeric_limits<int>::max()), &FrozenParameter::layer,
             {.meaning = "The layer, by its index in `layers`, whose passes take it.",
              .always_written = true});
    add_entries(all);
    return all;
  }();
  return map;
}

const Map<BufferGroup>& buffers_map() {
  static const auto map =
      Map<BufferGroup>("described_buffers",
                       "Tensors of one type that are not trained but kept alike on all ranks.")
          .key("tensors", value::whole(1, 1'000'000), &BufferGroup::tensors,
               {.meaning = "How many there are.", .example = "106", .required = true})
          .key("bytes", value::whole<std::int64_t>(1, most_elements),
               [](auto& group) -> auto& { return group.size.count; },
               {.meaning = "How many bytes they have together.",
                .example = "212992",
                .required = true});
  return map;
}

// --- all of it ---

Yaml entry(const YamlMap& map, const char* key, std::size_t position) {
  return map.find(key)->list("").at(position);
}

/// What a step sums up to, and why it is too much.
class StepTotals {
 public:
  /// The problem, or "".
  std::string add(const DescribedKernel& kernel, int count) {
    launches_ +=
        std::int64_t{count} * std::max(kernel.launches, kernel.launches_in_fp32.value_or(1));
    bytes_ += count * static_cast<double>(kernel.read + kernel.written);
    flops_ += count * kernel.flops;
    if (launches_ > most_described_kernels)
      return fmt::format("up to here the step launches {} kernels: at most {} are read", launches_,
                         most_described_kernels);
    if (bytes_ > most_step_bytes)
      return fmt::format("up to here the step moves {:.3g} bytes: no step does", bytes_);
    if (flops_ > most_step_flops)
      return fmt::format(
          "up to here the step has {:.3g} multiplications and additions: no step does", flops_);
    return "";
  }

 private:
  std::int64_t launches_ = 0;
  double bytes_ = 0, flops_ = 0;
};

void check_layers(const WorkloadDescription& description, const YamlMap& map) {
  if (description.layers.empty()) map.find("layers")->fail("expected at least one layer");
  StepTotals totals;
  double kept = 0;
  for (std::size_t l = 0; l < description.layers.size(); ++l) {
    const DescribedLayer& layer = description.layers[l];
    const auto check_pass = [&](const char* key, const std::vector<KernelRun>& runs) {
      for (std::size_t i = 0; i < runs.size(); ++i) {
        const auto kernel = static_cast<std::size_t>(runs[i].kernel);
        const auto place = [&] { return entry(YamlMap(entry(map, "layers", l)), key, i); };
        if (kernel >= description.kernels.size())
          place().fail(fmt::format("there is no kernel {}: there are {}, counted from 0", kernel,
                                   description.kernels.size()));
        const std::string problem = totals.add(description.kernels[kernel], runs[i].count);
        if (!problem.empty()) place().fail(problem);
      }
    };
    check_pass("forward", layer.forward);
    check_pass("backward", layer.backward);
    kept += static_cast<double>(layer.kept.value_or(0));
    if (kept > static_cast<double>(most_bytes))
      entry(map, "layers", l)
          .fail(fmt::format("up to this layer {:.3g} bytes are kept: none has so much", kept));
  }
}

/// The entries that a parameter's module runs are some of its layer's.
template <class AnyParameter>
void check_entries(const AnyParameter& parameter, const DescribedLayer& layer,
                   const YamlMap& place) {
  const auto check = [&](const char* key, const std::optional<KernelRange>& range,
                         const std::vector<KernelRun>& pass) {
    if (const std::int64_t entries = entries_of(pass); range && range->last >= entries)
      place.at(key).fail(fmt::format("the {} pass of layer {} has {} entries, counted from 0", key,
                                     layer.name, entries));
  };
  check("forward", parameter.forward, layer.forward);
  check("backward", parameter.backward, layer.backward);
}

void check_parameters(const WorkloadDescription& description, const YamlMap& map) {
  if (description.parameters.empty())
    map.find("parameters")->fail("expected at least one parameter");
  std::vector<std::int64_t> entries;  // [layer], of its backward pass
  for (const DescribedLayer& layer : description.layers)
    entries.push_back(entries_of(layer.backward));
  double elements = 0;
  for (std::size_t p = 0; p < description.parameters.size(); ++p) {
    const DescribedParameter& parameter = description.parameters[p];
    double own = 1;
    for (const std::int64_t extent : parameter.shape) own *= static_cast<double>(extent);
    elements += own;
    if (elements > most_parameters)
      entry(map, "parameters", p)
          .fail(fmt::format("up to this parameter there are {:.3g} elements: more than any memory "
                            "holds",
                            elements));
    if (parameter.unused) continue;
    const auto refuse = [&](const char* key, const std::string& problem) {
      YamlMap(entry(map, "parameters", p)).at(key).fail(problem);
    };
    const auto layer = static_cast<std::size_t>(*parameter.layer);
    if (layer >= entries.size())
      refuse("layer", fmt::format("there is no layer {}: there are {}, counted from 0", layer,
                                  entries.size()));
    if (*parameter.after >= entries[layer])
      refuse("after",
             fmt::format("the backward pass of layer {} ({}) has {} entries, counted from 0", layer,
                         description.layers[layer].name, entries[layer]));
    check_entries(parameter, description.layers[layer], YamlMap(entry(map, "parameters", p)));
    if (parameter.backward && parameter.backward->last < *parameter.after)
      refuse("backward", fmt::format("its gradient is complete behind entry {} (after), which its "
                                     "module does not run",
                                     *parameter.after));
  }
}

/// The layers of frozen parameters, and that they are no more than memory holds.
void check_frozen(const WorkloadDescription& description, const YamlMap& map) {
  double elements = 0;
  for (std::size_t p = 0; p < description.frozen_parameters.size(); ++p) {
    const FrozenParameter& parameter = description.frozen_parameters[p];
    double own = 1;
    for (const std::int64_t extent : parameter.shape) own *= static_cast<double>(extent);
    elements += own;
    const auto place = [&] { return YamlMap(entry(map, "frozen_parameters", p)); };
    if (elements > most_parameters)
      place().at("shape").fail(fmt::format(
          "up to here there are {:.3g} elements: more than any memory holds", elements));
    if (static_cast<std::size_t>(parameter.layer) >= description.layers.size())
      place().at("layer").fail(fmt::format("there is no layer {}: there are {}, counted from 0",
                                           parameter.layer, description.layers.size()));
    check_entries(parameter, description.layers[static_cast<std::size_t>(parameter.layer)],
                  place());
  }
}

/// Every used parameter once.
void check_arrival(const WorkloadDescription& description, const YamlMap& map) {
  const auto arrival = map.find("arrival");
  if (!arrival) return;
  std::vector<bool> seen(description.parameters.size(), false);
  for (std::size_t i = 0; i < description.arrival.size(); ++i) {
    const auto parameter = static_cast<std::size_t>(description.arrival[i]);
    const auto refuse = [&](const std::string& problem) { entry(map, "arrival", i).fail(problem); };
    if (parameter >= seen.size())
      refuse(fmt::format("there is no parameter {}: there are {}, counted from 0", parameter,
                         seen.size()));
    if (description.parameters[parameter].unused)
      refuse(fmt::format("parameter {} ({}) is unused: its hook never fires", parameter,
                         description.parameters[parameter].name));
    if (seen[parameter]) refuse(fmt::format("parameter {} stands here twice", parameter));
    seen[parameter] = true;
  }
  for (std::size_t p = 0; p < seen.size(); ++p)
    if (!seen[p] && !description.parameters[p].unused)
      arrival->fail(fmt::format("parameter {} ({}) is missing", p, description.parameters[p].name));
}

void check_collectives(const WorkloadDescription& description, const YamlMap& map) {
  std::int64_t sent = 0;
  for (std::size_t c = 0; c < description.collectives.size(); ++c) {
    const DescribedCollective& collective = description.collectives[c];
    const auto place = [&] { return YamlMap(entry(map, "collectives", c)); };
    sent += collective.count;
    if (sent > most_described_kernels)
      place().node().fail(fmt::format("up to here there are {} collectives: at most {} are read",
                                      sent, most_described_kernels));
    if (!collective.layer) {
      if (const auto after = place().find("after"))
        after->fail(
            "`after` needs the layer that it counts in: write layer as well, such as layer: 0");
      continue;
    }
    const auto layer = static_cast<std::size_t>(*collective.layer);
    if (layer >= description.layers.size())
      place().at("layer").fail(fmt::format("there is no layer {}: there are {}, counted from 0",
                                           layer, description.layers.size()));
    const DescribedLayer& sends = description.layers[layer];
    const bool forward = collective.pass == StepPass::forward;
    const std::int64_t entries = entries_of(forward ? sends.forward : sends.backward);
    if (const Yaml after = place().at("after"); *collective.after >= entries)
      after.fail(fmt::format("the {} pass of layer {} ({}) has {} entries, counted from 0",
                             name_of(collective.pass), layer, sends.name, entries));
  }
}

void finish_description(WorkloadDescription& description, const YamlMap& map) {
  if (description.dtype == DType::tf32)
    map.find("dtype")->fail("tf32 is how matrices are multiplied, not how parameters are stored");
  check_layers(description, map);
  check_parameters(description, map);
  check_collectives(description, map);
  check_frozen(description, map);
  check_arrival(description, map);
}

Map<WorkloadDescription> make_map() {
  using D = WorkloadDescription;
  Map<D> map("workload_description",
             "A training step as `ddpsim describe` captured it, kernel by kernel, without a "
             "device: it stands where a model of the catalogue stands.");
  map.key_constant("format", "ddpsim.workload/2",
                   {.meaning = "Marks the file as a workload description.",
                    .example = "ddpsim.workload/2",
                    .required = true});
  add_written_by(map);
  const auto lines = [] { return value::list_of(value::text("a line"), "a list of texts"); };
  map.key("source", value::text(), &D::source,
          {.meaning = "What was described, and with what.",
           .example = "torch 2.13.0, meta device, my_model.py:make, batch 8"})
      .key("model", value::text(), &D::model,
           {.meaning = "The class of the model.",
            .otherwise = "not said",
            .example = "VisionTransformer"})
      .key("batch", value::whole(1, 10'000'000), &D::batch,
           {.meaning = "Samples of a micro-batch.", .example = "8", .required = true})
      .key("sequence", value::whole(1, 100'000'000), &D::sequence,
           {.meaning = "Tokens of a sample.", .otherwise = "there are none", .example = "512"})
      .key("dtype", value::one_of(stored_dtypes), &D::dtype,
           {.meaning = "How most parameters are stored.", .always_written = true})
      .key("compute", value::one_of(all_dtypes), &D::compute,
           {.meaning = "How most matrices are multiplied.",
            .otherwise = "as `dtype`",
            .example = "bf16"})
      .key("optimizer", value::one_of(all_optimizers), &D::optimizer,
           {.meaning = "The optimizer that was described, which a scenario may replace.",
            .otherwise = "none",
            .example = "adamw"})
      .key("clip_gradients", value::boolean(), &D::clip_gradients,
           {.meaning = "Whether the step clips gradients by the norm of all of them."})
      .key("marks_recomputed", value::boolean(), &D::marks_recomputed,
           {.meaning = "Whether kernels that the backward pass runs again are marked `recomputed`. "
                       "Earlier releases marked none: of such a file HFU is known and MFU is not."})
      .key("attention", value::text(), &D::attention,
           {.meaning = "Which kernels attention was described as.",
            .otherwise = "there is none",
            .example = "flash"})
      .key("release",
           value::one_of(all_described_releases,
                         {"FlashAttention is taken by itself on every GPU that has it",
                          "cuDNN's attention goes first on Hopper and Blackwell", "as 2.11"}),
           &D::release,
           {.meaning = "The release of PyTorch whose choice of kernels is meant.",
            .example = "2.13"})
      .key("notes", lines(), &D::notes,
           {.meaning =
                "What CUDA does in another way than the meta device, and was described as on CUDA.",
            .otherwise = "there are none",
            .example = "[\"dropout described as CUDA's fused kernel (12 of them)\"]"})
      .key("partial", lines(), &D::partial,
           {.meaning = "Operations that no rule describes: they are priced by their bytes alone, "
                       "and results are marked as partial.",
            .otherwise = "there are none",
            .example = "[mylib::op x 3]"})
      .key("kernels",
           counted(value::list_of(value::mapping(&described_kernel_map), "a list of kernels")),
           &D::kernels,
           {.meaning = "The kernels of the step, each distinct one once.",
            .example = "[{op: aten.gelu, kind: memory, read: 4096, written: 4096}]",
            .required = true})
      .key(
          "layers", layers_value(), &D::layers,
          {.meaning = "The layers in forward order. Backward runs them from the last to the first.",
           .example = "[{name: act, forward: [0], backward: [[0, 2]]}]",
           .required = true})
      .key(
          "parameters",
          counted(value::list_of(value::mapping(&parameter_map),
                                 "a list of parameters in registration order")),
          &D::parameters,
          {.meaning = "The parameters in registration order: frozen ones left out, tied ones once.",
           .example = "[{name: act.weight, shape: [64], layer: 0, after: 1}]",
           .required = true})
      .key("arrival",
           value::list_of(value::whole(0, std::numeric_limits<int>::max()),
                          "a list of parameter indices"),
           &D::arrival,
           {.meaning = "The order in which the parameters' hooks fire: the index of every one that "
                       "is not unused, once.",
            .otherwise = "by the kernels that complete gradients",
            .example = "[0]"})
      .key("buffers",
           value::list_of(value::mapping(&buffers_map),
                          "a list of {tensors, bytes}, one for each type"),
           &D::buffers,
           {.meaning = "The buffers that are broadcast before each forward pass, by type.",
            .otherwise = "there are none",
            .example = "[{tensors: 106, bytes: 212992}]"})
      .key("frozen",
           value::list_of(value::mapping(&frozen_map),
                          "a list of {tensors, bytes}, one for each type"),
           &D::frozen,
           {.meaning = "What else lives on the device: parameters that are not trained, and "
                       "tensors that modules hold as plain attributes, by type.",
            .otherwise = "there is nothing",
            .example = "[{tensors: 190, bytes: 1594613760}]"})
      .key("frozen_parameters",
           value::list_of(value::mapping(&frozen_parameter_map), "a list of parameters"),
           &D::frozen_parameters,
           {.meaning = "The parameters among `frozen` one by one: strategy fsdp shards and gathers "
                       "them with those that are trained.",
            .otherwise = "they are not known, and not sharded",
            .example = "[{name: embed.weight, shape: [768, 64], dtype: bf16, layer: 0}]"})
      .key("inputs", value::whole<std::int64_t>(0, most_bytes), &D::inputs,
           {.meaning = "Bytes of the batch on the device.", .unset = "0", .example = "57802752"})
      .key("collectives",
           counted(
               value::list_of(value::mapping(&described_collective_map), "a list of collectives")),
           &D::collectives,
           {.meaning = "What the model itself sends, such as synchronised batch norms: each "
                       "distinct one once.",
            .otherwise = "it sends nothing",
            .example = "[{op: all_gather, pass: forward, module: norm, bytes: 516}]"})
      .check(finish_description);
  add_end(map, "ddpsim.workload/2");
  return map;
}

}  // namespace

const Map<WorkloadDescription>& workload_description_map() {
  static const Map<WorkloadDescription> map = make_map();
  return map;
}

WorkloadDescription read_workload_description(const Yaml& given) {
  const YamlMap map(given);
  check_end_if_written(map, map.at("format"));
  WorkloadDescription description = workload_description_map().read(given);
  try {
    check(workload_of(description, std::filesystem::path(given.file()).stem().string(),
                      std::nullopt, Device{}));
  } catch (const std::invalid_argument& problem) {
    map.at("parameters").fail(problem.what());
  }
  return description;
}

}  // namespace ddpsim
