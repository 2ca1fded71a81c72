#include "tools/study/other_machine.hpp"

#include <fmt/format.h>

namespace ddpsim {
namespace {

/// Without what ranks add to their versions where other programs were at work.
std::string libraries(const std::string& versions) {
  return versions.substr(0, versions.find(", in turns with other programs"));
}

/// "AMD EPYC" of "AMD EPYC, 2 cores".
std::string without_count(const std::string& processor) {
  return processor.substr(0, processor.rfind(", "));
}

}  // namespace

std::string differences_from(const Calibration& calibration, const Calibration& here) {
  std::string text;
  const auto add = [&](const std::string& difference) {
    text += (text.empty() ? "" : "; ") + difference;
  };
  const auto compare = [&](const char* what, const std::string& there, const std::string& now) {
    if (!there.empty() && there != now) add(fmt::format("{}: {} there, {} here", what, there, now));
  };
  if (calibration.ranks != here.ranks)
    add(fmt::format("{} rank{} there, {} here", calibration.ranks,
                    calibration.ranks == 1 ? "" : "s", here.ranks));
  compare("backend", calibration.backend, here.backend);
  compare("machine", calibration.machine, here.machine);
  if (calibration.backend.starts_with("torch")) {
    compare("processor", without_count(calibration.cpu), without_count(here.cpu));
    return text;
  }
  compare("processor", calibration.cpu, here.cpu);
  compare("link", calibration.link, here.link);
  compare("libraries", libraries(calibration.versions), libraries(here.versions));
  return text;
}

}  // namespace ddpsim
