#include "tools/study/expected_gradients.hpp"

namespace ddpsim {
namespace {

Kept kept_by(const CommHook& hook, int ranks) {
  switch (hook.kind) {
    case CommHookKind::none:
    case CommHookKind::allreduce:
    case CommHookKind::fp16_compress:
    case CommHookKind::bf16_compress:
    case CommHookKind::quantization_pertensor:
    case CommHookKind::quantization_perchannel:
    case CommHookKind::optimizer_overlap:
    case CommHookKind::zero_step:
    case CommHookKind::zero_step_interleaved:
      return Kept::mean;
    case CommHookKind::powersgd:
    case CommHookKind::batched_powersgd:
      return Kept::same_everywhere;
    case CommHookKind::post_local_sgd: {
      const PostLocalSgd& state = hook.post_local_sgd;
      return state.gradient_allreduce && state.subgroup_of(ranks) >= ranks ? Kept::mean
                                                                           : Kept::nothing;
    }
    case CommHookKind::noop:
    case CommHookKind::steps:
    case CommHookKind::plugin:
      return Kept::nothing;
  }
  return Kept::nothing;
}

}  // namespace

ExpectedGradients expected_gradients(const Training& training, int ranks) {
  ExpectedGradients expected;
  expected.divisor = training.divisor(ranks);
  const CommHook& hook = training.comm_hook;
  if (training.strategy != Strategy::bucketed || training.own_buckets() || !hook) return expected;
  expected.kept = kept_by(hook, ranks);
  expected.wire = hook.wrappers;
  if (hook.kind == CommHookKind::fp16_compress) expected.wire.push_back(DType::fp16);
  if (hook.kind == CommHookKind::bf16_compress) expected.wire.push_back(DType::bf16);
  expected.quantized = hook.kind == CommHookKind::quantization_pertensor ||
                       hook.kind == CommHookKind::quantization_perchannel;
  return expected;
}

}  // namespace ddpsim
