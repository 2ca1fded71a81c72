# find_package(ddpsim): the libraries as ddpsim::model, ddpsim::sim, ddpsim::scenarios,
# ddpsim::backend and each room by itself (ddpsim::model_program); ddpsim::plugin for hooks of
# one's own; and the program, ddpsim::ddpsim.
include(CMakeFindDependencyMacro)
set(ddpsim_module_path ${CMAKE_MODULE_PATH})
list(PREPEND CMAKE_MODULE_PATH ${CMAKE_CURRENT_LIST_DIR})  # for FindGloo
find_dependency(fmt)
find_dependency(yaml-cpp)
find_dependency(ZLIB)
find_dependency(Eigen3 NO_MODULE)
find_dependency(Threads)
find_dependency(Gloo)
find_dependency(OpenSSL COMPONENTS Crypto)
set(CMAKE_MODULE_PATH ${ddpsim_module_path})

get_filename_component(ddpsim_prefix ${CMAKE_CURRENT_LIST_DIR}/../../.. ABSOLUTE)
set(ddpsim_CATALOGUE ${ddpsim_prefix}/share/ddpsim/catalogue)
set(ddpsim_EXAMPLES ${ddpsim_prefix}/share/ddpsim/examples)
include(${CMAKE_CURRENT_LIST_DIR}/ddpsimTargets.cmake)

# Programs that read scenarios are told where this package's catalogue is by a file compiled into
# them.
set_property(TARGET ddpsim::scenarios APPEND PROPERTY INTERFACE_SOURCES
  ${CMAKE_CURRENT_LIST_DIR}/use_catalogue.cpp)
set_property(TARGET ddpsim::scenarios APPEND PROPERTY
  INTERFACE_COMPILE_DEFINITIONS DDPSIM_PACKAGE_CATALOGUE="${ddpsim_CATALOGUE}")
