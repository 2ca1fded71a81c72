# ddpsim_room(FOLDER [LINKS TARGET...] [PRIVATE TARGET...] [EXCLUDE FILE...] [PARTS FOLDER...])
#
# A folder with one idea becomes a static library of its own, `ddpsim_` and the folder's path:
# ddpsim_model_base for model/base. LINKS are the rooms and libraries its headers show, PRIVATE
# those that only its sources need. EXCLUDE names sources of the folder that the caller compiles
# otherwise. PARTS are folders in it that belong to the same library. Headers are included from the
# project's root. tools/check_includes holds every #include against the same arrows.
include(${CMAKE_CURRENT_LIST_DIR}/unity.cmake)
function(ddpsim_room folder)
  cmake_parse_arguments(room "" "" "LINKS;PRIVATE;EXCLUDE;PARTS" ${ARGN})
  string(REPLACE "/" "_" target "ddpsim_${folder}")
  set(folders ${PROJECT_SOURCE_DIR}/${folder})
  foreach(part IN LISTS room_PARTS)
    list(APPEND folders ${PROJECT_SOURCE_DIR}/${folder}/${part})
  endforeach()
  list(TRANSFORM folders APPEND /*.cpp OUTPUT_VARIABLE source_patterns)
  list(TRANSFORM folders APPEND /*.hpp OUTPUT_VARIABLE header_patterns)
  file(GLOB sources CONFIGURE_DEPENDS ${source_patterns})
  file(GLOB headers CONFIGURE_DEPENDS ${header_patterns})
  foreach(excluded IN LISTS room_EXCLUDE)
    list(REMOVE_ITEM sources ${PROJECT_SOURCE_DIR}/${folder}/${excluded})
  endforeach()
  if(sources)
    add_library(${target} STATIC ${sources})
    set(visibility PUBLIC)
    target_link_libraries(${target} PRIVATE ${room_PRIVATE})
    ddpsim_unity(${target})
  else()
    add_library(${target} INTERFACE)
    set(visibility INTERFACE)
  endif()
  target_sources(${target} ${visibility} FILE_SET HEADERS
    BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${headers})
  target_link_libraries(${target} ${visibility} ${room_LINKS})
  add_dependencies(${target} check_includes)
endfunction()

# ddpsim_check_includes()
#
# Target check_includes, a part of every build and of every room's: refuses an #include against the
# arrows. It runs only when a source or the list of sources has changed.
function(ddpsim_check_includes)
  find_program(DDPSIM_PYTHON python3 REQUIRED)
  set(patterns)
  foreach(top model sim backend scenarios tools python tests)
    foreach(extension cpp hpp h cu cuh)
      list(APPEND patterns ${PROJECT_SOURCE_DIR}/${top}/*.${extension})
    endforeach()
  endforeach()
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${patterns})
  file(GLOB exceptions CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/include_exceptions.txt)
  set(list ${PROJECT_BINARY_DIR}/check_includes.sources)  # written only when it differs
  file(CONFIGURE OUTPUT ${list} CONTENT "${sources};${exceptions}" @ONLY)
  set(script ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../tools/check_includes)
  set(done ${PROJECT_BINARY_DIR}/check_includes.done)
  add_custom_command(OUTPUT ${done}
    COMMAND ${DDPSIM_PYTHON} ${script} ${PROJECT_SOURCE_DIR}
    COMMAND ${CMAKE_COMMAND} -E touch ${done}
    DEPENDS ${script} ${list} ${sources} ${exceptions}
    COMMENT "Holding includes against the arrows between rooms" VERBATIM)
  add_custom_target(check_includes ALL DEPENDS ${done})
endfunction()
