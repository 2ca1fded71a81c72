#include "backend/job/cores.hpp"

#include <set>
#include <thread>

#include <catch2/catch.hpp>
#include <sched.h>

namespace ddpsim {
namespace {

std::set<int> my_cores() {
  cpu_set_t set;
  REQUIRE(sched_getaffinity(0, sizeof(set), &set) == 0);
  std::set<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &set)) cores.insert(core);
  return cores;
}

std::set<int> cores_of(int rank, int ranks) {
  std::set<int> cores;
  std::thread([&] {
    take_share_of_cores(rank, ranks);
    cores = my_cores();
  }).join();
  return cores;
}

}  // namespace

TEST_CASE("ranks share out the cores, equally and without overlap", "[backend][cores]") {
  const std::set<int> all = my_cores();
  for (int ranks = 1; ranks <= static_cast<int>(all.size()); ++ranks) {
    std::set<int> taken;
    for (int rank = 0; rank < ranks; ++rank) {
      const std::set<int> mine = cores_of(rank, ranks);
      CHECK(mine.size() == all.size() / static_cast<std::size_t>(ranks));
      for (const int core : mine) {
        CHECK(all.count(core) == 1);
        CHECK(taken.insert(core).second);
      }
    }
  }
}

TEST_CASE("more ranks than cores are bound to none", "[backend][cores]") {
  const std::set<int> all = my_cores();
  CHECK(cores_of(0, static_cast<int>(all.size()) + 1) == all);
}

}  // namespace ddpsim
