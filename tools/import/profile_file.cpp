#include "tools/import/profile_file.hpp"

#include <fmt/format.h>

#include "backend/version.hpp"
#include "scenarios/reader/link_reader.hpp"
#include "scenarios/reader/map.hpp"
#include "scenarios/reader/seal.hpp"

namespace ddpsim {
namespace {

/// Who wrote the file. Such a file ends with the key `end` and a checksum
/// (scenarios/reader/seal.hpp).
const std::map<std::string, std::string> said{{"written_by", fmt::format("ddpsim {}", version)}};

}  // namespace

std::string workload_profile_yaml(const WorkloadProfile& profile, const std::string& remarks) {
  return sealed(document(workload_profile_map(), profile, remarks, said));
}

std::string link_profile_yaml(const Link& link, const std::string& remarks) {
  return sealed(document(link_map(), link, remarks, said));
}

}  // namespace ddpsim
