#pragma once

#include <string>
#include <vector>

namespace ddpsim {

// The words of tables and pages, as docs/glossary.md explains them; its text is a part of the
// program.

/// One explanation of the page: a bullet such as "* **MFU**: model FLOPs utilisation, ..." or a row
/// of its table of columns. Without Markdown's asterisks and links; backquotes stay.
struct GlossaryEntry {
  std::vector<std::string> words;  ///< what it explains: "MFU"; "step ms" and "sum ms" of a row
  std::string heading;             ///< "MFU", "Regret (of `tune --uncertainty`)"
  std::string text;
};

/// All of them, in the order of the page.
const std::vector<GlossaryEntry>& glossary();

/// Those of `entries` that explain `word`, in any case of letters; " ms" at the end of a column's
/// name may be left out. Of a word in the plural also those of its singular, behind the others.
std::vector<GlossaryEntry> entries_of(const std::string& word,
                                      const std::vector<GlossaryEntry>& entries);

/// What a plural such as "buckets" or "strategies" may be the plural of; none of other words.
std::vector<std::string> singulars_of(const std::string& word);

}  // namespace ddpsim
