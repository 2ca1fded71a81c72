# ddpsim_unity(TARGET)
#
# Optimised, up to 32 of a target's files are compiled as one, in less than half the time, since
# most of it goes into headers: no two of its files may give one name of their own to different
# things. GCC spends a twelfth of the rest on collecting garbage of so large a unit: it begins at
# half a gigabyte. In the other presets each file is compiled by itself.
function(ddpsim_unity target)
  if(CMAKE_BUILD_TYPE STREQUAL "Release")
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 32)
    target_compile_options(${target} PRIVATE -Wno-shadow)  # of another file's names
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      target_compile_options(${target} PRIVATE "SHELL:--param ggc-min-heapsize=524288")
    endif()
  endif()
endfunction()
