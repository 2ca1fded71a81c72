// Computes a grid of points on four threads and one after the other, for the thread sanitizer: the
// results are the same, and no two threads touch one thing unguarded.

#include <cstdio>

#include "scenarios/reader/text/memory_file.hpp"
#include "tools/sweep/point_threads.hpp"
#include "tools/sweep/sweep_results.hpp"

int main() {
  using namespace ddpsim;
  const MemoryFile file("/no-such-folder/sweep.yaml",
                        "workload: {model: {family: mlp, widths: [64, 64, 64]}, batch: 1}\n"
                        "cluster: {device: h100-sxm, ranks_per_node: 2, intra_node: nvlink4}\n"
                        "compare: [naive, flat, overlap, bucketed]\n");
  const Sweep sweep = plan_sweep(
      file.path().string(), {}, true,
      Grid({parse_axis("workload.batch=1..4"), parse_axis("training.bucket_cap=1KiB..8KiB*2")}));
  PointResults one_by_one(sweep.grid.points()), on_threads(sweep.grid.points());
  std::vector<std::size_t> points;
  for (std::size_t point = 0; point < sweep.grid.points(); ++point) points.push_back(point);

  PointThreads threads(4, [&](std::size_t point) { return compute_point(sweep, point); });
  threads.add(points);
  while (threads.open() > 0)
    for (auto& [point, result] : threads.take(std::chrono::seconds{1}))
      on_threads[point] = std::move(result);
  for (const std::size_t point : points) one_by_one[point] = compute_point(sweep, point);

  if (sweep_csv(sweep, on_threads) == sweep_csv(sweep, one_by_one)) return 0;
  std::fputs("points on threads differ from points one by one\n", stderr);
  return 1;
}
