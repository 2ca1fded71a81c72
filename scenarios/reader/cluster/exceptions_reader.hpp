#pragma once

#include <optional>
#include <vector>

#include "model/cluster/cluster.hpp"
#include "scenarios/reader/format/value.hpp"

namespace ddpsim {

/// An entry of `exceptions:` as it is written; which ranks a node has is not known yet.
struct GivenException {
  std::optional<int> rank, node;
  RankException differs;
};

Value<std::vector<GivenException>> exceptions_value();

/// The exceptions with their ranks in `cluster`, whose nodes and ranks are known. `list` is where
/// they are `given`: throws InputError there if a rank or node is none of the cluster's, a rank is
/// in two of them, there are no NICs, or no rank is left that is as the device says. `resized`: a
/// setting says how many nodes and ranks there are, and none says the exceptions; errors then name
/// the setting that leaves these out.
std::vector<RankException> placed(const std::vector<GivenException>& given, const Yaml& list,
                                  const Cluster& cluster, bool resized = false);

}  // namespace ddpsim
