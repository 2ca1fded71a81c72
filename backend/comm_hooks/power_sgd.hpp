#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "backend/comm_hooks/torch_random.hpp"
#include "backend/comm_hooks/values.hpp"
#include "model/ddp/comm_hook.hpp"

namespace ddpsim {

/// PowerSGD of one bucket: what powerSGD_hook.py keeps of it and does with it.
///
///     compressed gradients M_i [n x m], rank r       P_i [n x r], Q_i [m x r], all row-major,
///                                                    one behind the other, as low_rank_gradients
///     the others                                     `small`, one behind the other
///
/// All are of the data's type. Of 16 bits, matrices are multiplied and made orthogonal in fp32, and
/// the results rounded.
class PowerSgdBucket {
 public:
  using Seed = std::function<std::uint32_t()>;

  /// Of a bucket of `elements`; `gradients` are its shapes, not needed if `batched`.
  PowerSgdBucket(const PowerSgd& state, bool batched, int ranks,
                 std::span<const CommBucket::Matrix> gradients, std::size_t elements);

  /// A kernel of PowerSGD. `data`: the bucket (batched: padded to the square) in step.type. `next`
  /// gives a new seed, the same on all ranks.
  void run(const CommStep& step, const Values& data, const Seed& next);

  /// What reduce_small, reduce_p or reduce_q sums.
  Values reduced(const CommStep& step);

  std::vector<float> error();

 private:
  struct Piece {
    std::size_t begin = 0, count = 0;
  };
  struct Pieces {
    LowRank shape;
    Piece m, p, q;
  };
  const Pieces& pieces_of(const CommStep& step) const;
  void draw(const Pieces& pieces, DType type, const Seed& next);
  void orthogonalize(const CommStep& step, Values matrix, std::int64_t rows, std::int64_t rank);
  void multiply(const CommStep& step, const Values& data);
  void pack(const CommStep& step, const Values& data, const Seed& next);

  PowerSgd state_;
  bool batched_;
  int ranks_;
  std::vector<Pieces> compressed_;  ///< in the order of their P and Q
  std::vector<Piece> small_pieces_;
  std::size_t small_size_ = 0, p_size_ = 0, q_size_ = 0;

  Numbers small_, p_, q_, input_, error_;
  bool drawn_ = false;  ///< Q, at some time
  std::optional<TorchRandom> random_;
};

}  // namespace ddpsim
