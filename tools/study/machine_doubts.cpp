#include "tools/study/machine_doubts.hpp"

#include <chrono>
#include <future>
#include <system_error>

#include <fmt/format.h>

#include "backend/cpu/neighbours.hpp"
#include "backend/measure/steal.hpp"

namespace ddpsim {

double processor_time_left(int threads) try {
  std::vector<std::future<double>> shares;
  for (int thread = 0; thread < threads; ++thread)
    shares.push_back(
        std::async(std::launch::async, share_left_by_others, std::chrono::milliseconds{200}));
  double sum = 0;
  for (std::future<double>& share : shares) sum += share.get();
  return sum / threads;
} catch (const std::system_error&) {
  return 1;
}

std::vector<std::string> machine_doubts(double stolen, double left_by_others) {
  constexpr double quiet = 0.9;
  std::vector<std::string> doubts;
  if (stolen > most_stolen)
    doubts.push_back(fmt::format(
        "the host of this virtual machine took {:.0f} % of its processors' time meanwhile: measure "
        "again when it takes less",
        100 * stolen));
  if (left_by_others < quiet)
    doubts.push_back(fmt::format(
        "other programs were at work: they left {:.0f} % of their processors' time to threads that "
        "wait their turn, so times are longer and uneven: measure again when they have ended",
        100 * left_by_others));
  return doubts;
}

std::string all_reduce_doubt(const std::vector<AllReduceCost>& all_reduce) {
  const auto slower = slower_small_all_reduce(all_reduce);
  if (!slower) return "";
  return fmt::format(
      "all-reduces of {} took {:.3g} ms and of {} {:.3g} ms: something else ran meanwhile; ddpsim "
      "doctor says when the machine is steady, and measuring again whether this was noise",
      to_string(slower->first.size), in_ms(slower->first.time.median),
      to_string(slower->second.size), in_ms(slower->second.time.median));
}

}  // namespace ddpsim
