# Run when a wheel of a finished build is put together (wheel.cmake): copies the libraries that the
# program and the Python module need. `program`, `python_module`, `modules` and the two
# folders `libraries_of_...` are set there.
set(of_every_machine
  "^ld-linux.*" "^lib(c|m|dl|pthread|rt|gcc_s|stdc\\+\\+|z)\\.so\\.[0-9]+$")

# copy_libraries(KIND FILE FOLDER): KIND is EXECUTABLES or LIBRARIES.
function(copy_libraries kind file folder)
  file(GET_RUNTIME_DEPENDENCIES ${kind} ${file}
    RESOLVED_DEPENDENCIES_VAR found UNRESOLVED_DEPENDENCIES_VAR missing
    PRE_EXCLUDE_REGEXES ${of_every_machine})
  if(missing)
    message(FATAL_ERROR "${file}: these libraries are not found: ${missing}")
  endif()
  file(MAKE_DIRECTORY ${folder})
  foreach(library IN LISTS found)
    cmake_path(GET library FILENAME name)
    file(COPY_FILE ${library} ${folder}/${name})
  endforeach()
endfunction()
copy_libraries(EXECUTABLES ${program} ${libraries_of_program})
copy_libraries(LIBRARIES ${python_module} ${libraries_of_module})
# Modules find the libraries of the machine that they run on.
foreach(module IN LISTS modules)
  cmake_path(GET module FILENAME name)
  file(RPATH_REMOVE FILE ${libraries_of_program}/${name})
endforeach()
