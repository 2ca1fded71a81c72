#include "sim/engine/rank_classes.hpp"

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace ddpsim {
namespace {

using Colours = std::vector<std::uint32_t>;

/// FNV-1a over whole numbers.
struct ColoursHash {
  std::size_t operator()(const Colours& colours) const {
    std::uint64_t hash = 0xcbf29ce484222325;
    for (const std::uint32_t each : colours) hash = (hash ^ each) * 0x100000001b3;
    return hash;
  }
};

/// Distinct keys, numbered from 0 in the order in which they come. Ranks next to each other are
/// mostly alike, so the last one is looked at first.
template <typename Key, typename Hash = std::hash<Key>>
class Numbers {
 public:
  std::uint32_t of(const Key& key) {
    if (last_ != nullptr && last_->first == key) return last_->second;
    last_ = &*numbers_.try_emplace(key, static_cast<std::uint32_t>(numbers_.size())).first;
    return last_->second;
  }
  std::size_t size() const { return numbers_.size(); }

 private:
  std::unordered_map<Key, std::uint32_t, Hash> numbers_;
  const std::pair<const Key, std::uint32_t>* last_ = nullptr;
};

constexpr std::uint64_t pair_of(std::uint32_t one, std::uint32_t other) {
  return std::uint64_t{one} << 32 | other;
}

/// [communicator] does a program send or receive in it?
std::vector<bool> with_peers(const program::Job& job, std::span<const JobChannel> channels) {
  std::vector<bool> found(job.communicators.size(), false);
  for (const JobChannel& each : channels)
    if (each.with != JobChannel::With::group)
      found.at(static_cast<std::size_t>(each.communicator)) = true;
  return found;
}

/// Refines a colouring of the ranks until ranks of one colour meet the same colours everywhere.
class Refinement {
 public:
  Refinement(const program::Job& job, std::span<const JobChannel> channels,
             std::span<const std::uint16_t> costs_of)
      : job_(job), peers_(with_peers(job, channels)), colour_(job.ranks()) {
    Numbers<std::uint64_t> numbers;
    for (std::size_t rank = 0; rank < job.ranks(); ++rank)
      colour_[rank] = numbers.of(pair_of(job.program_of[rank], costs_of[rank]));
    colours_ = numbers.size();
    for (std::size_t c = 0; c < peers_.size(); ++c)
      if (peers_[c]) split_by(c, [](const auto&, std::uint32_t place) { return place; });
  }

  void run() {
    while (!are_all_alike() && refined()) {
    }
  }

  RankClasses result(std::span<const std::uint16_t> costs_of) const {
    RankClasses result;
    result.of_rank = colour_;
    result.classes.resize(colours_);
    result.meeting_of.assign(
        colours_, std::vector<std::uint32_t>(job_.communicators.size(), RankClasses::none));
    for (std::size_t rank = job_.ranks(); rank-- > 0;)
      result.classes[colour_[rank]] = {job_.program_of[rank], costs_of[rank],
                                       static_cast<std::int32_t>(rank)};
    for (std::size_t c = 0; c < job_.communicators.size(); ++c)
      for (const auto& group : job_.communicators[c].groups) {
        if (group.empty()) continue;
        auto& known = result.meeting_of[colour_[at(group.front())]][c];
        if (known != RankClasses::none) continue;
        const auto number = static_cast<std::uint32_t>(result.meetings.size());
        result.meetings.push_back({static_cast<std::int16_t>(c), colours_of(group, c)});
        for (const std::uint32_t member : result.meetings.back().members)
          result.meeting_of[member][c] = number;
      }
    return result;
  }

 private:
  using Group = std::vector<std::int32_t>;

  static std::size_t at(std::int32_t rank) { return static_cast<std::size_t>(rank); }

  /// Then groups differ in nothing but in who is in one.
  bool are_all_alike() const {
    return colours_ == 1 && std::ranges::all_of(job_.communicators, [&](const auto& each) {
             std::size_t members = 0;
             for (const Group& group : each.groups) members += group.size();
             return members == job_.ranks() || members == 0;
           });
  }

  /// The colours of the group's ranks, each colour once.
  Colours colours_of(const Group& group, std::size_t communicator) const {
    Colours colours;
    if (peers_[communicator]) {  // all are different: their places are
      for (const std::int32_t rank : group) colours.push_back(colour_[at(rank)]);
      return colours;
    }
    for (const std::int32_t rank : group)
      if (colours.empty() || colour_[at(rank)] != colours.back())
        colours.push_back(colour_[at(rank)]);
    std::sort(colours.begin(), colours.end());
    colours.erase(std::unique(colours.begin(), colours.end()), colours.end());
    return colours;
  }

  /// Ranks to which `part(group, place)` gives different numbers get different colours, and so do
  /// those in no group.
  template <typename Part>
  void split_by(std::size_t communicator, Part part) {
    std::vector<std::uint32_t> part_of(job_.ranks(), RankClasses::none);
    for (const Group& group : job_.communicators[communicator].groups)
      for (std::uint32_t place = 0; place < group.size(); ++place)
        part_of[at(group[place])] = part(group, place);
    Numbers<std::uint64_t> numbers;
    for (std::size_t rank = 0; rank < job_.ranks(); ++rank)
      colour_[rank] = numbers.of(pair_of(colour_[rank], part_of[rank]));
    colours_ = numbers.size();
  }

  /// Are there more colours than before?
  bool refined() {
    const std::size_t before = colours_;
    for (std::size_t c = 0; c < job_.communicators.size(); ++c) {
      Numbers<Colours, ColoursHash> groups;
      const Group* known = nullptr;
      std::uint32_t number = 0;
      split_by(c, [&](const Group& group, std::uint32_t) {
        if (known != &group) number = groups.of(colours_of(group, c));
        known = &group;
        return number;
      });
    }
    return colours_ > before;
  }

  const program::Job& job_;
  std::vector<bool> peers_;            ///< [communicator] does anybody send in it?
  std::vector<std::uint32_t> colour_;  ///< [rank]
  std::size_t colours_ = 0;
};

}  // namespace

RankClasses classes_of(const program::Job& job, std::span<const JobChannel> channels,
                       std::span<const std::uint16_t> costs_of) {
  Refinement refinement(job, channels, costs_of);
  refinement.run();
  return refinement.result(costs_of);
}

}  // namespace ddpsim
