#include "scenarios/reader/workload/profile_reader.hpp"
#include "tests/fuzz/targets.hpp"
#include "tests/fuzz/written_again.hpp"
#include "tools/import/profile_file.hpp"

namespace ddpsim::fuzz {

void profile(std::string_view input) {
  check_written_again(
      input,
      [](const auto& file) {
        WorkloadProfile read = read_workload_profile(Yaml::load(file));
        workload_of(read, "a profile");
        return read;
      },
      [](const WorkloadProfile& read) { return workload_profile_yaml(read, ""); });
}

}  // namespace ddpsim::fuzz
