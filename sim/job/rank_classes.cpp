#include "sim/job/rank_classes.hpp"

#include <algorithm>
#include <unordered_map>

namespace ddpsim {
namespace {

using Signature = std::vector<std::uint32_t>;

/// FNV-1a over whole numbers.
struct SignatureHash {
  std::size_t operator()(const Signature& signature) const {
    std::uint64_t hash = 0xcbf29ce484222325;
    for (const std::uint32_t each : signature) hash = (hash ^ each) * 0x100000001b3;
    return hash;
  }
};

/// Distinct signatures, numbered from 0 in the order in which they come.
class Numbers {
 public:
  std::uint32_t of(const Signature& signature) {
    const auto found = numbers_.find(signature);
    if (found != numbers_.end()) return found->second;
    return numbers_.emplace(signature, static_cast<std::uint32_t>(numbers_.size())).first->second;
  }
  std::size_t size() const { return numbers_.size(); }

 private:
  std::unordered_map<Signature, std::uint32_t, SignatureHash> numbers_;
};

/// [communicator] does a program send or receive in it?
std::vector<bool> with_peers(const program::Job& job) {
  std::vector<bool> found(job.communicators.size(), false);
  for (const program::Actions* actions : {job.known.get(), &job.own}) {
    if (actions == nullptr) continue;
    for (const program::Deed& deed : actions->deeds) {
      if (const auto* send = std::get_if<program::Send>(&deed.action))
        found[static_cast<std::size_t>(send->communicator)] = true;
      if (const auto* receive = std::get_if<program::Receive>(&deed.action))
        found[static_cast<std::size_t>(receive->communicator)] = true;
    }
  }
  return found;
}

/// Refines a colouring of the ranks until ranks of one colour meet the same colours everywhere.
class Refinement {
 public:
  Refinement(const program::Job& job, std::span<const std::uint16_t> costs_of)
      : job_(job), peers_(with_peers(job)), colour_(job.ranks()) {
    Numbers numbers;
    std::vector<Signature> first(job.ranks());
    for (std::size_t rank = 0; rank < job.ranks(); ++rank)
      first[rank] = {job.program_of[rank], costs_of[rank]};
    for (std::size_t c = 0; c < peers_.size(); ++c) {
      if (!peers_[c]) continue;
      for (Signature& each : first) each.push_back(RankClasses::none);
      for (const auto& group : job.communicators[c].groups)
        for (std::uint32_t place = 0; place < group.size(); ++place)
          first[at(group[place])].back() = place;
    }
    for (std::size_t rank = 0; rank < job.ranks(); ++rank) colour_[rank] = numbers.of(first[rank]);
    colours_ = numbers.size();
  }

  void run() {
    while (refined()) {
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
  static std::size_t at(std::int32_t rank) { return static_cast<std::size_t>(rank); }

  /// Of its ranks, each once.
  Signature colours_of(const std::vector<std::int32_t>& group, std::size_t communicator) const {
    Signature colours;
    for (const std::int32_t rank : group) colours.push_back(colour_[at(rank)]);
    if (peers_[communicator]) return colours;  // all are different: their places are
    std::sort(colours.begin(), colours.end());
    colours.erase(std::unique(colours.begin(), colours.end()), colours.end());
    return colours;
  }

  /// Are there more colours than before?
  bool refined() {
    std::vector<Signature> next(job_.ranks());
    for (std::size_t rank = 0; rank < job_.ranks(); ++rank) next[rank] = {colour_[rank]};
    for (std::size_t c = 0; c < job_.communicators.size(); ++c) {
      Numbers groups;
      for (const auto& group : job_.communicators[c].groups) {
        const std::uint32_t number = groups.of(colours_of(group, c));
        for (const std::int32_t rank : group) next[at(rank)].push_back(number);
      }
      for (Signature& each : next)
        if (each.size() < c + 2) each.push_back(RankClasses::none);
    }
    Numbers numbers;
    for (std::size_t rank = 0; rank < job_.ranks(); ++rank) colour_[rank] = numbers.of(next[rank]);
    const bool more = numbers.size() > colours_;
    colours_ = numbers.size();
    return more;
  }

  const program::Job& job_;
  std::vector<bool> peers_;            ///< [communicator]
  std::vector<std::uint32_t> colour_;  ///< [rank]
  std::size_t colours_ = 0;
};

}  // namespace

RankClasses classes_of(const program::Job& job, std::span<const std::uint16_t> costs_of) {
  Refinement refinement(job, costs_of);
  refinement.run();
  return refinement.result(costs_of);
}

}  // namespace ddpsim
