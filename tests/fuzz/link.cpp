#include "scenarios/reader/cluster/link_reader.hpp"
#include "tests/fuzz/targets.hpp"
#include "tests/fuzz/written_again.hpp"
#include "tools/import/profile_file.hpp"

namespace ddpsim::fuzz {

void link(std::string_view input) {
  check_written_again(
      input, [](const auto& file) { return read_link(Yaml::load(file)); },
      [](const Link& read) { return link_profile_yaml(read, ""); });
}

}  // namespace ddpsim::fuzz
