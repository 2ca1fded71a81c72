#include "scenarios/reader/text/yaml_merge.hpp"

#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

#include "scenarios/reader/text/input_error.hpp"

namespace ddpsim {
namespace {

/// A small file can merge a large mapping many times over.
constexpr std::size_t most_merged_keys = 100'000;

class Merges {
 public:
  Merges(const std::string& file, std::vector<CopiedMap>& copies) : file_(file), copies_(copies) {}

  /// `node` with all merges in it written out; itself, if there are none.
  YAML::Node written_out(const YAML::Node& node) {
    if (!node.IsMap() && !node.IsSequence()) return node;
    // An alias is the anchored node itself: each is done once, and one that holds itself ends here.
    const int place = node.Mark().pos;
    if (const auto [done, is_new] = done_.try_emplace(place, node); !is_new) return done->second;
    YAML::Node copy(node.Type());
    const bool changed = node.IsMap() ? copy_map(node, copy) : copy_list(node, copy);
    if (!changed) return node;
    copies_.emplace_back(copy, node.Mark());
    done_.insert_or_assign(place, copy);
    return copy;
  }

 private:
  bool copy_list(const YAML::Node& list, YAML::Node& copy) {
    bool changed = false;
    for (const YAML::Node& item : list) {
      const YAML::Node written = written_out(item);
      changed = changed || !written.is(item);
      copy.push_back(written);
    }
    return changed;
  }

  bool copy_map(const YAML::Node& map, YAML::Node& copy) {
    bool changed = false;
    std::unordered_set<std::string> names;
    std::vector<YAML::Node> merged;
    for (const auto& item : map) {
      if (item.first.IsScalar() && item.first.Scalar() == "<<") {
        merged.push_back(item.second);
        continue;
      }
      const YAML::Node value = written_out(item.second);
      changed = changed || !value.is(item.second);
      copy.force_insert(item.first, value);
      if (item.first.IsScalar()) names.insert(item.first.Scalar());
    }
    for (const YAML::Node& value : merged) {
      if (!value.IsSequence())
        add(value, copy, names);
      else
        for (const YAML::Node& each : value) add(each, copy, names);
    }
    return changed || !merged.empty();
  }

  /// The keys of `from` that are not there yet.
  void add(const YAML::Node& from, YAML::Node& copy, std::unordered_set<std::string>& names) {
    const YAML::Mark mark = from.Mark();
    const auto refuse = [&](const std::string& problem) {
      throw InputError(
          fmt::format("{}:{}:{}: <<: {}", file_, mark.line + 1, mark.column + 1, problem));
    };
    if (!from.IsMap())
      refuse("expected a mapping whose keys are taken over, such as *base, or a list of such");
    for (const auto& item : written_out(from)) {
      if (!item.first.IsScalar() || !names.insert(item.first.Scalar()).second) continue;
      if (++merged_keys_ > most_merged_keys)
        refuse(fmt::format("more than {} keys are merged", most_merged_keys));
      copy.force_insert(item.first, item.second);
    }
  }

  const std::string& file_;
  std::vector<CopiedMap>& copies_;
  std::unordered_map<int, YAML::Node> done_;  ///< by place in the file
  std::size_t merged_keys_ = 0;
};

}  // namespace

YAML::Node with_merges(const YAML::Node& root, const std::string& file,
                       std::vector<CopiedMap>& copies) {
  return Merges(file, copies).written_out(root);
}

}  // namespace ddpsim
