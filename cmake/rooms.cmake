# ddpsim_room(FOLDER [LINKS TARGET...] [PRIVATE TARGET...])
#
# A folder with one idea becomes a static library of its own, `ddpsim_` and the folder's path: ddpsim_model_base for
# model/base. LINKS are the rooms and libraries its headers show, PRIVATE those that only its sources need. Headers are
# included from the project's root. tools/check_includes holds every #include against the same arrows.
function(ddpsim_room folder)
  cmake_parse_arguments(room "" "" "LINKS;PRIVATE" ${ARGN})
  string(REPLACE "/" "_" target "ddpsim_${folder}")
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.cpp)
  file(GLOB headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.hpp)
  if(sources)
    add_library(${target} STATIC ${sources})
    set(visibility PUBLIC)
    target_link_libraries(${target} PRIVATE ${room_PRIVATE})
  else()
    add_library(${target} INTERFACE)
    set(visibility INTERFACE)
  endif()
  target_sources(${target} ${visibility} FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${headers})
  target_link_libraries(${target} ${visibility} ${room_LINKS})
endfunction()
