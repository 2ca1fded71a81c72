// PowerSGD of all of a bucket: padded with zeros, it is one square matrix.

#include <algorithm>
#include <cmath>

#include "model/parallel/hooks/comm_hooks.hpp"
#include "model/parallel/hooks/low_rank.hpp"

namespace ddpsim {
namespace {

using program::Slice;

/// The side of the smallest square that so many elements fit in.
std::int64_t side_of(std::int64_t elements) {
  auto side = static_cast<std::int64_t>(std::sqrt(static_cast<double>(elements)));
  while (side * side < elements) ++side;
  while (side > 0 && (side - 1) * (side - 1) >= elements) --side;
  return side;
}

/// The data are now the square.
void pad(HookWriter& writer, std::int64_t side) {
  const Slice data = writer.data();
  const Slice square = writer.buffer("square", writer.type(), side * side);
  const std::int64_t added = std::max<std::int64_t>(1, square.count - data.count);
  writer.pack("pad", added * size_of(writer.type()), {square}, {data}, {.zeros_behind = true});
  writer.work_on(square);
}

void unpad(HookWriter& writer, const Slice& into) {
  Slice square = writer.data();
  square.count = into.count;
  writer.pack("unpad", size_of(writer.type()), {into}, {square});  // only the size changes
  writer.work_on(into);
}

}  // namespace

/// Adds nothing to norms. Source: pytorch powerSGD_hook.py batched_powerSGD_hook.
void write_batched_powersgd(HookWriter& writer) {
  const Slice data = writer.data();
  const std::int64_t side = side_of(data.count);
  const bool begun = LowRankWriter::has_begun(writer);
  if (begun) pad(writer, side);
  LowRankWriter low_rank(writer, {{nobody, side, side, writer.hook.powersgd.rank}});
  const LowRank& matrix = low_rank.matrices.front();
  low_rank.add_views();
  if (!begun) return write_allreduce(writer);

  low_rank.add_error();
  if (low_rank.draws) low_rank.draw_q(matrix);
  low_rank.orthogonalize_q(matrix, 0);
  low_rank.project(matrix);
  writer.all_reduce("all-reduce P", low_rank.p);
  low_rank.orthogonalize_p(matrix, 0);
  low_rank.back_project(matrix);
  writer.all_reduce("all-reduce Q", low_rank.q);
  writer.divide("divide Q", low_rank.q, writer.call.ranks);
  low_rank.reconstruct(matrix);
  low_rank.keep_error();
  writer.synchronize();
  unpad(writer, data);
}

}  // namespace ddpsim
