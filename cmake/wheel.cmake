# What the wheel of the Python package holds besides python/ddpsim: the program, which becomes
# bin/ddpsim of the environment, its catalogue and manual page below share/ and its modules below
# lib/ as `cmake --install` has them, and the Python module inside the package.
#
# -DDDPSIM_PREBUILT=BUILD takes them from a build folder in which the Python module was built, and
# compiles nothing: tests/python run against such a wheel.
if(DDPSIM_PREBUILT)
  file(GLOB python_module ${DDPSIM_PREBUILT}/python/_native.*)
  if(NOT python_module OR NOT EXISTS ${DDPSIM_PREBUILT}/tools/ddpsim)
    message(FATAL_ERROR "${DDPSIM_PREBUILT}: no program, or no Python module: configure it with "
      "-DDDPSIM_PYTHON_MODULE=ON and build it")
  endif()
  file(GLOB modules ${DDPSIM_PREBUILT}/modules/*.so)
  add_custom_target(ddpsim)
  add_custom_target(ddpsim_python)
  install(PROGRAMS ${DDPSIM_PREBUILT}/tools/ddpsim DESTINATION ${SKBUILD_SCRIPTS_DIR}
    COMPONENT python)
  set(manual_page ${DDPSIM_PREBUILT}/tools/ddpsim.1)
  install(FILES ${python_module} DESTINATION ddpsim COMPONENT python)
  install(FILES ${modules} DESTINATION ${SKBUILD_DATA_DIR}/lib/ddpsim COMPONENT python)
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
