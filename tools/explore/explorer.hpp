#pragma once

#include <deque>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "tools/explore/controls.hpp"

namespace ddpsim {

/// Answers what a page asks of one scenario: the controls there are, what a step costs with some of
/// them moved, and the scenario that says so as a file. Every answer is a JSON object; where what
/// was asked is refused it is `{"error": "one line"}`. For several threads at once.
class Explorer {
 public:
  /// Throws InputError (and what a prediction throws) if `ddpsim run` of the file would.
  Explorer(std::string file, std::vector<Setting> set, bool laws_only);

  /// {scenario, file, controls: [{id, label, group, measure, options, unavailable}]}
  std::string controls() const;

  /// `asked`: `{"moved": {"bucket_cap": "50 MiB"}, "shown": ["bucketed"]}`, the strategies to draw
  /// (all, if it is left out). The answer:
  ///
  ///     record      what `ddpsim run --json` says of the same settings, to the bit, buckets left
  ///                 out
  ///     settings    [[key, value]]: what was moved, as `--set` takes it
  ///     command     that run, for a shell
  ///     positions   of the sliders: {id: {option, text, unavailable}}
  ///     cluster, notes   for people
  ///     picture     the timelines, as SVG
  ///     frame       what a script needs to zoom it (timeline_picture.hpp)
  std::string answer(const std::string& asked) const;
  /// What a script needs to answer a pointer on the picture of the same question: it is more than
  /// all the rest, and nobody points while a slider moves.
  std::string tasks(const std::string& asked) const;

  /// Writes the scenario with what was moved beside the one that is explored, as
  /// NAME-explored.yaml, or NAME-explored-2.yaml and so on where there is such a file already.
  /// {file, command}
  std::string save(const std::string& asked) const;

 private:
  void remember(const std::string& asked, std::string tasks) const;
  std::vector<Setting> moved_only(const std::vector<Setting>& settings) const;
  std::string command(const std::string& file, const std::vector<Setting>& settings) const;

  std::string file_;
  std::vector<Setting> set_;
  bool laws_only_;
  std::string name_;
  Controls controls_;
  mutable std::mutex guard_;
  /// The last questions, with the tasks of their pictures.
  mutable std::deque<std::pair<std::string, std::string>> drawn_;
};

}  // namespace ddpsim
