#include "backend/measure/measure_machine.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <ctime>

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "backend/job/steal.hpp"
#include "backend/measure/measure_step.hpp"
#include "backend/measure/task_kind.hpp"

namespace ddpsim {
namespace {

std::string now_as_text() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

class Measurement {
 public:
  Measurement(Backend& backend, const Workload& workload, Optimizer optimizer,
              const std::vector<Schedule>& steps, const MeasureOptions& options, const Watch& watch)
      : backend_(backend),
        kinds_(workload, optimizer),
        kernels_(backend, workload, optimizer, steps),
        steps_(steps),
        options_(options),
        watch_(watch) {
    provenance(workload);
  }

  Calibration run() {
    const bool done =
        kernels() && launches() && all_reduces() && comm_hooks() && waits() && interference();
    result_.complete = done;
    return std::move(result_);
  }

 private:
  void provenance(const Workload& workload) {
    utsname system{};
    uname(&system);
    result_.machine = fmt::format("{}, {} {}", system.nodename, system.sysname, system.release);
    result_.cpu = backend_.device_name();
    result_.link = backend_.link_name();
    result_.versions = backend_.versions();
    result_.date = now_as_text();
    result_.workload = workload.name;
    result_.ranks = backend_.link_ranks();
    result_.synchronous = backend_.synchronous();
  }

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

  int rounds() const { return options_.warm_up + (options_.kernels_follow ? 2 : options_.repeats); }

  /// What the host pays to issue a collective, in steps that really communicate, and for a hook.
  bool launches() {
    std::vector<Duration> hooks, collectives, kernels;
    for (const Schedule& step : steps_) {
      for (int round = 0; round < 3; ++round) {
        if (!go_on("launch cost", 0.25)) return false;
        const Timeline timeline =
            undisturbed(backend_, [&] { return measure_step(backend_, step); });
        if (round == 0) continue;
        for (const auto& times : timeline.ranks)
          for (std::size_t i = 0; i < times.size(); ++i) {
            const Duration host = times[i].enqueued - times[i].issued;
            if (step.tasks[i].operation == Operation::hook) hooks.push_back(host);
            if (step.tasks[i].operation == Operation::all_reduce) collectives.push_back(host);
            if (step.tasks[i].stream == Stream::compute &&
                step.tasks[i].operation != Operation::wait)
              kernels.push_back(host / step.tasks[i].launches);
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
    for (Bytes size = options_.smallest; size <= options_.largest; size = 2 * size) {
      const double share = std::log2(static_cast<double>(size.count) /
                                     static_cast<double>(options_.smallest.count)) /
                           std::log2(2.0 * static_cast<double>(options_.largest.count) /
                                     static_cast<double>(options_.smallest.count));
      const std::optional<Spread> time = all_reduce(size, 0.25 + 0.5 * share);
      if (!time) return false;
      result_.all_reduce.push_back({size, *time});
    }
    return true;
  }

  std::optional<Spread> all_reduce(Bytes size, double fraction) {
    // Several in a row: a sample is their mean, so that what noise costs them on average counts.
    const int in_a_row = row_of(size);
    std::vector<Duration> samples;
    Duration spent{};
    for (bool more = true; more;) {
      if (!go_on(fmt::format("all-reduce of {}", to_string(size)), fraction)) return std::nullopt;
      const Duration mine = mean_all_reduce(size, in_a_row, false);
      for (const Duration theirs : gathered({mine})) samples.push_back(theirs);
      spent += (in_a_row + 1) * mine;
      const int repeats = static_cast<int>(samples.size()) / backend_.ranks();
      more = any_rank(backend_,
                      repeats < 3 || (repeats < options_.repeats && spent < options_.patience));
    }
    return spread_of(std::move(samples));
  }

  static int row_of(Bytes size) { return size <= Bytes{8 << 20} ? 10 : 2; }

  /// Of so many in a row, by this rank's clock.
  Duration mean_all_reduce(Bytes size, int in_a_row, bool waiting) {
    return undisturbed(backend_,
                       [&] { return mean(backend_.time_all_reduces(size, in_a_row, waiting)); });
  }

  /// What it costs that the host waits for each all-reduce before it issues the next: threads wake each
  /// other, and the scheduler takes its time.
  bool waits() {
    if (!backend_.synchronous()) return true;  // a stream waits, not the host
    std::vector<Duration> extra;
    for (const AllReduceCost& cost : result_.all_reduce) {
      if (cost.size < Bytes{4 << 10} || cost.size > Bytes{8 << 20}) continue;
      for (int round = 0; round < 2; ++round) {
        if (!go_on("waiting for all-reduces", 0.85)) return false;
        const Duration waiting = mean(gathered({mean_all_reduce(cost.size, 6, true)}));
        extra.push_back(waiting - cost.time.median);
      }
    }
    if (!extra.empty()) result_.launch.wait = std::max(Duration::zero(), spread_of(extra).median);
    return true;
  }

  /// Beside all-reduces of several sizes; on a device with channels, also of one size with fewer.
  bool interference() {
    if (backend_.link_ranks() == 1 || result_.all_reduce.empty()) return true;
    std::vector<Duration> begun;
    Bytes usual;
    for (const Bytes size : {4 * KiB, 16 * KiB, 64 * KiB, 512 * KiB, 4 * MiB, 16 * MiB}) {
      // Beside a GPU's kernels, those below 64 KiB are too short to be felt.
      if (size < 64 * KiB && !backend_.synchronous()) continue;
      if (!beside(size, 0, begun)) return false;
      if (measured_alone(size) && size <= 4 * MiB) usual = size;
    }
    for (const int channels : {1, 2, 4, 8, 16, 32}) {
      if (usual == Bytes{} || !backend_.use_channels(channels)) break;
      if (!beside(usual, channels, begun)) return false;
    }
    backend_.use_channels(0);
    // From issuing one to having it on the communication thread of every rank, kernels running.
    if (!begun.empty() && backend_.synchronous()) result_.launch.handover = spread_of(begun).median;
    return true;
  }

  /// A round is a second or so of computation with the stream of all-reduces, and as much without. Of each
  /// round's means the medians over rounds count, so that a round in which the machine stalls does not.
  bool beside(Bytes size, int channels, std::vector<Duration>& begun) {
    std::optional<Duration> idle = measured_alone(size);
    if (idle && channels > 0) idle = mean(gathered({mean_all_reduce(size, 10, false)}));
    if (!idle) return true;
    RunOptions alone;
    alone.communicate = false;
    const double step = kernels_.computing_first();
    // In a step, small ones come one by one; what each costs is threads that wake up.
    const bool one_by_one = size < 64 * KiB;
    const Duration pause = one_by_one ? std::chrono::microseconds{500} : Duration::zero();
    // Some twenty all-reduces, or three steps.
    alone.rounds = 3 + static_cast<int>(20 * in_seconds(*idle + pause) / step);
    if (alone.rounds * step > 3 * in_seconds(options_.patience)) return true;
    RunOptions beside = alone;
    beside.background = size;
    beside.background_pause = pause;
    struct Round {
      Duration quick, slow;  // the computation, alone and with the stream
      Duration met;          // of the latter, with the stream really beside it
      ByKind quick_kinds, slow_kinds;
    };
    std::vector<Round> rounds;
    std::vector<Duration> starts, transfers;  // one transfer of this rank's stream, each round
    Duration spent{};
    const int most = 3 + 2 * (options_.repeats / 15);  // odd, for the one in the middle
    for (int round = 0; round < most; ++round) {
      if (!go_on(fmt::format("interference with {}", to_string(size)), 0.9)) return false;
      const auto run_with = [&](const RunOptions& how) {
        return undisturbed(backend_, [&] { return backend_.run(steps_.front(), how); });
      };
      const RankRun before = run_with(alone);
      const RankRun run = run_with(beside);
      const Duration beside_it = scaled(
          std::max(Duration::zero(), run.computed - run.background_begun), run.background_busy);
      rounds.push_back({mean(gathered({before.computed})), mean(gathered({run.computed})),
                        mean(gathered({beside_it})), by_kind(before), by_kind(run)});
      if (!any_rank(backend_, beside_it == Duration::zero()))
        starts.push_back(mean(gathered({run.background_begun})));
      // One more was under way when this rank had computed (or a pause), half done on average.
      const double last = pause > Duration::zero() ? 0.5 * run.background_busy : 0.5;
      if (beside_it > Duration::zero())
        transfers.push_back(scaled(beside_it, 1 / (run.background_ended + last)));
      spent += rounds.back().slow;
      if (round >= 2 && round % 2 == 0 && spent > 3 * options_.patience) break;  // on all ranks
    }
    const auto middle = [&](auto pick) {
      std::vector<Duration> all;
      for (const Round& round : rounds) all.push_back(pick(round));
      return spread_of(std::move(all)).median;
    };
    const Duration quick = middle([](const Round& round) { return round.quick; });
    const Duration slow = middle([](const Round& round) { return round.slow; });
    const Duration met = middle([](const Round& round) { return round.met; });
    // Where the stream began late or ran dry at times, the slowdown is that of the times it did not.
    const double busy = in_seconds(met) / in_seconds(slow);
    if (any_rank(backend_, busy < (one_by_one ? 0.1 : 0.3) || transfers.empty())) return true;
    const auto felt = [&](Duration with, Duration without) {
      // Of the time with a transfer under way, this share is lost.
      const double lost = (1 - in_seconds(without) / in_seconds(with)) / busy;
      return 1 / std::max(1e-3, 1 - lost);
    };
    const Duration each = mean(gathered({spread_of(transfers).median}));
    MeasuredInterference point;
    point.size = size;
    point.channels = channels;
    point.compute_slowdown = felt(slow, quick);
    point.communication_slowdown = in_seconds(each) / in_seconds(*idle);
    // Only streams tell kinds apart: what slows a host thread slows all it does.
    const auto arithmetic = [&](auto kinds) {
      return middle([&](const Round& round) { return (round.*kinds).arithmetic; });
    };
    const auto memory = [&](auto kinds) {
      return middle([&](const Round& round) { return (round.*kinds).memory; });
    };
    const Duration quick_arithmetic = arithmetic(&Round::quick_kinds);
    const Duration quick_memory = memory(&Round::quick_kinds);
    if (!backend_.synchronous() && quick_arithmetic > Duration::zero() &&
        quick_memory > Duration::zero()) {
      point.compute_slowdown = felt(arithmetic(&Round::slow_kinds), quick_arithmetic);
      point.memory_slowdown = felt(memory(&Round::slow_kinds), quick_memory);
    }
    if (!point.is_plausible()) return true;
    result_.interference.push_back(point);
    if (!one_by_one) begun.insert(begun.end(), starts.begin(), starts.end());
    return true;
  }

  std::optional<Duration> measured_alone(Bytes size) const {
    for (const AllReduceCost& cost : result_.all_reduce)
      if (cost.size == size) return cost.time.median;
    return std::nullopt;
  }

  /// Time in GEMMs, and in kernels that move memory.
  struct ByKind {
    Duration arithmetic{}, memory{};
  };

  /// Of the first step's last round, over all ranks.
  ByKind by_kind(const RankRun& run) {
    ByKind mine;
    const Schedule& step = steps_.front();
    for (std::size_t i = 0; i < run.times.size(); ++i)
      if (const auto kind = kinds_.of(step, step.tasks[i]))
        (kind->gemm ? mine.arithmetic : mine.memory) += run.times[i].end - run.times[i].start;
    return {sum_of(gathered({mine.arithmetic})), sum_of(gathered({mine.memory}))};
  }

  /// Everyone's, one rank after the other.
  std::vector<Duration> gathered(const std::vector<Duration>& mine) {
    std::vector<Duration> all;
    for (const auto& bytes : backend_.gather(std::as_bytes(std::span(mine)))) {
      const std::size_t before = all.size();
      all.resize(before + bytes.size() / sizeof(Duration));
      if (!bytes.empty()) std::memcpy(all.data() + before, bytes.data(), bytes.size());
    }
    return all;
  }

  static Duration sum_of(const std::vector<Duration>& times) {
    Duration sum{};
    for (const Duration time : times) sum += time;
    return sum;
  }
  static Duration mean(const std::vector<Duration>& times) {
    return sum_of(times) / static_cast<std::int64_t>(times.size());
  }

  Backend& backend_;
  TaskKinds kinds_;
  MeasureKernels kernels_;
  const std::vector<Schedule>& steps_;
  const MeasureOptions& options_;
  const Watch& watch_;
  Calibration result_;
};

}  // namespace

Calibration measure_machine(Backend& backend, const Workload& workload, Optimizer optimizer,
                            const std::vector<Schedule>& steps, const MeasureOptions& options,
                            const Watch& watch) {
  return Measurement(backend, workload, optimizer, steps, options, watch).run();
}

}  // namespace ddpsim
