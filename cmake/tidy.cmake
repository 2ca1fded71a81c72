# Target tidy: clang-tidy finds nothing in any source that is compiled, but for tests (.clang-tidy).
#
# It is no part of a build: a file takes half a minute. A file is looked at again when it, a header
# of its folder or .clang-tidy has changed, so an interrupted run goes on where it was. Call once
# all targets are there; without clang-tidy 14 there is no such target.
function(ddpsim_tidy)
  find_program(DDPSIM_CLANG_TIDY NAMES clang-tidy-14)
  if(NOT DDPSIM_CLANG_TIDY)
    message(STATUS "ddpsim: clang-tidy-14 is not there; target tidy is left out")
    return()
  endif()
  set(patterns)
  foreach(top model sim backend scenarios/reader tools)
    list(APPEND patterns ${PROJECT_SOURCE_DIR}/${top}/*.cpp)
  endforeach()
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${patterns})
  # Clang 14 does not know that processors can be asked for f16c; kernels of Eigen are compiled once
  # for each instruction set, by flags that name it.
  list(FILTER sources EXCLUDE REGEX "/backend/cpu/(float16|gemm_variant)\\.cpp$")
  if(NOT DDPSIM_NCCL_BACKEND)
    list(FILTER sources EXCLUDE REGEX "/backend/device/cuda/calls/")
  endif()
  set(stamps)
  foreach(source IN LISTS sources)
    file(RELATIVE_PATH name ${PROJECT_SOURCE_DIR} ${source})
    cmake_path(GET source PARENT_PATH folder)
    file(GLOB headers CONFIGURE_DEPENDS ${folder}/*.hpp)
    string(REPLACE "/" "." stamp ${name})
    set(stamp ${PROJECT_BINARY_DIR}/tidy/${stamp}.clean)
    add_custom_command(OUTPUT ${stamp}
      COMMAND ${DDPSIM_CLANG_TIDY} --quiet -p ${PROJECT_BINARY_DIR} ${source}
      COMMAND ${CMAKE_COMMAND} -E touch ${stamp}
      DEPENDS ${source} ${headers} ${PROJECT_SOURCE_DIR}/.clang-tidy
      COMMENT "Looking at ${name}" VERBATIM)
    list(APPEND stamps ${stamp})
  endforeach()
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/tidy)
  add_custom_target(tidy DEPENDS ${stamps})
endfunction()
