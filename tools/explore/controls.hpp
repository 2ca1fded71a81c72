#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/scenario/scenario.hpp"
#include "tools/study/grid.hpp"

namespace ddpsim {

/// What kind of value a control has.
enum class Measure : std::uint8_t { size, count, rate, time, share, choice };

/// A value that a control can take.
struct Option {
  std::string value;  ///< as `--set` takes it; "" as the scenario has it
  std::string text;   ///< for people
};

/// A slider, or a choice among words.
struct Control {
  std::string id;            ///< in requests and in links
  std::string label, group;  ///< for people
  Measure measure = Measure::choice;
  std::vector<Option> options;  ///< of a slider from low to high
  std::string unavailable;      ///< why it can never be moved; "" if it can
};

/// What the user has moved: values by the ids of their controls.
using Moved = std::map<std::string, std::string>;

/// Where a control stands in a scenario.
struct Position {
  std::size_t option = 0;     ///< the nearest one
  std::string text;           ///< the value itself; of a choice: what is so where nothing is chosen
  std::string unavailable{};  ///< why it cannot be moved now; "" if it can
};

/// The controls of one scenario: the list of all that a browser may change, and nothing else.
class Controls {
 public:
  /// `scenario` is what `file` and `set` say.
  Controls(std::string file, std::vector<Setting> set, const Scenario& scenario);

  const std::vector<Control>& all() const { return all_; }

  /// What was moved as `--set` says it, behind the `set` of the start. Throws InputError for an id
  /// that is no control's, for a control that cannot be moved, and for a value of another measure
  /// or beyond all reason.
  std::vector<Setting> settings(const Moved& moved) const;

  /// Where each control stands in `scenario`, which was read with settings().
  std::map<std::string, Position> positions(const Scenario& scenario, const Moved& moved) const;

 private:
  /// How the scenario file names a link.
  struct GivenLink {
    std::string base;      ///< as YAML, for `base:`; "" there is no name for it
    bool written = false;  ///< a mapping in the file, of which single keys can be set
  };
  GivenLink given_link(const std::string& key, const Link& link) const;
  /// The link with which a chosen ready system replaces this one. `system`: "" if none is chosen.
  GivenLink link_of(const std::string& place, const std::string& system) const;
  void add_training(const Scenario& scenario);
  void add_cluster(const Scenario& scenario);
  void add_link(const std::string& place, const std::string& label, const Link& link);
  void add_slider(Control control, std::vector<std::string> values, const std::string& now);
  std::string probe(const std::string& id) const;
  /// Why it cannot be moved beside what else was moved; "" if it can.
  std::string fixed_because(const Control& control, const Moved& moved) const;
  void add_link_settings(std::vector<Setting>& settings, const Moved& moved,
                         const std::string& place) const;

  std::string file_;
  std::vector<Setting> set_;
  int nodes_, ranks_per_node_;
  std::string unequal_;  ///< why neither of the two can be moved unless a ready system is chosen
  std::string batch_;    ///< "" where it is fixed
  GivenLink intra_, inter_;
  std::vector<Control> all_;
};

}  // namespace ddpsim
