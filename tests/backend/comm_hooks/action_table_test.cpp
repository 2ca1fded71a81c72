// The table of what the actions of comm hooks do, against the steps that comm hooks are made of.

#include "backend/comm_hooks/action_table.hpp"

#include <optional>
#include <set>

#include <catch2/catch.hpp>

#include "model/ddp/comm_hook.hpp"

namespace ddpsim {
namespace {

std::optional<Operation> collective_of(HookPrimitive primitive) {
  switch (primitive) {
    case HookPrimitive::all_reduce:
      return Operation::all_reduce;
    case HookPrimitive::reduce_scatter:
      return Operation::reduce_scatter;
    case HookPrimitive::all_gather:
      return Operation::all_gather;
    case HookPrimitive::broadcast:
      return Operation::broadcast;
    default:
      return std::nullopt;
  }
}

/// The steps of every comm hook on a bucket, in its first iterations and in the steady state.
std::vector<CommStep> steps_of_all_hooks() {
  CommBucket bucket;
  bucket.gradients = {{32, 24}, {32, 1}, {700, 1}};
  std::vector<CommStep> all;
  for (const CommHookKind kind : all_comm_hooks) {
    CommHook hook;
    hook.kind = kind;
    hook.wrappers = {DType::bf16};
    hook.powersgd.start_iteration = hook.post_local_sgd.start_iteration = 1;
    hook.powersgd.min_compression_rate = 1;
    for (const OwnStep::Kind own :
         {OwnStep::Kind::cast, OwnStep::Kind::scale, OwnStep::Kind::reduce_scatter,
          OwnStep::Kind::all_gather, OwnStep::Kind::all_gather, OwnStep::Kind::broadcast,
          OwnStep::Kind::kernel, OwnStep::Kind::topk, OwnStep::Kind::all_gather})
      hook.steps.emplace_back().kind = own;
    for (const int iteration : {0, 1, 2})
      for (const CommStep& step : comm_steps(hook, bucket, 4, 2, false, iteration))
        all.push_back(step);
  }
  return all;
}

}  // namespace

TEST_CASE("what the table says of an action is the collective, or the kernel, that is priced",
          "[backend][comm_hooks][action_table]") {
  std::set<CommAction> seen;
  for (const CommStep& step : steps_of_all_hooks()) {
    CAPTURE(name_of(step.action));
    seen.insert(step.action);
    const ActionMeaning does = meaning_of(step.action);
    CHECK(is_collective(does.primitive) == is_collective(step.operation));
    if (is_collective(step.operation)) CHECK(collective_of(does.primitive) == step.operation);
    const bool idle = does.primitive == HookPrimitive::nothing;
    CHECK(idle == (step.operation == Operation::synchronize));
    CHECK((does.target == HookPiece::none) == idle);
  }
  // plugin_after is the last action: every one of them is in some hook.
  CHECK(seen.size() == static_cast<std::size_t>(CommAction::plugin_after) + 1);
}

TEST_CASE("PowerSGD's three products need the two other matrices each",
          "[backend][comm_hooks][action_table]") {
  for (const CommAction action :
       {CommAction::project, CommAction::back_project, CommAction::reconstruct}) {
    const ActionMeaning does = meaning_of(action);
    CHECK(does.primitive == HookPrimitive::multiply);
    CHECK(std::set{does.target, does.source, does.second_source} ==
          std::set{HookPiece::matrix, HookPiece::p, HookPiece::q});
  }
}

}  // namespace ddpsim
