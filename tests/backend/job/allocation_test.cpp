#include "backend/job/allocation.hpp"

#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/scenarios/reader/scratch.hpp"

namespace ddpsim {
namespace {

/// The allocation where exactly these of the variables that count are set.
std::optional<Allocation> left_alone_in(const std::map<std::string, std::string>& variables) {
  std::map<std::string, std::string> before;
  const std::vector<std::string> all{"RANK",          "OMPI_COMM_WORLD_RANK",
                                     "PMI_RANK",      "SLURM_JOB_ID",
                                     "SLURM_NNODES",  "SLURM_JOB_NUM_NODES",
                                     "SLURM_NTASKS",  "SLURM_PROCID",
                                     "SLURM_LOCALID", "SLURM_STEP_ID",
                                     "WORLD_SIZE",    "SLURM_STEP_NUM_TASKS",
                                     "PBS_NODEFILE",  "LSB_HOSTS"};
  for (const std::string& name : all) {
    if (const char* value = std::getenv(name.c_str())) before[name] = value;
    unsetenv(name.c_str());
  }
  for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
  const auto found = allocation_left_alone();
  for (const std::string& name : all) unsetenv(name.c_str());
  for (const auto& [name, value] : before) setenv(name.c_str(), value.c_str(), 1);
  return found;
}

TEST_CASE("a batch script of Slurm has nodes and tasks, which a step of srun has taken",
          "[backend][allocation]") {
  const std::map<std::string, std::string> script{{"SLURM_JOB_ID", "90210"},
                                                  {"SLURM_JOB_NUM_NODES", "2"},
                                                  {"SLURM_NTASKS", "8"},
                                                  {"SLURM_PROCID", "0"},
                                                  {"SLURM_LOCALID", "0"}};  // as sbatch sets them
  const auto found = left_alone_in(script);
  REQUIRE(found);
  CHECK(found->system == "Slurm");
  CHECK(found->starts == "srun");
  CHECK(found->nodes == 2);
  CHECK(found->tasks == 8);
  auto step = script;
  step["SLURM_STEP_ID"] = "0";
  CHECK_FALSE(left_alone_in(step));
  auto torchrun = script;
  torchrun["RANK"] = "0";
  torchrun["WORLD_SIZE"] = "8";
  CHECK_FALSE(left_alone_in(torchrun));
}

TEST_CASE("one node with one task leaves nothing alone", "[backend][allocation]") {
  CHECK_FALSE(left_alone_in({}));
  CHECK_FALSE(left_alone_in({{"SLURM_JOB_ID", "1"}}));
  CHECK_FALSE(left_alone_in({{"SLURM_JOB_ID", "1"}, {"SLURM_NNODES", "1"}, {"SLURM_NTASKS", "1"}}));
  CHECK_FALSE(left_alone_in({{"SLURM_JOB_ID", "1"}, {"SLURM_NTASKS", "many"}}));
  CHECK(left_alone_in({{"SLURM_JOB_ID", "1"}, {"SLURM_NNODES", "3"}}).value().nodes == 3);
  CHECK(left_alone_in({{"SLURM_JOB_ID", "1"}, {"SLURM_NTASKS", "4"}}).value().tasks == 4);
}

TEST_CASE("PBS and LSF name the host of every task", "[backend][allocation]") {
  const Scratch scratch;
  const auto file = [&](const std::string& hosts) {
    return scratch.write("hosts", hosts).string();
  };
  const auto pbs = left_alone_in({{"PBS_NODEFILE", file("a\na\nb\nb\n")}});
  REQUIRE(pbs);
  CHECK(pbs->system == "PBS");
  CHECK(pbs->nodes == 2);
  CHECK(pbs->tasks == 4);
  CHECK_FALSE(left_alone_in({{"PBS_NODEFILE", file("a\na\n")}}));
  CHECK_FALSE(left_alone_in({{"PBS_NODEFILE", "/nowhere"}}));
  const auto lsf = left_alone_in({{"LSB_HOSTS", "a a b c"}});
  REQUIRE(lsf);
  CHECK(lsf->system == "LSF");
  CHECK(lsf->nodes == 3);
  CHECK_FALSE(left_alone_in({{"LSB_HOSTS", "a a"}}));
}

}  // namespace
}  // namespace ddpsim
