#include "model/parallel/write/hooked_bucket.hpp"

#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>

namespace ddpsim::program {

HookedBucket::HookedBucket(JobMemory& memory, const Bucket& bucket, std::int32_t index,
                           const Slice& data, std::vector<Slice> slots, const Slice& parameters,
                           int ranks)
    : memory_(memory),
      steps_(bucket),
      index_(index),
      bucket_(data),
      data_(data),
      slots_(std::move(slots)),
      parameters_(parameters),
      ranks_(ranks) {
  const DType stored = memory.job.buffers[bucket_.buffer].type;
  const auto has = [&](CommAction action) -> const CommStep* {
    for (const CommStep& step : bucket.steps)
      if (step.action == action) return &step;
    return nullptr;
  };
  DType type = stored;
  std::int64_t elements = bucket_.count;
  if (const CommStep* narrowed = has(CommAction::narrow)) {
    for (const CommStep& step : bucket.steps)  // the last one is what is sent
      if (step.action == CommAction::narrow) narrowed = &step;
    type = narrowed->type;
    narrow_ = memory.add("narrow", index, Holds::hook, type, elements);
  }
  if (has(CommAction::pad) != nullptr) {
    elements = bucket.low_rank.front().rows * bucket.low_rank.front().columns;
    square_ = memory.add("square", index, Holds::hook, type, elements);
  }
  const auto like_data = [&](const char* name, Life life, Start start) {
    return memory.add(name, index, Holds::hook, type, elements, life, start);
  };
  if (has(CommAction::keep_error) != nullptr) {
    error_ = like_data("error", Life::job, Start::zeros);
    input_ = like_data("input", Life::step, Start::undefined);
  }
  std::int64_t p = 0, q = 0, compressed = 0;
  for (const LowRank& matrix : bucket.low_rank) {
    p += matrix.rows * matrix.rank;
    q += matrix.columns * matrix.rank;
    compressed += matrix.rows * matrix.columns;
  }
  // Both stay for the next step, but where every step draws Q anew.
  const CommStep* draws = has(CommAction::draw_q);
  const Life life = draws != nullptr && !draws->keeps_random ? Life::step : Life::job;
  p_ = memory.add("P", index, Holds::hook, type, p, life);
  q_ = memory.add("Q", index, Holds::hook, type, q, life, Start::zeros);
  const bool batched = !bucket.low_rank.empty() && bucket.low_rank.front().tensor == nobody;
  small_ = memory.add("small", index, Holds::hook, type, batched ? 0 : bucket_.count - compressed);
  for (const LowRank& matrix : bucket.low_rank) {
    Factors& factors = factors_.emplace_back();
    factors.p = {p_.buffer, nowhere, 0, matrix.rows * matrix.rank};
    factors.q = {q_.buffer, nowhere, 0, matrix.columns * matrix.rank};
    if (factors_.size() > 1) {
      const Factors& before = factors_[factors_.size() - 2];
      factors.p.begin = before.p.begin + before.p.count;
      factors.q.begin = before.q.begin + before.q.count;
    }
  }
  begin_factors(has(CommAction::draw_q)            ? Start::zeros
                : has(CommAction::orthogonalize_q) ? Start::random
                                                   : Start::undefined,
                has(CommAction::pack));
  const auto numbers = [&](const char* name, const CommStep* step, DType of,
                           Life life = Life::step) {
    const Bytes size = (life == Life::job ? ranks : 1) * (step ? step->payload : Bytes{});
    return memory.add(name, index, life == Life::job ? Holds::gathered : Holds::hook, of,
                      size.count / size_of(of).count, life,
                      life == Life::job ? Start::zeros : Start::undefined);
  };
  // What all ranks have sent stays for the next step, which may be one without communication.
  const auto one_and_all = [&](const char* name, const char* all, CommAction action, DType of) {
    return std::pair{numbers(name, has(action), of), numbers(all, has(action), of, Life::job)};
  };
  constexpr DType bytes = DType::fp8_e4m3;
  std::tie(scales_, all_scales_) =
      one_and_all("scales", "all scales", CommAction::gather_scales, DType::fp32);
  std::tie(codes_, all_codes_) = one_and_all("codes", "all codes", CommAction::gather_codes, bytes);
  std::tie(pairs_, all_pairs_) = one_and_all("pairs", "all pairs", CommAction::gather_pairs, bytes);
  const CommStep* payload = has(CommAction::plugin_reduce);
  payload_ = numbers("payload", payload, payload ? payload->type : DType::fp32);
}

/// Each Q is a view, which a job of the steady state begins by drawing; a bucket of which nothing
/// is compressed takes a seed all the same, as torch does. Before PowerSGD starts there is no Q.
void HookedBucket::begin_factors(Start of_each, const CommStep* pack) {
  const auto begin = [&](std::size_t number, const Slice& inside, Start start) {
    const Slice made = memory_.add("Q " + std::to_string(number), index_, Holds::hook,
                                   memory_.job.buffers[q_.buffer].type, inside.count,
                                   memory_.job.buffers[q_.buffer].life, start);
    memory_.job.buffers[made.buffer].inside = inside;
  };
  for (std::size_t i = 0; i < factors_.size(); ++i) begin(i, factors_[i].q, of_each);
  if (factors_.empty() && pack != nullptr && pack->keeps_random)
    begin(0, {q_.buffer, nowhere, 0, 0}, Start::random);
}

const LowRank& HookedBucket::matrix_of(const CommStep& step) const {
  for (const LowRank& matrix : steps_.low_rank)
    if (matrix.tensor == step.tensor) return matrix;
  throw std::logic_error("a step of PowerSGD on a tensor that is not compressed");
}

const HookedBucket::Factors& HookedBucket::factors_of(const CommStep& step) const {
  return factors_[static_cast<std::size_t>(&matrix_of(step) - steps_.low_rank.data())];
}

Slice HookedBucket::matrix_in_data(const CommStep& step) const {
  if (step.tensor == nobody) return data_;
  const Slice& slot = slots_[at(step.tensor)];
  return {data_.buffer, nowhere, slot.begin, slot.count};
}

std::vector<Slice> HookedBucket::uncompressed() const {
  std::vector<Slice> rest;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    bool is_compressed = false;
    for (const LowRank& matrix : steps_.low_rank)
      is_compressed = is_compressed || matrix.tensor == static_cast<std::int32_t>(i);
    if (!is_compressed) rest.push_back({data_.buffer, nowhere, slots_[i].begin, slots_[i].count});
  }
  return rest;
}

Action HookedBucket::action_of(const CommStep& step) {
  const auto scale = [&](const Slice& what, float factor) {
    return Scale{.to = what, .from = what, .factor = factor};
  };
  // Over no ranks, or one: as it is.
  const auto mean_over = step.divisor > 1 ? groups_.at(step.divisor) : nowhere;
  const auto mean = [&](const Slice& what) {
    return Scale{.to = what, .from = what, .mean_over = mean_over};
  };
  switch (step.action) {
    case CommAction::divide:
    case CommAction::divide_subgroup:
      return mean(data_);
    case CommAction::scale:
      return scale(data_, static_cast<float>(step.factor));
    case CommAction::narrow: {
      const Slice from = data_;
      data_ = narrow_;
      return Cast{.to = data_, .from = from};
    }
    case CommAction::widen: {
      const Slice from = data_;
      data_ = bucket_;
      return Cast{.to = data_, .from = from};
    }
    case CommAction::pad: {
      const Operands to = memory_.list({square_}), from = memory_.list({data_});
      data_ = square_;
      return Pack{.to = to, .from = from, .zeros_behind = true};
    }
    case CommAction::unpad: {
      const Slice into = narrow_.empty() ? bucket_ : narrow_;
      const Operands to = memory_.list({into});
      const Operands from = memory_.list({{data_.buffer, nowhere, 0, into.count}});
      data_ = into;
      return Pack{.to = to, .from = from};
    }
    case CommAction::add_error:
      return Combine{.to = data_, .left = data_, .right = error_};
    case CommAction::keep_input:
      return Scale{.to = input_, .from = data_};
    case CommAction::keep_error:
      return Combine{.to = error_, .left = input_, .right = data_, .b = -1};
    case CommAction::pack: {
      const Operands to = memory_.list({small_});
      return Pack{.to = to, .from = memory_.list(uncompressed())};
    }
    case CommAction::unpack: {
      const Operands to = memory_.list(uncompressed());
      return Pack{.to = to, .from = memory_.list({small_}), .mean_over = mean_over};
    }
    case CommAction::draw_q:
      return Draw{.to = factors_of(step).q, .fresh = factors_of(step).q.begin == 0};
    case CommAction::orthogonalize_q:
      return Orthogonalize{factors_of(step).q, matrix_of(step).columns, matrix_of(step).rank,
                           step.factor};
    case CommAction::orthogonalize_p:
      return Orthogonalize{factors_of(step).p, matrix_of(step).rows, matrix_of(step).rank,
                           step.factor};
    case CommAction::project: {
      const LowRank& matrix = matrix_of(step);
      return Multiply{.to = factors_of(step).p,
                      .left = matrix_in_data(step),
                      .right = factors_of(step).q,
                      .m = matrix.rows,
                      .n = matrix.rank,
                      .k = matrix.columns};
    }
    case CommAction::back_project: {
      const LowRank& matrix = matrix_of(step);
      return Multiply{.to = factors_of(step).q,
                      .left = matrix_in_data(step),
                      .right = factors_of(step).p,
                      .m = matrix.columns,
                      .n = matrix.rank,
                      .k = matrix.rows,
                      .layout = Layout::left_transposed};
    }
    case CommAction::reconstruct: {
      const LowRank& matrix = matrix_of(step);
      return Multiply{.to = matrix_in_data(step),
                      .left = factors_of(step).p,
                      .right = factors_of(step).q,
                      .m = matrix.rows,
                      .n = matrix.columns,
                      .k = matrix.rank,
                      .layout = Layout::right_transposed};
    }
    case CommAction::divide_q:
      return mean(q_);
    case CommAction::observe:
      return Observe{.scales = scales_, .from = data_, .channel = step.channel};
    case CommAction::quantize:
      return Quantize{.codes = codes_, .scales = scales_, .from = data_, .channel = step.channel};
    case CommAction::dequantize:
      return Dequantize{.to = data_,
                        .codes = all_codes_,
                        .scales = all_scales_,
                        .channel = step.channel,
                        .mean_over = groups_.at(ranks_)};
    case CommAction::select:
      return Select{.pairs = pairs_, .from = data_};
    case CommAction::spread_pairs:
      return Spread{.to = data_, .pairs = all_pairs_, .of = groups_.at(ranks_)};
    case CommAction::touch:
      return Touch{data_};
    case CommAction::synchronize:
      return Wait{};
    case CommAction::update:
      return update_;
    case CommAction::plugin_before: {
      const Operands reads = memory_.list({data_});
      return Plugin{.what = Plugin::What::before,
                    .code = memory_.label(step.code),
                    .reads = reads,
                    .writes = memory_.list({payload_})};
    }
    case CommAction::plugin_after: {
      const Operands reads = memory_.list({payload_, data_});
      return Plugin{.what = Plugin::What::after,
                    .code = memory_.label(step.code),
                    .reads = reads,
                    .writes = memory_.list({data_})};
    }
    case CommAction::reduce:
    case CommAction::reduce_small:
    case CommAction::reduce_p:
    case CommAction::reduce_q:
    case CommAction::reduce_subgroup:
    case CommAction::plugin_reduce:
    case CommAction::gather_scales:
    case CommAction::gather_codes:
    case CommAction::gather_pairs:
    case CommAction::gather_parts:
    case CommAction::gather_sum:
    case CommAction::scatter_reduce:
    case CommAction::broadcast:
    case CommAction::send_parameters:
      break;
  }
  throw std::logic_error("a collective is no action of one rank");
}

std::optional<Draw> HookedBucket::seed_beside(const CommStep& step) const {
  const bool draws = step.action == CommAction::pack && factors_.empty() && !step.keeps_random;
  return draws ? std::optional(Draw{.to = q_}) : std::nullopt;
}

HookedBucket::Ends HookedBucket::ends_of(const CommStep& step) const {
  switch (step.action) {
    case CommAction::reduce:
    case CommAction::reduce_subgroup:
    case CommAction::broadcast:
    case CommAction::gather_sum:
    case CommAction::gather_parts:
    case CommAction::scatter_reduce:
      return {data_, data_};
    case CommAction::reduce_small:
      return {small_, small_};
    case CommAction::reduce_p:
      return {p_, p_};
    case CommAction::reduce_q:
      return {q_, q_};
    case CommAction::plugin_reduce:
      return {payload_, payload_};
    case CommAction::gather_scales:
      return {scales_, all_scales_};
    case CommAction::gather_codes:
      return {codes_, all_codes_};
    case CommAction::gather_pairs:
      return {pairs_, all_pairs_};
    case CommAction::send_parameters:
      return {parameters_, parameters_};
    case CommAction::divide:
    case CommAction::narrow:
    case CommAction::widen:
    case CommAction::scale:
    case CommAction::pad:
    case CommAction::add_error:
    case CommAction::keep_input:
    case CommAction::pack:
    case CommAction::draw_q:
    case CommAction::orthogonalize_q:
    case CommAction::project:
    case CommAction::unpack:
    case CommAction::orthogonalize_p:
    case CommAction::back_project:
    case CommAction::divide_q:
    case CommAction::reconstruct:
    case CommAction::keep_error:
    case CommAction::unpad:
    case CommAction::observe:
    case CommAction::quantize:
    case CommAction::dequantize:
    case CommAction::select:
    case CommAction::spread_pairs:
    case CommAction::touch:
    case CommAction::synchronize:
    case CommAction::update:
    case CommAction::divide_subgroup:
    case CommAction::plugin_before:
    case CommAction::plugin_after:
      break;
  }
  throw std::logic_error("what one rank does has no ends");
}

Collective HookedBucket::collective_of(const CommStep& step) {
  Collective made;
  switch (ddpsim::collective_of(step.operation)) {
    case CollectiveOperation::all_reduce:
      made.what = Collectives::all_reduce;
      made.reduction = Reduction::sum;
      break;
    case CollectiveOperation::all_gather:
      made.what = Collectives::all_gather;
      if (step.action == CommAction::gather_sum) made.reduction = Reduction::sum;
      break;
    case CollectiveOperation::reduce_scatter:
      made.what = Collectives::reduce_scatter;
      made.reduction = Reduction::sum;
      break;
    case CollectiveOperation::broadcast:
      made.what = Collectives::broadcast;
      break;
  }
  return made;
}

}  // namespace ddpsim::program
