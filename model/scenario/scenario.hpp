#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/cost/calibration.hpp"
#include "model/ddp/training.hpp"
#include "model/workload/optimizer.hpp"
#include "model/workload/workload.hpp"

namespace ddpsim {

/// Measured totals of a step without communication; what is given replaces the cost law's total.
struct MeasuredTimes {
  std::optional<Duration> forward, backward, optimizer;
};

/// What a real run showed.
struct MeasuredRow {
  Strategy strategy = Strategy::none;
  std::optional<Bytes> bucket_cap;  ///< none: the scenario's own
  Duration step{};
  std::optional<Duration> communication;  ///< sum of the collectives' durations
  MeasuredTimes times;
  std::vector<std::pair<std::string, std::string>> set;  ///< scenario keys that differ in this row
  std::string note;
  std::string place;  ///< "file:line:column", for errors
};

struct Measured {
  std::string source;
  std::vector<Strategy> calibrate_on{Strategy::naive};
  std::vector<MeasuredRow> rows;
};

/// A question to ddpsim, complete: everything read, checked and resolved.
struct Scenario {
  std::string name;
  std::string file;
  Workload workload;
  int d_model = 0;     ///< of a transformer; 0: none
  int num_layers = 0;  ///< of a transformer; 0: none
  Optimizer optimizer = Optimizer::none;
  MeasuredTimes times;
  CalibratedCluster cluster;
  Training training;
  std::vector<Strategy> compare{Strategy::naive, Strategy::flat, Strategy::overlap,
                                Strategy::bucketed};
  std::optional<Measured> measured;
};

}  // namespace ddpsim
