// PowerSGD: of each gradient that is a matrix, two factors of low rank are sent; all others
// together as they are. Check values are in the reference, section 4.1, and in
// tests/model/parallel/comm_hook_test.cpp.

#include <algorithm>

#include "model/parallel/hooks/comm_hooks.hpp"
#include "model/parallel/hooks/low_rank.hpp"

namespace ddpsim {
namespace {

using program::Slice;

/// The gradients that are sent as they are.
std::vector<Slice> uncompressed(const HookWriter& writer, const std::vector<LowRank>& compressed) {
  std::vector<Slice> rest;
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(writer.bucket.slots.size()); ++i)
    if (std::ranges::find(compressed, i, &LowRank::gradient) == compressed.end())
      rest.push_back(writer.gradient(i));
  return rest;
}

}  // namespace

/// Source: pytorch powerSGD_hook.py powerSGD_hook (rules R40-R42).
void write_powersgd(HookWriter& writer) {
  const PowerSgd& state = writer.hook.powersgd;
  LowRankWriter low_rank(writer, low_rank_gradients(state, writer.bucket.matrices));
  const std::vector<LowRank>& matrices = low_rank.matrices;
  const std::vector<Slice> rest = uncompressed(writer, matrices);
  std::int64_t elements = 0;
  for (const Slice& each : rest) elements += each.count;
  const Slice small = writer.buffer("small", writer.type(), elements);
  low_rank.add_views();
  if (!LowRankWriter::has_begun(writer)) return write_allreduce(writer);

  low_rank.add_error();
  if (!rest.empty()) {
    HookTask& pack = writer.pack("pack uncompressed", 2 * writer.bytes_of(small), {small}, rest);
    if (matrices.empty() && low_rank.draws) pack.then = program::Draw{.to = low_rank.q};  // a seed
  }
  for (const LowRank& each : matrices) {
    if (low_rank.draws) low_rank.draw_q(each);
    low_rank.orthogonalize_q(each, state.orthogonalization_epsilon);
  }
  for (const LowRank& each : matrices) low_rank.project(each);
  writer.all_reduce("all-reduce uncompressed", small);
  if (!rest.empty())
    writer.pack("unpack uncompressed", 4 * writer.bytes_of(small), rest, {small},
                {.mean_over = writer.mean_over(writer.call.ranks)},
                static_cast<int>(rest.size()) + 1);
  writer.all_reduce("all-reduce P", low_rank.p);
  for (const LowRank& each : matrices)
    low_rank.orthogonalize_p(each, state.orthogonalization_epsilon);
  for (const LowRank& each : matrices) low_rank.back_project(each);
  writer.all_reduce("all-reduce Q", low_rank.q);
  if (!matrices.empty()) writer.divide("divide Q", low_rank.q, writer.call.ranks);
  for (const LowRank& each : matrices) low_rank.reconstruct(each);
  writer.synchronize();
  low_rank.keep_error();
}

}  // namespace ddpsim
