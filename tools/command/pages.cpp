#include "tools/command/pages.hpp"

#include <algorithm>

#include "tools/report/writers/markdown_writer.hpp"
#include "tools/report/writers/page_width.hpp"
#include "tools/report/writers/text_writer.hpp"

namespace ddpsim {

Pages::Pages(const CommonOptions& options, std::initializer_list<std::string> others)
    : as_text_(!options.quiet && std::find(others.begin(), others.end(), "-") == others.end()),
      width_(options.wide ? PageWidth() : page_width()),
      markdown_path_(options.markdown) {
  for (const std::string* path : {&options.json, &options.csv, &options.trace, &options.markdown,
                                  &options.report, &options.svg})
    if (*path == "-") as_text_ = false;
}

void Pages::add(const Page& page) {
  if (as_text_) text_ += (text_.empty() ? "" : "\n") + text_of(page, width_);
  if (!markdown_path_.empty()) markdown_ += (markdown_.empty() ? "" : "\n") + markdown_of(page);
}

void Pages::add_to(Outputs& outputs) const {
  if (as_text_) outputs.add_text(text_);
  outputs.add(markdown_path_, markdown_);
}

}  // namespace ddpsim
