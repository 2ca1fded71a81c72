#include "tools/study/file_notes.hpp"

#include <algorithm>
#include <filesystem>

#include "scenarios/reader/catalogue/named_files.hpp"
#include "scenarios/reader/text/memory_file.hpp"
#include "scenarios/reader/text/seal.hpp"

namespace ddpsim {

std::vector<std::string> file_notes(const std::string& scenario, const std::vector<Setting>& set) {
  std::vector<std::string> notes;
  NamedFiles named([&](const std::filesystem::path& file, const std::string& content) {
    if (text_in_memory(file)) return;  // what an object in Python says of itself
    if (std::string note = unsealed_note(content, file.string()); !note.empty())
      if (std::ranges::find(notes, note) == notes.end()) notes.push_back(std::move(note));
  });
  const std::filesystem::path file = scenario;
  named.add_file(file);
  // A path in a setting is looked for in the current folder, then in the scenario's.
  for (const auto& [key, value, written] : set) {
    named.add_text(value, "");
    named.add_text(value, file.parent_path());
  }
  return notes;
}

}  // namespace ddpsim
