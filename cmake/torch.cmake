# The Python whose torch is the oracle of the tests, in `torch_python`: the one asked for, that of
# the virtual environment which tools/test makes, or the distribution's. `torch_older` is the
# distribution's where it is another one: for what earlier releases did otherwise.
set(DDPSIM_TORCH_PYTHON "" CACHE FILEPATH
  "A Python with torch 2.13 for the tests; empty: that of build/torch, else /usr/bin/python3")
set(torch_python ${PROJECT_SOURCE_DIR}/build/torch/bin/python)
set(torch_older)
if(DDPSIM_TORCH_PYTHON)
  set(torch_python ${DDPSIM_TORCH_PYTHON})
elseif(NOT EXISTS ${torch_python})
  set(torch_python /usr/bin/python3)
endif()
if(EXISTS /usr/bin/python3 AND NOT torch_python STREQUAL "/usr/bin/python3")
  set(torch_older /usr/bin/python3)
endif()
