#include "scenarios/reader/catalogue/named_files.hpp"

#include <fstream>
#include <sstream>
#include <vector>

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include "scenarios/reader/format/yaml.hpp"
#include "scenarios/reader/text/memory_file.hpp"

namespace ddpsim {
namespace {

namespace fs = std::filesystem;

/// Far beyond any scenario; bounds the work a hostile one can ask for.
constexpr std::size_t most_files = 1000;

/// The scalars of a document as they are written; what an alias stands for is heard once.
class Scalars : public YAML::EventHandler {
 public:
  std::vector<std::string> texts;

 private:
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t,
                const std::string& text) override {
    texts.push_back(text);
  }
  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}
};

/// None where the text is no YAML: somebody else says so.
std::vector<std::string> scalars_of(const std::string& content) {
  Scalars scalars;
  try {
    std::istringstream stream(content);
    YAML::Parser(stream).HandleNextDocument(scalars);
  } catch (const YAML::Exception&) {
    scalars.texts.clear();
  }
  return scalars.texts;
}

}  // namespace

void NamedFiles::add_file(const fs::path& file) {
  std::error_code error;
  if (!unreadable(file).empty()) return;
  if (!text_in_memory(file) && fs::file_size(file, error) == 0) return;  // as those of /proc
  if (!seen_.insert(fs::weakly_canonical(file, error)).second) return;
  if (seen_.size() > most_files)
    throw InputError(
        fmt::format("{}: the scenario names more than {} files", file.string(), most_files));
  const std::string content = content_of_file(file);
  visit_(file, content);
  const fs::path end = file.extension();
  if (end == ".yaml" || end == ".yml") add_text(content, file.parent_path());
}

void NamedFiles::add_text(std::string_view text, const fs::path& folder) {
  for (const std::string& scalar : scalars_of(std::string(text))) {
    constexpr std::size_t longest_path = 4096;
    if (scalar.empty() || scalar.size() > longest_path) continue;
    std::error_code error;
    if (text_in_memory(folder / scalar) || fs::is_regular_file(folder / scalar, error))
      add_file(folder / scalar);
  }
}

std::string content_of_file(const fs::path& file) {
  if (auto text = text_in_memory(file)) return *text;
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream content;
  content << stream.rdbuf();
  return content.str();
}

}  // namespace ddpsim
