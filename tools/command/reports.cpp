#include "tools/command/reports.hpp"

#include <utility>

#include <fmt/format.h>

#include "scenarios/reader/catalogue/named_files.hpp"
#include "scenarios/reader/text/input_error.hpp"

namespace ddpsim {

void Reports::add(ReportSection section, const std::string& file) {
  section.sources.emplace_back("The scenario, " + file, content_of_file(file));
  if (!options_.set.empty()) {
    std::string settings;
    for (const auto& [key, value, written] : options_.set)
      settings += fmt::format("--set '{}={}'\n", key, value);
    section.sources.emplace_back("Keys set besides", std::move(settings));
  }
  sections_.push_back(std::move(section));
}

void Reports::add_to(Outputs& outputs, const std::string& title) const {
  if (!options_.report.empty()) outputs.add(options_.report, html_of(title, sections_));
  if (options_.svg.empty()) return;
  for (const ReportSection& section : sections_)
    for (const auto& block : section.page.blocks)
      if (const auto* picture = std::get_if<Picture>(&block))
        return outputs.add(options_.svg, picture->svg);
  throw InputError("--svg: there is nothing to draw here: --report writes the tables as a page");
}

}  // namespace ddpsim
