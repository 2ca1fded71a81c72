#include "model/cluster/ranks_per_node.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <stdexcept>

namespace ddpsim {

RanksPerNode::RanksPerNode(std::vector<int> of_each) {
  if (of_each.empty() || *std::min_element(of_each.begin(), of_each.end()) < 1)
    throw std::invalid_argument("there is at least one node, and each has at least one rank");
  const auto [smallest, largest] = std::minmax_element(of_each.begin(), of_each.end());
  largest_ = *largest;
  smallest_ = *smallest;
  if (smallest_ == largest_) return;
  for (const int ranks : of_each) lacking_ += largest_ - ranks;
  of_each_ = std::move(of_each);
}

RanksPerNode RanksPerNode::first(int nodes) const {
  if (equal()) return *this;
  return RanksPerNode(std::vector<int>(of_each_.begin(), of_each_.begin() + nodes));
}

int RanksPerNode::first_of(int node) const {
  if (equal()) return node * largest_;
  return std::accumulate(of_each_.begin(), of_each_.begin() + node, 0);
}

int RanksPerNode::place_of(int rank) const {
  if (equal()) return rank % largest_;
  for (const int ranks : of_each_) {
    if (rank < ranks) break;
    rank -= ranks;
  }
  return rank;
}

std::string to_string(const RanksPerNode& ranks) {
  if (ranks.equal()) return std::to_string(ranks.largest());
  constexpr int most_terms = 6;
  std::string text;
  int terms = 0;
  const std::vector<int>& each = ranks.of_each();
  for (std::size_t begin = 0, end = 0; begin < each.size(); begin = end) {
    while (end < each.size() && each[end] == each[begin]) ++end;
    if (++terms > most_terms)
      return std::to_string(ranks.smallest()) + " to " + std::to_string(ranks.largest());
    if (!text.empty()) text += " + ";
    if (end - begin > 1) text += std::to_string(end - begin) + " x ";
    text += std::to_string(each[begin]);
  }
  return text;
}

}  // namespace ddpsim
