#include "model/parallel/hooks/low_rank.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace ddpsim {
namespace {

using program::Life, program::Slice, program::Start;

/// What torch.randn takes for a number on one core: torch 1.13, an AMD EPYC of 2.6 GHz.
constexpr Duration random_number = std::chrono::nanoseconds{3};

}  // namespace

int powersgd_rank(const PowerSgd& state, MatrixShape matrix) {
  const std::int64_t n = matrix.rows, m = matrix.columns;
  const std::int64_t rank = std::min({n, m, static_cast<std::int64_t>(state.rank)});
  const double compressed = static_cast<double>((n + m) * rank) * state.min_compression_rate;
  return compressed < static_cast<double>(n * m) ? static_cast<int>(rank) : 0;
}

std::vector<LowRank> low_rank_gradients(const PowerSgd& state,
                                        std::span<const MatrixShape> gradients) {
  std::map<std::pair<std::int64_t, std::int64_t>, std::size_t> group_of;
  std::vector<std::vector<LowRank>> groups;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const auto [rows, columns] = gradients[i];
    const int rank = powersgd_rank(state, gradients[i]);
    if (rank == 0) continue;
    const auto [group, first] = group_of.try_emplace({rows, columns}, groups.size());
    if (first) groups.emplace_back();
    groups[group->second].push_back({static_cast<std::int32_t>(i), rows, columns, rank});
  }
  std::vector<LowRank> all;
  for (const auto& group : groups) all.insert(all.end(), group.begin(), group.end());
  return all;
}

bool LowRankWriter::has_begun(const HookWriter& writer) {
  return !writer.is_among_first(writer.hook.powersgd.start_iteration);
}

LowRankWriter::LowRankWriter(HookWriter& writer, std::vector<LowRank> compressed)
    : matrices(std::move(compressed)), writer_(writer) {
  const PowerSgd& state = writer.hook.powersgd;
  const bool begun = has_begun(writer);
  draws = begun && (!state.warm_start || writer.call.iteration == state.start_iteration + 1);
  if (begun && state.error_feedback) {
    const std::int64_t elements = writer.data().count;
    error_ = writer.buffer("error", writer.type(), elements, Life::job, Start::zeros);
    input_ = writer.buffer("input", writer.type(), elements);
  }
  for (LowRank& each : matrices) {
    each.p = {.begin = p.count, .count = each.rows * each.rank};
    each.q = {.begin = q.count, .count = each.columns * each.rank};
    p.count += each.p.count;
    q.count += each.q.count;
  }
  // Both stay for the next step, but where every step draws Q anew.
  const Life life = draws && !state.warm_start && q.count > 0 ? Life::step : Life::job;
  p = writer.buffer("P", writer.type(), p.count, life);
  q = writer.buffer("Q", writer.type(), q.count, life, Start::zeros);
  for (LowRank& each : matrices) {
    each.p.buffer = p.buffer;
    each.q.buffer = q.buffer;
  }
}

void LowRankWriter::add_views() {
  const bool begun = has_begun(writer_);
  const Start start = draws ? Start::zeros : begun ? Start::random : Start::undefined;
  for (std::size_t i = 0; i < matrices.size(); ++i)
    writer_.add_view("Q " + std::to_string(i), matrices[i].q, start);
  if (matrices.empty() && start == Start::random) writer_.add_view("Q 0", q, start);
}

void LowRankWriter::add_error() {
  if (error_.empty()) return;
  const Slice data = writer_.data();
  writer_.kernel("add error", Operation::correct, writer_.passes(3),
                 program::Combine{.to = data, .left = data, .right = error_});
  writer_.kernel("keep input", Operation::correct, writer_.passes(2),
                 program::Scale{.to = input_, .from = data});
}

void LowRankWriter::keep_error() {
  if (error_.empty()) return;
  writer_.kernel("keep error", Operation::correct, writer_.passes(3),
                 program::Combine{.to = error_, .left = input_, .right = writer_.data(), .b = -1});
}

/// Q is drawn on the CPU and copied to the device.
void LowRankWriter::draw_q(const LowRank& matrix) {
  HookTask& task = writer_.kernel("draw Q", Operation::draw, 3 * writer_.bytes_of(matrix.q),
                                  program::Draw{.to = matrix.q, .fresh = matrix.q.begin == 0}, 2);
  if (!writer_.call.synchronous) task.work.host = matrix.q.count * random_number;
  task.gradient = matrix.gradient;
}

void LowRankWriter::orthogonalize_q(const LowRank& matrix, double epsilon) {
  orthogonalize("orthogonalize Q", matrix, {matrix.q, matrix.columns, matrix.rank, epsilon});
}

void LowRankWriter::orthogonalize_p(const LowRank& matrix, double epsilon) {
  orthogonalize("orthogonalize P", matrix, {matrix.p, matrix.rows, matrix.rank, epsilon});
}

/// Column i of r: norm (1 pass), division (2), then of those behind it the product with the column
/// (3), its sum (1), and the subtraction of the outer product (5).
/// Source: powerSGD_hook.py _orthogonalize_gram_schmidt; QR of more columns is counted the same.
void LowRankWriter::orthogonalize(std::string_view label, const LowRank& matrix,
                                  const program::Orthogonalize& columns) {
  const std::int64_t r = columns.columns;
  const std::int64_t passes = 3 * r + 9 * r * (r - 1) / 2;
  const Bytes column{columns.rows * size_of(writer_.type()).count};
  writer_
      .kernel(label, Operation::orthogonalize, passes * column, columns,
              static_cast<int>(2 * r + 4 * (r - 1)))
      .gradient = matrix.gradient;
}

void LowRankWriter::project(const LowRank& matrix) {
  multiply("P = M Q", matrix,
           {.to = matrix.p,
            .left = in_data(matrix),
            .right = matrix.q,
            .m = matrix.rows,
            .n = matrix.rank,
            .k = matrix.columns});
}

void LowRankWriter::back_project(const LowRank& matrix) {
  multiply("Q = M^T P", matrix,
           {.to = matrix.q,
            .left = in_data(matrix),
            .right = matrix.p,
            .m = matrix.columns,
            .n = matrix.rank,
            .k = matrix.rows,
            .layout = program::Layout::left_transposed});
}

void LowRankWriter::reconstruct(const LowRank& matrix) {
  multiply("M = P Q^T", matrix,
           {.to = in_data(matrix),
            .left = matrix.p,
            .right = matrix.q,
            .m = matrix.rows,
            .n = matrix.columns,
            .k = matrix.rank,
            .layout = program::Layout::right_transposed});
}

Slice LowRankWriter::in_data(const LowRank& matrix) const {
  return matrix.gradient == nobody ? writer_.data() : writer_.gradient(matrix.gradient);
}

void LowRankWriter::multiply(std::string_view label, const LowRank& matrix,
                             const program::Multiply& product) {
  const auto [m, n, k] = std::tuple(product.m, product.n, product.k);
  const DType type = writer_.type();
  HookTask& task =
      writer_.kernel(label, Operation::multiply, (m * k + k * n + m * n) * size_of(type), product);
  task.work.gemm = Gemm{m, n, k};
  task.work.type = writer_.call.synchronous ? DType::fp32 : type;  // CPUs multiply 16 bit as fp32
  task.gradient = matrix.gradient;
}

}  // namespace ddpsim
