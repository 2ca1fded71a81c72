// Traces of PyTorch's profiler and logs of nccl-tests and rccl-tests, by the functions behind
// `ddpsim import`. The profiles made of them have to be profiles that are read.

#include "scenarios/reader/cluster/link_reader.hpp"
#include "scenarios/reader/text/memory_file.hpp"
#include "scenarios/reader/workload/profile_reader.hpp"
#include "tests/fuzz/checks.hpp"
#include "tests/fuzz/targets.hpp"
#include "tools/import/imported.hpp"

namespace ddpsim::fuzz {
namespace {

template <typename Read>
void check_profile(const std::string& yaml, Read read) {
  if (yaml.empty()) return;
  const MemoryFile file("/no-such-folder/profile.yaml", yaml);
  try {
    read(Yaml::load(file.path()));
  } catch (const InputError& problem) {
    require(false, problem.what(), yaml);
  }
}

void check_import(std::string_view input, Imported (*import)(const ImportRequest&), bool link) {
  ImportRequest request;
  request.file = plain_file(input);
  request.quiet = true;
  request.link_wanted = link;
  try {
    const Imported imported = import(request);
    require(imported.json.is_object(), "a result that is no JSON object");
    if (link)
      check_profile(imported.profile, [](const Yaml& yaml) { read_workload_profile(yaml); });
    check_profile(link ? imported.link_profile : imported.profile,
                  [](const Yaml& yaml) { read_link(yaml); });
  } catch (const InputError& problem) {
    check_refusal(problem.what(), request.file);
  }
}

}  // namespace

void trace(std::string_view input) {
  check_import(input, import_torch_trace, true);
}

void nccl_tests(std::string_view input) {
  check_import(input, import_nccl_tests, false);
}

}  // namespace ddpsim::fuzz
