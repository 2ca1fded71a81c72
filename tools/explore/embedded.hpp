#pragma once

#include <string_view>

namespace ddpsim {

// The files of the page, which are parts of the program (cmake/embed.cmake).
extern const std::string_view explore_html, explore_css, explore_js;
extern const std::string_view page_css, page_js;  ///< of tools/report

}  // namespace ddpsim
