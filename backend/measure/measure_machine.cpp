#include "backend/measure/measure_machine.hpp"

#include <algorithm>
#include <cmath>
#include <ctime>

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "backend/measure/measure_interference.hpp"
#include "backend/measure/measure_step.hpp"
#include "backend/measure/samples.hpp"
#include "backend/measure/steal.hpp"

namespace ddpsim {
namespace {

using Clock = std::chrono::steady_clock;

std::string now_as_text() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

/// What is left of a time, in equal shares for parts that are still to come.
class Shares {
 public:
  /// Nothing for `until`: each may take as long as it wants.
  Shares(std::optional<Clock::time_point> until, int parts) : until_(until), parts_(parts) {}

  Duration next() {
    if (!until_) return Duration::max();
    const Clock::duration left = std::max(Clock::duration::zero(), *until_ - Clock::now());
    return left / std::max(1, parts_--);
  }

 private:
  std::optional<Clock::time_point> until_;
  int parts_;
};

class Measurement {
 public:
  Measurement(Backend& backend, const Workload& workload, const std::vector<program::Job>& steps,
              const MeasureOptions& options, const Watch& watch)
      : backend_(backend),
        kernels_(backend, steps),
        steps_(steps),
        options_(options),
        watch_(watch),
        result_(provenance_of(backend, workload)) {}

  Calibration run() {
    const bool done = kernels() && launches() && all_reduces() && collectives() && comm_hooks() &&
                      waits() && interference();
    result_.complete = done;
    return std::move(result_);
  }

 private:
  /// False: everyone stops here.
  bool go_on(const std::string& what, double fraction) {
    if (backend_.rank() == 0 && watch_.progress) watch_.progress(what, fraction);
    return !any_rank(backend_, watch_.stop && watch_.stop());
  }

  bool kernels() {
    for (int round = 0; round < rounds(); ++round) {
      if (!go_on("kernels", 0.25 * round / rounds())) return false;
      kernels_.run_plain(round >= options_.warm_up);
    }
    kernels_.put_into(result_);
    return true;
  }

  bool comm_hooks() {
    if (!kernels_.has_hooked() || options_.kernels_follow) return true;
    for (int round = 0; round < rounds(); ++round) {
      if (!go_on("comm hooks", 0.75 + 0.1 * round / rounds())) return false;
      kernels_.run_hooked(result_.all_reduce, round >= options_.warm_up);
    }
    kernels_.put_into(result_);
    return true;
  }

  /// When this part of the time will be over.
  std::optional<Clock::time_point> until(double part) const {
    if (!options_.within) return std::nullopt;
    return begun_ + std::chrono::duration_cast<Clock::duration>(scaled(*options_.within, part));
  }

  int rounds() const { return options_.warm_up + (options_.kernels_follow ? 2 : options_.repeats); }

  /// What the host pays to issue a collective, in steps that really communicate, and for a hook.
  bool launches() {
    std::vector<Duration> hooks, collectives, kernels;
    for (const program::Job& step : steps_) {
      for (int round = 0; round < 3; ++round) {
        if (!go_on("launch cost", 0.25)) return false;
        const JobTimeline timeline =
            undisturbed(backend_, [&] { return measure_step(backend_, step); });
        if (round == 0) continue;
        for (std::size_t rank = 0; rank < timeline.class_of.size(); ++rank) {
          const RankOfJob of(step, timeline, rank);
          for (std::size_t i = 0; i < of.times.size(); ++i) {
            const program::Task& task = of.program.tasks[i];
            const Work& work = step.works[task.work];
            const Duration host = of.times[i].enqueued - of.times[i].issued;
            if (work.operation == Operation::hook) hooks.push_back(host);
            if (work.operation == Operation::all_reduce) collectives.push_back(host);
            if (task.stream != 0 && !step.streams[task.stream].beside &&
                is_kernel(work.operation) && work.launches > 0)
              kernels.push_back(host / work.launches);
          }
        }
      }
    }
    if (!hooks.empty()) result_.launch.hook = spread_of(hooks).median;
    if (!collectives.empty()) result_.launch.collective = spread_of(collectives).median;
    if (!kernels.empty()) result_.launch.kernel = spread_of(kernels).median;
    return true;
  }

  bool all_reduces() {
    if (backend_.link_ranks() == 1) return true;
    int sizes = 0;
    for (Bytes size = options_.smallest; size <= options_.largest; size = 2 * size) ++sizes;
    Shares shares(until(options_.collectives.empty() ? 0.6 : 0.5), sizes);
    for (Bytes size = options_.smallest; size <= options_.largest; size = 2 * size) {
      const double share = std::log2(static_cast<double>(size.count) /
                                     static_cast<double>(options_.smallest.count)) /
                           std::log2(2.0 * static_cast<double>(options_.largest.count) /
                                     static_cast<double>(options_.smallest.count));
      const std::optional<Spread> time = all_reduce(size, 0.25 + 0.5 * share, shares.next());
      if (!time) return false;
      result_.all_reduce.push_back({size, *time});
    }
    return true;
  }

  std::optional<Spread> all_reduce(Bytes size, double fraction, Duration allowed) {
    // Several in a row: a sample is their mean, so that what noise costs them on average counts.
    const int in_a_row = row_of(size);
    return repeated(fmt::format("all-reduce of {}", to_string(size)), fraction, options_.patience,
                    allowed, [&](std::vector<Duration>& samples) {
                      const Duration mine = mean_all_reduce(size, in_a_row, false);
                      const std::vector<Duration> all = gathered(backend_, {mine});
                      samples.insert(samples.end(), all.begin(), all.end());
                      return (in_a_row + 1) * mine;
                    });
  }

  bool collectives() {
    std::vector<CollectiveCase> cases;
    for (const CollectiveCase& kind : options_.collectives)
      for (Bytes size = options_.smallest; size <= std::max(kind.size, options_.smallest);
           size = 2 * size)
        cases.push_back({kind.operation, kind.ranks, size});
    Shares shares(until(0.75), static_cast<int>(cases.size()));
    for (const CollectiveCase& each : cases) {
      const std::optional<Spread> time = collective(each, shares.next());
      if (!time) return false;
      result_.collectives.push_back({each.operation, each.ranks, payload_of(each), *time});
    }
    return true;
  }

  std::optional<Spread> collective(const CollectiveCase& each, Duration allowed) {
    const int in_a_row = row_of(each.size);
    const program::Job job = job_of_collectives(each, backend_.ranks(), in_a_row + 1);
    time_collectives(backend_, job);  // takes the memory
    return repeated(
        fmt::format("{} of {} among {}", name_of(each.operation), to_string(each.size), each.ranks),
        0.75, options_.patience / 3, allowed, [&](std::vector<Duration>& samples) {
          samples.push_back(
              mean_of(undisturbed(backend_, [&] { return time_collectives(backend_, job); })));
          return (in_a_row + 1) * samples.back();
        });
  }

  /// `measure` adds the samples of a repeat, as many each time, to the list and returns how long it
  /// measured. Nothing: everyone stops here.
  template <typename Measure>
  std::optional<Spread> repeated(const std::string& what, double fraction, Duration patience,
                                 Duration allowed, Measure measure) {
    std::vector<Duration> samples;
    Duration spent{};
    const Clock::time_point begun = Clock::now();
    int repeats = 0;
    for (bool more = true; more;) {
      if (!go_on(what, fraction)) return std::nullopt;
      spent += measure(samples);
      ++repeats;
      more = any_rank(backend_, repeats < 3 || (repeats < options_.repeats && spent < patience &&
                                                Clock::now() - begun < allowed));
    }
    return spread_of(std::move(samples));
  }

  static int row_of(Bytes size) { return size <= Bytes{8 << 20} ? 10 : 2; }

  /// The mean time of `in_a_row` all-reduces in a row, by this rank's clock.
  Duration mean_all_reduce(Bytes size, int in_a_row, bool waiting) {
    return undisturbed(backend_,
                       [&] { return mean_of(backend_.time_all_reduces(size, in_a_row, waiting)); });
  }

  /// What it costs that the host waits for each all-reduce before it issues the next: threads wake
  /// each other, and the scheduler takes its time.
  bool waits() {
    if (!backend_.synchronous()) return true;  // a stream waits, not the host
    std::vector<Duration> extra;
    for (const AllReduceCost& cost : result_.all_reduce) {
      if (!is_usual(cost.size)) continue;
      for (int round = 0; round < 2; ++round) {
        if (!go_on("waiting for all-reduces", 0.85)) return false;
        const Duration waiting = mean_over_ranks(backend_, mean_all_reduce(cost.size, 6, true));
        extra.push_back(waiting - cost.time.median);
      }
    }
    if (!extra.empty()) result_.launch.wait = std::max(Duration::zero(), spread_of(extra).median);
    return waits_for(Operation::all_gather, result_.launch.wait_all_gather) &&
           waits_for(Operation::reduce_scatter, result_.launch.wait_reduce_scatter);
  }

  /// The same of another kind, among all ranks, where it was measured.
  bool waits_for(Operation operation, std::optional<Duration>& wait) {
    std::vector<Duration> extra;
    for (const MeasuredCollective& cost : result_.collectives) {
      const Bytes size = operation == Operation::all_gather ? cost.ranks * cost.size : cost.size;
      if (cost.operation != operation || cost.ranks != backend_.ranks() || !is_usual(size))
        continue;
      const program::Job job =
          job_of_awaited_collectives({operation, cost.ranks, size}, backend_.ranks(), 7);
      for (int round = 0; round < 2; ++round) {
        if (!go_on(fmt::format("waiting for {}s", name_of(operation)), 0.87)) return false;
        const Duration mine =
            undisturbed(backend_, [&] { return time_awaited_collectives(backend_, job); });
        extra.push_back(mean_over_ranks(backend_, mine) - cost.time.median);
      }
    }
    if (!extra.empty()) wait = std::max(Duration::zero(), spread_of(extra).median);
    return true;
  }

  /// Sizes at which a wait is no small part of a collective.
  static bool is_usual(Bytes size) { return size >= Bytes{4 << 10} && size <= Bytes{8 << 20}; }

  /// Beside all-reduces of several sizes; on a device with channels, also of one size with fewer.
  bool interference() {
    if (backend_.link_ranks() == 1 || result_.all_reduce.empty()) return true;
    MeasureInterference measure(
        backend_, steps_.front(),
        {options_.repeats, options_.patience, kernels_.computing_first(), [this](Bytes size) {
           return go_on(fmt::format("interference with {}", to_string(size)), 0.9);
         }});
    std::vector<Bytes> sizes;
    for (const Bytes size : {4 * KiB, 16 * KiB, 64 * KiB, 512 * KiB, 4 * MiB, 16 * MiB})
      // Beside a GPU's kernels, those below 64 KiB are too short to be felt.
      if (measured_alone(size) && (size >= 64 * KiB || backend_.synchronous()))
        sizes.push_back(size);
    std::vector<int> fewer_channels{1, 2, 4, 8, 16, 32};
    if (backend_.synchronous()) fewer_channels.clear();
    Shares shares(until(1), static_cast<int>(sizes.size() + fewer_channels.size()));
    std::vector<Duration> begun;
    Bytes usual;
    for (const Bytes size : sizes) {
      measure.may_take(shares.next());
      if (!beside(measure, size, 0, begun)) return false;
      if (size <= 4 * MiB) usual = size;
    }
    for (const int channels : fewer_channels) {
      if (usual == Bytes{} || !backend_.use_channels(channels)) break;
      measure.may_take(shares.next());
      if (!beside(measure, usual, channels, begun)) return false;
    }
    backend_.use_channels(0);
    // From issuing one to having it on the communication thread of every rank, kernels running.
    if (!begun.empty() && backend_.synchronous()) result_.launch.handover = spread_of(begun).median;
    return true;
  }

  /// False: everyone stops here. `channels`: that the device uses; 0: as many as it likes.
  bool beside(MeasureInterference& measure, Bytes size, int channels,
              std::vector<Duration>& begun) {
    std::optional<Duration> idle = measured_alone(size);
    if (idle && channels > 0) idle = mean_over_ranks(backend_, mean_all_reduce(size, 10, false));
    if (!idle) return true;
    // In a step, small ones come one by one; what each costs is threads that wake up.
    const bool one_by_one = size < 64 * KiB;
    std::optional<MeasuredInterference> point = measure.beside(size, one_by_one, *idle);
    if (!point) return !measure.stopped();
    point->channels = channels;
    result_.interference.push_back(*point);
    if (!one_by_one) begun.insert(begun.end(), measure.starts().begin(), measure.starts().end());
    return true;
  }

  std::optional<Duration> measured_alone(Bytes size) const {
    for (const AllReduceCost& cost : result_.all_reduce)
      if (cost.size == size) return cost.time.median;
    return std::nullopt;
  }

  Backend& backend_;
  MeasureKernels kernels_;
  const std::vector<program::Job>& steps_;
  const MeasureOptions& options_;
  const Watch& watch_;
  const Clock::time_point begun_ = Clock::now();
  Calibration result_;
};

}  // namespace

Calibration provenance_of(Backend& backend, const Workload& workload) {
  utsname system{};
  uname(&system);
  Calibration calibration;
  calibration.machine = fmt::format("{}, {} {}", system.nodename, system.sysname, system.release);
  calibration.cpu = backend.device_name();
  calibration.link = backend.link_name();
  calibration.versions = backend.versions();
  calibration.date = now_as_text();
  calibration.workload = workload.name;
  calibration.ranks = backend.link_ranks();
  calibration.synchronous = backend.synchronous();
  return calibration;
}

Calibration measure_machine(Backend& backend, const Workload& workload,
                            const std::vector<program::Job>& steps, const MeasureOptions& options,
                            const Watch& watch) {
  return Measurement(backend, workload, steps, options, watch).run();
}

}  // namespace ddpsim
