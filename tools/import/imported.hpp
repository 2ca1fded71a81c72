#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tools/report/writers/page.hpp"

namespace ddpsim {

/// What an import came to: what is printed, and the profile that is written.
// NOLINTNEXTLINE(bugprone-exception-escape): moving nlohmann's JSON throws nothing
struct Imported {
  Page page;
  nlohmann::ordered_json json;
  std::string profile;
  std::string link_profile;  ///< of a trace, if wanted; "" where its times are no link's
  /// A command that uses the profile, with FILE in place of its name and other words in capitals
  /// for what only its reader knows.
  std::string next{};
  std::string next_of_link{};  ///< likewise of a trace's link profile alone
};

/// One function for each kind. `profile` is left empty unless `wanted`. `model` names the network
/// of a trace, or is "".
struct ImportRequest {
  std::string file;
  std::string model;
  bool wanted = true;
  bool quiet = false;
  std::vector<std::string> others{};  ///< traces or logs of other ranks of the same job
  bool link_wanted = false;           ///< `link_profile` is left empty unless it is
};
Imported import_torch_trace(const ImportRequest& request);
Imported import_nccl_tests(const ImportRequest& request);
Imported import_torch_profile(const ImportRequest& request);
Imported import_nccl_log(const ImportRequest& request);

}  // namespace ddpsim
