#pragma once

#include <string>
#include <vector>

#include "scenarios/reader/explain/glossary.hpp"

namespace ddpsim {

// What every key means, for people, from the description of the formats.

/// All keys of all formats, as trees.
std::string key_tree();

/// What a key means: `key` is its dotted path ("training.bucket_cap") or the end of it
/// ("bucket_cap", "powersgd.rank"), in any case of letters, and with blanks for underscores. Of
/// several keys that end so, all: first those of a scenario, which people write, and behind all
/// else those of other files.
/// Explained too is a name that keys can take (an entry of the catalogue, a choice such as
/// "bucketed"), a word of the glossary ("exposed"), and one of `more`, such as the keys of results,
/// by its name or by a path that ends with it ("memory.peak_bytes"). A plural ("strategies") is
/// explained as its singular where it is none of these. Throws InputError, with the nearest of all
/// these, if `key` is none.
std::string explanation(const std::string& key, const std::vector<GlossaryEntry>& more = {});

/// That explanation; "" if `key` is none of these.
std::string known_explanation(const std::string& key, const std::vector<GlossaryEntry>& more);

/// The page docs/scenario.md.
std::string reference_page();

}  // namespace ddpsim
