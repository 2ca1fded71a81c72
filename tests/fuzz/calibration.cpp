#include "scenarios/reader/cluster/calibration_reader.hpp"
#include "tests/fuzz/targets.hpp"
#include "tests/fuzz/written_again.hpp"
#include "tools/report/reports/calibration_file.hpp"

namespace ddpsim::fuzz {

void calibration(std::string_view input) {
  check_written_again(
      input, [](const auto& file) { return read_calibration(file); },
      [](const Calibration& read) { return calibration_yaml(read); });
}

}  // namespace ddpsim::fuzz
