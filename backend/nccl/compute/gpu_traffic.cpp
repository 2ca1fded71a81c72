#include "backend/nccl/compute/gpu_traffic.hpp"

#include <algorithm>

namespace ddpsim {

std::uint32_t operand_seed(const Task& task, std::uint32_t number) {
  return static_cast<std::uint32_t>(((task.layer + 1) * 64 + task.kernel + 1) * 16 +
                                    1031 * task.micro_batch +
                                    (task.operation == Operation::backward ? 8 : 0)) +
         number;
}

void GpuTraffic::move(Stream stream, Bytes traffic, int launches, std::uint32_t seed,
                      Motion motion) {
  const Bytes each{traffic.count / std::max(1, launches)};
  for (int i = 0; i < launches; ++i) {
    const Bytes half{std::max(shortest_stream, std::min(each, longest_stream)).count / 2};
    const std::byte* from =
        memory_.operand(DType::fp32, half, seed + static_cast<std::uint32_t>(i));
    if (motion == Motion::rows)
      gpu_.normalise(from, memory_.scratch(), each, longest_stream);
    else
      gpu_.move(stream, from, memory_.scratch(), each, longest_stream);
  }
}

}  // namespace ddpsim
