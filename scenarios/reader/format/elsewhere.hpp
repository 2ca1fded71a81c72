#pragma once

#include <string>

#include "scenarios/reader/format/yaml.hpp"

namespace ddpsim {

struct KeyDescription;

/// What `name`, which is no key of `here`, is called in our formats, if PyTorch, Lightning,
/// DeepSpeed, Hugging Face or a launcher spells a key so: "DistributedDataParallel's bucket_cap_mb
/// is training.bucket_cap here: write bucket_cap: 25 MiB". "" if nobody does.
std::string told_elsewhere(const std::string& name, const Yaml& value, const MapDescription& here);

/// What is said of a name without a value.
std::string told_elsewhere(const std::string& name);

/// Does PyTorch, Lightning, DeepSpeed, Hugging Face or a launcher call our `key` by that name?
bool spelt_elsewhere(const KeyDescription& key, const std::string& name);

}  // namespace ddpsim
