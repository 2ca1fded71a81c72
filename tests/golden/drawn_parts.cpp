// Parts that are written into the scenario itself.

#include <fmt/format.h>

#include "tests/golden/drawn_files.hpp"

namespace ddpsim::golden {
namespace {

/// Parameters 0.weight, 0.bias, 2.weight, ... 6.bias.
const std::string four_layers = "{family: mlp, widths: [512, 1024, 700, 64, 10]}";

}  // namespace

/// Most of the time with few layers, which is quicker and has the same kernels in each layer.
Pins shortened_model(const Draw& draw, const Pins& pins, Files&) {
  const std::string& name = pins.at("workload.model");
  const auto is_of = [&](const char* kind) { return name.find(kind) != std::string::npos; };
  if (draw.chance("whole model", 8)) return {};
  std::string fewer = "layers: 2";
  if (is_of("resne")) fewer = "blocks: [1, 2, 1, 1]";
  if (is_of("efficientnet")) fewer = "depth: 0.2";
  if (is_of("t5") || is_of("whisper")) fewer = "layers: 2, decoder_layers: 1";
  if (is_of("vgg") || is_of("ssd") || is_of("rcnn") || is_of("dlrm")) fewer = "classes: 90";
  if (is_of("dlrm")) fewer = "tables: 20";
  // With few tokens the loss does not decide the memory of a step.
  if (fewer.starts_with("layers") && !is_of("vit") && draw.chance("few tokens", 50))
    fewer += ", vocabulary: 600";
  return {{"workload.model", fmt::format("{{base: {}, {}}}", name, fewer)}};
}

Pins own_steps(const Draw& draw, const Pins&, Files&) {
  const Words steps{
      "[{cast: fp16}, all_reduce, {scale: 1/ranks}]",
      "[all_reduce, {scale: 0.5}]",
      "[{scale: 1/ranks}, reduce_scatter, all_gather]",
      "[{cast: bf16}, {scale: 1/ranks}, reduce_scatter, all_gather]",
      "[{topk: 1 %}, all_gather, {scale: 1/ranks}]",
      "[{cast: fp16}, {topk: 0.1}, {all_gather: {communicator: 1}}]",
      "[all_gather]",
      "[{kernel: {name: mask, passes: 3, launches: 2}}, {all_reduce: {communicator: 2}}, "
      "broadcast]",
      "[reduce_scatter, {kernel: {name: own}}, {all_gather: {communicator: 1}}, {cast: fp32}]"};
  return {{"training.comm_hook", draw.any_of("steps", steps)}, {"training.strategy", "bucketed"}};
}

Pins named_buckets(const Draw& draw, const Pins&, Files&) {
  const Words buckets{
      "[[6.bias, 6.weight, 4.bias, 4.weight], [2.bias, 2.weight, 0.bias, 0.weight]]",
      "[[6.bias, 6.weight], [4.bias, 4.weight], [2.bias, 2.weight], [0.bias, 0.weight]]",
      "[[0.bias, 0.weight], [2.bias, 2.weight], [4.bias, 4.weight, 6.bias, 6.weight]]",
      "[[6.bias, 4.bias, 2.bias, 0.bias], [6.weight, 4.weight, 2.weight, 0.weight]]",
      "[[6.weight, 4.weight], [6.bias, 4.bias, 2.bias, 0.bias, 2.weight, 0.weight]]",
      "[[6.bias, 6.weight], [4.bias, 4.weight]]"};
  return {{"workload.model", four_layers}, {"training.buckets", draw.any_of("buckets", buckets)}};
}

Pins delayed_parameters(const Draw& draw, const Pins&, Files&) {
  const Words delayed{
      "{parameters: [\"6.*\"], hook: 4.bias}", "{parameters: [\"*bias\"], hook: 0.weight}",
      "{parameters: [\"2.*\", \"4.*\"], hook: 0.bias}",
      "{parameters: [\"6.weight\"], hook: 0.weight}", "{parameters: [\"0.*\"], hook: 6.weight}"};
  return {{"workload.model", four_layers},
          {"training.delay_all_reduce", draw.any_of("delayed", delayed)}};
}

Pins measured_rows(const Draw& draw, const Pins&, Files&) {
  const Words strategies{"none", "naive", "flat", "overlap", "bucketed"};
  const std::string first = draw.any_of("calibrate_on", strategies);
  std::string rows;
  for (const std::string& strategy : strategies) {
    if (strategy != first && draw.chance("row " + strategy, 40)) continue;
    const std::int64_t step = draw.between("step " + strategy, 200, 3000);
    rows += fmt::format("{}{{strategy: {}, step: {} ms", rows.empty() ? "" : ", ", strategy, step);
    if (draw.chance("communication " + strategy, 25) && strategy != "none")
      rows += fmt::format(", communication: {} ms", step / 7);
    if (draw.chance("forward " + strategy, 25)) rows += fmt::format(", forward: {} ms", step / 4);
    if (draw.chance("optimizer " + strategy, 25))
      rows += fmt::format(", optimizer: {} ms", step / 20);
    if (strategy == "bucketed" && draw.chance("cap", 50)) rows += ", bucket_cap: 10 MiB";
    rows += "}";
  }
  return {{"measured", fmt::format("{{calibrate_on: [{}], rows: [{}]}}", first, rows)}};
}

}  // namespace ddpsim::golden
