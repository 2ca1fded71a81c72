#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tools/report/reports/headline.hpp"
#include "tools/report/writers/page.hpp"

namespace ddpsim {

/// A part of a report: what was found of one scenario.
struct ReportSection {
  std::string title;
  Headline headline{};  ///< what whoever pays asks first; empty: nothing of the kind was found
  std::string verdict;  ///< the finding, in a sentence or two
  Page page;
  /// Long tables, each under its title: closed until a reader opens them, and not printed before.
  std::vector<std::pair<std::string, Page>> folded{};
  /// What it was made from, to copy: a name and the text under it.
  std::vector<std::pair<std::string, std::string>> sources{};

  /// Adds `tables` to the page, or folds them under `title` where they have many rows.
  void add_or_fold(std::string title, Page tables);
  /// What the command says beside its results, each as "note: ..." on a line of its own.
  void add_notes(const std::vector<std::string>& notes);
};

/// A page for a browser. It is one file that asks nothing of the network (its content policy
/// forbids it), reads without its script, prints, and follows the browser's light or dark colours.
std::string html_of(const std::string& title, const std::vector<ReportSection>& sections);

/// A table as HTML. Its headings say what the columns mean; its first column names the rows.
std::string html_of(const Table& table);

}  // namespace ddpsim
