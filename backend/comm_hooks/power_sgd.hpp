#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "backend/comm_hooks/action_table.hpp"
#include "backend/comm_hooks/low_rank_layout.hpp"
#include "backend/comm_hooks/torch_random.hpp"
#include "backend/comm_hooks/values.hpp"

namespace ddpsim {

/// PowerSGD of one bucket on the host: what powerSGD_hook.py keeps of it and does with it.
///
/// P, Q and what is not compressed are of the data's type. Of 16 bits, matrices are multiplied and
/// made orthogonal in fp32, and the results rounded. A piece is made when it is first asked for: a
/// measurement of kernels alone runs no collectives, and a schedule of the steady state has no
/// first time.
class PowerSgdBucket {
 public:
  /// Gives a new seed, the same on all ranks.
  using NextSeed = std::function<std::uint32_t()>;

  explicit PowerSgdBucket(LowRankLayout layout) : layout_(std::move(layout)) {}

  /// All numbers of the piece `small`, `p`, `q`, `input` or `error`, in `type`; the last two have
  /// as many as the data.
  Values numbers(HookPiece piece, DType type, std::size_t data_size);

  void pack(const CommStep& step, const Values& data, const NextSeed& next);
  /// `ranks`: what the sums are divided by.
  void unpack(const CommStep& step, const Values& data, int ranks);
  void draw(const CommStep& step, const NextSeed& next);
  /// The part of P or Q for the step's gradient. Draws Q if nobody has: a schedule of the steady
  /// state begins without draw_q.
  void orthogonalize(HookPiece target, const CommStep& step, const NextSeed& next);
  /// The target, one of P, Q and M, as the product of the other two.
  void multiply(HookPiece target, const CommStep& step, const Values& data);

  /// What `error` holds; empty: nothing yet.
  std::vector<float> error();

 private:
  void draw(const LowRankLayout::Compressed& gradient, DType type, const NextSeed& next);

  LowRankLayout layout_;
  Numbers small_, p_, q_, input_, error_;
  bool drawn_ = false;  ///< Q, at some time
  std::optional<TorchRandom> random_;
};

}  // namespace ddpsim
