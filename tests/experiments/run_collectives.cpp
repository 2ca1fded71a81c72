// Predicts and measures jobs of a few collectives, as a rank of hosts that tests/links/hosts makes:
// every kind and group that a calibration has, and the all-reduce of all ranks, of each size.
//
//     run_collectives CALIBRATION.yaml FOLDER INTERFACE SECONDS BYTES...
//
// The ranks meet in FOLDER. A job is simulated with the calibration's prices and run for about
// SECONDS, three times at least. Rank 0 prints a line of CSV for each,
//
//     operation,ranks,bytes,predicted_us,measured_us,low_us,high_us
//
// what a collective takes from the last rank's arrival until the last rank is done: predicted, and
// measured as the median over runs (with the 10th and 90th percentile) of the mean of a run. Bytes
// are what each rank hands over, and of an all-gather the result.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "backend/measure/measure_collectives.hpp"
#include "backend/measure/measure_step.hpp"
#include "backend/measure/samples.hpp"
#include "backend/measure/steal.hpp"
#include "backend/run/job.hpp"
#include "model/cost/calibration_fit.hpp"
#include "scenarios/reader/cluster/calibration_reader.hpp"
#include "sim/engine/price.hpp"

namespace {

using namespace ddpsim;
using Clock = std::chrono::steady_clock;

std::set<std::pair<Operation, int>> kinds_of(const Calibration& calibration) {
  std::set<std::pair<Operation, int>> kinds{{Operation::all_reduce, calibration.ranks}};
  for (const MeasuredCollective& each : calibration.collectives)
    kinds.emplace(each.operation, each.ranks);
  return kinds;
}

/// The mean of a job's collectives on rank 0 but for the first.
Duration predicted(const program::Job& job, const CostModel& model) {
  const JobTimeline timeline = simulate(job, price(model, job));
  const auto& times = timeline.classes[timeline.class_of[0]];
  std::vector<Duration> each;
  for (std::size_t i = 1; i + 1 < times.size(); ++i) each.push_back(times[i].end - times[i].start);
  return mean_of(each);
}

Spread measured(Backend& backend, const program::Job& job, double seconds) {
  time_collectives(backend, job);  // takes the memory
  std::vector<Duration> runs;
  const Clock::time_point begun = Clock::now();
  const auto is_over = [&] {
    return runs.size() >= 3 && Clock::now() - begun > std::chrono::duration<double>(seconds);
  };
  while (!any_rank(backend, is_over()))
    runs.push_back(mean_of(undisturbed(backend, [&] { return time_collectives(backend, job); })));
  return spread_of(runs);
}

int run_all(Backend& backend, const Calibration& calibration, double seconds,
            const std::vector<Bytes>& sizes) {
  const CostModel model(cluster_of(calibration));
  for (const auto& [operation, ranks] : kinds_of(calibration))
    for (const Bytes size : sizes) {
      const int in_a_row = size <= 8 * MiB ? 10 : 2;
      const program::Job job =
          job_of_collectives({operation, ranks, size}, calibration.ranks, in_a_row + 1);
      const Spread time = measured(backend, job, seconds);
      if (backend.rank() != 0) continue;
      std::printf("%s,%d,%lld,%.3f,%.3f,%.3f,%.3f\n", std::string(name_of(operation)).c_str(),
                  ranks, static_cast<long long>(size.count), in_us(predicted(job, model)),
                  in_us(time.median), in_us(time.low), in_us(time.high));
      std::fflush(stdout);
    }
  return 0;
}

}  // namespace

int main(int count, char** words) {
  if (count < 6) {
    std::fprintf(stderr, "usage: run_collectives CALIBRATION FOLDER INTERFACE SECONDS BYTES...\n");
    return 2;
  }
  try {
    const Calibration calibration = read_calibration(std::filesystem::path(words[1]));
    std::vector<Bytes> sizes;
    for (int i = 5; i < count; ++i) sizes.push_back(Bytes{std::atoll(words[i])});
    JobOptions options;
    options.rendezvous = std::string("file:") + words[2];
    options.interface = words[3];
    return run_job(options, [&](Backend& backend) {
      return run_all(backend, calibration, std::atof(words[4]), sizes);
    });
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "run_collectives: %s\n", problem.what());
    return 1;
  }
}
