// Parts that stand in files beside the scenario.

#include "tests/golden/drawn_files.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "scenarios/reader/cluster/calibration_reader.hpp"
#include "scenarios/reader/format/map.hpp"
#include "scenarios/reader/workload/description_reader.hpp"
#include "scenarios/reader/workload/profile_reader.hpp"

namespace ddpsim::golden {
namespace {

std::string lines_of(const std::vector<std::pair<std::string, std::string>>& entries) {
  std::string text;
  for (const auto& [key, value] : entries) text += fmt::format("{}: {}\n", key, value);
  return text;
}

/// The mapping that each entry of the list at `key` is.
const MapDescription& items_of(const MapDescription& map, const std::string& key) {
  return *map_of(map.find(key)->type.front().items);
}

const Words dtypes{"fp32", "fp32", "bf16", "fp16", "fp64"};

/// "name: l0.weight, shape: [100, 4]" and what both kinds of parameters have besides, now and then.
std::string parameter(const Draw& draw, const std::string& place, std::int64_t index) {
  std::string text = fmt::format("name: l{}.weight, shape: [{}, {}]", index,
                                 draw.between(place + ".rows", 1, 3000),
                                 draw.between(place + ".columns", 1, 3000));
  const std::string usual = draw.any_of("dtype of all", dtypes);
  text += ", dtype: " + (draw.chance(place + ".other", 15) ? draw.any_of(place, dtypes) : usual);
  if (draw.chance(place + ".sparse", 5)) text += ", sparse: true, rows: 1";
  return text;
}

/// A kernel of a description: its kind and the shape that goes with it.
void pin_kernel(const Draw& draw, Pins& pins, const std::string& place) {
  const auto pin = [&](const char* key, const std::string& text) {
    pins[place + "." + key] = text;
  };
  const std::string kind =
      draw.any_of(place + ".kind", {"gemm", "gemm", "conv", "attention", "memory", "memory"});
  pin("op", "aten." + kind);
  pin("kind", kind);
  pin("type", draw.any_of(place + ".type", {"fp32", "tf32", "bf16", "fp16"}));
  for (const char* key : {"gemm", "attention", "conv", "pattern"}) pin(key, "-");
  if (kind == "conv" || kind == "gemm") pin("gemm", "");
  if (kind == "conv" && draw.chance(place + ".shaped", 85)) pin("conv", "");
  if (kind == "attention") pin("attention", "");
  if (kind == "memory" && draw.chance(place + ".shaped", 85)) pin("pattern", "");
  pin("read", std::to_string(draw.between(place + ".read", 1000, 300'000'000)));
  pin("written", std::to_string(draw.between(place + ".written", 1000, 300'000'000)));
  pin("flops", "-");  // they follow from the shape
}

}  // namespace

Pins drawn_profile(const Draw& draw, const Pins&, Files& files) {
  constexpr std::int64_t backward_ms = 150;
  const std::int64_t count = draw.between("parameters", 1, 12);
  std::string parameters;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::string place = fmt::format("parameters.{}", i);
    parameters += fmt::format("{}{{{}", i == 0 ? "" : ", ", parameter(draw, place, i));
    parameters +=
        draw.chance(place + ".unused", 4)
            ? ", unused: true}"
            : fmt::format(", ready: {} ms}}", draw.between(place + ".ready", 1, backward_ms));
  }
  const Pins pins{{"format", "ddpsim.workload/1"},
                  {"backward", fmt::format("{} ms", backward_ms)},
                  {"parameters", "[" + parameters + "]"},
                  {"arrival", "-"},
                  {"measured", "-"}};
  files["golden-profile.yaml"] =
      lines_of(DrawnMap(draw, pins).entries(workload_profile_map().description(), ""));
  const std::string times = draw.chance("times", 15) ? ", times: {backward: 90 ms}" : "";
  return {{"workload", "{model: golden-profile.yaml" + times + "}"}};
}

Pins drawn_description(const Draw& draw, const Pins&, Files& files) {
  const MapDescription& map = workload_description_map().description();
  const MapDescription& kernel = items_of(map, "kernels");
  const MapDescription& layer = items_of(map, "layers");
  const std::int64_t kernels = draw.between("kernels", 2, 12),
                     layers = draw.between("layers", 1, 5);
  Pins pins{{"format", "ddpsim.workload/2"},
            {"arrival", "-"},
            {"collectives", "-"},
            {"batch", "4"},
            {"compute", "-"},
            {"dtype", "fp32"}};
  std::string all_kernels, all_layers, parameters;
  for (std::int64_t i = 0; i < kernels; ++i) {
    const std::string place = fmt::format("kernels.{}", i);
    pin_kernel(draw, pins, place);
    all_kernels += (i == 0 ? "" : ", ") + DrawnMap(draw, pins).text(kernel, place);
  }
  for (std::int64_t i = 0; i < layers; ++i) {
    const std::string place = fmt::format("layers.{}", i);
    const auto some_kernels = [&](const std::string& pass, std::int64_t count) {
      std::string list;
      for (std::int64_t k = 0; k < count; ++k)
        list += fmt::format("{}{}", k == 0 ? "" : ", ",
                            draw.between(fmt::format("{}.{}.{}", place, pass, k), 0, kernels - 1));
      return "[" + list + "]";
    };
    const std::int64_t backward = draw.between(place + ".entries", 1, 5);
    pins[place + ".name"] = fmt::format("l{}", i);
    pins[place + ".forward"] = some_kernels("forward", draw.between(place + ".before", 1, 4));
    pins[place + ".backward"] = some_kernels("backward", backward);
    pins[place + ".kept"] = std::to_string(draw.between(place + ".kept", 1, 100'000'000));
    all_layers += (i == 0 ? "" : ", ") + DrawnMap(draw, pins).text(layer, place);
    parameters +=
        fmt::format("{}{{{}, layer: {}, after: {}}}", i == 0 ? "" : ", ", parameter(draw, place, i),
                    i, draw.between(place + ".after", 0, backward - 1));
  }
  pins["kernels"] = "[" + all_kernels + "]";
  pins["layers"] = "[" + all_layers + "]";
  pins["parameters"] = "[" + parameters + "]";
  files["golden-description.yaml"] = lines_of(DrawnMap(draw, pins).entries(map, ""));
  return {{"workload.model", "golden-description.yaml"},
          {"workload.batch", "-"},
          {"workload.sequence", "-"},
          {"workload.image", "-"},
          {"workload.channels_last", "-"},
          {"workload.dtype", "-"}};
}

Pins shipped_description(const Draw& draw, const Pins&, Files&) {
  const std::string folder = "../../tests/data/descriptions/";
  const Words names{"bert", "gpt2", "llama2", "resnet50"};
  return {{"workload.model", folder + draw.any_of("description", names) + ".yaml"},
          {"workload.batch", "-"},
          {"workload.sequence", "-"},
          {"workload.image", "-"},
          {"workload.channels_last", "-"},
          {"workload.dtype", "-"}};
}

Pins drawn_calibration(const Draw& draw, const Pins&, Files& files) {
  const MapDescription& map = calibration_map().description();
  const MapDescription& task = items_of(map, "tasks");
  Pins pins{{"format", "ddpsim.calibration/1"},
            {"fits", "-"},
            {"end", "-"},
            {"collectives", "-"},
            {"interference", "-"},
            {"ranks", std::to_string(draw.between("ranks", 2, 4))}};
  Words operations;
  for (const NamedChoice& choice : task.find("operation")->type.front().choices)
    operations.push_back(choice.name);
  std::string tasks, points, slowdowns;
  for (const std::string& operation : operations) {
    const std::string place = "tasks." + operation;
    if (draw.chance(place, 30)) continue;
    pins[place + ".operation"] = operation;
    for (const char* key : {"low", "high", "type"}) pins[fmt::format("{}.{}", place, key)] = "-";
    if (operation != "forward" && operation != "backward") pins[place + ".gemm"] = "-";
    tasks += (tasks.empty() ? "" : ", ") + DrawnMap(draw, pins).text(task, place);
  }
  std::int64_t bytes = 1000, ns = 20'000;
  for (std::int64_t i = draw.between("points", 2, 6); i > 0; --i) {
    points += fmt::format("{}{{bytes: {}, time: {} ns}}", points.empty() ? "" : ", ", bytes, ns);
    slowdowns += fmt::format(
        "{}{{bytes: {}, compute_slowdown: 1.{}, communication_slowdown: 1.{}}}",
        slowdowns.empty() ? "" : ", ", bytes, i, draw.between(fmt::format("slow {}", i), 0, 9));
    const std::int64_t factor = draw.between(fmt::format("step {}", i), 2, 20);
    bytes *= factor;
    ns += ns * factor / 3;
  }
  pins["tasks"] = "[" + tasks + "]";
  pins["all_reduce"] = "[" + points + "]";
  if (draw.chance("slowdowns", 50)) pins["interference"] = "[" + slowdowns + "]";
  files["golden-calibration.yaml"] =
      lines_of(DrawnMap(draw, pins).entries(map, "")) + "end: ddpsim.calibration/1\n";
  Pins scenario{{"cluster.calibration", "golden-calibration.yaml"}};
  for (const char* key : {"system", "host", "collectives", "through_host", "ranks_per_node"})
    scenario[fmt::format("cluster.{}", key)] = "-";
  for (const char* key : {"device", "intra_node", "inter_node", "nodes"})
    if (draw.chance(key, 75)) scenario[fmt::format("cluster.{}", key)] = "-";
  return scenario;
}

}  // namespace ddpsim::golden
