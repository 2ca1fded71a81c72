#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "python/bindings/questions.hpp"
#include "scenarios/reader/text/memory_file.hpp"

namespace ddpsim {

/// A question as the Python package writes it (python/ddpsim/_sources.py): an object of JSON with
/// "command", and beside it what that takes by the names of questions.hpp. "files" holds paths,
/// "memory" the texts that stand in place of files, by their paths, as long as this object lives;
/// "set" pairs of key and value. Throws InputError if a text has a path that another one has.
class Request {
 public:
  explicit Request(const std::string& json);

  /// The scenario or workload that is asked about, the first of "files".
  Question question() const;
  std::vector<Setting> set() const;
  std::vector<std::string> texts(const char* name) const;
  std::string text(const char* name) const { return json_.at(name).get<std::string>(); }
  bool flag(const char* name) const { return json_.at(name).get<bool>(); }
  /// A whole number; none where the request has null.
  std::optional<int> number(const char* name) const;

 private:
  nlohmann::json json_;
  std::vector<std::unique_ptr<MemoryFile>> memory_;
};

/// The answer to a request: a text, of JSON for most commands. Throws InputError or
/// std::invalid_argument for what is refused.
std::string answer_request(const Request& request, const Tell& tell);

}  // namespace ddpsim
