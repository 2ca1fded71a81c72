#include "python/bindings/shared_sweep.hpp"

#include <chrono>
#include <filesystem>

#include <fmt/format.h>

#include "scenarios/reader/text/input_error.hpp"
#include "tools/report/writers/output.hpp"
#include "tools/sweep/point_threads.hpp"
#include "tools/sweep/sweep_reader.hpp"

namespace ddpsim {

SharedSweep::SharedSweep(const Question& question, const std::vector<std::string>& axes,
                         const std::string& csv)
    : sweep_(plan_sweep(question.file, question.set, question.laws_only, Grid(axes_of(axes)))),
      csv_(csv),
      results_(sweep_.grid.points()) {
  if (csv_.empty()) return;
  check_places({{"csv", csv_}}, {question.file});
  lock_.emplace(csv_);
  KnownPoints known = read_sweep_csv(sweep_, csv_);
  results_ = std::move(known.results);
  if (!known.note.empty()) notes_.push_back(std::move(known.note));
}

std::vector<std::size_t> SharedSweep::missing() const {
  std::vector<std::size_t> points;
  for (std::size_t point = 0; point < results_.size(); ++point)
    if (!results_[point].known()) points.push_back(point);
  return points;
}

std::string SharedSweep::origin() const {
  return fmt::format("{:016x}", sweep_.origin);
}

std::string SharedSweep::compute(const std::vector<std::size_t>& points, int threads) const {
  PointResults results(results_.size());
  for (const std::size_t point : points)
    if (point >= results.size())
      throw InputError(
          fmt::format("point {} is none of the {} of this sweep", point, results.size()));
  if (threads <= 1) {
    for (const std::size_t point : points) results[point] = compute_point(sweep_, point);
    return sweep_csv(sweep_, results);
  }
  PointThreads pool(threads, [&](std::size_t point) { return compute_point(sweep_, point); });
  pool.add(points);
  constexpr std::chrono::milliseconds patience{50};
  for (std::size_t done = 0; done < points.size();)
    for (ComputedPoint& computed : pool.take(patience)) {
      results[computed.first] = std::move(computed.second);
      ++done;
    }
  return sweep_csv(sweep_, results);
}

void SharedSweep::take(const std::string& csv) {
  PointResults found = sweep_csv_points(sweep_, csv, "what a worker computed").results;
  for (std::size_t point = 0; point < found.size(); ++point)
    if (found[point].known()) results_[point] = std::move(found[point]);
}

void SharedSweep::save() const {
  Outputs outputs;
  outputs.add(csv_, sweep_csv(sweep_, results_));
  outputs.commit();
}

std::string SharedSweep::answer(const std::string& best) const {
  return answer_of(sweep_, results_, best, notes_);
}

}  // namespace ddpsim
