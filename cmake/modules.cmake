# Parts of the program that it loads when they are asked for (backend/job/module_file.hpp).

# What a module and the program share: their version, the compiler and these headers. Who changes
# one of them configures anew.
file(GLOB shared_headers CONFIGURE_DEPENDS
  ${PROJECT_SOURCE_DIR}/backend/*.hpp ${PROJECT_SOURCE_DIR}/backend/job/module_file.hpp
  ${PROJECT_SOURCE_DIR}/backend/device/cuda/gpu.hpp
  ${PROJECT_SOURCE_DIR}/backend/device/cuda/gpu_module.hpp
  ${PROJECT_SOURCE_DIR}/model/base/*.hpp ${PROJECT_SOURCE_DIR}/model/program/*.hpp
  ${PROJECT_SOURCE_DIR}/model/workload/*.hpp)
set(shared "${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}")
foreach(header IN LISTS shared_headers)
  file(SHA256 ${header} hash)
  string(APPEND shared " ${hash}")
endforeach()
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${shared_headers})
string(SHA256 shared "${shared}")
string(SUBSTRING ${shared} 0 12 shared)
set(DDPSIM_MODULE_BUILD ${PROJECT_VERSION}-${shared})

# ddpsim_module(NAME SOURCE...): the library modules/ddpsim_NAME.so of the build folder, lib/ddpsim/
# where it is installed. It exports its one function, and brings what it needs of the program's own
# code with it.
function(ddpsim_module name)
  set(target ddpsim_module_${name})
  add_library(${target} MODULE ${ARGN})
  set_target_properties(${target} PROPERTIES PREFIX "" OUTPUT_NAME ddpsim_${name}
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/modules CXX_VISIBILITY_PRESET hidden
    CUDA_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_definitions(${target} PRIVATE DDPSIM_MODULE_BUILD="${DDPSIM_MODULE_BUILD}")
  # A library's own header may list some members and a default (cublas_api.h does).
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wno-switch-enum>)
  target_link_libraries(${target} PRIVATE fmt::fmt)
  if(NOT DDPSIM_SANITIZE)
    target_link_options(${target} PRIVATE LINKER:--no-undefined)
  endif()
endfunction()
