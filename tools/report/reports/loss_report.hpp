#pragma once

#include <vector>

#include "sim/predict/loss.hpp"
#include "tools/report/records/record.hpp"
#include "tools/study/comparison.hpp"

namespace ddpsim {

/// [strategy compared]
std::vector<StepLoss> losses_of(const Comparison& run);

/// Every field of fields::of_loss.
Record loss_record(const StepLoss& loss);

/// What every strategy loses, part by part; the step without communication too.
Table loss_table(const Comparison& run, const std::vector<StepLoss>& losses);

}  // namespace ddpsim
