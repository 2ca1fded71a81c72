#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <list>
#include <utility>

#include <fmt/format.h>

#include "backend/job/rank_environment.hpp"
#include "scenarios/reader/text/input_error.hpp"
#include "sim/tune/parallel.hpp"
#include "tools/command/cluster_flags.hpp"
#include "tools/command/command.hpp"
#include "tools/command/interruptible.hpp"
#include "tools/command/pages.hpp"
#include "tools/command/reports.hpp"
#include "tools/report/reports/best.hpp"
#include "tools/report/writers/file_lock.hpp"
#include "tools/report/writers/notes.hpp"
#include "tools/report/writers/output.hpp"
#include "tools/report/writers/progress.hpp"
#include "tools/study/flag_values.hpp"
#include "tools/sweep/expected_time.hpp"
#include "tools/sweep/point_threads.hpp"
#include "tools/sweep/sweep_notes.hpp"
#include "tools/sweep/sweep_reader.hpp"
#include "tools/sweep/sweep_results.hpp"
#include "tools/sweep/sweep_section.hpp"

namespace ddpsim {
namespace {

using Clock = std::chrono::steady_clock;

const Usage sweep_usage{
    "ddpsim sweep [flags] --vary KEY=VALUE,VALUE,... SCENARIO",
    "Predicts the scenario at every combination of the values that the keys of --vary take, a row "
    "for each point and\n"
    "strategy. Values are lists (a,b,c) and ranges: 2..8, 2..8+2, 1MiB..64MiB*2. A point that "
    "stands in the CSV (or, without\n"
    "one, the JSON) file already is not computed again: an interrupted sweep goes on, and more "
    "values can be added. Where\n"
    "the scenario refuses a combination, the row says why.",
    "ddpsim sweep scenarios/examples/first.yaml --vary training.bucket_cap=1MiB..64MiB*4 --vary "
    "cluster.ranks_per_node=2,4,8 --csv sweep.csv"};

struct SweepFlags {
  CommonOptions common;
  ClusterFlags cluster;
  std::vector<std::string> vary;
  std::string jobs, best;
};

/// False: help was asked for.
bool parse_sweep(const std::vector<std::string>& arguments, SweepFlags& flags) {
  boost::program_options::options_description own;
  using boost::program_options::value;
  own.add_options()("vary", value(&flags.vary)->value_name("KEY=VALUES"),
                    "the values a key of the scenario takes (may be repeated)")(
      "jobs", value(&flags.jobs)->value_name("N"), "threads of this process (default: all cores)")(
      "best", value(&flags.best)->value_name("FIGURE"),
      "sorts the table by a figure, the best first: step, mfu, tokens_per_second, ... (files keep "
      "the order of the grid)");
  flags.cluster.add_to(own);
  if (!parse(arguments, sweep_usage,
             Flag::set | Flag::json | Flag::csv | Flag::tables | Flag::laws_only | Flag::report,
             own, flags.common))
    return false;
  flags.common.prepend(flags.cluster.settings());
  return true;
}

/// Throws InputError, on the first of the processes that a launcher started; false: this is another
/// of them, and says nothing.
bool alone() {
  const auto place = rank_from_environment();
  if (!place || place->ranks == 1) return true;
  if (place->rank > 0) return false;
  throw InputError(
      fmt::format("{} started {} processes, and a sweep is one: start it by itself, or share its "
                  "points from Python: ddpsim.sweep(..., executor=...)",
                  place->launcher, place->ranks));
}

Sweep read_sweep(const SweepFlags& flags) {
  if (flags.common.files.size() != 1 || flags.vary.empty())
    throw InputError(
        "sweep needs one scenario and the keys to vary: ddpsim sweep "
        "scenarios/examples/first.yaml --vary training.bucket_cap=1MiB,25MiB");
  std::vector<Axis> axes;
  for (const std::string& text : flags.vary) axes.push_back(parse_axis(text));
  Grid grid(std::move(axes));
  constexpr std::size_t large = 1000;  // to try its values takes seconds
  if (grid.points() > large && !flags.common.quiet)
    note("note: the grid has {} points; their values are tried first", grid.points());
  return plan_sweep(flags.common.files[0], flags.common.set, flags.common.laws_only,
                    std::move(grid));
}

/// Where a sweep's results go, and what of them was there before.
class SweepFiles {
 public:
  /// `best`: the figure that the table is sorted by; "": it keeps the order of the grid.
  SweepFiles(const Sweep& sweep, const CommonOptions& options, const std::string& best)
      : sweep_(sweep), options_(options) {
    if (!best.empty()) best_ = best_field(best);
    MoreInputs more;
    for (const Axis& axis : sweep.grid.axes())
      more.values.insert(more.values.end(), axis.values.begin(), axis.values.end());
    check_results(options, {}, more);
    for (const std::string& path : {options.csv, options.json})
      if (is_plain(path)) locks_.emplace_back(path);
    results_.resize(sweep.grid.points());
    PointResults from_json;
    if (is_plain(options.json)) from_json = taken(read_sweep_json(sweep, options.json));
    if (is_plain(options.csv)) {
      results_ = taken(read_sweep_csv(sweep, options.csv));
      source_ = options.csv;
    } else if (options.csv.empty() && !from_json.empty()) {
      results_ = std::move(from_json);
      source_ = options.json;
    }
    for (std::size_t point = 0; point < results_.size(); ++point)
      if (!results_[point].known()) missing_.push_back(point);
    done_ = before_ = results_.size() - missing_.size();
  }

  const std::vector<std::size_t>& missing() const { return missing_; }
  std::size_t done() const { return done_; }
  const PointResults& results() const { return results_; }
  /// On the files that were there.
  const std::vector<std::string>& notes() const { return notes_; }

  void add(const ComputedPoint& computed) {
    results_[computed.first] = computed.second;
    ++done_;
    unsaved_ = true;
  }

  /// Now and then, so that little is lost if the program dies: writing takes a tenth of the time at
  /// most.
  void save_sometimes() {
    if (unsaved_ && Clock::now() >= next_save_) save();
  }
  /// Stdout and what is no plain file get their results once, at the end.
  void save() {
    const Clock::time_point begin = Clock::now();
    Outputs outputs;
    if (is_plain(options_.csv)) outputs.add(options_.csv, sweep_csv(sweep_, results_));
    if (is_plain(options_.json)) outputs.add(options_.json, sweep_json(sweep_, results_, {}));
    outputs.commit();
    unsaved_ = false;
    next_save_ = Clock::now() +
                 std::max<Clock::duration>(std::chrono::seconds(3), 10 * (Clock::now() - begin));
  }
  /// `notes`: what is said beside the results.
  void write_all(const std::vector<std::string>& notes) const {
    Pages pages(options_);
    if (pages.wanted()) pages.add(sweep_page(sweep_, results_, best_));
    Reports reports(options_);
    if (reports.wanted())
      reports.add(sweep_section(sweep_, results_, none_is_best().empty() ? best_ : std::nullopt,
                                sweep_page(sweep_, results_, best_), notes),
                  sweep_.file);
    Outputs outputs;
    pages.add_to(outputs);
    reports.add_to(outputs, "Sweep");
    if (!options_.csv.empty()) outputs.add(options_.csv, sweep_csv(sweep_, results_));
    if (!options_.json.empty()) outputs.add(options_.json, sweep_json(sweep_, results_, notes));
    outputs.commit();
  }

  /// The figure that the table is sorted by, if by any.
  const std::optional<Field>& best() const { return best_; }

  /// Why no row is the best by the figure that was asked for; "": one is, or none was asked for.
  std::string none_is_best() const {
    return best_ ? why_none_is_best(sweep_, results_, *best_) : "";
  }

  /// "12 points: 8 were in sweep.csv, 4 computed".
  std::string summary() const {
    std::string text = fmt::format("{} points: ", results_.size());
    if (before_ > 0) text += fmt::format("{} were in {}, ", before_, source_);
    return text + fmt::format("{} computed", done_ - before_);
  }
  /// Where results are kept; "" if nowhere.
  std::string kept_in() const {
    return is_plain(options_.csv) ? options_.csv : is_plain(options_.json) ? options_.json : "";
  }

 private:
  PointResults taken(KnownPoints known) {
    if (!known.note.empty()) notes_.push_back(std::move(known.note));
    return std::move(known.results);
  }

  static bool is_plain(const std::string& path) {
    std::error_code error;
    const auto status = std::filesystem::status(path, error);
    return !path.empty() && path != "-" &&
           (!std::filesystem::exists(status) || std::filesystem::is_regular_file(status));
  }

  const Sweep& sweep_;
  const CommonOptions& options_;
  std::list<FileLock> locks_;  ///< from before the files are read until they are written whole
  std::optional<Field> best_;
  PointResults results_;
  std::vector<std::string> notes_;
  std::vector<std::size_t> missing_;
  std::string source_;  ///< the file that points were taken from
  std::size_t done_ = 0, before_ = 0;
  bool unsaved_ = false;
  Clock::time_point next_save_ = Clock::now() + std::chrono::seconds(3);
};

/// Tells of points the scenario refuses; the exit code.
int report_refused(const Sweep& sweep, const PointResults& results) {
  std::size_t refused = 0, first = 0;
  for (std::size_t point = 0; point < results.size(); ++point)
    if (!results[point].error.empty() && refused++ == 0) first = point;
  if (refused == 0) return exit_done;
  note("ddpsim: {} of {} points are refused; the first, {}: {}", refused, results.size(),
       describe_point(sweep.grid, first), results[first].error);
  return exit_input;
}

/// Tells how long a large grid will take: beside the bar, or, where nobody sees that, in one line.
class TimeTeller {
 public:
  TimeTeller(const SweepFiles& files, std::size_t points, bool noted)
      : files_(files), points_(points), before_(files.done()), noted_(noted) {}

  /// ", about 12 min left"; "" while that is not known, or short.
  std::string rest() {
    const std::size_t left = points_ - files_.done();
    const Seconds time = expected_rest(files_.done() - before_, left, Clock::now() - begin_);
    if (time < long_wait) return "";
    if (!std::exchange(noted_, true))
      note("note: {} of {} points are left, {}; if it is interrupted, {}", left, points_,
           about(time),
           files_.kept_in().empty() ? "nothing is kept without --csv FILE or --json FILE"
                                    : files_.kept_in() + " keeps what was computed");
    return ", " + about(time) + " left";
  }

 private:
  const SweepFiles& files_;
  std::size_t points_, before_;
  bool noted_;
  Clock::time_point begin_ = Clock::now();
};

/// Computes what is missing and writes it, until Interruptible::asked(); the exit code.
int compute(PointThreads& threads, const Sweep& sweep, SweepFiles& files,
            const CommonOptions& options) {
  const bool quiet = options.quiet;
  bool interrupted = false;
  std::vector<std::string> notes;
  try {
    Progress progress(quiet);
    TimeTeller time(files, sweep.grid.points(), quiet || progress.shown());
    threads.add(files.missing());
    while (threads.open() > 0) {
      constexpr std::chrono::milliseconds patience{50};
      for (const ComputedPoint& computed : threads.take(patience)) files.add(computed);
      if (Interruptible::asked() && !interrupted) {
        threads.drop();
        files.save();  // a launcher's patience may be short
        interrupted = true;
      }
      files.save_sometimes();
      const auto all = static_cast<double>(sweep.grid.points());
      progress.show(
          fmt::format("{} of {} points{}", files.done(), sweep.grid.points(), time.rest()),
          static_cast<double>(files.done()) / all);
    }
    if (!quiet || !options.json.empty() || Reports(options).wanted())
      notes = sweep_notes(sweep, files.results(), files.best());
  } catch (...) {
    files.save();
    throw;
  }
  files.write_all(notes);
  if (!quiet) add_notes(notes);
  if (!quiet) add_notes(files.notes());
  if (!quiet) note("{}", files.summary());
  if (files.done() < sweep.grid.points()) {
    const std::string kept = files.kept_in();
    note("ddpsim: interrupted{}",
         kept.empty() ? "" : fmt::format("; {} holds what had been computed", kept));
    return exit_failure;
  }
  const int refused = report_refused(sweep, files.results());
  const std::string unordered = files.none_is_best();
  if (unordered.empty()) return refused;
  note("ddpsim: --best: {}", unordered);
  return exit_input;
}

}  // namespace

int sweep_command(const std::vector<std::string>& arguments) {
  SweepFlags flags;
  if (!parse_sweep(arguments, flags) || !alone()) return exit_done;
  const int cores = flags.jobs.empty() ? allowed_cores() : count_of("--jobs", flags.jobs, 1, 1024);
  // A large grid takes seconds before its first point, in which nothing is written.
  const Interruptible before_files(Interruptible::Answer::end);
  const Sweep sweep = read_sweep(flags);
  const Interruptible interruptible;
  SweepFiles files(sweep, flags.common, flags.best);
  const int threads = std::clamp(static_cast<int>(files.missing().size()), 1, cores);
  PointThreads pool(threads, [&](std::size_t point) { return compute_point(sweep, point); });
  return compute(pool, sweep, files, flags.common);
}

}  // namespace ddpsim
