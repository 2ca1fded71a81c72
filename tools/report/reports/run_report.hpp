#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/predict/loss.hpp"
#include "sim/predict/step_sequence.hpp"
#include "tools/report/reports/run_ahead_report.hpp"
#include "tools/report/writers/page.hpp"
#include "tools/study/comparison.hpp"
#include "tools/study/drawn_steps.hpp"
#include "tools/study/known_accuracy.hpp"

namespace ddpsim {

/// What is asked of a comparison besides one step of each strategy.
struct RunRequest {
  std::optional<int> steps{};    ///< so many consecutive steps from the first on
  bool run_ahead = false;        ///< also as one run, in which the host runs ahead; needs `steps`
  bool ddp_statistics = false;   ///< what PyTorch's DDP logger would say
  std::optional<int> scaling{};  ///< the curve over numbers of ranks, up to so many
  std::optional<int> seeds{};    ///< so many steps with the ranks' paces drawn anew in each
  bool why = false;              ///< for each exposed bucket what held it up
  bool buckets = true;           ///< in JSON, the times of each bucket
};

/// Throws InputError where the parts of a request do not go together.
void check(const RunRequest& request);

/// The steps that a request asks for.
struct MoreOfSteps {
  RunRequest request;
  std::vector<ConsecutiveSteps> steps;  ///< [strategy]; empty: not asked for
  std::vector<RunAhead> joined;         ///< likewise
  std::vector<ScalingCurve> curves{};   ///< likewise
  std::vector<StepLoss> losses{};       ///< likewise
  std::vector<DrawnSteps> drawn{};      ///< likewise
};
/// `watch`: how many seeds are done.
MoreOfSteps more_of(const Comparison& run, const RunRequest& request,
                    const std::function<void(int done)>& watch = {});

/// The columns of `run --csv` with what was asked for, and the rows of a run.
std::vector<Field> csv_columns(const RunRequest& request);
std::vector<Record> csv_rows(const Comparison& run, const MoreOfSteps& more);

/// What `ddpsim run` prints of one scenario.
Page run_page(const Comparison& run, const MoreOfSteps& more);

/// A line for each strategy that takes more memory, or computes more, than the device can.
std::vector<std::string> run_warnings(const Comparison& run);

/// Which step the figures of a table are of, where some steps average models (post_local_sgd), and
/// what the mean of all is.
std::vector<std::string> long_run_notes(const Comparison& run);

/// A line for each strategy whose steps the broadcast of buffers makes longer by 2 % or more: by
/// how much, and which key does without.
std::vector<std::string> buffer_notes(const Comparison& run);

/// "ddpsim.run/1", with all that was asked for. `notes`: what is said beside it (said_notes.hpp).
Record run_record(const Comparison& run, const MoreOfSteps& more,
                  const std::vector<std::string>& notes);

}  // namespace ddpsim
