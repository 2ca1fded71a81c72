#include "model/workload/architecture.hpp"

#include <stdexcept>

#include <fmt/format.h>

#include "model/workload/convnet.hpp"
#include "model/workload/detector.hpp"
#include "model/workload/dlrm.hpp"
#include "model/workload/mixtral.hpp"
#include "model/workload/mlp.hpp"
#include "model/workload/t5.hpp"
#include "model/workload/transformer.hpp"
#include "model/workload/vit.hpp"
#include "model/workload/whisper.hpp"

namespace ddpsim {
namespace {

Workload build(const TransformerShape& shape, const WorkloadSize& size) {
  return transformer_workload(shape, size);
}
Workload build(const ResNetShape& shape, const WorkloadSize& size) {
  return resnet_workload(shape, size);
}
Workload build(const VggShape& shape, const WorkloadSize& size) {
  return vgg_workload(shape, size);
}
Workload build(const EfficientNetShape& shape, const WorkloadSize& size) {
  return efficientnet_workload(shape, size);
}
Workload build(const MlpShape& shape, const WorkloadSize& size) {
  return mlp_workload(shape, size);
}
Workload build(const VitShape& shape, const WorkloadSize& size) {
  return vit_workload(shape, size);
}
Workload build(const T5Shape& shape, const WorkloadSize& size) {
  return t5_workload(shape, size);
}
Workload build(const MixtralShape& shape, const WorkloadSize& size) {
  return mixtral_workload(shape, size);
}
Workload build(const WhisperShape& shape, const WorkloadSize& size) {
  return whisper_workload(shape, size);
}
Workload build(const DlrmShape& shape, const WorkloadSize& size) {
  return dlrm_workload(shape, size);
}

Workload build(const SsdShape& shape, const WorkloadSize& size) {
  return ssd_workload(shape, size);
}
Workload build(const MaskRcnnShape& shape, const WorkloadSize& size) {
  return mask_rcnn_workload(shape, size);
}

}  // namespace

bool can_checkpoint(const Architecture& architecture) {
  return std::holds_alternative<TransformerShape>(architecture) ||
         std::holds_alternative<MixtralShape>(architecture) ||
         std::holds_alternative<VitShape>(architecture);
}

bool can_checkpoint_selectively(const Architecture& architecture) {
  const auto* shape = std::get_if<TransformerShape>(&architecture);
  return shape != nullptr && shape->family == TransformerShape::Family::llama;
}

Workload build_workload(const std::string& name, const Architecture& architecture,
                        const WorkloadSize& size) {
  try {
    if (size.checkpointed > 0 && !can_checkpoint(architecture))
      throw std::invalid_argument("it has no blocks that are modelled as activation checkpoints");
    if (size.checkpointed == selective_checkpoints && !can_checkpoint_selectively(architecture))
      throw std::invalid_argument("its blocks are not modelled as selective checkpoints");
    Workload workload =
        std::visit([&](const auto& shape) { return build(shape, size); }, architecture);
    workload.name = name;
    check(workload);
    return workload;
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(fmt::format("{}: {}", name, error.what()));
  }
}

}  // namespace ddpsim
