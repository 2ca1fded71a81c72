#include "tools/command/job_flags.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "backend/job/allocation.hpp"
#include "backend/job/rank_environment.hpp"
#include "backend/run/backends.hpp"
#include "model/program/fingerprint.hpp"
#include "scenarios/reader/text/input_error.hpp"
#include "sim/tune/parallel.hpp"
#include "tools/study/flag_values.hpp"
#include "tools/study/machine_doubts.hpp"

namespace ddpsim {

void JobFlags::add_to(boost::program_options::options_description& flags) {
  using boost::program_options::value;
  auto add = flags.add_options();
  add("backend", value(&backend)->value_name("NAME"),
      "gloo (default): a process per rank; threads: a thread per rank, no set-up at all; nccl: a "
      "process and a GPU per rank");
  add("ranks", value(&ranks)->value_name("N"),
      "start N ranks on this host; under torchrun, mpirun or srun each process is one already");
  add("loopback", value(&loopback)->value_name("R"),
      "nccl: on one GPU, all-reduces move to itself what one of R ranks moves, by NCCL's kernels");
  add("channels", value(&channels)->value_name("N"),
      "nccl: the most thread blocks a collective may take (default: NCCL's choice; with --loopback "
      "24)");
  add("nccl-profiler", boost::program_options::bool_switch(&nccl_profiler),
      "nccl: starts and ends of collectives by NCCL's profiler interface (2.28 and later) instead "
      "of "
      "CUDA events; costs it some work");
  add("gpus-share", boost::program_options::bool_switch(&gpus_share),
      "nccl: all ranks on one GPU; checks gradients, and times mean nothing");
  add("rendezvous", value(&rendezvous)->value_name("WHERE"),
      "where ranks started one by one meet: file:DIR or redis://host:port");
  add("interface", value(&interface)->value_name("NAME"),
      "network interface between hosts (default: loopback)");
  add("timeout", value(&timeout)->value_name("TIME"),
      "how long a rank waits for another before it gives up (default: 60 s)");
}

JobOptions JobFlags::options(int fallback) const {
  constexpr int most = 1024;
  JobOptions options;
  std::string known;
  const BackendStatus* chosen = nullptr;
  const std::vector<BackendStatus> all = backends();
  for (const BackendStatus& each : all) {
    if (each.name == backend) chosen = &each;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", each.name);
  }
  if (chosen == nullptr)
    throw InputError(fmt::format("--backend {}: unknown; known: {}", backend, known));
  if (backend != "nccl" && (gpus_share || !loopback.empty() || !channels.empty()))
    throw InputError("--loopback, --gpus-share and --channels are for --backend nccl");
  if (!channels.empty()) options.channels = count_of("--channels", channels, 1, 64);
  if (nccl_profiler && (backend != "nccl" || !loopback.empty()))
    throw InputError("--nccl-profiler is for --backend nccl without --loopback");
  options.nccl_profiler = nccl_profiler;
  if (gpus_share && !loopback.empty())
    throw InputError("--loopback is for one rank, and --gpus-share for several: take one of them");
  if (!loopback.empty()) {
    options.loopback = count_of("--loopback", loopback, 2, most);
    if (!ranks.empty() && ranks != "1") throw InputError("--loopback is for one rank: no --ranks");
  }
  if (const std::string missing = chosen->missing(); !missing.empty())
    throw InputError(fmt::format("--backend {}: {}", backend, missing));
  options.backend = backend;
  options.rendezvous = rendezvous;
  options.interface = interface;
  const Duration limit = duration_of("--timeout", timeout);
  if (limit < std::chrono::seconds{1} || limit > std::chrono::hours{24})
    throw InputError(fmt::format("--timeout {}: expected from 1 s to 24 h", timeout));
  options.timeout = std::chrono::duration_cast<std::chrono::milliseconds>(limit);
  options.gpus_share = gpus_share;
  if (options.loopback > 0) {
    options.ranks = 1;
    return options;
  }
  if (!ranks.empty())
    options.ranks = count_of("--ranks", ranks, 1, most);
  else if (backend == "threads" || !rank_from_environment()) {
    if (!rendezvous.empty())
      throw InputError(
          "--rendezvous is where ranks meet that torchrun, mpirun or srun started, or who set RANK "
          "and WORLD_SIZE: this process is none; --ranks N starts N here");
    options.ranks = fallback;
  }
  if (options.ranks > most)
    throw InputError(
        fmt::format("{} ranks are too many for one host: say --ranks N", options.ranks));
  return options;
}

bool speaks(const JobOptions& options) {
  const auto place = options.backend == "threads" ? std::nullopt : rank_from_environment();
  return !place || place->rank == 0;
}

double left_by_others(const JobOptions& options) {
  if (!speaks(options) || options.backend == "nccl") return 1;
  const auto place = options.ranks > 0 ? std::nullopt : rank_from_environment();
  const int ranks = place ? place->local_ranks : options.ranks;
  return processor_time_left(std::clamp(ranks, 1, allowed_cores()));
}

std::string allocation_note(const JobFlags& flags, const JobOptions& options,
                            const std::string& command) {
  if (options.backend == "threads" || options.loopback > 0 || options.gpus_share) return "";
  const auto job = allocation_left_alone();
  if (!job) return "";
  if (job->nodes == 1) {
    if (!flags.ranks.empty() || options.ranks == job->tasks) return "";
    return fmt::format(
        "this {} job has {} tasks, and {} started none of them: this process starts {} rank{} by "
        "itself; write `{} ddpsim {} ...` for a rank of each task, or --ranks {}",
        job->system, job->tasks, job->starts, options.ranks, options.ranks == 1 ? "" : "s",
        job->starts, command, job->tasks);
  }
  return fmt::format(
      "this {} job has {} nodes, and {} started nothing on them: the ranks of this command ({}) "
      "all run on this node, and no network between nodes is measured; write `{} ddpsim {} ... "
      "--rendezvous file:DIR --interface NAME` without --ranks, DIR in a folder that all nodes see",
      job->system, job->nodes, job->starts, options.ranks, job->starts, command);
}

int link_ranks(const JobOptions& options) {
  if (options.loopback > 0) return options.loopback;
  if (options.ranks > 0) return options.ranks;
  const auto place = rank_from_environment();
  return place ? place->ranks : 1;
}

std::string agreement_of(const Workload& workload, const std::vector<program::Job>& steps,
                         const std::string& flags) {
  std::string text = flags;
  for (const Layer& layer : workload.layers)
    for (const auto* pass : {&layer.forward, &layer.backward})
      for (const Kernel& kernel : *pass) {
        const Gemm gemm = kernel.gemm.value_or(Gemm{});
        text += fmt::format("\nkernel {} {} {} {} {}", gemm.m, gemm.n, gemm.k, gemm.batch,
                            kernel.traffic.count);
      }
  for (const Parameter& parameter : workload.parameters)
    text += fmt::format("\nparameter {} {}", parameter.name, parameter.elements());
  for (const program::Job& step : steps)
    text += fmt::format("\nstep {}", program::fingerprint_text(program::fingerprint(step)));
  return text;
}

}  // namespace ddpsim
