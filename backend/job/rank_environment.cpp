#include "backend/job/rank_environment.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string_view>

#include <fmt/format.h>

namespace ddpsim {
namespace {

constexpr int most_ranks = 100000;  // far beyond any job, far within an int

/// The variables of one launcher. Those of the host may be missing, or have no name at all.
struct Variables {
  const char* rank;
  const char* ranks;
  const char* local_rank;
  const char* local_ranks = nullptr;
};

std::optional<std::string> value_of(const char* variable) {
  const char* value = variable == nullptr ? nullptr : std::getenv(variable);
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

/// The value of the first variable that is set and not empty; "" if there is none.
std::string first_of(std::initializer_list<const char*> variables) {
  for (const char* variable : variables)
    if (const auto value = value_of(variable); value && !value->empty()) return *value;
  return {};
}

/// A variable's value as an error of one line shows it, whatever characters it has.
std::string shown(const std::string& value) {
  constexpr std::size_t most = 40;
  std::string text = value.substr(0, most);
  for (char& letter : text)
    if (letter < ' ' || letter > '~') letter = '?';
  return text + (value.size() > most ? "..." : "");
}

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// The number in `variable`, which is set; `because` says where the bounds come from.
int number_in(const char* variable, int least, int most, const std::string& because = {}) {
  const std::string value = value_of(variable).value_or("");
  const auto number = whole_number(value);
  if (!number || *number < least || *number > most)
    throw std::invalid_argument(
        fmt::format("{}: expected a whole number from {} to {}{}, got \"{}\"", variable, least,
                    most, because, shown(value)));
  return static_cast<int>(*number);
}

RankPlace place_in(const Variables& variables) {
  RankPlace place;
  if (!value_of(variables.ranks))
    throw std::invalid_argument(
        fmt::format("{}: expected the number of ranks, since {} is \"{}\", but it is not set",
                    variables.ranks, variables.rank, shown(*value_of(variables.rank))));
  place.ranks = number_in(variables.ranks, 1, most_ranks);
  const std::string of_ranks = fmt::format(" ({} is {})", variables.ranks, place.ranks);
  place.rank = number_in(variables.rank, 0, place.ranks - 1, of_ranks);
  place.local_rank = place.rank;
  place.local_ranks = place.ranks == 1 ? 1 : 0;
  if (!value_of(variables.local_rank)) return place;
  if (!value_of(variables.local_ranks)) {
    place.local_rank = number_in(variables.local_rank, 0, place.ranks - 1, of_ranks);
    return place;
  }
  place.local_ranks = number_in(variables.local_ranks, 1, place.ranks, of_ranks);
  place.local_rank =
      number_in(variables.local_rank, 0, place.local_ranks - 1,
                fmt::format(" ({} is {})", variables.local_ranks, place.local_ranks));
  return place;
}

/// `id`, if it is safe as a file name; else what is safe of it, with a hash (FNV-1a) of all of it:
/// ids that differ get names that differ.
std::string file_name_of(const std::string& id) {
  constexpr std::size_t longest = 100;
  std::string name = id.substr(0, longest);
  for (char& letter : name) {
    const bool safe = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
                      (letter >= '0' && letter <= '9') || letter == '.' || letter == '-';
    if (!safe) letter = '_';
  }
  if (name == id) return name;
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char letter : id) hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3;
  return fmt::format("{}-{:016x}", name, hash);
}

/// Every id starts with a word of ours, so that none is "..", hidden, or that of another launcher.
std::string job_of(std::string_view kind, const std::string& id) {
  return id.empty() ? "" : file_name_of(fmt::format("{}-{}", kind, id));
}

RankPlace torch_place() {
  RankPlace place = place_in({"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"});
  place.launcher = value_of("TORCHELASTIC_RUN_ID") ? "torchrun" : "the environment";
  const std::string run = first_of({"TORCHELASTIC_RUN_ID"});
  const std::string address = first_of({"MASTER_ADDR"}), port = first_of({"MASTER_PORT"});
  if (!run.empty() && run != "none")  // "none" is torchrun's default
    place.job = job_of("torchrun", run);
  else if (!address.empty() && !port.empty())
    place.job = job_of("master", address + "-" + port);
  return place;
}

RankPlace open_mpi_place() {
  RankPlace place = place_in({"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                              "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"});
  place.launcher = "mpirun";
  place.job = job_of("mpirun", first_of({"OMPI_MCA_ess_base_jobid", "PMIX_NAMESPACE"}));
  return place;
}

/// MPICH's mpirun keeps its id to itself.
RankPlace mpich_place() {
  RankPlace place = place_in({"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"});
  place.launcher = "mpirun";
  return place;
}

/// This process is one of a step's tasks. The shells of batch and interactive jobs have numbers of
/// steps too in some versions, from 0xfffffff1 on (slurm.h: SLURM_MAX_NORMAL_STEP_ID).
bool in_slurm_step() {
  const auto step = value_of("SLURM_STEP_ID");
  if (!step || !value_of("SLURM_PROCID")) return false;
  const auto number = whole_number(*step);
  return !number || *number <= 0xfffffff0;
}

RankPlace slurm_place() {
  // SLURM_NTASKS may be the allocation's, of which this step is a part.
  const bool of_step = value_of("SLURM_STEP_NUM_TASKS").has_value();
  RankPlace place = place_in(
      {"SLURM_PROCID", of_step ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS", "SLURM_LOCALID"});
  place.launcher = "srun";
  if (first_of({"SLURM_STEP_NUM_NODES", "SLURM_NNODES"}) == "1") place.local_ranks = place.ranks;
  if (const std::string job = first_of({"SLURM_JOB_ID"}); !job.empty())
    place.job = job_of("srun", job + "." + first_of({"SLURM_STEP_ID"}));
  return place;
}

}  // namespace

std::optional<RankPlace> rank_from_environment() {
  if (value_of("RANK")) return torch_place();
  if (value_of("OMPI_COMM_WORLD_RANK")) return open_mpi_place();
  // `srun --mpi=pmi2` sets PMI_RANK as well; only MPICH's own mpirun numbers the ranks of a host.
  if (value_of("PMI_RANK") && (value_of("MPI_LOCALRANKID") || !in_slurm_step()))
    return mpich_place();
  if (in_slurm_step()) return slurm_place();
  return std::nullopt;
}

}  // namespace ddpsim
