#include "scenarios/reader/scenario/fingerprint.hpp"

#include <string>

#include "scenarios/reader/catalogue/catalogue.hpp"
#include "scenarios/reader/catalogue/named_files.hpp"

namespace ddpsim {
namespace {

namespace fs = std::filesystem;

/// Adds the contents of the files it finds.
NamedFiles contents_into(Fingerprint& fingerprint) {
  return NamedFiles([&](const fs::path&, const std::string& content) { fingerprint.add(content); });
}

}  // namespace

void Fingerprint::add(std::string_view text) {
  for (std::size_t size = text.size(), i = 0; i < sizeof(size); ++i, size >>= 8)
    mix(static_cast<unsigned char>(size));
  for (const char c : text) mix(static_cast<unsigned char>(c));
}

void add_file(Fingerprint& fingerprint, const fs::path& file) {
  NamedFiles files = contents_into(fingerprint);
  files.add_file(file);
  files.add_text(content_of_file(file), file.parent_path());  // whatever it is called, it is YAML
}

void add_setting(Fingerprint& fingerprint, const fs::path& folder, std::string_view value) {
  fingerprint.add(value);
  contents_into(fingerprint).add_text(value, folder);
}

void add_catalogue(Fingerprint& fingerprint) {
  for (const char* kind : {"clusters", "devices", "hosts", "links", "models", "operations"})
    for (const std::string& name : catalogue_names(kind)) {
      fingerprint.add(name);
      contents_into(fingerprint).add_file(catalogue_folder() / kind / (name + ".yaml"));
    }
}

}  // namespace ddpsim
