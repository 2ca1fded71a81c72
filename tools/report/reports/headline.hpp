#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/base/quantity.hpp"
#include "tools/report/records/record.hpp"
#include "tools/study/comparison.hpp"

namespace ddpsim {

/// A figure that a page begins with, such as "481,126 tokens/s", and what it is of.
struct HeadlineFigure {
  std::string value, about;
};
using Headline = std::vector<HeadlineFigure>;

/// What a step amounts to for whoever pays for it: its rate, its cost and whether it fits.
struct Outcome {
  std::optional<double> tokens_per_second, samples_per_second;
  std::optional<double> device_hours, cost;  ///< of a billion tokens, else of a million samples
  std::string currency{};                    ///< of `cost`
  std::optional<bool> fits;                  ///< in the device's memory; none: not known
  std::optional<double> peak_bytes;          ///< the most that a rank takes

  /// Tokens where there are any, else samples; none: the size of the batch is not known.
  std::optional<double> rate() const {
    return tokens_per_second ? tokens_per_second : samples_per_second;
  }
};

/// What a row of figures says; columns that are missing are not known.
Outcome outcome_of(const std::vector<Field>& columns, const TableRow& row);
/// The outcome of a step; of `result` it takes the step and the one without communication alone.
Outcome outcome_of(const Scenario& scenario, const Result& result);

/// Three figures: the rate, the cost and the memory. `of` says which step, such as "bucketed,
/// 25 MiB on 8 ranks"; `device` is a device's memory, zero where it is not known.
Headline headline_of(const Outcome& outcome, const std::string& of, Bytes device = {});

/// The step that a page is about: that of the scenario's strategy, `asked`, if it shards; else that
/// of DistributedDataParallel, `bucketed`; where it is not compared the shortest that averages
/// gradients, and else the first.
const Result& chief_of(const std::vector<Result>& results, Strategy asked);

}  // namespace ddpsim
