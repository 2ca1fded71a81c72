#pragma once

#include <string>
#include <utility>
#include <vector>

namespace ddpsim {

/// Files a command is going to write. Nothing is touched before everything has been computed; then each file is
/// written whole beside its place and renamed into it, so that a reader never sees half of one.
class Outputs {
 public:
  /// "-" is stdout, "" is nowhere.
  void add(const std::string& path, std::string content);
  /// Throws InputError if a file cannot be written.
  void commit() const;

 private:
  std::vector<std::pair<std::string, std::string>> files_;
};

}  // namespace ddpsim
