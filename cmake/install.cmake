# What `cmake --install build/release --prefix DIR` puts into DIR, which may be moved as a whole:
#
#     bin/ddpsim                the program
#     share/ddpsim/             catalogue/, examples/, torch_backward.py, and python/ for PYTHONPATH
#     lib/ddpsim/               modules that the program loads when asked for (GPUs)
#     include/ddpsim/           the rooms' headers; the one for plugins:
#                               backend/plugin/ddpsim_plugin.h
#     lib/, lib/cmake/ddpsim/   the rooms' libraries, and what find_package(ddpsim) reads

# Those targets of a folder and below whose type is one of `types`.
function(ddpsim_targets_below folder types result)
  get_property(targets DIRECTORY ${folder} PROPERTY BUILDSYSTEM_TARGETS)
  set(found)
  foreach(target IN LISTS targets)
    get_target_property(type ${target} TYPE)
    if(type IN_LIST types)
      list(APPEND found ${target})
    endif()
  endforeach()
  get_property(below DIRECTORY ${folder} PROPERTY SUBDIRECTORIES)
  foreach(next IN LISTS below)
    ddpsim_targets_below(${next} "${types}" more)
    list(APPEND found ${more})
  endforeach()
  set(${result} ${found} PARENT_SCOPE)
endfunction()

# The header of plugins alone, for those who write one.
add_library(ddpsim_plugin INTERFACE)
target_include_directories(ddpsim_plugin INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/backend/plugin>
  $<INSTALL_INTERFACE:include/ddpsim/backend/plugin>)

set(libraries ddpsim_plugin)
set(modules)
foreach(folder model sim scenarios backend)
  ddpsim_targets_below(${PROJECT_SOURCE_DIR}/${folder} "STATIC_LIBRARY;INTERFACE_LIBRARY" found)
  list(APPEND libraries ${found})
endforeach()
if(TARGET ddpsim_module_gpu)
  list(APPEND modules ddpsim_module_gpu)
endif()
foreach(target IN LISTS libraries)
  string(REGEX REPLACE "^ddpsim_" "" name ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  set(file_sets)
  foreach(property HEADER_SETS INTERFACE_HEADER_SETS)
    get_target_property(sets ${target} ${property})
    if(sets)
      list(APPEND file_sets ${sets})
    endif()
  endforeach()
  list(REMOVE_DUPLICATES file_sets)
  set(headers)
  if("HEADERS" IN_LIST file_sets)
    list(APPEND headers FILE_SET HEADERS DESTINATION include/ddpsim)
  endif()
  if("plugin" IN_LIST file_sets)
    list(APPEND headers FILE_SET plugin DESTINATION include/ddpsim/backend/plugin)
  endif()
  target_compile_features(${target} INTERFACE cxx_std_20)
  install(TARGETS ${target} EXPORT ddpsimTargets ARCHIVE DESTINATION lib ${headers})
endforeach()
# Plugins are written in what their author likes.
set_property(TARGET ddpsim_plugin PROPERTY INTERFACE_COMPILE_FEATURES)

install(TARGETS ddpsim EXPORT ddpsimTargets RUNTIME DESTINATION bin)
install(FILES ${PROJECT_BINARY_DIR}/tools/ddpsim.1 DESTINATION share/man/man1)
set_target_properties(ddpsim ${modules} PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
if(modules)
  install(TARGETS ${modules} LIBRARY DESTINATION lib/ddpsim)
endif()
install(DIRECTORY python/ddpsim DESTINATION share/ddpsim/python OPTIONAL
  FILES_MATCHING PATTERN "*.py")
install(DIRECTORY scenarios/catalogue scenarios/examples DESTINATION share/ddpsim)
install(PROGRAMS tools/torch_backward.py DESTINATION share/ddpsim)
install(DIRECTORY python/ddpsim DESTINATION share/ddpsim/python
  PATTERN __pycache__ EXCLUDE PATTERN "*.so" EXCLUDE)

include(CMakePackageConfigHelpers)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/ddpsimConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES cmake/ddpsimConfig.cmake cmake/FindGloo.cmake cmake/use_catalogue.cpp
  ${PROJECT_BINARY_DIR}/ddpsimConfigVersion.cmake DESTINATION lib/cmake/ddpsim)
install(EXPORT ddpsimTargets NAMESPACE ddpsim:: DESTINATION lib/cmake/ddpsim)
