#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "python/bindings/questions.hpp"
#include "tools/report/writers/file_lock.hpp"

namespace ddpsim {

/// A sweep whose points several processes compute. The one that asks has an object that knows what
/// is missing and takes what the others found; each of the others has one that computes. Between
/// them go numbers of points, and texts of CSV in which each row says what it was computed from.
class SharedSweep {
 public:
  /// `csv`: a file in which results are kept, which is locked while this lives; points that it
  /// holds are not missing. "": none. Throws InputError as plan_sweep and read_sweep_csv do.
  SharedSweep(const Question& question, const std::vector<std::string>& axes,
              const std::string& csv);

  std::size_t points() const { return results_.size(); }
  std::vector<std::size_t> missing() const;
  /// A fingerprint of the version and of all files that are read.
  std::string origin() const;

  /// Rows of these points, as a file of CSV. For several threads at once. Throws InputError for a
  /// point that is none.
  std::string compute(const std::vector<std::size_t>& points, int threads) const;
  /// What compute() returned, here or elsewhere. Throws InputError for rows of another sweep.
  void take(const std::string& csv);
  /// Writes the file.
  void save() const;
  /// The answer of a sweep; `best` as in sweep_answer.
  std::string answer(const std::string& best) const;

 private:
  Sweep sweep_;
  std::string csv_;
  std::optional<FileLock> lock_;
  PointResults results_;
  std::vector<std::string> notes_;  ///< on the file that was read
};

}  // namespace ddpsim
