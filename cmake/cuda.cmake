# Finds nvcc, the CUDA toolkit and NCCL. Sets DDPSIM_CUDA (nvcc and toolkit) and DDPSIM_NCCL_BACKEND
# (all).
option(DDPSIM_GPU "The NCCL backend must be part of the build, and a GPU there for its tests" OFF)
option(DDPSIM_WITHOUT_GPU "Leave the NCCL backend out, whatever is installed" OFF)
set(NCCL_ROOT "" CACHE PATH
  "Where include/nccl.h and lib/libnccl.so.2 are, if not in the usual places")

set(DDPSIM_CUDA OFF)
set(DDPSIM_NCCL_BACKEND OFF)
if(DDPSIM_WITHOUT_GPU)
  return()
endif()

find_program(DDPSIM_NVCC nvcc HINTS ENV CUDA_PATH PATHS /usr/local/cuda/bin)
if(DDPSIM_NVCC AND NOT CMAKE_CUDA_COMPILER)
  set(CMAKE_CUDA_COMPILER ${DDPSIM_NVCC})
endif()
find_package(CUDAToolkit QUIET)
if(CUDAToolkit_FOUND AND DDPSIM_NVCC)
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    # Every generation from Volta to Blackwell that this toolkit still compiles for; of the newest
    # also PTX, which later GPUs translate.
    set(architectures 75-real 80-real 86-real 89-real)
    if(CUDAToolkit_VERSION VERSION_LESS 13)
      list(PREPEND architectures 70-real)
    endif()
    if(CUDAToolkit_VERSION VERSION_GREATER_EQUAL 12.8)
      list(APPEND architectures 90-real 100)
    else()
      list(APPEND architectures 90)
    endif()
    set(CMAKE_CUDA_ARCHITECTURES ${architectures} CACHE STRING "GPU generations to compile for")
  endif()
  enable_language(CUDA)
  # CMake 3.25 does not know that nvcc 13 can.
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
  set(DDPSIM_CUDA ON)
endif()

find_path(NCCL_INCLUDE nccl.h HINTS ${NCCL_ROOT}/include ${CUDAToolkit_INCLUDE_DIRS})
find_library(NCCL_LIBRARY NAMES nccl libnccl.so.2 HINTS ${NCCL_ROOT}/lib ${CUDAToolkit_LIBRARY_DIR}
  ${CUDAToolkit_LIBRARY_ROOT}/lib)
if(DDPSIM_CUDA AND TARGET CUDA::cublas AND NCCL_LIBRARY AND NCCL_INCLUDE)
  set(DDPSIM_NCCL_BACKEND ON)
elseif(DDPSIM_GPU)
  message(FATAL_ERROR
    "DDPSIM_GPU needs nvcc, the CUDA toolkit with cuBLAS, and NCCL (-DNCCL_ROOT=FOLDER)")
endif()
