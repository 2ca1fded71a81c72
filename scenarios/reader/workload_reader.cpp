#include "scenarios/reader/workload_reader.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>

#include <fmt/format.h>

#include "model/workload/architecture.hpp"
#include "scenarios/reader/catalogue.hpp"
#include "scenarios/reader/profile_reader.hpp"

namespace ddpsim {
namespace {

/// The families a model description may name.
enum class FamilyName : std::uint8_t { cs336, llama, gpt2, bert, resnet, vgg, mlp };
constexpr std::array all_families{FamilyName::cs336, FamilyName::llama,  FamilyName::gpt2,
                                  FamilyName::bert,  FamilyName::resnet, FamilyName::vgg,
                                  FamilyName::mlp};
constexpr std::string_view name_of(FamilyName family) {
  constexpr std::array<std::string_view, 7> names{"cs336",  "llama", "gpt2", "bert",
                                                  "resnet", "vgg",   "mlp"};
  return names[static_cast<std::size_t>(family)];
}

/// A model description: its keys, from itself or from what it is based on.
struct Description {
  std::vector<YamlMap> maps;  ///< the description, then its bases
  std::string name;

  explicit Description(const std::vector<Entry>& entries) : name(entries.front().name) {
    for (const Entry& entry : entries) maps.emplace_back(entry.yaml);
  }

  std::optional<Yaml> optional(const std::string& key) {
    std::optional<Yaml> found;
    for (YamlMap& map : maps)
      if (auto value = map.optional(key); value && !found) found = value;
    return found;
  }
  Yaml required(const std::string& key) {
    if (auto value = optional(key)) return *value;
    maps.front().node().fail(fmt::format("missing key \"{}\"", key));
  }
  int positive(const std::string& key, int most) {
    return static_cast<int>(required(key).integer(1, most));
  }
  std::vector<int> counts(const std::string& key, int least, int most) {
    std::vector<int> values;
    const auto items = required(key).list("a list of whole numbers");
    if (items.size() > 1000) required(key).fail("expected at most 1000 entries");
    for (const Yaml& item : items) values.push_back(static_cast<int>(item.integer(least, most)));
    return values;
  }
};

constexpr int many = 10'000'000, deep = 10'000;

Architecture read_transformer(Description& model, FamilyName family) {
  using Family = TransformerShape::Family;
  TransformerShape shape;
  shape.family = family == FamilyName::cs336   ? Family::cs336
                 : family == FamilyName::llama ? Family::llama
                 : family == FamilyName::gpt2  ? Family::gpt2
                                               : Family::bert;
  shape.layers = model.positive("layers", deep);
  shape.d_model = model.positive("d_model", many);
  shape.d_ff = model.positive("d_ff", many);
  shape.heads = model.positive("heads", many);
  if (const auto value = model.optional("kv_heads"))
    shape.kv_heads = static_cast<int>(value->integer(1, many));
  shape.vocabulary = model.positive("vocabulary", many);
  if (family == FamilyName::gpt2 || family == FamilyName::bert)
    shape.positions = model.positive("positions", many);
  return shape;
}

Architecture read_architecture(Description& model) {
  const FamilyName family = model.required("family").one_of<FamilyName>(all_families);
  model.optional("base");
  model.optional("source");
  Architecture architecture;
  if (family == FamilyName::resnet) {
    ResNetShape shape;
    shape.blocks = model.counts("blocks", 1, deep);
    shape.bottleneck = model.required("bottleneck").boolean();
    if (const auto value = model.optional("classes"))
      shape.classes = static_cast<int>(value->integer(1, many));
    architecture = shape;
  } else if (family == FamilyName::vgg) {
    VggShape shape;
    shape.channels = model.counts("channels", 0, many);
    if (const auto value = model.optional("classes"))
      shape.classes = static_cast<int>(value->integer(1, many));
    architecture = shape;
  } else if (family == FamilyName::mlp) {
    MlpShape shape;
    shape.widths = model.counts("widths", 1, many);
    if (const auto value = model.optional("bias")) shape.bias = value->boolean();
    architecture = shape;
  } else {
    architecture = read_transformer(model, family);
  }
  for (const YamlMap& map : model.maps) map.finish();
  return architecture;
}

bool is_profile(const Entry& entry) {
  return entry.name != "inline" && YamlMap(entry.yaml).optional("format").has_value();
}

MeasuredTimes read_times(const Yaml& given) {
  MeasuredTimes times;
  YamlMap map(given);
  if (const auto value = map.optional("forward")) times.forward = value->duration();
  if (const auto value = map.optional("backward")) times.backward = value->duration();
  if (const auto value = map.optional("optimizer")) times.optimizer = value->duration();
  map.finish();
  return times;
}

/// `optimizer:` is the name of a law, or a duration.
void read_optimizer(const Yaml& given, Scenario& scenario) {
  const std::string text = given.text("an optimizer or a time");
  scenario.workload.optimizer.reset();
  if (!text.empty() && text.front() >= '0' && text.front() <= '9') {
    scenario.workload.optimizer = given.duration();
    return;
  }
  scenario.optimizer = given.one_of<Optimizer>(all_optimizers);
}

WorkloadSize read_size(YamlMap& map, const Architecture& architecture) {
  WorkloadSize size;
  size.batch = static_cast<int>(map.required("batch").integer(1, many));
  // A network takes tokens or pictures; the other key may stand there, for scenarios that swap
  // models.
  const auto sequence = map.optional("sequence");
  if (std::holds_alternative<TransformerShape>(architecture))
    size.sequence = static_cast<int>(map.required("sequence").integer(1, many));
  else if (sequence)
    sequence->integer(1, many);
  if (const auto value = map.optional("image"))
    size.image = static_cast<int>(value->integer(32, 16384));
  if (const auto value = map.optional("dtype")) {
    size.dtype = value->one_of<DType>(all_dtypes);
    if (size.dtype == DType::tf32)
      value->fail(
          "tf32 is how GEMMs compute, not how parameters are stored: write dtype: fp32 and "
          "compute: tf32");
  }
  size.compute = size.dtype;
  if (const auto value = map.optional("compute")) size.compute = value->one_of<DType>(all_dtypes);
  return size;
}

}  // namespace

void read_workload(const Yaml& given, Scenario& scenario) {
  YamlMap map(given);
  const Yaml model = map.required("model");
  std::vector<Entry> entries = entry_with_bases(model, model_entries);
  // A profile holds what was measured, its optimizer among it, if there was one.
  scenario.optimizer = is_profile(entries.front()) ? Optimizer::none : Optimizer::adamw;
  if (is_profile(entries.front())) {
    const WorkloadProfile profile = read_workload_profile(entries.front().yaml);
    scenario.workload = workload_of(profile, entries.front().name);
    scenario.measured = profile.measured;
  } else {
    Description description(entries);
    const Architecture architecture = read_architecture(description);
    const WorkloadSize size = read_size(map, architecture);
    try {
      scenario.workload = build_workload(description.name, architecture, size);
    } catch (const std::invalid_argument& problem) {
      model.fail(problem.what());
    }
    if (const auto* transformer = std::get_if<TransformerShape>(&architecture)) {
      scenario.d_model = transformer->d_model;
      scenario.num_layers = transformer->layers;
    }
    if (const auto source = description.optional("source"))
      scenario.workload.source = source->text("a text");
    if (scenario.cluster.device.peak_of(size.compute).flops_per_second <= 0)
      given.fail(fmt::format("device {} does not multiply {}: choose another compute type",
                             scenario.cluster.device.name, name_of(size.compute)));
  }
  if (const auto value = map.optional("optimizer")) read_optimizer(*value, scenario);
  if (const auto value = map.optional("times")) scenario.times = read_times(*value);
  map.finish();
}

Workload read_catalogue_model(const std::string& name) {
  Description description(entry_with_bases(Yaml::of_text(name), model_entries));
  Workload workload = build_workload(name, read_architecture(description), WorkloadSize{});
  if (const auto source = description.optional("source")) workload.source = source->text("a text");
  return workload;
}

}  // namespace ddpsim
