#include "model/cost/measured_collectives.hpp"

#include <algorithm>
#include <tuple>

#include "model/cost/collective.hpp"

namespace ddpsim {
namespace {

void count_peak(CollectiveTable& table) {
  for (const auto& [size, time] : table.times)
    table.peak.bytes_per_second =
        std::max(table.peak.bytes_per_second, static_cast<double>(size.count) / in_seconds(time));
}

}  // namespace

MeasuredCollectives::MeasuredCollectives(std::vector<MeasuredCollective> points) {
  std::stable_sort(points.begin(), points.end(), [](const auto& a, const auto& b) {
    return std::tuple(a.operation, a.ranks, a.size) < std::tuple(b.operation, b.ranks, b.size);
  });
  for (const MeasuredCollective& point : points) {
    if (tables_.empty() || tables_.back().operation != point.operation ||
        tables_.back().ranks != point.ranks)
      tables_.push_back({point.operation, point.ranks, {}, {}});
    tables_.back().times.emplace_back(point.size, point.time.median);
  }
  for (CollectiveTable& table : tables_) {
    table.times = growing(std::move(table.times));
    count_peak(table);
  }
}

const CollectiveTable* MeasuredCollectives::find(Operation operation, int ranks) const {
  const CollectiveTable* found = nullptr;
  for (const CollectiveTable& table : tables_)
    if (table.operation == operation && (found == nullptr || table.ranks <= ranks)) found = &table;
  return found;
}

void MeasuredCollectives::extend(std::size_t table, Bytes size, Duration time) {
  tables_[table].times.emplace_back(size, time);
}

}  // namespace ddpsim
