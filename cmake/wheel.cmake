# What the wheel of the Python package holds besides python/ddpsim: the program, which becomes
# bin/ddpsim of the environment, its catalogue and manual page below share/ and its modules below
# lib/ as `cmake --install` has them, and the Python module inside the package.
#
# -DDDPSIM_PREBUILT=BUILD takes them from a build folder in which the Python module was built, and
# compiles nothing (tools/wheels). Such a wheel runs where no library was installed for it: those
# that the program needs beside the C and C++ libraries and zlib lie in lib/ddpsim/, those of the
# Python module in _libraries/ of the package, where both look first. CUDA's and NCCL's are left
# to the machine (backend/job/library_search.hpp).
if(DDPSIM_PREBUILT)
  set(program ${DDPSIM_PREBUILT}/tools/ddpsim)
  set(python_module ${DDPSIM_PREBUILT}/python/_native.abi3.so)
  if(NOT EXISTS ${python_module} OR NOT EXISTS ${program})
    message(FATAL_ERROR "${DDPSIM_PREBUILT}: no program, or no Python module: configure it with "
      "-DDDPSIM_PYTHON_MODULE=ON and build it")
  endif()
  file(GLOB modules ${DDPSIM_PREBUILT}/modules/*.so)
  add_custom_target(ddpsim)
  add_custom_target(ddpsim_python)
  install(PROGRAMS ${program} DESTINATION ${SKBUILD_SCRIPTS_DIR} COMPONENT python)
  install(FILES ${python_module} DESTINATION ddpsim COMPONENT python)
  install(FILES ${modules} DESTINATION ${SKBUILD_DATA_DIR}/lib/ddpsim COMPONENT python)
  install(CODE "
    set(program \"${program}\")
    set(python_module \"${python_module}\")
    set(modules \"${modules}\")
    set(libraries_of_program \"${SKBUILD_DATA_DIR}/lib/ddpsim\")
    set(libraries_of_module \"\${CMAKE_INSTALL_PREFIX}/ddpsim/_libraries\")" COMPONENT python)
  install(SCRIPT cmake/wheel_libraries.cmake COMPONENT python)
  set(manual_page ${DDPSIM_PREBUILT}/tools/ddpsim.1)
else()
  set(manual_page ${PROJECT_BINARY_DIR}/tools/ddpsim.1)
  install(TARGETS ddpsim RUNTIME DESTINATION ${SKBUILD_SCRIPTS_DIR} COMPONENT python)
  install(TARGETS ddpsim_python LIBRARY DESTINATION ddpsim COMPONENT python)
  if(TARGET ddpsim_module_gpu)
    install(TARGETS ddpsim_module_gpu
      LIBRARY DESTINATION ${SKBUILD_DATA_DIR}/lib/ddpsim COMPONENT python)
  endif()
endif()
install(FILES ${manual_page} DESTINATION ${SKBUILD_DATA_DIR}/share/man/man1 COMPONENT python)
install(DIRECTORY scenarios/catalogue scenarios/examples
  DESTINATION ${SKBUILD_DATA_DIR}/share/ddpsim COMPONENT python)
