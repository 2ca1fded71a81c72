// Mask R-CNN finds objects in two passes: a ResNet-50 and a pyramid of its results propose boxes,
// and heads over those that are sampled tell class, correction and outline.
// Source: He et al., arXiv 1703.06870; torchvision.models.detection.maskrcnn_resnet50_fpn, which
// samples 512 boxes of a picture, at most a quarter of them on objects.

#include <algorithm>
#include <array>
#include <cstdint>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "model/workload/detection_modules.hpp"
#include "model/workload/detector.hpp"
#include "model/workload/residual_block.hpp"

namespace ddpsim {
namespace {

using namespace eager;
constexpr int stages = 5;              // of ResNet-50: its stem and four runs of blocks
constexpr std::int64_t pyramid = 256;  // channels of each level
constexpr std::int64_t anchors = 3;    // boxes around a place of a level
constexpr std::int64_t hidden = 1024;  // features of a box
constexpr std::int64_t box_side = 7, mask_side = 14;

bool is_frozen(const MaskRcnnShape& shape, int stage) {
  return stage < stages - shape.trained_stages;
}

/// ResNet-50 with frozen batch norms. Returns what each run of blocks leaves.
std::vector<Pictures> append_body(Workload& workload, const PictureModules& x,
                                  const MaskRcnnShape& shape, Pictures pictures) {
  const ResNetShape resnet{.blocks = {3, 4, 6, 3}, .bottleneck = true};
  const auto append = [&](const std::string& name, const std::string& prefix, Modules modules,
                          int stage) {
    if (is_frozen(shape, stage))
      for (Module& module : modules) module = frozen(workload, std::move(module));
    append_layer(workload, name, prefix, modules);
  };
  Modules stem{x.convolution("conv1", pictures, 64, {7, 2, 3}, false, Input::data)};
  stem.push_back(x.frozen_norm("bn1", pictures));
  stem.push_back(x.relu("relu", pictures.elements()));
  stem.push_back(x.max_pool("maxpool", pictures, {3, 2, 1}));
  append("stem", "backbone.body.", stem, 0);

  std::vector<Pictures> results;
  for (int stage = 1; stage < stages; ++stage) {
    const int blocks = resnet.blocks[static_cast<std::size_t>(stage - 1)];
    for (int i = 0; i < blocks; ++i) {
      const Input input = i == 0 && is_frozen(shape, stage - 1) ? Input::frozen : Input::activation;
      const std::string name = fmt::format("layer{}.{}", stage, i);
      append(name, fmt::format("backbone.body.{}.", name),
             residual_block(x, pictures, resnet, std::int64_t{32} << stage,
                            stage > 1 && i == 0 ? 2 : 1, {true, input}),
             stage);
    }
    results.push_back(pictures);
  }
  return results;
}

/// The smaller pictures over again for the larger ones, by the nearest place, and added to them.
/// Backward sums over the places that a place became.
Module widened(const PictureModules& x, const std::string& name, const Pictures& from,
               const Pictures& to) {
  const ModuleMaker& make = x.picture_maker();
  const std::int64_t both = from.elements() + to.elements();
  Module module;
  module.forward = {make.eager(name, {{both, {1}}, {to.elements(), {3}}})};
  module.backward = {make.eager(name + ".grad", {{both, {1}}}, Pass::backward)};
  module.forward_working = make.computed(to.elements());
  module.backward_working = make.computed(both);
  return module;
}

/// From the smallest result to the largest: fewer channels, the smaller level added, a window. The
/// smallest level of all is every second place of the one before. Returns the levels, the largest
/// first.
std::vector<Pictures> append_pyramid(Workload& workload, const PictureModules& x,
                                     const MaskRcnnShape& shape,
                                     const std::vector<Pictures>& results) {
  Modules modules;
  std::vector<Pictures> levels(results.size());
  for (int i = static_cast<int>(results.size()) - 1; i >= 0; --i) {
    const auto at = static_cast<std::size_t>(i);
    const bool smallest = at + 1 == results.size();
    levels[at] = results[at];
    const Input input = is_frozen(shape, i + 1) ? Input::frozen : Input::activation;
    if (input == Input::activation && !smallest)
      modules.push_back(x.fork(fmt::format("fork.{}", i), results[at]));
    modules.push_back(with_calls(
        x.convolution(fmt::format("inner_blocks.{}.0", i), levels[at], pyramid, {}, true, input),
        1));
    if (!smallest)
      modules.push_back(widened(x, fmt::format("widened.{}", i), levels[at + 1], levels[at]));
    if (i > 0) modules.push_back(x.fork(fmt::format("inner.{}", i), levels[at]));
    x.keep_result(modules.back(), levels[at]);
    modules.push_back(with_calls(
        x.convolution(fmt::format("layer_blocks.{}.0", i), levels[at], pyramid, {3, 1, 1}, true),
        1));
    x.keep_result(modules.back(), levels[at]);
  }
  levels.push_back(levels.back());
  modules.push_back(x.fork("fork.pool", levels.back()));
  modules.push_back(x.max_pool("extra_blocks", levels.back(), {1, 2, 0}));
  append_layer(workload, "fpn", "backbone.fpn.", modules,
               {"inner_blocks.0.0", "inner_blocks.1.0", "inner_blocks.2.0", "inner_blocks.3.0",
                "layer_blocks.0.0", "layer_blocks.1.0", "layer_blocks.2.0", "layer_blocks.3.0"});
  return levels;
}

/// The proposals: three convolutions with the same weights over every level.
void append_proposals(Workload& workload, const PictureModules& x,
                      const std::vector<Pictures>& levels) {
  std::vector<Modules> each;
  std::vector<Pictures> objects, boxes;
  for (const Pictures& level : levels) {
    Pictures inner = level;
    Modules modules{with_calls(x.convolution("conv.0.0", inner, pyramid, {3, 1, 1}, true), 2)};
    modules.push_back(x.relu("conv.0.1", inner.elements()));
    objects.push_back(inner);
    modules.push_back(x.convolution("cls_logits", objects.back(), anchors, {}, true));
    modules.push_back(x.fork("fork", inner));
    boxes.push_back(inner);
    modules.push_back(x.convolution("bbox_pred", boxes.back(), 4 * anchors, {}, true));
    each.push_back(std::move(modules));
  }
  append_layer(workload, "rpn", "rpn.head.",
               {over_levels(x, each), joined_predictions(x, "objectness", objects),
                joined_predictions(x, "deltas", boxes)});
}

/// A square of every sampled box, read from the level that fits its size and written twice: by
/// RoIAlign, and into its place among the boxes of all levels. Backward clears gradients of the
/// levels and adds to them.
Module boxes_of(const PictureModules& x, const std::string& name,
                const std::vector<Pictures>& levels, const Pictures& boxes) {
  const ModuleMaker& make = x.picture_maker();
  const std::int64_t rows = boxes.batch * boxes.channels;
  const EagerKernel gather(2, PatternKind::gather, rows, boxes.places());
  Module module;
  std::vector<EagerKernels> forward{{boxes.elements(), {fill(1), gather, gather}}};
  std::vector<EagerKernels> backward{{boxes.elements(), {gather, gather}}};
  for (std::size_t i = 0; i + 1 < levels.size(); ++i)  // the smallest level has no boxes
    backward.push_back({levels[i].elements(), {again(fill(1)), again(3)}});
  module.forward = {make.eager(name, forward)};
  module.backward = {make.eager(name + ".grad", backward, Pass::backward)};
  module.kept = make.computed(boxes.elements());
  module.forward_working = make.computed(boxes.elements());
  module.backward_working = make.computed(2 * boxes.elements());
  return module;
}

/// Class and correction of every sampled box.
void append_box_head(Workload& workload, const PictureModules& x, const MaskRcnnShape& shape,
                     const std::vector<Pictures>& levels, std::int64_t batch) {
  const std::int64_t rows = batch * shape.boxes;
  const Pictures boxes{rows, pyramid, box_side, box_side};
  Modules modules{boxes_of(x, "box_roi_pool", levels, boxes)};
  modules.push_back(
      x.linear("box_head.fc6", rows, pyramid * boxes.places(), hidden, Operand::kept));
  modules.push_back(x.relu("box_head.relu6", rows * hidden));
  modules.push_back(x.linear("box_head.fc7", rows, hidden, hidden, Operand::kept));
  modules.push_back(x.relu("box_head.relu7", rows * hidden));
  modules.push_back(x.maker().linear(LinearKind::biased, rows, hidden,
                                     {{"box_predictor.cls_score", shape.classes},
                                      {"box_predictor.bbox_pred", std::int64_t{4} * shape.classes}},
                                     Operand::kept));
  modules.back().views = 0;
  modules.push_back(x.cross_entropy("loss_classifier", rows, shape.classes));
  append_layer(workload, "boxes", "roi_heads.", modules);
}

/// The loss of outlines: of each box the one of its own class, against what was drawn.
Module outline_loss(const PictureModules& x, const Pictures& outlines) {
  const ModuleMaker& make = x.picture_maker();
  const std::int64_t chosen = outlines.batch * outlines.places();
  const EagerKernel gather(2, PatternKind::gather, outlines.batch, outlines.places());
  Module module;
  module.forward = {make.eager("loss_mask", {{chosen, {gather, 3}, DType::fp32}})};
  module.backward = {
      make.eager("loss_mask.grad",
                 {{chosen, {3}, DType::fp32}, {outlines.elements(), {fill(1)}}, {chosen, {gather}}},
                 Pass::backward)};
  module.kept = chosen * Bytes{8};
  module.forward_working = chosen * Bytes{8};
  module.backward_working = make.computed(outlines.elements());
  return module;
}

void append_mask_head(Workload& workload, const PictureModules& x, const MaskRcnnShape& shape,
                      const std::vector<Pictures>& levels, std::int64_t batch) {
  Pictures objects{batch * shape.masks, pyramid, mask_side, mask_side};
  Modules modules{boxes_of(x, "mask_roi_pool", levels, objects)};
  for (int i = 0; i < 4; ++i) {
    modules.push_back(with_calls(
        x.convolution(fmt::format("mask_head.{}.0", i), objects, pyramid, {3, 1, 1}, true), 1));
    modules.push_back(x.relu(fmt::format("mask_head.{}.1", i), objects.elements()));
  }
  modules.push_back(x.unfolding("mask_predictor.conv5_mask", objects, pyramid, 2));
  modules.push_back(x.relu("mask_predictor.relu", objects.elements()));
  modules.push_back(
      x.convolution("mask_predictor.mask_fcn_logits", objects, shape.classes, {}, true));
  modules.push_back(outline_loss(x, objects));
  append_layer(workload, "masks", "roi_heads.", modules);
}

void check(const MaskRcnnShape& shape, const WorkloadSize& size) {
  require_positive(size.batch, "batch");
  require_positive(shape.classes, "classes");
  require_positive(shape.boxes, "boxes");
  require_positive(shape.masks, "masks");
  if (shape.masks > shape.boxes)
    throw std::invalid_argument(fmt::format("masks: {} are more than the {} boxes they are among",
                                            shape.masks, shape.boxes));
  if (shape.trained_stages < 0 || shape.trained_stages > stages)
    throw std::invalid_argument(
        fmt::format("trained_stages: ResNet-50 has 5, got {}", shape.trained_stages));
  for (const int extent : {shape.picture_height, shape.picture_width})
    if (extent < 64 || extent % 32 != 0)
      throw std::invalid_argument(
          fmt::format("a batch is padded to 32 pixels: picture_height and picture_width are "
                      "multiples of 32 from 64 on, got {}",
                      extent));
  require_countable("an activation", {size.batch, shape.picture_height, shape.picture_width, 64});
  require_countable("the boxes", {size.batch, shape.boxes, pyramid, box_side, box_side});
  require_countable("the outlines", {size.batch, shape.masks, shape.classes, 28, 28});
}

}  // namespace

Workload mask_rcnn_workload(const MaskRcnnShape& shape, const WorkloadSize& size) {
  check(shape, size);
  const PictureModules x(size);
  Workload workload;
  workload.source =
      "torchvision Mask R-CNN on PyTorch with cuDNN; no matching, sorting, loss of boxes";
  const std::vector<Pictures> results =
      append_body(workload, x, shape, {size.batch, 3, shape.picture_height, shape.picture_width});
  const std::vector<Pictures> levels = append_pyramid(workload, x, shape, results);
  append_proposals(workload, x, levels);
  append_box_head(workload, x, shape, levels, size.batch);
  append_mask_head(workload, x, shape, levels, size.batch);
  return workload;
}

}  // namespace ddpsim
