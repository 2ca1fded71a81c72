#include "backend/job/rank_environment.hpp"

#include <cstdlib>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

using namespace ddpsim;
using Catch::Matchers::Equals;

namespace {

using Variables = std::map<std::string, std::string>;

/// While it exists, of all variables of launchers exactly these are set.
class Environment {
 public:
  explicit Environment(const Variables& variables) {
    for (const std::string& name : all()) {
      if (const char* value = std::getenv(name.c_str())) before_[name] = value;
      unsetenv(name.c_str());
    }
    for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
  }
  ~Environment() {
    for (const std::string& name : all()) unsetenv(name.c_str());
    for (const auto& [name, value] : before_) setenv(name.c_str(), value.c_str(), 1);
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  static std::vector<std::string> all() {
    return {"RANK",
            "WORLD_SIZE",
            "LOCAL_RANK",
            "LOCAL_WORLD_SIZE",
            "TORCHELASTIC_RUN_ID",
            "MASTER_ADDR",
            "MASTER_PORT",
            "OMPI_COMM_WORLD_RANK",
            "OMPI_COMM_WORLD_SIZE",
            "OMPI_COMM_WORLD_LOCAL_RANK",
            "OMPI_COMM_WORLD_LOCAL_SIZE",
            "OMPI_MCA_ess_base_jobid",
            "PMIX_NAMESPACE",
            "PMI_RANK",
            "PMI_SIZE",
            "MPI_LOCALRANKID",
            "MPI_LOCALNRANKS",
            "SLURM_PROCID",
            "SLURM_NTASKS",
            "SLURM_STEP_NUM_TASKS",
            "SLURM_LOCALID",
            "SLURM_JOB_ID",
            "SLURM_STEP_ID",
            "SLURM_STEP_NUM_NODES",
            "SLURM_NNODES"};
  }
  Variables before_;
};

std::optional<RankPlace> place_in(const Variables& variables) {
  const Environment environment(variables);
  return rank_from_environment();
}

std::string job_in(const Variables& variables) {
  return place_in(variables).value().job;
}

/// The line that refuses these variables; empty if they are taken.
std::string refusal_of(const Variables& variables) {
  try {
    place_in(variables);
    return {};
  } catch (const std::invalid_argument& problem) {
    return problem.what();
  }
}

Variables with(Variables variables, const Variables& more) {
  for (const auto& [name, value] : more) variables[name] = value;
  return variables;
}

const Variables torchrun{{"RANK", "5"},
                         {"WORLD_SIZE", "8"},
                         {"LOCAL_RANK", "1"},
                         {"LOCAL_WORLD_SIZE", "4"},
                         {"TORCHELASTIC_RUN_ID", "4711"},
                         {"MASTER_ADDR", "10.0.0.1"},
                         {"MASTER_PORT", "29500"}};

// What Open MPI 4.1, MPICH 4.0 and the manual page of srun say they set.
const Variables open_mpi{{"OMPI_COMM_WORLD_RANK", "1"},
                         {"OMPI_COMM_WORLD_SIZE", "2"},
                         {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                         {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                         {"OMPI_MCA_ess_base_jobid", "847511553"},
                         {"PMIX_NAMESPACE", "847511553"}};
const Variables mpich{
    {"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}};
const Variables srun{{"SLURM_PROCID", "3"},         {"SLURM_NTASKS", "4"},
                     {"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_LOCALID", "1"},
                     {"SLURM_JOB_ID", "90210"},     {"SLURM_STEP_ID", "0"},
                     {"SLURM_STEP_NUM_NODES", "2"}};

}  // namespace

TEST_CASE("a process started by itself has no place", "[backend][rank_environment]") {
  CHECK_FALSE(place_in({}));
  CHECK_FALSE(place_in({{"WORLD_SIZE", "8"}, {"MASTER_ADDR", "node"}, {"LOCAL_RANK", "0"}}));
}

TEST_CASE("torchrun's place is read", "[backend][rank_environment]") {
  const RankPlace place = place_in(torchrun).value();
  CHECK(place.rank == 5);
  CHECK(place.ranks == 8);
  CHECK(place.local_rank == 1);
  CHECK(place.local_ranks == 4);
  CHECK(place.launcher == "torchrun");
  CHECK(place.job == "torchrun-4711");
}

TEST_CASE("a torchrun without a name of its own is known by its master",
          "[backend][rank_environment]") {
  const RankPlace place = place_in(with(torchrun, {{"TORCHELASTIC_RUN_ID", "none"}})).value();
  CHECK(place.launcher == "torchrun");
  CHECK(place.job == "master-10.0.0.1-29500");
}

TEST_CASE("a place set by hand needs a rank and the number of ranks only",
          "[backend][rank_environment]") {
  const RankPlace place = place_in({{"RANK", "1"}, {"WORLD_SIZE", "2"}}).value();
  CHECK(place.rank == 1);
  CHECK(place.ranks == 2);
  CHECK(place.local_rank == 1);  // as if all were on this host
  CHECK(place.local_ranks == 0);
  CHECK(place.launcher == "the environment");
  CHECK(place.job.empty());
  CHECK(job_in({{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_PORT", "1"}}).empty());
  CHECK(
      job_in({{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_PORT", "1"}, {"MASTER_ADDR", "::1"}}) !=
      job_in({{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_PORT", "1"}, {"MASTER_ADDR", "_1"}}));
}

TEST_CASE("a rank alone in its job is alone on its host", "[backend][rank_environment]") {
  CHECK(place_in({{"RANK", "0"}, {"WORLD_SIZE", "1"}}).value().local_ranks == 1);
}

TEST_CASE("the place an mpirun gives is read", "[backend][rank_environment]") {
  const bool of_open_mpi = GENERATE(true, false);
  const RankPlace place = place_in(of_open_mpi ? open_mpi : mpich).value();
  CHECK(place.rank == 1);
  CHECK(place.ranks == 2);
  CHECK(place.local_rank == 1);
  CHECK(place.local_ranks == 2);
  CHECK(place.launcher == "mpirun");
  CHECK(place.job == (of_open_mpi ? "mpirun-847511553" : ""));
}

TEST_CASE("Open MPI 5 names its jobs by PMIx alone", "[backend][rank_environment]") {
  Variables five = with(open_mpi, {{"PMIX_NAMESPACE", "prterun-node-1234@1"}});
  five.erase("OMPI_MCA_ess_base_jobid");
  CHECK_THAT(job_in(five), Catch::Matchers::StartsWith("mpirun-prterun-node-1234_1-"));
}

TEST_CASE("srun's place is read", "[backend][rank_environment]") {
  const RankPlace place = place_in(srun).value();
  CHECK(place.rank == 3);
  CHECK(place.ranks == 4);
  CHECK(place.local_rank == 1);
  CHECK(place.local_ranks == 0);  // of two hosts, one may have more tasks than the other
  CHECK(place.launcher == "srun");
  CHECK(place.job == "srun-90210.0");
}

TEST_CASE("all tasks of a step on one node are on this host", "[backend][rank_environment]") {
  CHECK(place_in(with(srun, {{"SLURM_STEP_NUM_NODES", "1"}})).value().local_ranks == 4);
}

TEST_CASE("a step smaller than its allocation counts its own tasks",
          "[backend][rank_environment]") {
  CHECK(place_in(with(srun, {{"SLURM_NTASKS", "64"}})).value().ranks == 4);
  Variables old = srun;
  old.erase("SLURM_STEP_NUM_TASKS");
  CHECK(place_in(old).value().ranks == 4);
}

TEST_CASE("the shell of a Slurm job is no rank", "[backend][rank_environment]") {
  Variables shell = srun;
  shell.erase("SLURM_STEP_ID");
  CHECK_FALSE(place_in(shell));
  shell["SLURM_STEP_ID"] = GENERATE("4294967291", "4294967290");  // batch and interactive steps
  CHECK_FALSE(place_in(shell));
}

TEST_CASE("the innermost launcher decides", "[backend][rank_environment]") {
  // torchrun within a step; mpirun, whose daemons are a step's tasks; srun that speaks PMI itself.
  CHECK(place_in(with(srun, torchrun)).value().launcher == "torchrun");
  CHECK(place_in(with(srun, open_mpi)).value().rank == 1);
  CHECK(place_in(with(srun, mpich)).value().rank == 1);
  const auto pmi = place_in(with(srun, {{"PMI_RANK", "3"}, {"PMI_SIZE", "4"}})).value();
  CHECK(pmi.launcher == "srun");
  CHECK(pmi.job == "srun-90210.0");
}

TEST_CASE("an id of the job is safe as a file name and stays one id",
          "[backend][rank_environment]") {
  const auto job = [](const std::string& run) {
    return job_in(with(torchrun, {{"TORCHELASTIC_RUN_ID", run}}));
  };
  const std::vector<std::string> ids{"a/b",
                                     "a_b",
                                     "a b",
                                     "../../etc/passwd",
                                     "..",
                                     "a\nb",
                                     "\xff\xfe",
                                     "caf\u00e9",
                                     "%s%n",
                                     ".",
                                     "$(reboot)",
                                     std::string(5000, 'x'),
                                     std::string(5001, 'x')};
  std::map<std::string, std::string> seen;
  for (const std::string& id : ids) {
    const std::string name = job(id);
    CAPTURE(id, name);
    CHECK(name.size() < 200);
    CHECK(name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                 "._-") == std::string::npos);
    CHECK(name.front() != '.');
    CHECK(seen.emplace(name, id).second);
    CHECK(job(id) == name);
  }
}

TEST_CASE("a number of ranks is from 1 to 100000", "[backend][rank_environment]") {
  const std::string value = GENERATE("", "two", "0", "-1", "100001", "99999999999999999999", "8x",
                                     " 8", "+8", "0x8", "8.0");
  CHECK_THAT(refusal_of(with(torchrun, {{"WORLD_SIZE", value}})),
             Equals("WORLD_SIZE: expected a whole number from 1 to 100000, got \"" + value + "\""));
}

TEST_CASE("a rank is less than the number of ranks", "[backend][rank_environment]") {
  const std::string value = GENERATE("", "x", "-1", "8", "2147483648", "18446744073709551615");
  CHECK_THAT(
      refusal_of(with(torchrun, {{"RANK", value}})),
      Equals("RANK: expected a whole number from 0 to 7 (WORLD_SIZE is 8), got \"" + value + "\""));
  CHECK(place_in({{"RANK", "99999"}, {"WORLD_SIZE", "100000"}}).value().rank == 99999);
}

TEST_CASE("a host has no more ranks than the job and numbers them from 0",
          "[backend][rank_environment]") {
  CHECK_THAT(refusal_of(with(torchrun, {{"LOCAL_WORLD_SIZE", "9"}})),
             Equals("LOCAL_WORLD_SIZE: expected a whole number from 1 to 8 (WORLD_SIZE is 8), got "
                    "\"9\""));
  CHECK_THAT(refusal_of(with(torchrun, {{"LOCAL_RANK", "4"}})),
             Equals("LOCAL_RANK: expected a whole number from 0 to 3 (LOCAL_WORLD_SIZE is 4), got "
                    "\"4\""));
  CHECK_THAT(refusal_of(with(srun, {{"SLURM_LOCALID", "4"}})),
             Equals("SLURM_LOCALID: expected a whole number from 0 to 3 (SLURM_STEP_NUM_TASKS is "
                    "4), got \"4\""));
}

TEST_CASE("a rank needs the number of ranks", "[backend][rank_environment]") {
  CHECK_THAT(refusal_of({{"RANK", "1"}}),
             Equals("WORLD_SIZE: expected the number of ranks, since RANK is \"1\", but it is not "
                    "set"));
  CHECK_THAT(refusal_of({{"OMPI_COMM_WORLD_RANK", "1"}}),
             Catch::Matchers::StartsWith("OMPI_COMM_WORLD_SIZE: "));
  CHECK_THAT(refusal_of({{"PMI_RANK", "1"}}), Catch::Matchers::StartsWith("PMI_SIZE: "));
  CHECK_THAT(refusal_of({{"SLURM_PROCID", "1"}, {"SLURM_STEP_ID", "0"}}),
             Catch::Matchers::StartsWith("SLURM_NTASKS: "));
}

TEST_CASE("a refused value is shown on one short line", "[backend][rank_environment]") {
  const std::string hostile = "1\n\x1b[31m" + std::string(10000, 'x');
  for (const char* variable : {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"}) {
    const std::string line = refusal_of(with(torchrun, {{variable, hostile}}));
    CAPTURE(line);
    CHECK_THAT(line, Catch::Matchers::StartsWith(std::string(variable) + ": expected "));
    CHECK_THAT(line, Catch::Matchers::Contains("got \"1??[31mxxx"));
    CHECK(line.size() < 200);
    CHECK(line.find_first_of("\n\x1b") == std::string::npos);
  }
}
