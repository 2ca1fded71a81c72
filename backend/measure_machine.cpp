#include "backend/measure_machine.hpp"

#include <algorithm>
#include <cmath>
#include <compare>
#include <cstring>
#include <ctime>
#include <map>
#include <stdexcept>
#include <tuple>

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "backend/measure_step.hpp"

namespace ddpsim {
namespace {

/// What tells one kind of task from another.
struct TaskKind {
  Operation operation = Operation::forward;
  std::optional<Gemm> gemm;
  Bytes traffic;
  DType type = DType::fp32;

  auto key() const {
    const Gemm g = gemm.value_or(Gemm{});
    return std::tuple(operation, gemm.has_value(), g.m, g.n, g.k, g.batch, traffic.count, type);
  }
  friend bool operator<(const TaskKind& a, const TaskKind& b) { return a.key() < b.key(); }
};

/// The kind of a task; none if it is no computation, or one whose time is given.
class Kinds {
 public:
  Kinds(const Workload& workload, Optimizer optimizer)
      : workload_(workload), optimizer_(optimizer_kernels(optimizer, workload)) {}

  std::optional<TaskKind> of(const Schedule& schedule, const Task& task) const {
    if (task.step != nobody) {
      const CommStep& step = schedule.buckets[at(task.bucket)].steps[at(task.step)];
      if (is_collective(step.operation) || step.operation == Operation::synchronize ||
          step.operation == Operation::optimizer)
        return std::nullopt;
      return of(step.operation, step.kernel);
    }
    if (task.user_hook != nobody) return of_hook(schedule.hooks[at(task.user_hook)], task);
    switch (task.operation) {
      case Operation::forward:
        return of(task.operation, workload_.layers[at(task.layer)].forward[at(task.kernel)]);
      case Operation::backward:
        return of(task.operation, workload_.layers[at(task.layer)].backward[at(task.kernel)]);
      case Operation::optimizer:
        if (workload_.optimizer) return std::nullopt;
        return of(task.operation, optimizer_[at(task.kernel)]);
      case Operation::accumulate:
        return moves(task.operation, 3 * workload_.parameters[at(task.parameter)].size());
      case Operation::copy_in:
      case Operation::concatenate:
      case Operation::divide:
      case Operation::copy_out:
        if (task.parameter != nobody) return of_gradient(schedule, task);
        if (task.bucket == nobody) return std::nullopt;  // of buffers: small
        return moves(task.operation, 2 * schedule.buckets[at(task.bucket)].size);
      case Operation::hook:
      case Operation::all_reduce:
      case Operation::wait:
      case Operation::broadcast:
      case Operation::search_unused:
      case Operation::all_gather:
      case Operation::reduce_scatter:
      case Operation::cast:
      case Operation::correct:
      case Operation::pack:
      case Operation::draw:
      case Operation::multiply:
      case Operation::orthogonalize:
      case Operation::quantize:
      case Operation::dequantize:
      case Operation::select:
      case Operation::own_kernel:
      case Operation::gradient_hook:
      case Operation::module_hook:
      case Operation::synchronize:
        return std::nullopt;
    }
    return std::nullopt;
  }

 private:
  /// As the schedule prices it: zeros are written, nothing is read; of a sparse gradient its rows.
  std::optional<TaskKind> of_gradient(const Schedule& schedule, const Task& task) const {
    const Parameter& parameter = workload_.parameters[at(task.parameter)];
    if (task.operation == Operation::copy_in && parameter.unused)
      return moves(task.operation, parameter.size());
    const bool rows = task.operation == Operation::divide && parameter.sparse &&
                      schedule.strategy == Strategy::bucketed &&
                      schedule.buckets[at(task.bucket)].parameters.size() == 1;
    if (rows) return moves(Operation::copy_in, 2 * parameter.sparse_values());
    return moves(task.operation, 2 * parameter.size());
  }
  std::optional<TaskKind> of_hook(const UserHook& hook, const Task& task) const {
    if (hook.kind == UserHookKind::chunks)
      return moves(Operation::module_hook, 2 * hook.outputs[at(task.kernel)]);
    Bytes size;
    for (const std::int32_t index : hook.groups[at(task.kernel)])
      size += workload_.parameters[at(index)].size();
    const Kernel kernel = kernel_of(hook, size);
    if (kernel.traffic == Bytes{}) return std::nullopt;
    return moves(priced_as(hook.kind), kernel.traffic);
  }
  static std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }
  static std::optional<TaskKind> of(Operation operation, const Kernel& kernel) {
    if (kernel.time) return std::nullopt;
    return TaskKind{operation, kernel.gemm, kernel.traffic, kernel.type};
  }
  static TaskKind moves(Operation operation, Bytes traffic) {
    return {operation, std::nullopt, traffic, DType::fp32};
  }

  const Workload& workload_;
  std::vector<Kernel> optimizer_;
};

Duration computing(const Schedule& schedule, const std::vector<TaskTimes>& times) {
  Duration sum{};
  for (std::size_t i = 0; i < times.size(); ++i)
    if (!is_collective(schedule.tasks[i].operation) &&
        schedule.tasks[i].operation != Operation::wait)
      sum += times[i].end - times[i].start;
  return sum;
}

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
        steps_(steps),
        options_(options),
        watch_(watch) {
    provenance(workload);
  }

  Calibration run() {
    const bool done = kernels() && launches() && all_reduces() && waits() && interference();
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
    RunOptions alone;
    alone.communicate = false;
    std::map<TaskKind, std::vector<Duration>> samples;
    std::vector<std::pair<const Schedule*, Timeline>> kept;
    const int rounds = options_.warm_up + options_.repeats;
    for (int round = 0; round < rounds; ++round) {
      if (!go_on("kernels", 0.3 * round / rounds)) return false;
      for (const Schedule& step : steps_) {
        Timeline timeline = measure_step(backend_, step, alone);
        if (round < options_.warm_up) continue;
        for (const auto& times : timeline.ranks)
          for (std::size_t i = 0; i < times.size(); ++i)
            if (const auto kind = kinds_.of(step, step.tasks[i]))
              samples[*kind].push_back(times[i].end - times[i].start);
        if (&step == &steps_.front())
          for (const auto& times : timeline.ranks) alone_.push_back(computing(step, times));
        kept.emplace_back(&step, std::move(timeline));
      }
    }
    std::map<TaskKind, double> medians;
    for (auto& [kind, times] : samples) {
      const Spread spread = spread_of(std::move(times));
      medians[kind] = in_seconds(spread.median);
      result_.tasks.push_back({kind.operation, kind.gemm, kind.traffic, kind.type, spread});
    }
    factors(kept, medians);
    return true;
  }

  void factors(const std::vector<std::pair<const Schedule*, Timeline>>& kept,
               const std::map<TaskKind, double>& medians) {
    std::vector<double> slowest;
    for (const auto& [step, timeline] : kept) {
      double most = 0, sum = 0;
      for (const auto& times : timeline.ranks) {
        const double mine = in_seconds(computing(*step, times));
        most = std::max(most, mine);
        sum += mine;
      }
      if (sum > 0) slowest.push_back(most * static_cast<double>(timeline.ranks.size()) / sum);
    }
    if (!slowest.empty()) result_.slowest_rank = std::max(1.0, median(std::move(slowest)));
    std::map<Operation, std::vector<double>> ratios;
    for (const auto& [step, timeline] : kept)
      for (const auto& times : timeline.ranks) {
        std::map<Operation, std::pair<double, double>> sums;  // as measured, of medians
        for (std::size_t i = 0; i < times.size(); ++i)
          if (const auto kind = kinds_.of(*step, step->tasks[i])) {
            auto& [measured, median] = sums[kind->operation];
            measured += in_seconds(times[i].end - times[i].start);
            median += medians.at(*kind);
          }
        for (const auto& [operation, sum] : sums)
          if (sum.second > 0) ratios[operation].push_back(sum.first / sum.second);
      }
    for (auto& [operation, values] : ratios)
      result_.factors.push_back({operation, median(std::move(values))});
  }

  /// What the host pays to issue a collective, in steps that really communicate, and for a hook.
  bool launches() {
    std::vector<Duration> hooks, collectives, kernels;
    for (const Schedule& step : steps_) {
      for (int round = 0; round < 3; ++round) {
        if (!go_on("launch cost", 0.3)) return false;
        const Timeline timeline = measure_step(backend_, step);
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
      const std::optional<Spread> time = all_reduce(size, 0.3 + 0.5 * share);
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
      const Duration mine = mean(backend_.time_all_reduces(size, in_a_row, false));
      for (const Duration theirs : gathered({mine})) samples.push_back(theirs);
      spent += (in_a_row + 1) * mine;
      const int repeats = static_cast<int>(samples.size()) / backend_.ranks();
      more = any_rank(backend_,
                      repeats < 3 || (repeats < options_.repeats && spent < options_.patience));
    }
    return spread_of(std::move(samples));
  }

  static int row_of(Bytes size) { return size <= Bytes{8 << 20} ? 10 : 2; }

  /// What it costs that the host waits for each all-reduce before it issues the next: threads wake each
  /// other, and the scheduler takes its time.
  bool waits() {
    if (!backend_.synchronous()) return true;  // a stream waits, not the host
    std::vector<Duration> extra;
    for (const AllReduceCost& cost : result_.all_reduce) {
      if (cost.size < Bytes{4 << 10} || cost.size > Bytes{8 << 20}) continue;
      for (int round = 0; round < 2; ++round) {
        if (!go_on("waiting for all-reduces", 0.8)) return false;
        const Duration waiting = mean(gathered(backend_.time_all_reduces(cost.size, 6, true)));
        extra.push_back(waiting - cost.time.median);
      }
    }
    if (!extra.empty()) result_.launch.wait = std::max(Duration::zero(), spread_of(extra).median);
    return true;
  }

  /// Beside all-reduces of four sizes; on a device with channels, also of one size with fewer.
  bool interference() {
    if (backend_.link_ranks() == 1 || result_.all_reduce.empty()) return true;
    std::vector<Duration> begun;
    Bytes usual;
    for (const Bytes size : {64 * KiB, 512 * KiB, 4 * MiB, 16 * MiB}) {
      if (!beside(size, 0, begun)) return false;
      if (measured_alone(size) && size <= 4 * MiB) usual = size;
    }
    for (const int channels : {1, 2, 4, 8, 16, 32}) {
      if (usual == Bytes{} || !backend_.use_channels(channels)) break;
      if (!beside(usual, channels, begun)) return false;
    }
    backend_.use_channels(0);
    // From issuing one to having it on the communication thread of every rank, kernels running.
    if (!begun.empty() && backend_.synchronous()) result_.launch.handover = mean(begun);
    return true;
  }

  /// Everything is a mean here: how much of each the other lets through in the long run.
  bool beside(Bytes size, int channels, std::vector<Duration>& begun) {
    std::optional<Duration> idle = measured_alone(size);
    if (idle && channels > 0) idle = mean(gathered(backend_.time_all_reduces(size, 10, false)));
    if (!idle) return true;
    RunOptions alone;
    alone.communicate = false;
    // Some twenty all-reduces, or three steps.
    alone.rounds = 3 + static_cast<int>(20 * in_seconds(*idle) / in_seconds(mean(alone_)));
    if (alone.rounds * in_seconds(mean(alone_)) > 3 * in_seconds(options_.patience)) return true;
    RunOptions beside = alone;
    beside.background = size;
    Duration quick{}, slow{};
    ByKind quick_kinds, slow_kinds;
    Duration transfers{}, met{};  // of the stream; of the computation with the stream beside it
    double ended = 0;
    std::vector<Duration> starts;
    for (int round = 0; round < 2 + options_.repeats / 5; ++round) {
      if (!go_on(fmt::format("interference with {}", to_string(size)), 0.9)) return false;
      const RankRun before = backend_.run(steps_.front(), alone);
      quick += mean(gathered({before.computed}));
      quick_kinds += by_kind(before);
      const RankRun run = backend_.run(steps_.front(), beside);
      slow += mean(gathered({run.computed}));
      slow_kinds += by_kind(run);
      const Duration beside_it = scaled(
          std::max(Duration::zero(), run.computed - run.background_begun), run.background_busy);
      met += mean(gathered({beside_it}));
      transfers += beside_it;
      if (!any_rank(backend_, beside_it == Duration::zero()))
        starts.push_back(mean(gathered({run.background_begun})));
      // One more was under way when this rank had computed, half done on average.
      ended += beside_it > Duration::zero() ? run.background_ended + 0.5 : 0;
    }
    // Where the stream began late or ran dry at times, the slowdown is that of the times it did not.
    const double busy = in_seconds(met) / in_seconds(slow);
    if (any_rank(backend_, busy < 0.3 || ended == 0)) return true;
    const auto felt = [&](Duration with, Duration without) {
      return 1 + (in_seconds(with) / in_seconds(without) - 1) / busy;
    };
    const Duration each = mean(gathered({scaled(transfers, 1 / ended)}));
    MeasuredInterference point;
    point.size = size;
    point.channels = channels;
    point.compute_slowdown = felt(slow, quick);
    point.communication_slowdown = in_seconds(each) / in_seconds(*idle);
    // Only streams tell kinds apart: what slows a host thread slows all it does.
    if (!backend_.synchronous() && quick_kinds.arithmetic > Duration::zero() &&
        quick_kinds.memory > Duration::zero()) {
      point.compute_slowdown = felt(slow_kinds.arithmetic, quick_kinds.arithmetic);
      point.memory_slowdown = felt(slow_kinds.memory, quick_kinds.memory);
    }
    if (!point.is_plausible()) return true;
    result_.interference.push_back(point);
    begun.insert(begun.end(), starts.begin(), starts.end());
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
    ByKind& operator+=(const ByKind& other) {
      arithmetic += other.arithmetic;
      memory += other.memory;
      return *this;
    }
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

  static double median(std::vector<double> values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
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
  Kinds kinds_;
  const std::vector<Schedule>& steps_;
  const MeasureOptions& options_;
  const Watch& watch_;
  std::vector<Duration> alone_;  ///< computing of the first step, nothing beside it
  Calibration result_;
};

}  // namespace

Spread spread_of(std::vector<Duration> samples) {
  if (samples.empty()) throw std::invalid_argument("nothing was measured");
  std::sort(samples.begin(), samples.end());
  const auto at = [&](double share) {
    return samples[static_cast<std::size_t>(share * static_cast<double>(samples.size() - 1) + 0.5)];
  };
  Spread spread{at(0.5), at(0.1), at(0.9), static_cast<int>(samples.size()), 0};
  const Duration reach = 3 * (at(0.75) - at(0.25));
  for (const Duration sample : samples)
    if (sample < at(0.25) - reach || sample > at(0.75) + reach) ++spread.outliers;
  return spread;
}

Calibration measure_machine(Backend& backend, const Workload& workload, Optimizer optimizer,
                            const std::vector<Schedule>& steps, const MeasureOptions& options,
                            const Watch& watch) {
  return Measurement(backend, workload, optimizer, steps, options, watch).run();
}

}  // namespace ddpsim
