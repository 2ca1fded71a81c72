#include "backend/nccl/nccl_backend.hpp"

#include <exception>
#include <map>
#include <stdexcept>
#include <type_traits>

#include <fmt/format.h>

#include "backend/cpu/priority.hpp"
#include "backend/device_error.hpp"
#include "backend/nccl/check_gpu_schedule.hpp"
#include "backend/nccl/step/gpu_all_reduce_timer.hpp"
#include "backend/nccl/step/gpu_step.hpp"
#include "backend/nccl/step/nccl_profiler.hpp"
#include "backend/version.hpp"

namespace ddpsim {
namespace {

using std::chrono::milliseconds;

/// What is made for a workload, and what works on it.
struct LoadedWorkload {
  LoadedWorkload(Gpu& gpu, GpuCollectives& collectives, const Workload& workload,
                 Optimizer optimizer_kind, int rank, int ranks)
      : memory(gpu, workload, optimizer_kind, rank),
        traffic(gpu, memory),
        optimizer(gpu, memory, traffic, optimizer_kind),
        compute(gpu, memory, traffic, optimizer, ranks),
        hook_data(gpu, memory, traffic, optimizer, collectives) {}
  GpuMemory memory;
  GpuTraffic traffic;
  GpuOptimizer optimizer;
  GpuCompute compute;
  GpuHookData hook_data;
};

class NcclBackend : public Backend {
 public:
  NcclBackend(std::unique_ptr<Gpu> gpu, const GpuLink& link, Rendezvous& rendezvous, int rank,
              int ranks, const std::string& interface, milliseconds timeout)
      : gpu_(std::move(gpu)),
        link_(link),
        communicator_(rendezvous, rank, ranks, interface, timeout),
        waiter_(*gpu_, timeout),
        clock_(*gpu_, waiter_, communicator_),
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
  int link_ranks() const override { return collectives_.parts(); }
  bool synchronous() const override { return false; }
  std::string device_name() const override { return description_.name; }
  std::string link_name() const override { return description_of(link_, ranks()); }
  std::string versions() const override {
    return fmt::format("ddpsim {}, {}", version, description_.versions);
  }

  void load(const Workload& workload, Optimizer optimizer) override {
    loaded_.reset();
    loaded_ =
        std::make_unique<LoadedWorkload>(*gpu_, collectives_, workload, optimizer, rank(), ranks());
  }

  bool use_channels(int channels) override {
    return or_abort([&] {
      connect(channels > 0 ? channels : link_.channels);
      return true;
    });
  }

  RankRun run(const Schedule& schedule, const RunOptions& options) override {
    if (!loaded_) throw std::logic_error("run before load");
    check_gpu_schedule(schedule);
    if (options.compute != 1 || options.pause > Duration::zero())
      throw std::invalid_argument("GPUs keep their own pace: no rank of theirs is made slower");
    return or_abort([&] {
      return GpuStep({*gpu_, waiter_, clock_, communicator_, collectives_, loaded_->memory,
                      loaded_->compute, loaded_->hook_data},
                     schedule, options, link_.profile)
          .run();
    });
  }

  std::vector<float> gradient(int parameter) const override {
    return loaded_->memory.gradient(parameter);
  }

  std::vector<Duration> time_all_reduces(Bytes size, int count, bool waiting) override {
    return or_abort([&] {
      return time_gpu_all_reduces(*gpu_, collectives_, waiter_, clock_, size, count, waiting);
    });
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

  std::unique_ptr<Gpu> gpu_;
  GpuLink link_;
  Communicator communicator_;
  GpuWaiter waiter_;
  GpuStepClock clock_;
  GpuCollectives collectives_;
  GpuDescription description_;
  std::unique_ptr<LoadedWorkload> loaded_;
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
