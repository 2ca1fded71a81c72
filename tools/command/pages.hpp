#pragma once

#include <initializer_list>
#include <string>

#include "tools/command/command.hpp"
#include "tools/report/writers/output.hpp"
#include "tools/report/writers/page.hpp"

namespace ddpsim {

/// What a command shows to people, in the forms its flags ask for: text on stdout, unless --quiet
/// or something else is asked for there, and --markdown.
class Pages {
 public:
  /// `others`: paths of results that are no common flags'.
  explicit Pages(const CommonOptions& options, std::initializer_list<std::string> others = {});

  /// Does anybody want pages? They can take longer to make than the figures they show.
  bool wanted() const { return as_text_ || !markdown_path_.empty(); }

  /// Adds a page below those before. It is rendered at once and may refer to what ends with the
  /// call.
  void add(const Page& page);

  void add_to(Outputs& outputs) const;

 private:
  bool as_text_;
  PageWidth width_;
  std::string markdown_path_;
  std::string text_, markdown_;
};

}  // namespace ddpsim
