#pragma once

#include <map>
#include <string>

#include "scenarios/reader/format/format.hpp"
#include "tests/golden/draw.hpp"

namespace ddpsim::golden {

/// What must stand at places, such as "workload.model": a text of YAML; "" for the key with any
/// value; "-" for no such key. A pin of a place within a mapping makes the mapping appear.
using Pins = std::map<std::string, std::string>;

/// Draws YAML in flow style from the description of a format: which keys a mapping has, of which
/// form each value is, and the value. Keys that are needed are there, keys that exclude each other
/// are not together.
class DrawnMap {
 public:
  DrawnMap(const Draw& draw, const Pins& pins) : draw_(draw), pins_(pins) {}

  /// The keys of a mapping that stands at `place` ("" for the file itself) with their values, in
  /// the order of the description.
  std::vector<std::pair<std::string, std::string>> entries(const MapDescription& map,
                                                           const std::string& place) const;
  /// The mapping on one line.
  std::string text(const MapDescription& map, const std::string& place) const;

 private:
  bool pinned_below(const std::string& place) const;
  bool appears(const MapDescription& map, const KeyDescription& key,
               const std::string& place) const;
  std::string value(const MapDescription& map, const KeyDescription& key,
                    const std::string& place) const;
  std::string list(const Form& form, const KeyDescription& key, const std::string& place) const;
  std::string of_form(const Form& form, const KeyDescription& key, const std::string& place) const;

  const Draw& draw_;
  const Pins& pins_;
};

}  // namespace ddpsim::golden
