#include "backend/run/job.hpp"

#include <csignal>
#include <optional>
#include <stdexcept>

#include <fmt/format.h>
#include <gloo/rendezvous/hash_store.h>

#include "backend/device/cuda/gpu_module.hpp"
#include "backend/device_error.hpp"
#include "backend/gloo/gloo_backend.hpp"
#include "backend/job/communicator.hpp"
#include "backend/job/cores.hpp"
#include "backend/job/private_folder.hpp"
#include "backend/job/rank_environment.hpp"
#include "backend/job/rendezvous.hpp"
#include "backend/job/start_ranks.hpp"
#include "backend/plugin/exit_guard.hpp"
#include "backend/run/nccl_backend.hpp"

namespace ddpsim {
namespace {

/// What NCCL takes on eight H100; left to itself a single rank takes up to 64.
constexpr int channels_of_a_ring = 24;

/// Called before any rank is started, so that a missing GPU is reported once and not by every rank.
void check_gpus(int ranks) {
  const GpuLook look = look_for_gpus();
  if (!look.problem.empty()) throw DeviceError(look.problem);
  if (ranks > look.count)
    throw DeviceError(fmt::format(
        "{} ranks, and this host has {} GPU{}: start one rank for each GPU, or say --gpus-share "
        "to check gradients only",
        ranks, look.count, look.count == 1 ? "" : "s"));
}

std::unique_ptr<Backend> make_gpu_backend(const JobOptions& options, Rendezvous& rendezvous,
                                          int rank, int ranks, int local_rank) {
  const int count = gpu_count();
  if (count == 0) throw DeviceError("there is no NVIDIA GPU on this machine");
  if (local_rank >= count && !options.gpus_share)
    throw DeviceError(fmt::format(
        "this host has {} GPU{}, and a rank {} on it: start one rank for each GPU, or say "
        "--gpus-share to check gradients only",
        count, count == 1 ? "" : "s", local_rank));
  GpuLink link;
  link.channels = options.channels;
  link.profile = options.nccl_profiler;
  if (options.loopback > 0) {
    link.mode = GpuLink::Mode::loopback;
    link.loopback = options.loopback;
    if (link.channels == 0) link.channels = channels_of_a_ring;
  }
  if (options.gpus_share) {
    link.mode = GpuLink::Mode::shared;
    share_one_gpu(rank);
  }
  return make_nccl_backend(make_gpu(options.gpus_share ? 0 : local_rank, options.timeout), link,
                           rendezvous, rank, ranks, options.interface, options.timeout);
}

int run_rank(const JobOptions& options, Rendezvous& rendezvous, int rank, int ranks, int local_rank,
             const RankBody& body) {
  // To write to a peer that has died is an error of that call, and not the end of this rank.
  std::signal(SIGPIPE, SIG_IGN);
  const std::string number = std::to_string(rank);
  const ExitGuard guard("rank", number);
  rendezvous.meet(rank, ranks, options.agreement, options.timeout);
  if (options.backend == "nccl")
    return body(*make_gpu_backend(options, rendezvous, rank, ranks, local_rank));
  return body(*make_gloo_backend(rendezvous, rank, ranks, options.interface, options.timeout,
                                 options.plugins));
}

int run_as_threads(const JobOptions& options, const RankBody& body) {
  const auto store = std::make_shared<gloo::rendezvous::HashStore>();
  return run_threads(options.ranks, [&](int rank) {
    take_share_of_cores(rank, options.ranks);
    const auto rendezvous = Rendezvous::in_process(store);
    return run_rank(options, *rendezvous, rank, options.ranks, rank, body);
  });
}

int run_as_processes(const JobOptions& options, const RankBody& body) {
  if (options.backend == "nccl" && !options.gpus_share) check_gpus(options.ranks);
  std::optional<PrivateFolder> folder;
  if (options.rendezvous.empty())
    folder.emplace();
  else
    Rendezvous::open(options.rendezvous, "", options.timeout);  // told once, not by every rank
  const auto as_rank = [&](int rank) {
    take_share_of_cores(rank, options.ranks);
    const auto rendezvous = folder ? Rendezvous::open_closed(folder->path())
                                   : Rendezvous::open(options.rendezvous, "", options.timeout);
    return run_rank(options, *rendezvous, rank, options.ranks, rank, body);
  };
  // Whoever is asked to end may finish what it measures. After a failure the others hear of it at
  // once, and their watchdogs see to it that they end (last resort: 1.5 s).
  return run_processes(options.ranks, options.timeout + std::chrono::seconds{3}, as_rank,
                       std::chrono::milliseconds{2500});
}

int run_as_started(const JobOptions& options, const RankPlace& place, const RankBody& body) {
  if (options.ranks > 0 && options.ranks != place.ranks)
    throw std::invalid_argument(fmt::format(
        "--ranks {0}, but {1} started {2}: leave --ranks out, or start ddpsim without {1}",
        options.ranks, place.launcher, place.ranks));
  const bool one_host = place.local_ranks == place.ranks;
  const std::string& where = options.rendezvous;
  if (where.empty() && (!one_host || place.job.empty()))
    throw std::invalid_argument(fmt::format(
        "{} started {} ranks, {}: name where they meet, --rendezvous file:DIR (a shared "
        "folder) or redis://host:port",
        place.launcher, place.ranks,
        one_host ? "and no variable names the job" : "not all of them on this host"));
  if (options.interface.empty() && !one_host)
    throw std::invalid_argument(
        "ranks on several hosts need --interface NAME: the network interface by which they reach "
        "each other");
  try {
    const auto rendezvous = where.empty() ? Rendezvous::open_own(place.job)
                                          : Rendezvous::open(where, place.job, options.timeout);
    return run_rank(options, *rendezvous, place.rank, place.ranks, place.local_rank, body);
  } catch (const DeviceError& problem) {
    throw DeviceError(fmt::format("rank {}: {}", place.rank, problem.what()));
  }
}

}  // namespace

int run_job(const JobOptions& options, const RankBody& body) {
  if (options.timeout < std::chrono::seconds{1})
    throw std::invalid_argument("--timeout: expected at least 1 s");
  check_interface(options.interface);
  if (options.backend == "threads") {
    if (options.ranks < 1)
      throw std::invalid_argument("--backend threads needs --ranks, such as --ranks 2");
    return run_as_threads(options, body);
  }
  if (options.backend != "gloo" && options.backend != "nccl")
    throw std::invalid_argument(fmt::format("unknown backend \"{}\"", options.backend));
  if (const auto place = rank_from_environment()) return run_as_started(options, *place, body);
  if (options.ranks < 1) throw std::invalid_argument("say how many ranks to start: --ranks 2");
  return run_as_processes(options, body);
}

}  // namespace ddpsim
