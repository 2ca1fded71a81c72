#include "backend/gloo/gloo_backend.hpp"

#include <algorithm>
#include <stdexcept>

#include <Eigen/Core>
#include <fmt/format.h>
#include <gloo/config.h>

#include "backend/cpu/gemm.hpp"
#include "backend/cpu/neighbours.hpp"
#include "backend/cpu/priority.hpp"
#include "backend/device/cpu/cpu_device.hpp"
#include "backend/execute/executor.hpp"
#include "backend/execute/thread_streams.hpp"
#include "backend/gloo/all_reduce_timer.hpp"
#include "backend/gloo/host.hpp"
#include "backend/link/gloo/gloo_link.hpp"
#include "backend/version.hpp"

namespace ddpsim {
namespace {

using std::chrono::milliseconds;

/// Throws std::invalid_argument if a gradient would send more rows than there are.
void check_sparse_rows(const Workload& workload) {
  for (const Parameter& parameter : workload.parameters) {
    if (!parameter.sparse || parameter.sparse_rows <= parameter.shape.front()) continue;
    throw std::invalid_argument(fmt::format(
        "{} has {} rows, and its sparse gradient would send {}: set rows to at most {}",
        parameter.name, parameter.shape.front(), parameter.sparse_rows, parameter.shape.front()));
  }
}

class GlooBackend : public Backend {
 public:
  GlooBackend(Rendezvous& rendezvous, int rank, int ranks, std::string interface,
              milliseconds timeout, const Plugins* plugins)
      : interface_(std::move(interface)),
        connection_(rendezvous, rank, ranks, interface_, timeout),
        in_turns_(beside_others()),
        memory_(rank, host_memory().count / ranks),
        device_(rank, plugins) {
    // The connection's threads have started by now.
    take_role(in_turns_ ? Role::computation_in_turns : Role::computation);
  }

  int rank() const override { return connection_.rank(); }
  int ranks() const override { return connection_.ranks(); }
  bool synchronous() const override { return true; }
  std::string device_name() const override { return cpu_name(); }
  std::string link_name() const override {
    return interface_.empty() ? "TCP over loopback" : fmt::format("TCP over {}", interface_);
  }
  std::string versions() const override {
    return fmt::format("ddpsim {}, Gloo {}.{}.{}, Eigen {}.{}.{} with {}{}", version,
                       GLOO_VERSION_MAJOR, GLOO_VERSION_MINOR, GLOO_VERSION_PATCH,
                       EIGEN_WORLD_VERSION, EIGEN_MAJOR_VERSION, EIGEN_MINOR_VERSION,
                       gemm_instructions(), in_turns_ ? ", in turns with other programs" : "");
  }

  void load(const Workload& workload, Optimizer) override {
    for (const Parameter& parameter : workload.parameters)
      if (parameter.dtype != DType::fp32)
        throw std::invalid_argument(fmt::format(
            "the gloo backend computes in fp32, and {} is {}: set workload.dtype to fp32",
            parameter.name, name_of(parameter.dtype)));
    check_sparse_rows(workload);
    check_host_memory(workload, ranks());
    memory_.forget();
    gradients_.clear();
    device_.load(workload);
  }

  std::string refusal(const program::Job& job) const override { return executor_.refusal(job); }

  RankRun run(const program::Job& job, const RunOptions& options) override {
    gradients_ = job.gradients;  // a hook may ask for them
    return executor_.run(job, ranks(), options);
  }

  std::vector<float> gradient(int parameter) const override {
    const execute::Piece piece = memory_.piece(gradients_.at(at(parameter)));
    if (piece.type != DType::fp32) throw std::logic_error("a gradient that is not fp32");
    const auto* begin = reinterpret_cast<const float*>(piece.data);
    return {begin, begin + piece.count};
  }

  std::vector<Duration> time_all_reduces(Bytes size, int count, bool waiting) override {
    return timer_.time(size, count, waiting);
  }

  void sum(std::span<double> values) override {
    connection_.on_thread([&] { connection_.communicator().all_reduce(values); });
  }

  std::vector<std::vector<std::byte>> gather(std::span<const std::byte> mine) override {
    std::vector<std::vector<std::byte>> all;
    connection_.on_thread([&] { all = connection_.communicator().gather(mine); });
    return all;
  }

 private:
  /// Do other programs keep the cores of any rank busy? The same answer on all ranks.
  bool beside_others() {
    const std::byte taken{cores_are_taken(ranks())};
    const auto all = gather({&taken, 1});
    return std::any_of(all.begin(), all.end(), [](const auto& each) {
      return each.size() == 1 && each[0] != std::byte{0};
    });
  }

  std::string interface_;
  Connection connection_;  ///< its threads use the others
  bool in_turns_;          ///< kernels take turns with other programs
  AllReduceTimer timer_{connection_};
  execute::Memory memory_;
  CpuDevice device_;
  GlooLink link_{connection_};
  execute::ThreadStreams streams_{connection_.threads(), link_};
  execute::Executor executor_{memory_, device_, link_, streams_};
  std::vector<program::Slice> gradients_;  ///< [parameter] of the last job
};

}  // namespace

std::unique_ptr<Backend> make_gloo_backend(Rendezvous& rendezvous, int rank, int ranks,
                                           const std::string& interface, milliseconds timeout,
                                           const Plugins* plugins) {
  return std::make_unique<GlooBackend>(rendezvous, rank, ranks, interface, timeout, plugins);
}

}  // namespace ddpsim
