#pragma once

#include "model/parallel/training.hpp"
#include "scenarios/reader/format/map.hpp"

namespace ddpsim {

/// `training.fsdp`: which of PyTorch's two it is, and FullyShardedDataParallel's own options.
const Map<FsdpVariantSettings>& fsdp_variant_map();

/// Refuses keys of `training:` that fully_shard alone has, where the variant is another. Throws
/// InputError where the key stands.
void check_keys_of_variant(const Training& training, const YamlMap& given);

}  // namespace ddpsim
