#include "model/cost/calibration.hpp"

namespace ddpsim {

MeasuredWork measured(Operation operation, std::optional<Gemm> gemm, Bytes traffic, DType type,
                      const Spread& time, bool aside) {
  MeasuredWork measured;
  measured.operation = operation;
  measured.gemm = gemm;
  measured.traffic = traffic;
  measured.type = type;
  measured.aside = aside;
  measured.time = time;
  return measured;
}

std::optional<std::pair<AllReduceCost, AllReduceCost>> slower_small_all_reduce(
    const std::vector<AllReduceCost>& all_reduce) {
  std::optional<std::pair<AllReduceCost, AllReduceCost>> found;
  double most = 1.5;
  for (std::size_t large = 1; large < all_reduce.size(); ++large)
    for (std::size_t small = 0; small < large; ++small) {
      const double ratio =
          in_seconds(all_reduce[small].time.median) / in_seconds(all_reduce[large].time.median);
      if (ratio < most) continue;
      most = ratio;
      found.emplace(all_reduce[small], all_reduce[large]);
    }
  return found;
}

}  // namespace ddpsim
