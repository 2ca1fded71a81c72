#include "scenarios/reader/explain/glossary.hpp"

#include <algorithm>
#include <regex>
#include <sstream>
#include <string_view>

#include "scenarios/reader/text/names.hpp"

namespace ddpsim {

extern const std::string_view glossary_md;  // docs/glossary.md

namespace {

/// Without the asterisks of bold words, and with a link's words in place of the link. A link in
/// parentheses goes away with them: it leads on to a page.
std::string without_markdown(const std::string& text) {
  static const std::regex bold(R"(\*\*)"), aside(R"( \(\[[^\]]*\]\([^)]*\)\))"),
      link(R"(\[([^\]]*)\]\([^)]*\))");
  const std::string plain = std::regex_replace(text, bold, "");
  return std::regex_replace(std::regex_replace(plain, aside, ""), link, "$1");
}

/// A bullet, without "* ", on one line: "**Node**: a host with the devices in it."
GlossaryEntry entry_of_bullet(const std::string& bullet) {
  static const std::regex bold(R"(\*\*([^*]+)\*\*)");
  GlossaryEntry entry;
  for (std::sregex_iterator each(bullet.begin(), bullet.end(), bold), end; each != end; ++each)
    entry.words.push_back((*each)[1]);
  const std::string plain = without_markdown(bullet);
  const std::size_t colon = plain.find(": ");
  entry.heading = plain.substr(0, colon);
  if (colon != std::string::npos) entry.text = plain.substr(colon + 2);
  return entry;
}

/// A row of the table of columns: "| step ms, sum ms | the step, ... |"
GlossaryEntry entry_of_row(const std::string& row) {
  GlossaryEntry entry;
  const std::size_t middle = row.find(" | ");
  const std::string names = row.substr(2, middle - 2);
  std::istringstream stream(names);
  for (std::string name; std::getline(stream >> std::ws, name, ',');) entry.words.push_back(name);
  entry.heading = "column " + names;
  entry.text = without_markdown(row.substr(middle + 3, row.size() - middle - 5)) + ".";
  return entry;
}

std::vector<GlossaryEntry> glossary_of(const std::string& page) {
  std::vector<GlossaryEntry> all;
  std::string bullet;
  const auto end_bullet = [&] {
    if (!bullet.empty()) all.push_back(entry_of_bullet(bullet));
    bullet.clear();
  };
  std::istringstream stream(page);
  for (std::string line; std::getline(stream, line);) {
    if (!bullet.empty() && line.starts_with("  ")) {
      bullet += line.substr(1);
      continue;
    }
    end_bullet();
    if (line.starts_with("* ")) bullet = line.substr(2);
    if (line.starts_with("| ") && !line.starts_with("| column |"))
      all.push_back(entry_of_row(line));
  }
  end_bullet();
  return all;
}

}  // namespace

const std::vector<GlossaryEntry>& glossary() {
  static const std::vector<GlossaryEntry> entries = glossary_of(std::string(glossary_md));
  return entries;
}

std::vector<std::string> singulars_of(const std::string& word) {
  std::vector<std::string> forms;
  const auto add = [&](std::string_view ending, std::string_view singular) {
    if (word.size() > ending.size() + 1 && word.ends_with(ending))
      forms.push_back(word.substr(0, word.size() - ending.size()).append(singular));
  };
  add("s", "");
  add("es", "");
  add("ies", "y");
  return forms;
}

std::vector<GlossaryEntry> entries_of(const std::string& word,
                                      const std::vector<GlossaryEntry>& entries) {
  const auto explains = [](const GlossaryEntry& entry, const std::string& form) {
    return position_of(form, entry.words) || position_of(form + " ms", entry.words);
  };
  const std::vector<std::string> singulars = singulars_of(word);
  std::vector<GlossaryEntry> found, of_singular;
  for (const GlossaryEntry& entry : entries)
    if (explains(entry, word))
      found.push_back(entry);
    else if (std::ranges::any_of(singulars,
                                 [&](const std::string& form) { return explains(entry, form); }))
      of_singular.push_back(entry);
  found.insert(found.end(), of_singular.begin(), of_singular.end());
  return found;
}

}  // namespace ddpsim
