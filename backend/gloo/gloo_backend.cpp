// How a step runs for real on CPUs.
//
// The host thread walks the schedule in order and does what each task says. Collectives go to the
// communication threads, which begin those of a communicator in order and run one at a time, or as many
// as the schedule says; a `wait` blocks the host until its all-reduce has
// ended. So hooks fire when their kernel has ended, and communication hides behind the kernels that
// follow, as far as two threads and the kernel's network stack can share the cores.
//
// Instants are taken around every task: about 50 ns each. An all-reduce "starts" when the last rank
// arrives, which no rank knows meanwhile; each notes when it arrived itself, and they compare notes
// after the step.

#include "backend/gloo/gloo_backend.hpp"

#include <algorithm>
#include <atomic>
#include <fstream>
#include <mutex>
#include <numeric>
#include <stdexcept>
#include <thread>

#include <Eigen/Core>
#include <fmt/format.h>
#include <gloo/config.h>
#include <unistd.h>

#include "backend/comm_hooks/hook_data.hpp"
#include "backend/device_error.hpp"
#include "backend/gloo/busy.hpp"
#include "backend/gloo/communication_threads.hpp"
#include "backend/gloo/communicator.hpp"
#include "backend/gloo/gemm.hpp"
#include "backend/gloo/kernels.hpp"
#include "backend/gloo/memory.hpp"
#include "backend/gloo/priority.hpp"
#include "backend/gloo/user_hooks.hpp"
#include "backend/version.hpp"

namespace ddpsim {
namespace {

using std::chrono::milliseconds;

/// Between agreeing on a step's start and starting: for the message to reach every rank, also one whose
/// scheduler looks only at clock ticks (4 ms at 250 Hz).
constexpr Duration head_start = std::chrono::milliseconds{5};

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name"))
      if (const auto colon = line.find(": "); colon != std::string::npos)
        return line.substr(colon + 2);
  return "unknown CPU";
}

constexpr Bytes beyond_caches{128 << 20};

/// Parameters, gradients, a second set of them, buckets and two states of an optimizer.
void check_memory(const Workload& workload, int ranks_here) {
  double needed = 6.0 * static_cast<double>(workload.gradient_size().count) * ranks_here;
  for (const Parameter& parameter : workload.parameters)  // each gathers the rows of all
    if (parameter.sparse)
      needed +=
          static_cast<double>((parameter.sparse_values() + parameter.sparse_indices()).count) *
          ranks_here * ranks_here;
  const double there =
      static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  if (needed > 0.9 * there)
    throw std::invalid_argument(
        fmt::format("{} needs up to {:.1f} GiB for the ranks of this host, which has {:.1f} GiB",
                    workload.name, needed / (1 << 30), there / (1 << 30)));
}

class GlooBackend : public Backend {
 public:
  GlooBackend(Rendezvous& rendezvous, int rank, int ranks, std::string interface,
              milliseconds timeout, const Plugins* plugins)
      : communicator_(rendezvous, rank, ranks, interface, timeout),
        interface_(std::move(interface)),
        plugins_(plugins) {
    take_role(Role::computation);  // the members' threads have started by now
  }

  int rank() const override { return communicator_.rank(); }
  int ranks() const override { return communicator_.ranks(); }
  bool synchronous() const override { return true; }
  std::string device_name() const override {
    return fmt::format("{}, {} cores", cpu_model(), sysconf(_SC_NPROCESSORS_ONLN));
  }
  std::string link_name() const override {
    return interface_.empty() ? "TCP over loopback" : fmt::format("TCP over {}", interface_);
  }
  std::string versions() const override {
    return fmt::format("ddpsim {}, Gloo {}.{}.{}, Eigen {}.{}.{} with {}", version,
                       GLOO_VERSION_MAJOR, GLOO_VERSION_MINOR, GLOO_VERSION_PATCH,
                       EIGEN_WORLD_VERSION, EIGEN_MAJOR_VERSION, EIGEN_MINOR_VERSION,
                       gemm_instructions());
  }

  void load(const Workload& workload, Optimizer optimizer) override {
    for (const Parameter& parameter : workload.parameters)
      if (parameter.dtype != DType::fp32)
        throw std::invalid_argument(fmt::format(
            "the gloo backend computes in fp32, and {} is {}: set workload.dtype to fp32",
            parameter.name, name_of(parameter.dtype)));
    check_memory(workload, ranks());
    hooked_.clear();
    kernels_.reset();
    hooks_.reset();
    memory_.reset();
    memory_ = std::make_unique<Memory>(workload, optimizer, rank());
    kernels_ = std::make_unique<Kernels>(workload, optimizer, ranks(), *memory_);
    hooks_ = std::make_unique<UserHooks>(workload, rank(), ranks(), *memory_, plugins_);
  }

  RankRun run(const Schedule& schedule, const RunOptions& options) override {
    if (!memory_) throw std::logic_error("run before load");
    memory_->arrange(schedule);
    joined_ = schedule.is_joined(rank(), ranks());
    check_join(schedule);
    check_delayed(schedule);
    check_owners(schedule);
    if (joined_) memory_->clear_gradients();
    hook_data_ = schedule.comm_hook ? &data_of(schedule) : nullptr;
    update_ = options.update;
    RankRun run;
    run.times.resize(schedule.tasks.size());
    arrivals_.assign(schedule.tasks.size(), Instant{});
    tickets_.assign(schedule.tasks.size(), 0);
    background_.clear();
    sent_ = {};
    start_together();
    Instant computed_at;
    or_disconnect([&] {
      communication_.arrange(communicators(schedule), schedule.collectives_at_once);
      if (options.background != Bytes{}) begin_background(options);
      for (int round = 0; round < options.rounds; ++round) {
        hooks_->begin(schedule);
        if (update_) kernels_->begin_step();
        for (std::uint32_t i = 0; i < schedule.tasks.size(); ++i)
          execute(schedule, i, options, run);
      }
      computed_ = true;
      computed_at = now();
      communication_.wait_for_all();
      communication_.arrange(1, 1);
    });
    run.computed = computed_at - Instant{};
    if (hook_data_ != nullptr) sent_.overflows = hook_data_->overflows();
    run.sent = sent_;
    compare_notes(schedule, options, computed_at, run);
    return run;
  }

  std::vector<float> gradient(int parameter) const override {
    const auto values = memory_->gradient(parameter);
    return {values.begin(), values.end()};
  }

  std::vector<Duration> time_all_reduces(Bytes size, int count, bool waiting) override {
    // Another piece of memory each time, as gradients are: not what the caches have just seen.
    const std::span<float> store = scratch(std::max(size, beyond_caches));
    const std::size_t length = std::max<std::size_t>(1, static_cast<std::size_t>(size.count) / 4);
    std::vector<Instant> arrivals, ends;
    std::uint64_t ticket = 0;
    start_together();
    or_disconnect([&] {
      for (int i = 0; i <= count; ++i) {
        next_piece_ = next_piece_ + length <= store.size() ? next_piece_ : 0;
        const std::span<float> values = store.subspan(next_piece_, length);
        next_piece_ += length;
        ticket = communication_.submit([&, values] {
          arrivals.push_back(communicator_.now());
          communicator_.all_reduce(values);
          ends.push_back(communicator_.now());
        });
        if (waiting) communication_.wait(ticket);
      }
      communication_.wait(ticket);
    });
    const std::vector<Instant> starts = latest(arrivals);
    std::vector<Duration> times;
    // Waiting for the other ranks between them is part of what a wait costs.
    for (std::size_t i = 1; i < starts.size(); ++i)
      times.push_back(ends[i] - (waiting ? ends[i - 1] : starts[i]));
    return times;
  }

  void sum(std::span<double> values) override {
    communicate([&] { communicator_.all_reduce(values); });
  }

  std::vector<std::vector<std::byte>> gather(std::span<const std::byte> mine) override {
    std::vector<std::vector<std::byte>> all;
    communicate([&] { all = communicator_.gather(mine); });
    return all;
  }

 private:
  /// `call` on the communication thread, the only one that may use the communicator (see Role).
  template <typename Call>
  void communicate(Call call) {
    communication_.wait(communication_.submit(call));
  }

  /// All ranks leave at one instant, which is from then on the zero of `now`.
  void start_together() {
    communicate([&] { communicator_.align_clock(); });
    zero_ = agree_on_start();
  }

  /// Returns on all ranks at once, at the instant it returns (of this rank's clock).
  Instant agree_on_start() {
    std::int64_t agreed = 0;
    communicate([&] {
      communicator_.barrier();
      agreed = (communicator_.now() + head_start).time_since_epoch().count();
      communicator_.broadcast({reinterpret_cast<char*>(&agreed), sizeof(agreed)});
    });
    const Instant start = std::min(communicator_.to_local(Instant{Duration{agreed}}),
                                   communicator_.now() + std::chrono::seconds{1});
    while (communicator_.now() < start) {
    }
    return start;
  }

  /// The communication thread works on what `call` owns: an error must not leave it running.
  template <typename Call>
  void or_disconnect(Call call) {
    try {
      call();
    } catch (...) {
      communicator_.disconnect();
      communication_.abandon();
      throw;
    }
  }

  Instant now() const { return Instant{communicator_.now() - zero_}; }

  void execute(const Schedule& schedule, std::uint32_t index, const RunOptions& options,
               RankRun& run) {
    const Task& task = schedule.tasks[index];
    TaskTimes& at = run.times[index];
    if (task.bucket != nobody && (is_collective(task.operation) || task.step != nobody))
      hooks_->handed_over(schedule.buckets[static_cast<std::size_t>(task.bucket)]);
    at.issued = now();
    if (joined_ && task.step == nobody && needs_inputs(task.operation)) {
      at.enqueued = at.start = at.end = at.issued;
      return;
    }
    if (task.operation == Operation::wait && is_others(task)) {
      at.enqueued = at.start = at.end = at.issued;
      return;
    }
    if (task.step != nobody && task.operation != Operation::wait)
      return execute_step(schedule, index, options, at);
    switch (task.operation) {
      case Operation::all_reduce:
      case Operation::broadcast:
      case Operation::all_gather:  // comm hooks' are steps, see execute_step
        if (options.communicate) submit(schedule, index, at);
        at.enqueued = now();
        if (!options.communicate) at.start = at.end = at.enqueued;
        return;
      case Operation::wait:
        if (!options.communicate && options.background == Bytes{} && task.owner == nobody)
          agree_on_start();
        for (const std::uint32_t earlier : schedule.waits_for(task))
          communication_.wait(tickets_[earlier]);  // 0 has ended
        if (task.message == Message::parameters) memory_->end_average();
        at.issued = at.enqueued = at.start = at.end = now();
        return;
      case Operation::hook:
        if (options.hook) options.hook(task.parameter, task.micro_batch);
        at.start = at.issued;
        at.enqueued = at.end = now();
        return;
      case Operation::gradient_hook:
      case Operation::module_hook:
        at.enqueued = at.start = at.issued;
        hooks_->run(schedule, task);
        at.end = now();
        return;
      case Operation::forward:
      case Operation::backward:
      case Operation::accumulate:
      case Operation::copy_in:
      case Operation::concatenate:
      case Operation::divide:
      case Operation::copy_out:
      case Operation::copy_to_host:
      case Operation::copy_to_device:
      case Operation::search_unused:
      case Operation::optimizer:
      case Operation::reduce_scatter:  // comm hooks' alone
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
      case Operation::synchronize:
        at.enqueued = at.issued;
        timed(options, at, [&] {
          if (task.operation != Operation::optimizer || update_) kernels_->run(schedule, task);
        });
        if (task.operation == Operation::backward) hooks_->computed(task);
        return;
    }
  }

  /// What a rank without inputs leaves out; the rest it does with gradients of zeros (rule R36).
  static bool needs_inputs(Operation operation) {
    switch (operation) {
      case Operation::forward:
      case Operation::backward:
      case Operation::accumulate:
      case Operation::copy_in:
      case Operation::hook:
      case Operation::gradient_hook:
      case Operation::module_hook:
      case Operation::search_unused:
      case Operation::optimizer:
        return true;
      default:
        return false;
    }
  }

  /// Throws std::invalid_argument if no rank has inputs, or if ranks without would be asked more than
  /// once: what the others have added up by then would be averaged with zeros.
  void check_join(const Schedule& schedule) const {
    if (!schedule.join || schedule.join->joined_ranks == 0) return;
    if (schedule.join->joined_ranks >= ranks())
      throw std::invalid_argument(
          fmt::format("joined_ranks is {}, and there are {} ranks: one at least has to have inputs",
                      schedule.join->joined_ranks, ranks()));
    int first = -1;
    for (const Task& task : schedule.tasks) {
      if (!is_collective(task.operation) || task.bucket == nobody) continue;
      if (first >= 0 && task.micro_batch != first)
        throw std::invalid_argument(
            "ranks without inputs are run for real in steps that communicate once: set "
            "training.no_sync: true");
      first = task.micro_batch;
    }
  }

  bool is_others(const Task& task) const { return task.owner != nobody && task.owner != rank(); }

  void check_owners(const Schedule& schedule) const {
    for (const Task& task : schedule.tasks)
      if (task.owner >= ranks())
        throw std::invalid_argument(fmt::format(
            "the schedule has work for rank {}, and there are {} ranks", task.owner, ranks()));
  }

  /// Nobody waits for the delayed all-reduce, so only its place in the queue keeps it apart from the
  /// optimizer that reads its gradients.
  static void check_delayed(const Schedule& schedule) {
    const bool delayed = std::any_of(schedule.buckets.begin(), schedule.buckets.end(),
                                     [](const Bucket& bucket) { return bucket.delayed; });
    if (delayed && schedule.collectives_at_once > 1)
      throw std::invalid_argument(
          "delay_all_reduce for real takes collectives one at a time: nobody waits for it, and the "
          "optimizer could read what is being sent: take cluster.collectives_at_once out");
  }

  void submit(const Schedule& schedule, std::uint32_t index, TaskTimes& at) {
    const Task& task = schedule.tasks[index];
    if (task.operation == Operation::all_gather) return submit_sparse(schedule, index, at);
    const bool reduce = task.operation == Operation::all_reduce;
    const std::span<float> note =
        is_note(task) ? memory_->note(index, task.bytes) : std::span<float>{};
    const std::span<float> values = !reduce         ? std::span<float>{}
                                    : is_note(task) ? note
                                    : task.message == Message::parameters
                                        ? memory_->average()
                                        : memory_->bucket(task.bucket);
    const std::span<char> buffers =
        reduce          ? std::span<char>{}
        : is_note(task) ? std::span<char>{reinterpret_cast<char*>(note.data()), note.size_bytes()}
                        : memory_->buffers(task.kernel, task.bytes);
    const bool counted = reduce || is_note(task);
    const int root = std::max(0, task.owner);
    hand_over(schedule, index,
              [this, reduce, counted, values, buffers, root, index, &at](auto tag) {
                arrivals_[index] = now();
                if (counted) count(reduce ? values.size_bytes() : buffers.size());
                if (reduce)
                  communicator_.all_reduce(values, tag);
                else
                  communicator_.broadcast(buffers, root, tag);
                at.end = now();
              });
  }

  /// `call`, with a tag, on a thread of the task's communicator, behind what the task waits for there.
  template <typename Call>
  void hand_over(const Schedule& schedule, std::uint32_t index, Call call) {
    const Task& task = schedule.tasks[index];
    std::vector<std::uint64_t> after;
    for (const std::uint32_t earlier : schedule.waits_for(task))
      if (tickets_[earlier] != 0) after.push_back(tickets_[earlier]);
    next_tag_ = (next_tag_ + 1) % (1U << 20);
    tickets_[index] = communication_.submit([call, tag = next_tag_] { call(tag); },
                                            task.communicator, std::move(after));
  }

  static std::size_t communicators(const Schedule& schedule) {
    std::size_t most = 1;
    for (const Task& task : schedule.tasks)
      most = std::max<std::size_t>(most, task.communicator + 1U);
    return most;
  }

  /// A part of a sparse gradient.
  void submit_sparse(const Schedule& schedule, std::uint32_t index, TaskTimes& at) {
    const Task& task = schedule.tasks[index];
    const std::int32_t parameter =
        schedule.buckets[static_cast<std::size_t>(task.bucket)].parameters.front();
    hand_over(schedule, index, [this, message = task.message, parameter, index, &at](auto tag) {
      arrivals_[index] = now();
      count(memory_->sparse().payload(parameter, message));
      memory_->sparse().gather(parameter, message, memory_->gradient(parameter), communicator_,
                               tag);
      at.end = now();
    });
  }

  /// A task of a comm hook: on this thread before the hook's first collective, then on the one that
  /// communicates.
  void execute_step(const Schedule& schedule, std::uint32_t index, const RunOptions& options,
                    TaskTimes& at) {
    const Task& task = schedule.tasks[index];
    const bool collective = is_collective(task.operation);
    const bool aside = task.stream == Stream::communication;
    if (!aside || (!options.communicate && !options.stand_in)) {
      at.enqueued = at.issued;
      timed(options, at, [&] {
        if (!collective) compute_step(schedule, task);
      });
      return;
    }
    hand_over(schedule, index, [this, &schedule, &options, index, &at](auto tag) {
      const Task& mine = schedule.tasks[index];
      arrivals_[index] = now();
      if (!is_collective(mine.operation)) {
        timed(options, at, [&] { compute_step(schedule, mine); });
      } else {
        at.start = arrivals_[index];
        if (options.stand_in)
          std::this_thread::sleep_for(options.stand_in(mine));
        else
          communicate_step(schedule, mine, tag);
        at.end = now();
      }
    });
    at.enqueued = now();
  }

  /// Calls what computes, from its start to its end, or (see RunOptions::stand_in) as long as the processor
  /// was its own.
  template <typename Call>
  void timed(const RunOptions& options, TaskTimes& at, Call compute) const {
    at.start = now();
    const Duration before = options.stand_in ? processor_time() : Duration::zero();
    compute();
    at.end = options.stand_in ? at.start + (processor_time() - before) : now();
  }

  void compute_step(const Schedule& schedule, const Task& task) {
    const Bucket& bucket = schedule.buckets[static_cast<std::size_t>(task.bucket)];
    const CommStep& step = bucket.steps[static_cast<std::size_t>(task.step)];
    if (step.action == CommAction::update) {
      if (update_ && !is_others(task)) kernels_->update(bucket);
    } else if (step.action != CommAction::synchronize)
      hook_data_->run(bucket, task.bucket, step, memory_->bucket(task.bucket));
  }

  void communicate_step(const Schedule& schedule, const Task& task, std::uint32_t tag) {
    const Bucket& bucket = schedule.buckets[static_cast<std::size_t>(task.bucket)];
    const CommStep& step = bucket.steps[static_cast<std::size_t>(task.step)];
    if (step.action == CommAction::send_parameters) {
      const std::span<float> values = memory_->parameters_of(task.bucket);
      count(values.size_bytes());
      return communicator_.broadcast({reinterpret_cast<char*>(values.data()), values.size_bytes()},
                                     task.owner, tag);
    }
    const HookData::Payload payload =
        hook_data_->payload(bucket, task.bucket, step, memory_->bucket(task.bucket));
    count(payload.mine.size());
    reduce_or_gather(schedule, task, step, payload, tag);
    hook_data_->arrived(bucket, task.bucket, step, memory_->bucket(task.bucket));
  }

  void reduce_or_gather(const Schedule& schedule, const Task& task, const CommStep& step,
                        const HookData::Payload& payload, std::uint32_t tag) {
    switch (task.operation) {
      case Operation::all_gather:
        return communicator_.all_gather(payload.mine, payload.all, tag);
      case Operation::broadcast:
        return communicator_.broadcast(
            {reinterpret_cast<char*>(payload.mine.data()), payload.mine.size()}, 0, tag);
      case Operation::reduce_scatter:
        return communicator_.ring_reduce(payload.type, payload.mine, everyone(), false, tag);
      default:
        if (step.action == CommAction::reduce_subgroup)
          return communicator_.ring_reduce(payload.type, payload.mine, subgroup(schedule), true,
                                           tag);
        if (size_of(payload.type) == Bytes{2})
          return communicator_.all_reduce(
              payload.type,
              std::span(reinterpret_cast<std::uint16_t*>(payload.mine.data()),
                        payload.mine.size() / sizeof(std::uint16_t)),
              tag);
        return communicator_.all_reduce(std::span(reinterpret_cast<float*>(payload.mine.data()),
                                                  payload.mine.size() / sizeof(float)),
                                        tag);
    }
  }

  void count(std::size_t bytes) {
    const std::lock_guard lock(counting_);
    ++sent_.collectives;
    sent_.payload += Bytes{static_cast<std::int64_t>(bytes)};
  }

  std::vector<int> everyone() const {
    std::vector<int> all(static_cast<std::size_t>(ranks()));
    std::iota(all.begin(), all.end(), 0);
    return all;
  }

  /// Ranks of one host go together; where the scenario names no size, those are all there are.
  std::vector<int> subgroup(const Schedule& schedule) const {
    const int size = std::min(schedule.comm_hook.post_local_sgd.subgroup_of(ranks()), ranks());
    std::vector<int> members;
    for (int other = rank() / size * size; other < std::min((rank() / size + 1) * size, ranks());
         ++other)
      members.push_back(other);
    return members;
  }

  /// What the comm hook keeps from step to step: one for each hook and list of buckets.
  HookData& data_of(const Schedule& schedule) {
    std::vector<std::vector<std::int32_t>> buckets;
    for (const Bucket& bucket : schedule.buckets) buckets.push_back(bucket.parameters);
    for (Hooked& each : hooked_)
      if (each.hook == schedule.comm_hook && each.buckets == buckets) return *each.data;
    hooked_.push_back({schedule.comm_hook, std::move(buckets),
                       std::make_unique<HookData>(schedule.comm_hook, rank(), ranks())});
    if (schedule.comm_hook.kind == CommHookKind::plugin) set_plugin(*hooked_.back().data);
    return *hooked_.back().data;
  }

  /// The user's code around its all-reduce. Throws std::invalid_argument if no plugin has it.
  void set_plugin(HookData& data) const {
    const CommHook& hook = hooked_.back().hook;
    Training asked;
    asked.comm_hook = hook;
    (plugins_ != nullptr ? *plugins_ : Plugins()).check(asked);
    const Plugins::CommHook code = *plugins_->comm_hook(hook.plugin);
    const auto guarded = [name = hook.plugin](auto call) {
      try {
        call();
      } catch (const std::exception& problem) {
        throw DeviceError(fmt::format("the plugin's comm hook \"{}\" threw: {}", name,
                                      std::string(problem.what()).substr(0, 400)));
      } catch (...) {
        throw DeviceError(fmt::format("the plugin's comm hook \"{}\" threw an exception", name));
      }
    };
    data.set_plugin(
        {[=, ranks = ranks()](const float* bucket, std::int64_t count, std::span<std::byte> to) {
           guarded([&] { code.calls.before(code.state, bucket, count, ranks, to.data()); });
         },
         [=, ranks = ranks()](float* bucket, std::int64_t count, std::span<const std::byte> from) {
           guarded([&] { code.calls.after(code.state, from.data(), count, ranks, bucket); });
         }});
  }

  std::vector<Instant> latest(std::vector<Instant> mine) {
    communicate([&] { mine = communicator_.latest(std::move(mine)); });
    return mine;
  }

  void compare_notes(const Schedule& schedule, const RunOptions& options, Instant computed_at,
                     RankRun& run) {
    std::vector<std::size_t> collectives;
    std::vector<Instant> arrived;
    if (options.communicate) {
      for (std::size_t i = 0; i < schedule.tasks.size(); ++i) {
        if (tickets_[i] == 0 || !is_collective(schedule.tasks[i].operation)) continue;
        collectives.push_back(i);
        arrived.push_back(zero_ + arrivals_[i].time_since_epoch());
      }
    }
    for (const auto& [arrival, end] : background_)
      arrived.push_back(zero_ + arrival.time_since_epoch());
    if (arrived.empty()) return;
    const std::vector<Instant> last = latest(arrived);
    for (std::size_t c = 0; c < collectives.size(); ++c) {
      TaskTimes& at = run.times[collectives[c]];
      // A rank may have been told the result before the clocks agree that the last one arrived.
      at.start = std::min(at.end, Instant{last[c] - zero_});
    }
    if (background_.empty()) return;
    run.background_begun = last[collectives.size()] - zero_;
    const Instant run_began{run.background_begun};
    Duration under_way{};
    for (std::size_t i = 0; i < background_.size(); ++i) {
      const Instant begun{last[collectives.size() + i] - zero_}, end = background_[i].second;
      under_way += std::max(Duration::zero(), std::min(end, computed_at) - begun);
      run.background_ended += end < computed_at ? 1 : 0;
    }
    const Duration since = computed_at - run_began;
    if (since <= Duration::zero())
      run.background_busy = 0;  // too late
    else if (options.background_pause > Duration::zero())
      run.background_busy = std::min(1.0, in_seconds(under_way) / in_seconds(since));
  }

  /// All-reduces, one after the other, until a rank says, in their last value, that it has computed enough.
  void begin_background(const RunOptions& options) {
    computed_ = false;
    const std::span<float> values = scratch(options.background);
    communication_.submit([this, values, pause = options.background_pause] {
      for (bool more = true; more;) {
        if (pause > Duration::zero()) std::this_thread::sleep_for(pause);
        values.back() = computed_ ? 1.0F : 0.0F;
        const Instant arrival = now();
        communicator_.all_reduce(values);
        background_.emplace_back(arrival, now());
        more = values.back() == 0;
      }
    });
  }

  std::span<float> scratch(Bytes size) {
    const auto count = static_cast<std::size_t>(std::max<std::int64_t>(1, size.count / 4));
    if (scratch_.size() < count) scratch_.assign(count, 0);
    return std::span(scratch_).first(count);
  }

  Communicator communicator_;
  std::string interface_;
  std::unique_ptr<Memory> memory_;
  std::unique_ptr<Kernels> kernels_;
  struct Hooked {
    CommHook hook;
    std::vector<std::vector<std::int32_t>> buckets;
    std::unique_ptr<HookData> data;
  };
  std::vector<Hooked> hooked_;
  std::mutex counting_;
  Sent sent_;  ///< by the communication threads
  std::uint32_t next_tag_ = 0;
  bool joined_ = false;            ///< this rank has no inputs in this step
  HookData* hook_data_ = nullptr;  ///< of the schedule under way
  const Plugins* plugins_;
  std::unique_ptr<UserHooks> hooks_;
  bool update_ = true;  ///< RunOptions::update of the step under way
  Instant zero_{};
  std::vector<Instant> arrivals_;       ///< [task] when this rank reached its collective
  std::vector<std::uint64_t> tickets_;  ///< [task] on the communication thread; 0: not submitted
  std::vector<float> scratch_;
  std::size_t next_piece_ = 0;  ///< of the scratch, for time_all_reduces
  std::atomic<bool> computed_ = false;
  std::vector<std::pair<Instant, Instant>> background_;  ///< arrival, end
  CommunicationThreads communication_;                   ///< last: its jobs use the others
};

}  // namespace

std::unique_ptr<Backend> make_gloo_backend(Rendezvous& rendezvous, int rank, int ranks,
                                           const std::string& interface, milliseconds timeout,
                                           const Plugins* plugins) {
  return std::make_unique<GlooBackend>(rendezvous, rank, ranks, interface, timeout, plugins);
}

}  // namespace ddpsim
