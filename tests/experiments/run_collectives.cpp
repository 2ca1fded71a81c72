// Measures and predicts jobs of a few collectives, as a rank of hosts that tests/links/hosts makes:
// the all-reduce of all ranks, and every other kind and group that `calibrate --collectives all`
// measures, of each size.
//
//     run_collectives FOLDER INTERFACE ROUNDS BYTES...
//
// The ranks meet in FOLDER. In turns, a round after the other, jobs run whose sizes are those that
// a calibration measures, the powers of two from 4 KiB to 64 MiB, and jobs of the given sizes, so
// that a machine whose pace changes does so for both. The former become a calibration, by whose
// prices the latter are simulated. Rank 0 prints a line of CSV for each given size,
//
//     operation,ranks,bytes,predicted_us,measured_us,low_us,high_us
//
// what a collective takes from the last rank's arrival until the last rank is done: predicted, and
// measured as the median over runs (with the 10th and 90th percentile) of the mean of a run. Bytes
// are what each rank hands over, and of an all-gather the result.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <string>
#include <vector>

#include "backend/measure/measure_collectives.hpp"
#include "backend/measure/measure_step.hpp"
#include "backend/measure/samples.hpp"
#include "backend/measure/steal.hpp"
#include "backend/run/job.hpp"
#include "model/cost/calibration_fit.hpp"
#include "sim/engine/price.hpp"
#include "tools/study/asked_collectives.hpp"

namespace {

using namespace ddpsim;

constexpr Bytes smallest = 4 * KiB, largest = 64 * MiB;

/// The mean of a job's collectives on rank 0 but for the first.
Duration predicted(const program::Job& job, const CostModel& model) {
  const JobTimeline timeline = simulate(job, price(model, job));
  const auto& times = timeline.classes[timeline.class_of[0]];
  std::vector<Duration> each;
  for (std::size_t i = 1; i + 1 < times.size(); ++i) each.push_back(times[i].end - times[i].start);
  return mean_of(each);
}

program::Job job_of(const CollectiveCase& collective, int ranks) {
  return job_of_collectives(collective, ranks, collective.size <= 8 * MiB ? 11 : 3);
}

/// The kind among all its sizes: the calibration's and those that are asked for.
std::map<Bytes, Spread> measured(Backend& backend, const CollectiveCase& kind, int rounds,
                                 const std::vector<Bytes>& asked) {
  std::map<Bytes, std::vector<Duration>> samples;
  for (const Bytes size : asked) samples[size];
  for (Bytes size = smallest; size <= largest; size = 2 * size) samples[size];
  for (int round = 0; round <= rounds; ++round)
    for (auto& [size, runs] : samples) {
      const bool small = size <= MiB, warms_up = round == 0;
      if (warms_up && !small) continue;
      const program::Job job = job_of({kind.operation, kind.ranks, size}, backend.ranks());
      for (int repeat = 0; repeat < (small ? 3 : 1); ++repeat) {
        const Duration mean =
            mean_of(undisturbed(backend, [&] { return time_collectives(backend, job); }));
        if (!warms_up) runs.push_back(mean);
      }
    }
  std::map<Bytes, Spread> spreads;
  for (const auto& [size, runs] : samples) spreads[size] = spread_of(runs);
  return spreads;
}

struct Asked {
  CollectiveCase collective;
  Spread time;
};

int run_all(Backend& backend, int rounds, const std::vector<Bytes>& sizes) {
  const int ranks = backend.ranks();
  std::vector<CollectiveCase> kinds{{Operation::all_reduce, ranks, largest}};
  for (const CollectiveCase& kind : collectives_named("", "all", ranks, largest))
    kinds.push_back(kind);
  Calibration calibration;
  calibration.ranks = ranks;
  std::vector<Asked> asked;
  for (const CollectiveCase& kind : kinds) {
    const std::map<Bytes, Spread> times = measured(backend, kind, rounds, sizes);
    for (Bytes size = smallest; size <= largest; size = 2 * size) {
      const CollectiveCase each{kind.operation, kind.ranks, size};
      if (kind == kinds.front())
        calibration.all_reduce.push_back({size, times.at(size)});
      else
        calibration.collectives.push_back(
            {kind.operation, kind.ranks, payload_of(each), times.at(size)});
    }
    for (const Bytes size : sizes)
      asked.push_back({{kind.operation, kind.ranks, size}, times.at(size)});
  }
  if (backend.rank() != 0) return 0;
  const CostModel model(cluster_of(calibration));
  for (const auto& [collective, time] : asked)
    std::printf("%s,%d,%lld,%.3f,%.3f,%.3f,%.3f\n",
                std::string(name_of(collective.operation)).c_str(), collective.ranks,
                static_cast<long long>(collective.size.count),
                in_us(predicted(job_of(collective, ranks), model)), in_us(time.median),
                in_us(time.low), in_us(time.high));
  return 0;
}

}  // namespace

int main(int count, char** words) {
  if (count < 5) {
    std::fprintf(stderr, "usage: run_collectives FOLDER INTERFACE ROUNDS BYTES...\n");
    return 2;
  }
  try {
    std::vector<Bytes> sizes;
    for (int i = 4; i < count; ++i) sizes.push_back(Bytes{std::atoll(words[i])});
    JobOptions options;
    options.rendezvous = std::string("file:") + words[1];
    options.interface = words[2];
    return run_job(options, [&](Backend& backend) {
      return run_all(backend, std::max(1, std::atoi(words[3])), sizes);
    });
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "run_collectives: %s\n", problem.what());
    return 1;
  }
}
