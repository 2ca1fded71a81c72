// A program of one's own on ddpsim's libraries: reads a scenario and prints how long its training
// step takes.
#include <iostream>

#include "model/base/quantity.hpp"
#include "scenarios/reader/scenario/scenario_reader.hpp"
#include "sim/predict/predict.hpp"

int main(int count, char** words) {
  const ddpsim::Scenario scenario = ddpsim::read_scenario(count > 1 ? words[1] : "first.yaml");
  const ddpsim::Step step = ddpsim::predict(ddpsim::model_of(scenario), scenario.training);
  std::cout << scenario.name << ": " << ddpsim::in_ms(step.metrics.step) << " ms\n";
}
