// How a step runs for real on a GPU.
//
// The host thread walks the schedule in order. A task goes to its stream; for each task of another
// stream it waits for, its stream first waits for that one's event. Nothing else orders the streams.
// Every task's end is recorded in an event; a kernel began when its stream was free and what it
// waits for had ended, so only collectives, which may wait for peers, have an event for the start.
//
// Host and GPU share no clock. A step begins with an event on an idle GPU; the host watches for it,
// so both know that instant to a few microseconds, and everything counts from there.
//
// Waiting for the GPU is polling: NCCL's and CUDA's errors show there, and a rank that never
// arrives ends in a timeout, not in a hang.

#include "backend/nccl/nccl_backend.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <type_traits>

#include <fmt/format.h>

#include "backend/device_error.hpp"
#include "backend/gloo/communicator.hpp"
#include "backend/gloo/priority.hpp"
#include "backend/nccl/gpu_collectives.hpp"
#include "backend/nccl/gpu_hook_data.hpp"
#include "backend/nccl/gpu_memory.hpp"
#include "backend/nccl/nccl_profiler.hpp"
#include "backend/version.hpp"

namespace ddpsim {
namespace {

using std::chrono::milliseconds;

/// Between agreeing on a step's start and starting: for the message to reach every rank.
constexpr Duration head_start = std::chrono::milliseconds{2};
/// All-reduces in the background are agreed on in batches of about this many bytes.
constexpr std::int64_t batch_bytes = 64 << 20;
constexpr int longest_batch = 64;
/// Between what events and the GPU's own clock say of one instant.
constexpr Duration clock_error = std::chrono::microseconds{50};
/// For the host to enqueue an all-reduce with its events, at most.
constexpr Duration gate = std::chrono::microseconds{100};
/// Four marks of so many are well below what a stream takes.
constexpr int entries_per_mark = 100;

std::size_t at(std::int32_t index) {
  return static_cast<std::size_t>(index);
}

class NcclBackend : public Backend {
 public:
  NcclBackend(std::unique_ptr<Gpu> gpu, const GpuLink& link, Rendezvous& rendezvous, int rank,
              int ranks, const std::string& interface, milliseconds timeout)
      : gpu_(std::move(gpu)),
        link_(link),
        timeout_(timeout),
        communicator_(rendezvous, rank, ranks, interface, timeout),
        collectives_(*gpu_, link, rank, ranks),
        description_(gpu_->description()) {
    take_role(Role::communication);  // the host thread of a GPU only enqueues, and must not be late
    if (link.mode == GpuLink::Mode::loopback && ranks != 1)
      throw std::invalid_argument("loopback is for one rank");
    if (link.mode == GpuLink::Mode::group) check_own_gpu();
    if (link.profile) use_nccl_profiler();
    connect(link.channels);
  }

  ~NcclBackend() override {
    if (failed_) gpu_->abort();
  }

  int rank() const override { return communicator_.rank(); }
  int ranks() const override { return communicator_.ranks(); }
  int link_ranks() const override {
    return link_.mode == GpuLink::Mode::loopback ? link_.loopback : ranks();
  }
  bool synchronous() const override { return false; }
  std::string device_name() const override { return description_.name; }
  std::string link_name() const override {
    switch (link_.mode) {
      case GpuLink::Mode::group:
        return ranks() == 1 ? "one GPU" : "NCCL";
      case GpuLink::Mode::shared:
        return "one GPU shared by all ranks: gradients are real, times mean nothing";
      case GpuLink::Mode::loopback:
        return fmt::format(
            "loopback on one GPU: NCCL send and receive to itself of what a rank of {} moves",
            link_.loopback);
    }
    return "";
  }
  std::string versions() const override {
    return fmt::format("ddpsim {}, {}", version, description_.versions);
  }

  void load(const Workload& workload, Optimizer optimizer) override {
    hooks_.reset();
    memory_.reset();
    memory_ = std::make_unique<GpuMemory>(*gpu_, workload, optimizer, rank());
    hooks_ = std::make_unique<GpuHookData>(*gpu_, *memory_, collectives_);
  }

  bool use_channels(int channels) override {
    return or_abort([&] {
      connect(channels > 0 ? channels : link_.channels);
      return true;
    });
  }

  RankRun run(const Schedule& schedule, const RunOptions& options) override {
    if (!memory_) throw std::logic_error("run before load");
    for (const UserHook& hook : schedule.hooks)
      if (hook.kind != UserHookKind::scale && hook.kind != UserHookKind::record)
        throw std::invalid_argument(fmt::format(
            "the nccl backend carries out scale and record hooks, not {}: take it out of "
            "training.hooks, or run on gloo",
            ddpsim::name_of(hook.kind)));
    GpuHookData::check(schedule);
    check_queue(schedule);
    return or_abort([&] { return run_on_gpu(schedule, options); });
  }

  std::vector<float> gradient(int parameter) const override { return memory_->gradient(parameter); }

  std::vector<Duration> time_all_reduces(Bytes size, int count, bool waiting) override {
    return or_abort([&] {
      collectives_.reserve(Operation::all_reduce, size);
      const std::int64_t elements = std::max<std::int64_t>(1, size.count / 4);
      start_together();
      if (!waiting) {
        // They begin once all are enqueued: what the GPU takes, not how fast the host issues them.
        gpu_->spin(Stream::compute, (count + 1) * gate);
        gpu_->record(last_round, Stream::compute);
        gpu_->wait(Stream::communication, last_round);
      }
      for (int i = 0; i <= count; ++i) {
        gpu_->record(start_of(static_cast<std::uint32_t>(i)), Stream::communication);
        collectives_.all_reduce(collectives_.next_values(size), elements, DType::fp32);
        gpu_->record(end_of(static_cast<std::uint32_t>(i)), Stream::communication);
        if (waiting) await(end_of(static_cast<std::uint32_t>(i)));
      }
      await(end_of(static_cast<std::uint32_t>(count)));
      std::vector<Instant> arrivals, ends;
      for (std::uint32_t i = 0; i <= static_cast<std::uint32_t>(count); ++i) {
        arrivals.push_back(instant_of(start_of(i)));
        ends.push_back(instant_of(end_of(i)));
      }
      const std::vector<Instant> starts = latest(arrivals);
      std::vector<Duration> times;
      for (std::size_t i = 1; i < starts.size(); ++i)
        times.push_back(ends[i] - (waiting ? ends[i - 1] : std::min(starts[i], ends[i])));
      return times;
    });
  }

  void sum(std::span<double> values) override { communicator_.all_reduce(values); }
  std::vector<std::vector<std::byte>> gather(std::span<const std::byte> mine) override {
    return communicator_.gather(mine);
  }

 private:
  /// One communicator, on the device, is one queue (rule R17).
  static void check_queue(const Schedule& schedule) {
    if (schedule.collectives_at_once > 1)
      throw std::invalid_argument(
          "NCCL runs one collective of a communicator at a time: take cluster.collectives_at_once "
          "out, or run on gloo");
    for (const Task& task : schedule.tasks) {
      if (task.stream == Stream::to_host)
        throw std::invalid_argument(
            "NCCL's collectives run on the devices: take cluster.through_host out; it is simulated "
            "only");
      if (task.communicator != 0)
        throw std::invalid_argument(
            "the nccl backend has one communicator: take communicator out of the comm hook's "
            "steps, or run on gloo");
    }
  }

  // Events: the start of the step, that of its last round, a ring of marks that says how far the GPU has
  // come; then for task i its end and, of a collective, its start; the end of computing; and a pair for
  // each all-reduce in the background.
  static constexpr int beginning = 0, last_round = 1, first_mark = 2, marks = 4, first_task = 6;
  static int end_of(std::uint32_t task) { return first_task + 2 * static_cast<int>(task); }
  static int start_of(std::uint32_t task) { return end_of(task) + 1; }

  /// One physical GPU for each rank, or a mistake.
  void check_own_gpu() {
    const auto all = communicator_.gather(std::as_bytes(std::span(description_.uuid)));
    for (std::size_t other = 0; other < all.size(); ++other)
      if (static_cast<int>(other) != rank() && all[other].size() == description_.uuid.size() &&
          std::memcmp(all[other].data(), description_.uuid.data(), all[other].size()) == 0)
        throw DeviceError(fmt::format(
            "ranks {} and {} are on one GPU, {}: start as many ranks as there are GPUs, or say "
            "--gpus-share to check gradients only",
            std::min<std::size_t>(other, static_cast<std::size_t>(rank())),
            std::max<std::size_t>(other, static_cast<std::size_t>(rank())), description_.name));
  }

  void connect(int channels) {
    std::vector<std::byte> id;
    if (rank() == 0) id = gpu_->make_id();
    const auto ids = communicator_.gather(id);
    gpu_->connect(ids.front(), rank(), ranks(), channels);
  }

  template <typename Call>
  std::invoke_result_t<Call> or_abort(Call call) {
    try {
      return call();
    } catch (...) {
      failed_ = true;
      gpu_->abort();
      throw;
    }
  }

  /// Of someone who polls: looks for errors every millisecond, and gives up after the timeout.
  class Patience {
   public:
    explicit Patience(NcclBackend& backend) : backend_(backend) {}
    void spend() {
      const auto time = std::chrono::steady_clock::now();
      if (time < next_look_) return;
      next_look_ = time + milliseconds{1};
      backend_.check();
      if (time - begin_ > backend_.timeout_)
        throw DeviceError(fmt::format(
            "the GPU's work did not end within {:g} s; a rank may be gone, or waiting elsewhere",
            static_cast<double>(backend_.timeout_.count()) / 1000));
      std::this_thread::yield();
    }

   private:
    NcclBackend& backend_;
    std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
    std::chrono::steady_clock::time_point next_look_ = begin_ + milliseconds{1};
  };

  /// Until the event, an error, or the timeout.
  void await(int event) {
    for (Patience patience(*this); !gpu_->reached(event);) patience.spend();
    check();
  }

  /// Keeps the host from enqueueing more than a stream takes before a call blocks (about a thousand):
  /// a blocked call would count as the cost of a launch, and nobody would look for errors. While it
  /// waits it feeds the background, which would make kernels late at any other time.
  void keep_near(const Task& task) {
    if (task.stream == Stream::host) return;
    ahead_ += task.launches + 3;  // and a wait, two records
    if (ahead_ < entries_per_mark) return;
    ahead_ = 0;
    if (next_mark_ >= marks)
      for (Patience patience(*this); !gpu_->reached(first_mark + next_mark_ % marks);
           patience.spend())
        feed(false);
    gpu_->record(first_mark + next_mark_ % marks, Stream::compute);
    ++next_mark_;
  }

  void check() {
    if (const std::string problem = gpu_->failure(); !problem.empty()) throw DeviceError(problem);
  }

  /// All streams idle, all ranks at one instant; that is from then on the zero of `now`.
  void start_together() {
    for (const Stream stream : {Stream::communication, Stream::aside}) {
      gpu_->record(beginning, stream);
      gpu_->wait(Stream::compute, beginning);
    }
    gpu_->record(beginning, Stream::compute);
    await(beginning);
    communicator_.align_clock();
    communicator_.barrier();
    std::int64_t agreed = (communicator_.now() + head_start).time_since_epoch().count();
    communicator_.broadcast({reinterpret_cast<char*>(&agreed), sizeof(agreed)});
    zero_ = std::min(communicator_.to_local(Instant{Duration{agreed}}),
                     communicator_.now() + std::chrono::seconds{1});
    while (communicator_.now() < zero_) {
    }
    gpu_->record(beginning, Stream::compute);
    gpu_->wait(Stream::communication, beginning);
    gpu_->wait(Stream::aside, beginning);
    await(beginning);
    begun_ = now();
    if (link_.profile) gpu_->note_clock();
  }

  Instant now() const { return Instant{communicator_.now() - zero_}; }
  Instant instant_of(int event) { return begun_ + gpu_->between(beginning, event); }

  RankRun run_on_gpu(const Schedule& schedule, const RunOptions& options) {
    memory_->arrange(schedule);
    hooks_->arrange(schedule);
    for (const Task& task : schedule.tasks)
      if (is_collective(task.operation)) collectives_.reserve(task.operation, task.bytes);
    background_ = 0;
    RankRun run;
    run.times.resize(schedule.tasks.size());
    const auto tasks = static_cast<std::uint32_t>(schedule.tasks.size());
    const int computed = end_of(tasks);
    first_background_ = computed + 1;
    background_size_ = options.background;
    stopped_ = options.background == Bytes{};
    if (!stopped_) collectives_.reserve(Operation::all_reduce, options.background);
    ahead_ = next_mark_ = 0;
    ranges_.clear();
    for (const Task& task : schedule.tasks) ranges_.push_back(memory_->range_name(schedule, task));
    start_together();
    feed(false);
    gpu_->push_range(fmt::format("step, {}", name_of(schedule.strategy)));
    for (int round = 0; round < options.rounds; ++round) {
      if (round + 1 == options.rounds) gpu_->record(last_round, Stream::compute);
      for (std::uint32_t i = 0; i < tasks; ++i) {
        keep_near(schedule.tasks[i]);
        execute(schedule, i, options, run.times[i]);
      }
    }
    gpu_->record(computed, Stream::compute);
    for (Patience patience(*this); !stopped_; patience.spend()) feed(gpu_->reached(computed));
    await(computed);
    if (background_ > 0) await(background_event(background_ - 1, true));
    for (const Stream stream : {Stream::communication, Stream::aside})
      await_last(schedule, stream, options);
    gpu_->pop_range();
    if (!options.communicate) hooks_->forget();
    read_events(schedule, options, run);
    if (link_.profile) read_profiler(schedule, options, run);
    run.computed = instant_of(computed) - Instant{};
    compare_notes(schedule, options, instant_of(computed), run);
    return run;
  }

  void await_last(const Schedule& schedule, Stream stream, const RunOptions& options) {
    for (auto i = static_cast<std::uint32_t>(schedule.tasks.size()); i-- > 0;)
      if (schedule.tasks[i].stream == stream && enqueues(schedule.tasks[i], options))
        return await(end_of(i));
  }

  /// Does the task become work on the GPU?
  static bool enqueues(const Task& task, const RunOptions& options) {
    return task.stream != Stream::host && (options.communicate || !is_collective(task.operation));
  }

  void execute(const Schedule& schedule, std::uint32_t index, const RunOptions& options,
               TaskTimes& times) {
    const Task& task = schedule.tasks[index];
    if (task.host_waits) {
      for (const std::uint32_t earlier : schedule.waits_for(task))
        host_waits_for(schedule, earlier, options);
    }
    times.issued = now();
    if (enqueues(task, options)) {
      gpu_->push_range(ranges_[index]);
      for (const std::uint32_t earlier : schedule.waits_for(task))
        stream_waits_for(schedule, earlier, task.stream, options);
      if (is_collective(task.operation)) gpu_->record(start_of(index), task.stream);
      if (task.operation != Operation::optimizer || options.update) enqueue(schedule, task);
      gpu_->record(end_of(index), task.stream);
      gpu_->pop_range();
    } else if (task.operation == Operation::hook) {
      gpu_->push_range(ranges_[index]);
      if (options.hook) options.hook(task.parameter, task.micro_batch);
      gpu_->pop_range();
    }
    times.enqueued = now();
    times.start = times.end = times.enqueued;
  }

  void enqueue(const Schedule& schedule, const Task& task) {
    if (task.step != nobody) return hooks_->run(schedule, task);
    if (is_note(task)) return send_note(task);
    if (task.operation == Operation::broadcast)
      return collectives_.broadcast(memory_->buffers(), task.bytes);
    if (task.operation != Operation::all_reduce) return memory_->run(schedule, task, ranks());
    const DType type = memory_->type_of(schedule.buckets[at(task.bucket)]);
    collectives_.all_reduce(memory_->bucket(task.bucket), task.bytes.count / size_of(type).count,
                            type);
  }

  /// What DDP tells other ranks; nobody looks at its values.
  void send_note(const Task& task) {
    void* values = collectives_.next_values(task.bytes);
    if (task.operation == Operation::broadcast) return collectives_.broadcast(values, task.bytes);
    collectives_.all_reduce(values, task.bytes.count / size_of(DType::fp32).count, DType::fp32);
  }

  /// In place of a collective that is left out, for what that one waits for.
  void stream_waits_for(const Schedule& schedule, std::uint32_t earlier, Stream stream,
                        const RunOptions& options) {
    const Task& before = schedule.tasks[earlier];
    if (enqueues(before, options)) {
      if (before.stream != stream) gpu_->wait(stream, end_of(earlier));
    } else if (before.stream != Stream::host) {
      for (const std::uint32_t each : schedule.waits_for(before))
        stream_waits_for(schedule, each, stream, options);
    }
  }

  void host_waits_for(const Schedule& schedule, std::uint32_t earlier, const RunOptions& options) {
    if (enqueues(schedule.tasks[earlier], options)) await(end_of(earlier));
  }

  // All-reduces beside computation. Ranks must issue equally many, so they agree on each batch: one more
  // as long as all of them compute. Two batches are on the way, for the stream never to run dry.

  int batch() const {
    return static_cast<int>(std::clamp<std::int64_t>(
        batch_bytes / std::max<std::int64_t>(1, background_size_.count), 1, longest_batch));
  }
  int background_event(int index, bool end) const {
    return first_background_ + 2 * index + (end ? 1 : 0);
  }

  /// Up to two more batches, if there is room and every rank still computes. A rank that has computed says
  /// so in the next agreement; all make that one, and it is the last.
  void feed(bool computed) {
    for (int more = 0; more < 2 && !stopped_; ++more) {
      const bool full = background_ >= 2 * batch() &&
                        !gpu_->reached(background_event(background_ - batch() - 1, true));
      if (full && !computed) return;
      double done = computed ? 1 : 0;
      if (background_ > 0) communicator_.all_reduce(std::span(&done, 1));
      stopped_ = done > 0;
      for (int i = 0; i < batch() && !stopped_; ++i, ++background_) {
        gpu_->record(background_event(background_, false), Stream::communication);
        collectives_.all_reduce(collectives_.next_values(background_size_),
                                std::max<std::int64_t>(1, background_size_.count / 4), DType::fp32);
        gpu_->record(background_event(background_, true), Stream::communication);
      }
    }
  }

  /// What began when: a kernel once its stream was free, what it waits for had ended, and the host had
  /// enqueued its first launch, as in the simulator; a collective also not before its event.
  void read_events(const Schedule& schedule, const RunOptions& options, RankRun& run) {
    std::array<Instant, all_streams.size()> free{};
    free[static_cast<std::size_t>(Stream::compute)] = instant_of(last_round);
    for (std::uint32_t i = 0; i < schedule.tasks.size(); ++i) {
      const Task& task = schedule.tasks[i];
      TaskTimes& times = run.times[i];
      if (task.stream == Stream::host) {
        times.start = times.issued;
        continue;
      }
      if (!enqueues(task, options)) continue;
      times.end = instant_of(end_of(i));
      Instant& available = free[static_cast<std::size_t>(task.stream)];
      times.start =
          std::max(available, times.issued + (times.enqueued - times.issued) / task.launches);
      if (is_collective(task.operation)) {
        times.start = std::max(times.start, instant_of(start_of(i)));
      } else {
        for (const std::uint32_t earlier : schedule.waits_for(task))
          times.start = std::max(times.start, run.times[earlier].end);
        if (task.operation == Operation::wait) times.start = times.end;
      }
      times.start = std::min(times.start, times.end);
      available = times.end;
    }
  }

  /// Starts and ends of collectives as NCCL saw them on the GPU. They lie within what the events say, or are
  /// not of these collectives; then the events stand.
  void read_profiler(const Schedule& schedule, const RunOptions& options, RankRun& run) {
    std::vector<std::uint32_t> collectives;
    for (std::uint32_t i = 0; i < schedule.tasks.size() && options.communicate; ++i)
      if (is_collective(schedule.tasks[i].operation) && schedule.tasks[i].bytes > Bytes{})
        collectives.push_back(i);
    std::vector<CollectiveSpan> spans;
    const auto deadline = std::chrono::steady_clock::now() + milliseconds{100};
    while ((spans = take_collective_spans()).empty() && !collectives.empty() &&
           std::chrono::steady_clock::now() < deadline)
      std::this_thread::yield();
    if (spans.size() != collectives.size()) return;
    const std::uint64_t zero = gpu_->noted_clock();
    for (std::size_t c = 0; c < spans.size(); ++c) {
      TaskTimes& times = run.times[collectives[c]];
      const auto instant = [&](std::uint64_t clock) {
        return begun_ + std::chrono::nanoseconds{static_cast<std::int64_t>(clock - zero)};
      };
      const Instant start = instant(spans[c].start), stop = instant(spans[c].stop);
      if (start + clock_error < times.start || stop > times.end + clock_error || stop < start)
        continue;
      times.start = std::clamp(start, times.start, times.end);
      times.end = std::clamp(stop, times.start, times.end);
    }
  }

  std::vector<Instant> latest(std::vector<Instant> mine) {
    for (Instant& each : mine) each = zero_ + each.time_since_epoch();
    mine = communicator_.latest(std::move(mine));
    for (Instant& each : mine) each = Instant{each - zero_};
    return mine;
  }

  void compare_notes(const Schedule& schedule, const RunOptions& options, Instant computed_at,
                     RankRun& run) {
    std::vector<std::uint32_t> collectives;
    std::vector<Instant> arrived;
    for (std::uint32_t i = 0; i < schedule.tasks.size() && options.communicate; ++i)
      if (is_collective(schedule.tasks[i].operation)) {
        collectives.push_back(i);
        arrived.push_back(run.times[i].start);
      }
    if (background_ > 0) arrived.push_back(instant_of(background_event(0, false)));
    if (arrived.empty()) return;
    const std::vector<Instant> last = latest(arrived);
    for (std::size_t c = 0; c < collectives.size(); ++c) {
      TaskTimes& times = run.times[collectives[c]];
      times.start = std::min(times.end, last[c]);
    }
    if (background_ == 0) return;
    run.background_begun = last.back() - Instant{};
    Duration busy{};
    Instant end = last.back();
    for (int i = 0; i < background_ && end < computed_at; ++i) {
      end = std::min(computed_at, instant_of(background_event(i, true)));
      busy += end - std::max(last.back(), instant_of(background_event(i, false)));
      run.background_ended += end < computed_at ? 1 : 0;
    }
    const Duration since = computed_at - last.back();
    run.background_busy =
        since > Duration::zero() ? std::min(1.0, in_seconds(busy) / in_seconds(since)) : 0;
  }

  std::unique_ptr<Gpu> gpu_;
  GpuLink link_;
  milliseconds timeout_;
  Communicator communicator_;
  GpuCollectives collectives_;
  GpuDescription description_;
  std::unique_ptr<GpuMemory> memory_;
  std::unique_ptr<GpuHookData> hooks_;
  Instant zero_{};   ///< of this step, on the communicator's clock
  Instant begun_{};  ///< when the event `beginning` happened, counted from zero_
  int ahead_ = 0;    ///< entries enqueued since the last mark
  int next_mark_ = 0;
  Bytes background_size_;
  int background_ = 0;  ///< all-reduces issued
  int first_background_ = 0;
  bool stopped_ = true;              ///< the ranks have agreed to issue no more of them
  std::vector<std::string> ranges_;  ///< [task] for profilers
  bool failed_ = false;
};

}  // namespace

void share_one_gpu(int rank) {
  setenv("NCCL_HOSTID", fmt::format("ddpsim-rank-{}", rank).c_str(), 1);
  for (const auto& [name, value] : {std::pair{"NCCL_NET", "Socket"},
                                    {"NCCL_SOCKET_IFNAME", "lo"},
                                    {"NCCL_PROTO", "Simple"},
                                    {"NCCL_MAX_CTAS", "4"},
                                    {"NCCL_RAS_ENABLE", "0"},
                                    {"NCCL_MNNVL_ENABLE", "0"},
                                    {"NCCL_MULTI_RANK_GPU_ENABLE", "1"}})
    setenv(name, value, 0);
}

std::unique_ptr<Backend> make_nccl_backend(std::unique_ptr<Gpu> gpu, const GpuLink& link,
                                           Rendezvous& rendezvous, int rank, int ranks,
                                           const std::string& interface, milliseconds timeout) {
  return std::make_unique<NcclBackend>(std::move(gpu), link, rendezvous, rank, ranks, interface,
                                       timeout);
}

}  // namespace ddpsim
