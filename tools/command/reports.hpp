#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tools/command/command.hpp"
#include "tools/report/pages/html_writer.hpp"

namespace ddpsim {

/// The page for a browser that --report asks for, and the picture that --svg does.
class Reports {
 public:
  explicit Reports(const CommonOptions& options) : options_(options) {}

  bool wanted() const { return !options_.report.empty() || !options_.svg.empty(); }

  void add(ReportSection section) { sections_.push_back(std::move(section)); }
  /// A part, with the scenario's file below it.
  void add(ReportSection section, const std::string& file);

  /// `title`: of the page. Throws std::logic_error if --svg is asked for and nothing was drawn.
  void add_to(Outputs& outputs, const std::string& title) const;

 private:
  const CommonOptions& options_;
  std::vector<ReportSection> sections_;
};

}  // namespace ddpsim
