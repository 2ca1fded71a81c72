// The capture itself is Python (python/ddpsim/describe): this finds an interpreter that has PyTorch
// and becomes it.

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>
#include <unistd.h>

#include "backend/device_error.hpp"
#include "scenarios/reader/text/input_error.hpp"
#include "tools/command/command.hpp"
#include "tools/study/python.hpp"

namespace ddpsim {
namespace {

namespace fs = std::filesystem;

/// A file system of a cluster may take its time for the first look.
constexpr std::chrono::seconds longest_look{60};

const Usage describe_usage{
    "ddpsim describe [flags] MODEL.py:FUNCTION",
    "Captures one training step of a PyTorch model without running it: no GPU, no weights, no "
    "data. FUNCTION returns\n"
    "(model, batch, loss) or (model, batch, loss, optimizer); the loss is a function of (model, "
    "batch), or one of torch.nn,\n"
    "or None where the model returns its own. What is written is a workload description, which\n"
    "`ddpsim run` prices on any device: ddpsim run model.yaml --cluster dgx-h100.\n"
    "It needs Python with PyTorch 2: the one that DDPSIM_PYTHON names, else that of the active "
    "virtual environment,\n"
    "else that of the one ddpsim is installed in, else python3. Flags are handed on to its module "
    "ddpsim.describe:\n"
    "-o FILE (--output), where to write; --batch N, handed to a FUNCTION that takes it; --device "
    "cuda|cpu, whose kernels;\n"
    "--autocast bf16|fp16; --tf32 conv|all; --attention flash|efficient|math; --optimizer NAME; "
    "--clip-gradients;\n"
    "--later-micro-batch; --ranks N, of which the model sees itself as one; --allow-unknown, which "
    "prices operations without\n"
    "a rule by their bytes; --fused, a bound of what a compiler saves; --release 2.6|2.11|2.13, of "
    "PyTorch, whose choices\n"
    "are meant; --quiet.",
    "ddpsim describe scenarios/examples/torch_model.py:make -o model.yaml"};

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> all;
  for (std::string& word : words) all.push_back(word.data());
  all.push_back(nullptr);
  return all;
}

/// Throws InputError, in a line, where a module is missing.
void check_modules(const Python& python) {
  const std::string name = python.program.string();
  if (python.torch.empty())
    throw InputError(
        fmt::format("describe needs PyTorch 2: {} has no module torch; run {} -m pip install "
                    "torch, or set DDPSIM_PYTHON to a Python that has it",
                    name, name));
  if (!python.has_package)
    throw InputError(fmt::format(
        "describe needs the Python package ddpsim: {} does not find it; run {} -m pip install .",
        name, name));
}

}  // namespace

int describe_command(const std::vector<std::string>& arguments) {
  const bool help = std::any_of(arguments.begin(), arguments.end(), [](const std::string& word) {
    return word == "--help" || word == "-h";
  });
  if (help) {
    CommonOptions options;
    parse({"--help"}, describe_usage, 0, {}, options);
    return exit_done;
  }
  if (arguments.empty()) throw InputError("describe needs a model: " + describe_usage.example);
  let_python_find_package();
  const fs::path python = python_program();
  check_modules(look_at_python(python, longest_look));
  std::vector<std::string> words{python.string(), "-m", "ddpsim.describe"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  ::execv(python.c_str(), pointers(words).data());
  throw DeviceError(fmt::format("{}: {}", python.string(), std::strerror(errno)));
}

}  // namespace ddpsim
