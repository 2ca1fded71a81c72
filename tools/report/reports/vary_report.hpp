#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/report/writers/page.hpp"
#include "tools/study/run_variants.hpp"

namespace ddpsim {

/// Throws InputError where rows cannot be ordered by `best` (why_no_best).
void check_best(const Variants& variants, const std::optional<Field>& best);

/// Rows by strategy, each against the first combination, with what a comm hook's own kernels and
/// memory cost; ends with the best step by `best`, and with the shortest, each of those that fit
/// their device's memory where some do. A column for each key,
/// and a row for each point that is refused. Rows that a key does not change stand once. Where a
/// cluster has a price, with costs. `best`: sorted by it. Refers to the keys in `variants`.
Page varied_page(const Variants& variants, const std::optional<Field>& best = {});

/// How far predictions such as these were off, in sentences that hold for all combinations or name
/// the one they hold for; "" where nothing is known of any.
std::string varied_accuracy(const Variants& variants);

/// A note where the networks that are compared have other numbers of NICs in a node: then it is not
/// the links alone that differ. None where the user varies the NICs themselves, and nothing of a
/// network whose all-reduces were measured: its table holds for the NICs that there were.
std::vector<std::string> network_notes(const Variants& variants);

/// A note where a price of `set`, which holds for all combinations, stands for several devices.
std::vector<std::string> price_notes(const Variants& variants, const std::vector<Setting>& set);

/// What of the combinations' clusters does not do what one may expect (cluster_report.hpp), and
/// fits to measured rows of something else, each once, with the combinations that it is of. `set`:
/// what holds for all of them.
std::vector<std::string> varied_notes(const Variants& variants, const std::vector<Setting>& set);

/// A line that says that steps do not fit their device's memory; empty if all fit. If none fits,
/// further lines say what would (memory_advice.hpp), for the combination that takes the least;
/// `file` and `set` are those that the combinations came from.
std::vector<std::string> memory_notes(const Variants& variants, const std::string& file,
                                      const std::vector<Setting>& set);

/// All of these, and those on clusters that cannot be the `best` (best.hpp), each once, in the
/// order in which a terminal shows them.
std::vector<std::string> notes_on_all(const Variants& variants, const std::string& file,
                                      const std::vector<Setting>& set,
                                      const std::optional<Field>& best = {});

/// As of `run`, each with its settings; then those that are refused, with the error. `set`: what
/// holds for all of them. Each has the notes on all combinations together and those on its own.
List varied_records(const Variants& variants, const std::vector<Setting>& set);
/// As of `run`, with last columns of settings and of the error, sorted in the same way.
Table varied_table(const Variants& variants, const std::optional<Field>& best = {});

}  // namespace ddpsim
