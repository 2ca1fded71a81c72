#include "scenarios/reader/file_end.hpp"

#include <fmt/format.h>

namespace ddpsim {

void check_end(const YamlMap& map, const Yaml& format) {
  const std::string name = format.text("a format");
  const auto end = map.find("end");
  if (!end)
    map.node().fail(fmt::format(
        "the last line, \"end: {}\", is missing: the file was cut off, or is older than "
        "this mark; make it again",
        name));
  if (end->text(name) != name) end->fail(fmt::format("expected {}", name));
}

void check_end_if_written(const YamlMap& map, const Yaml& format) {
  const auto writer = map.find("written_by");
  if (writer) {
    static_cast<void>(writer->text("the name of a program"));
    check_end(map, format);
  } else if (const auto end = map.find("end")) {
    if (end->text("a format") != format.text("a format"))
      end->fail(fmt::format("expected {}", format.text("a format")));
  }
}

}  // namespace ddpsim
