#include "backend/comm_hooks/draws.hpp"

namespace ddpsim {

void Draws::draw(const program::Job& job, program::BufferId buffer, std::span<float> numbers,
                 bool fresh) {
  const std::lock_guard lock(mutex_);
  if (fresh) {
    TorchSeeds& seeds = seeds_.try_emplace(job.state, job.seed).first->second;
    randoms_.insert_or_assign(buffer, TorchRandom(seeds.next()));
  }
  if (!numbers.empty()) randoms_.try_emplace(buffer, job.seed).first->second.randn(numbers);
}

}  // namespace ddpsim
