#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "tools/report/records/record.hpp"

namespace ddpsim {

/// What a page is wide: columns of a terminal. None: as wide as its tables are.
using PageWidth = std::optional<std::size_t>;

/// Sentences, on as many lines as the page needs.
struct Paragraph {
  std::string text;
};

/// Lines that stay as they are: what is to be pasted.
struct Verbatim {
  std::string text;
};

/// A picture made of characters, drawn to the width it is given.
struct Drawing {
  std::function<std::string(PageWidth width)> draw;
};

/// A picture for a page that is looked at in a browser; text leaves it out.
struct Picture {
  std::string title;  ///< the heading above
  std::string svg;
  std::string tasks{};  ///< JSON for the script that answers a pointer; empty: it need not
  std::string caption{};
  bool half = false;  ///< half a page wide: two such stand side by side
  /// Names with the value that this picture is of: a page lets its reader choose one value of each
  /// name, and shows the picture of these. Empty: it is always shown.
  std::vector<std::pair<std::string, std::string>> choices{};
};

/// What a command shows to people: blocks below one another, a blank line between them.
struct Page {
  std::vector<std::variant<Paragraph, Verbatim, Drawing, Picture, Table>> blocks;

  /// Adds a block; none for a text or a table without content.
  void add(Paragraph paragraph);
  void add(Verbatim lines);
  void add(Drawing drawing);
  void add(Picture picture);
  void add(Table table);
  void add(Page more);
};

}  // namespace ddpsim
