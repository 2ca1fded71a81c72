# ddpsim_embed(TARGET FILE...)
#
# The text of each file becomes a part of the target: `extern const std::string_view page_css` in
# namespace ddpsim holds page.css. A changed file configures anew.
function(ddpsim_embed target)
  foreach(file IN LISTS ARGN)
    get_filename_component(path ${file} ABSOLUTE)
    get_filename_component(base ${file} NAME)
    string(MAKE_C_IDENTIFIER ${base} name)
    file(READ ${path} text)
    if(text MATCHES "\\)embedded\"")
      message(FATAL_ERROR "${file}: holds what ends an embedded text")
    endif()
    set(source ${CMAKE_CURRENT_BINARY_DIR}/embedded/${name}.cpp)
    file(CONFIGURE OUTPUT ${source} CONTENT "#include <string_view>
namespace ddpsim {
extern const std::string_view @name@;
const std::string_view @name@ = R\"embedded(@text@)embedded\";
}
" @ONLY)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
    target_sources(${target} PRIVATE ${source})
  endforeach()
endfunction()
