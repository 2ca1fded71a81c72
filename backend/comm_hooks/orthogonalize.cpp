#include "backend/comm_hooks/orthogonalize.hpp"

#include <cassert>

#include <Eigen/Core>
#include <Eigen/QR>

namespace ddpsim {
namespace {

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

void gram_schmidt(Eigen::Ref<Matrix> matrix, float epsilon) {
  const Eigen::Index rank = matrix.cols();
  for (Eigen::Index i = 0; i < rank; ++i) {
    matrix.col(i) /= matrix.col(i).norm() + epsilon;
    for (Eigen::Index j = i + 1; j < rank; ++j)
      matrix.col(j) -= matrix.col(i).dot(matrix.col(j)) * matrix.col(i);
  }
}

}  // namespace

void orthogonalize(std::span<float> matrix, std::int64_t rows, std::int64_t rank, double epsilon,
                   bool sixteen_bit) {
  assert(rank <= rows && static_cast<std::int64_t>(matrix.size()) == rows * rank);
  Eigen::Map<Matrix> mapped(matrix.data(), rows, rank);
  if (rank <= 2 || sixteen_bit) return gram_schmidt(mapped, static_cast<float>(epsilon));
  const Eigen::HouseholderQR<Matrix> qr(mapped);
  mapped = qr.householderQ() * Matrix::Identity(rows, rank);
}

}  // namespace ddpsim
