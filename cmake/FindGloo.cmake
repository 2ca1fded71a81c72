# Finds Gloo, and hiredis, through which its ranks meet in a Redis. Gives the targets Gloo::gloo and
# Gloo::hiredis.
find_path(GLOO_INCLUDE gloo/allreduce.h)
find_library(GLOO_LIBRARY gloo)
find_library(HIREDIS_LIBRARY hiredis)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Gloo DEFAULT_MSG GLOO_LIBRARY GLOO_INCLUDE HIREDIS_LIBRARY)
if(Gloo_FOUND AND NOT TARGET Gloo::gloo)
  add_library(Gloo::hiredis UNKNOWN IMPORTED)
  set_target_properties(Gloo::hiredis PROPERTIES IMPORTED_LOCATION ${HIREDIS_LIBRARY})
  add_library(Gloo::gloo UNKNOWN IMPORTED)
  set_target_properties(Gloo::gloo PROPERTIES
    IMPORTED_LOCATION ${GLOO_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${GLOO_INCLUDE})
endif()
