#pragma once

#include <string>

#include "tools/report/writers/page.hpp"

namespace ddpsim {

/// A value as a table shows it under `field`: "12.30", "25 MiB", "+1.2 %", "-" for nothing.
std::string cell_text(const Field& field, const FieldValue& value);

/// A table of text. The first column begins at the left, the others end at the right unless they
/// say otherwise; columns stand two blanks apart, with a rule under the headings.
///
/// What is too wide for the page loses its least important columns, of equals the last, but never
/// the first, and a line below the table names them. Texts go on several lines before the last
/// column is given up that matters more than they do, and where nothing else helps.
std::string text_of(const Table& table, PageWidth width = {});

/// The whole page, as a terminal shows it.
std::string text_of(const Page& page, PageWidth width = {});

}  // namespace ddpsim
