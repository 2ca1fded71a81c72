#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/base/price.hpp"
#include "model/cost/calibration.hpp"
#include "model/parallel/training.hpp"
#include "model/workload/optimizer.hpp"
#include "model/workload/workload.hpp"

namespace ddpsim {

/// Measured totals without communication, a workload's of one micro-batch and a row's of its step;
/// what is given replaces the cost law's total.
struct MeasuredTimes {
  std::optional<Duration> forward, backward, optimizer;
};

/// A part of averaging gradients that a timer may have covered.
enum class Covered : std::uint8_t { all_reduce, divide, concatenate, copy_back };
inline constexpr std::array all_covered{Covered::all_reduce, Covered::divide, Covered::concatenate,
                                        Covered::copy_back};
constexpr std::string_view name_of(Covered part) {
  constexpr std::array<std::string_view, 4> names{"all_reduce", "divide", "concatenate",
                                                  "copy_back"};
  return names[static_cast<std::size_t>(part)];
}

/// What a real run's timer said of communication.
struct MeasuredCommunication {
  Duration time{};
  /// The parts it covered, from the first one's start to the last one's end; empty: it is the sum
  /// of the collectives' durations.
  std::vector<Covered> covers;
};

/// What a real run showed.
struct MeasuredRow {
  Strategy strategy = Strategy::none;
  std::optional<Bytes> bucket_cap;  ///< none: the scenario's own
  Duration step{};
  std::optional<MeasuredCommunication> communication;
  MeasuredTimes times;
  std::vector<std::pair<std::string, std::string>> set;  ///< scenario keys that differ in this row
  std::string note;
  std::string place;  ///< "file:line:column", for errors
};

struct Measured {
  std::string source;
  std::vector<Strategy> calibrate_on{
      Strategy::naive};  ///< of a file that does not say: by its rows
  std::vector<MeasuredRow> rows;
};

/// What a workload description says of itself, and what pricing made of it.
struct Described {
  std::string source;
  int batch = 1;
  int sequence = 0;                  ///< tokens per sample; 0: there are none
  std::optional<DType> compute;      ///< of most products; none: that of the parameters
  int recomputed = 0;                ///< distinct kernels that the backward pass runs again
  std::string attention;             ///< which kernels attention was described as; "": none
  std::vector<std::string> notes;    ///< what was changed to what CUDA does, one line each
  std::vector<std::string> partial;  ///< operations priced by their bytes alone
  int collectives = 0;       ///< that the model itself sends in a step and that are not priced
  Bytes collective_bytes{};  ///< that a rank gives in all of them
  /// Multiplications and additions of attention in a step, as PyTorch counts them, and how many of
  /// them a causal mask leaves out.
  double attention_flops = 0, masked_flops = 0;
};

/// A question to ddpsim, complete: everything read, checked and resolved.
struct Scenario {
  std::string name;
  std::string file;
  bool is_changed = false;  ///< by settings: it may be another than its file describes
  Workload workload;
  std::optional<Described> described;  ///< of a workload that was described
  /// Whose code the catalogue's model is computed as, where other people's takes another time:
  /// "Hugging Face's code (fused attention, unfused gelu_new, no dropout)"; else "".
  std::string code{};
  int batch = 0;       ///< samples of a micro-batch of one rank; 0: not known (a workload profile)
  int sequence = 0;    ///< tokens of a sample; 0: it has none, or how many is not known
  int d_model = 0;     ///< of a transformer; 0: none
  int num_layers = 0;  ///< of a transformer; 0: none
  Optimizer optimizer = Optimizer::none;
  MeasuredTimes times;
  CalibratedCluster cluster;
  std::optional<Price> price;  ///< none: not said
  Training training;
  std::vector<Strategy> compare{Strategy::naive, Strategy::flat, Strategy::overlap,
                                Strategy::bucketed};
  std::optional<Measured> measured;
};

}  // namespace ddpsim
