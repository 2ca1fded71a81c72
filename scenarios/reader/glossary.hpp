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

/// Those that explain `word`, in any case of letters; " ms" at the end of a column's name may be
/// left out.
std::vector<GlossaryEntry> glossary_entries(const std::string& word);

}  // namespace ddpsim
