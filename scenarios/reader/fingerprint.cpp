#include "scenarios/reader/fingerprint.hpp"

#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include "scenarios/reader/catalogue.hpp"
#include "scenarios/reader/yaml.hpp"

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

class Walk {
 public:
  explicit Walk(Fingerprint& fingerprint) : fingerprint_(fingerprint) {}

  void file(const fs::path& path) {
    std::error_code error;
    if (!unreadable(path).empty() || fs::file_size(path, error) == 0) return;  // as those of /proc
    if (!seen_.insert(fs::weakly_canonical(path, error)).second) return;
    if (seen_.size() > most_files)
      throw InputError(
          fmt::format("{}: the scenario names more than {} files", path.string(), most_files));
    std::ifstream stream(path, std::ios::binary);
    std::ostringstream content;
    content << stream.rdbuf();
    fingerprint_.add(content.str());
    const fs::path end = path.extension();
    if (end == ".yaml" || end == ".yml") named_in(content.str(), path.parent_path());
  }

  void named_in(const std::string& content, const fs::path& folder) {
    for (const std::string& text : scalars_of(content)) {
      constexpr std::size_t longest_path = 4096;
      if (text.empty() || text.size() > longest_path) continue;
      std::error_code error;
      if (fs::is_regular_file(folder / text, error)) file(folder / text);
    }
  }

 private:
  Fingerprint& fingerprint_;
  std::set<fs::path> seen_;
};

}  // namespace

void Fingerprint::add(std::string_view text) {
  for (std::size_t size = text.size(), i = 0; i < sizeof(size); ++i, size >>= 8)
    mix(static_cast<unsigned char>(size));
  for (const char c : text) mix(static_cast<unsigned char>(c));
}

void add_file(Fingerprint& fingerprint, const fs::path& file) {
  Walk walk(fingerprint);
  walk.file(file);
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream content;
  content << stream.rdbuf();
  walk.named_in(content.str(), file.parent_path());  // whatever it is called, it is YAML
}

void add_setting(Fingerprint& fingerprint, const fs::path& folder, std::string_view value) {
  fingerprint.add(value);
  Walk(fingerprint).named_in(std::string(value), folder);
}

void add_catalogue(Fingerprint& fingerprint) {
  for (const char* kind : {"devices", "links", "models"})
    for (const std::string& name : catalogue_names(kind)) {
      fingerprint.add(name);
      Walk(fingerprint).file(catalogue_folder() / kind / (name + ".yaml"));
    }
}

}  // namespace ddpsim
