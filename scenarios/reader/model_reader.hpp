#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/workload/architecture.hpp"
#include "scenarios/reader/catalogue.hpp"
#include "scenarios/reader/format.hpp"

namespace ddpsim {

/// A model description: a network as a few numbers.
struct ModelDescription {
  Architecture architecture;
  std::string source;
  /// Whose code its step is computed as: "Hugging Face's code (eager attention, ...)"; "" where
  /// other people's takes the same time.
  std::string code{};
};

/// The keys of a model description.
const MapDescription& model_keys();

/// The blocks of a network that is fed samples of so many tokens: all of them, T5's decoder's too.
struct TokenBlocks {
  int d_model = 0;
  int layers = 0;
};
/// The blocks of a network that is fed tokens; none if it is fed pictures or rows of features.
std::optional<TokenBlocks> blocks_of(const Architecture& architecture);

/// Reads a description and those it is based on, as entry_with_bases gives them. Throws InputError.
ModelDescription read_model(const std::vector<Entry>& entries);

}  // namespace ddpsim
