#include "backend/run/nccl_backend.hpp"

#include <algorithm>
#include <exception>
#include <map>
#include <stdexcept>
#include <type_traits>

#include <fmt/format.h>

#include "backend/cpu/priority.hpp"
#include "backend/device/cuda/gpu_device.hpp"
#include "backend/device/cuda/gpu_streams.hpp"
#include "backend/device/cuda/nccl_profiler.hpp"
#include "backend/device_error.hpp"
#include "backend/execute/executor.hpp"
#include "backend/execute/operand_refusal.hpp"
#include "backend/link/nccl/gpu_all_reduce_timer.hpp"
#include "backend/link/nccl/nccl_beside.hpp"
#include "backend/link/nccl/nccl_link.hpp"
#include "backend/version.hpp"

namespace ddpsim {
namespace {

using std::chrono::milliseconds;

/// Throws std::invalid_argument for parameters of a type that holds no gradients.
void check_types(const Workload& workload) {
  for (const Parameter& each : workload.parameters) {
    if (each.dtype == DType::tf32)
      throw std::invalid_argument(fmt::format(
          "{} is tf32, which is how numbers are multiplied: store it as fp32", each.name));
    if (!execute::is_number(each.dtype))
      throw std::invalid_argument(fmt::format(
          "the nccl backend computes in fp32, bf16 and fp16, and {} is {}: such a step is only "
          "predicted",
          each.name, name_of(each.dtype)));
  }
}

bool communicates(const program::Job& job) {
  return std::ranges::any_of(job.programs, [&](const program::Program& program) {
    return std::ranges::any_of(program.tasks, [&](const program::Task& task) {
      return program::communicator_of(job.deed_of(task).action) != nobody;
    });
  });
}

class NcclBackend : public Backend {
 public:
  NcclBackend(std::unique_ptr<Gpu> gpu, const GpuLink& link, Rendezvous& rendezvous, int rank,
              int ranks, const std::string& interface, milliseconds timeout)
      : gpu_(std::move(gpu)),
        link_(link),
        communicator_(rendezvous, rank, ranks, interface, timeout),
        waiter_(*gpu_, timeout),
        clock_(*gpu_, waiter_, communicator_),
        nccl_(*gpu_, clock_, communicator_, link, rank, ranks),
        description_(gpu_->description()),
        memory_(rank, description_.memory.count),
        device_(*gpu_, rank, nccl_.stands_for()) {
    take_role(Role::communication);  // the host thread of a GPU only enqueues, and must not be late
    if (link.mode == GpuLink::Mode::loopback && ranks != 1)
      throw std::invalid_argument("loopback is for one rank");
    if (link.mode == GpuLink::Mode::group) check_own_gpu();
    if (link.profile) use_nccl_profiler();
    nccl_.connect(link.channels);
  }

  ~NcclBackend() override {
    if (failed_) gpu_->abort();
  }

  int rank() const override { return communicator_.rank(); }
  int ranks() const override { return communicator_.ranks(); }
  int link_ranks() const override { return nccl_.ranks(); }
  bool synchronous() const override { return false; }
  std::string device_name() const override { return description_.name; }
  std::string link_name() const override { return description_of(link_, ranks()); }
  std::string versions() const override {
    return fmt::format("ddpsim {}, {}", version, description_.versions);
  }

  void load(const Workload& workload, Optimizer) override {
    check_types(workload);
    or_abort([&] {
      memory_.forget();
      gradients_.clear();
      device_.load();
      streams_.load(workload);
    });
  }

  bool use_channels(int channels) override {
    return or_abort([&] {
      nccl_.connect(channels > 0 ? channels : link_.channels);
      return true;
    });
  }

  std::string refusal(const program::Job& job) const override { return executor_.refusal(job); }

  RankRun run(const program::Job& job, const RunOptions& options) override {
    if (options.compute != 1 || options.pause > Duration::zero())
      throw std::invalid_argument("GPUs keep their own pace: no rank of theirs is made slower");
    return or_abort([&] {
      gradients_ = job.gradients;  // a hook may ask for them
      RankRun run = executor_.run(job, nccl_.ranks(), options);
      run.sent.reset();          // nobody counts what overflows
      if (!communicates(job)) {  // what hooks keep of such a step is nobody's
        memory_.forget(program::Holds::hook);
        device_.forget_draws();
      }
      return run;
    });
  }

  /// Blocks until the GPU is idle.
  std::vector<float> gradient(int parameter) const override {
    const execute::Piece piece = memory_.piece(gradients_.at(at(parameter)));
    return gpu_->read(piece.data, piece.count, piece.type);
  }

  std::vector<Duration> time_all_reduces(Bytes size, int count, bool waiting) override {
    return or_abort(
        [&] { return time_gpu_all_reduces(*gpu_, nccl_, waiter_, clock_, size, count, waiting); });
  }

  void sum(std::span<double> values) override { communicator_.all_reduce(values); }
  std::vector<std::vector<std::byte>> gather(std::span<const std::byte> mine) override {
    return communicator_.gather(mine);
  }

 private:
  /// One physical GPU for each rank, or a mistake, of which every rank knows.
  void check_own_gpu() {
    const auto all = communicator_.gather(std::as_bytes(std::span(description_.uuid)));
    std::map<std::vector<std::byte>, std::size_t> rank_on;
    for (std::size_t other = 0; other < all.size(); ++other) {
      const auto [first, added] = rank_on.try_emplace(all[other], other);
      if (added) continue;
      all_know();
      throw DeviceError(fmt::format(
          "ranks {} and {} are on one GPU, {}: start as many ranks as there are GPUs, or say "
          "--gpus-share to check gradients only",
          first->second, other, description_.name));
    }
  }

  /// Lest this rank leaves, and its connections with it, before the others have what was gathered.
  void all_know() {
    try {
      communicator_.gather({});
    } catch (const std::exception&) {  // one has left by now: it knew
    }
  }

  template <typename Call>
  std::invoke_result_t<Call> or_abort(Call call) {
    try {
      return call();
    } catch (const std::invalid_argument&) {  // a refusal, before anything ran
      throw;
    } catch (...) {
      failed_ = true;
      gpu_->abort();
      throw;
    }
  }

  std::unique_ptr<Gpu> gpu_;
  GpuLink link_;
  Communicator communicator_;
  GpuWaiter waiter_;
  GpuClock clock_;
  NcclLink nccl_;
  GpuDescription description_;
  execute::Memory memory_;
  GpuDevice device_;
  NcclBeside beside_{*gpu_, nccl_, communicator_, clock_};
  GpuStreams streams_{*gpu_, waiter_, clock_, beside_, link_.profile};
  execute::Executor executor_{memory_, device_, nccl_, streams_};
  std::vector<program::Slice> gradients_;  ///< [parameter] of the last job
  bool failed_ = false;
};

}  // namespace

std::unique_ptr<Backend> make_nccl_backend(std::unique_ptr<Gpu> gpu, const GpuLink& link,
                                           Rendezvous& rendezvous, int rank, int ranks,
                                           const std::string& interface, milliseconds timeout) {
  return std::make_unique<NcclBackend>(std::move(gpu), link, rendezvous, rank, ranks, interface,
                                       timeout);
}

}  // namespace ddpsim
