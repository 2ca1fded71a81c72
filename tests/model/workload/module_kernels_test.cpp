// Which kernels of a layer each parameter's module runs.

#include <algorithm>
#include <string>

#include <catch2/catch.hpp>

#include "tests/model/workload/architectures.hpp"

namespace ddpsim::architectures {
namespace {

/// Is that module named by a kernel of the range, as "attn.q_proj.cast" and "ln1+attn.add" name
/// "layers.0.attn.q_proj" and "layers.0.ln1"?
bool is_named(const std::string& module, const std::vector<Kernel>& kernels,
              const KernelRange& range) {
  for (int k = range.first; k <= range.last; ++k) {
    const std::string& name = kernels.at(static_cast<std::size_t>(k)).name;
    for (std::size_t begin = 0; begin <= name.size();) {
      const std::size_t end = std::min(name.find('+', begin), name.size());
      std::string part = name.substr(begin, end - begin);
      for (; !part.empty();
           part = part.substr(0, part.find('.') == std::string::npos ? 0 : part.rfind('.')))
        if (module.ends_with(part)) return true;
      begin = end + 1;
    }
  }
  return false;
}

}  // namespace

TEST_CASE("parameters are of kernels that their module names", "[model][module_kernels]") {
  for (const Workload& workload : one_of_each_family())
    for (const Parameter& parameter : workload.parameters) {
      CAPTURE(workload.source, parameter.name);
      const Layer& layer = workload.layers.at(static_cast<std::size_t>(parameter.layer));
      REQUIRE(parameter.forward);
      REQUIRE(parameter.backward);
      const std::string module = parameter.name.substr(0, parameter.name.rfind('.'));
      CHECK(is_named(module, layer.forward, *parameter.forward));
      CHECK(is_named(module, layer.backward, *parameter.backward));
      CHECK(parameter.backward->first <= parameter.ready_after);
      CHECK(parameter.ready_after <= parameter.backward->last);
    }
}

TEST_CASE("projections of one tensor are kernels of their own", "[model][module_kernels]") {
  for (const DType compute : {DType::fp32, DType::bf16}) {
    WorkloadSize size;
    size.compute = compute;
    const Workload workload = build_workload("net", llama2_7b, size);
    const Layer& block = workload.layers.at(1);
    const auto names = [&](const std::string& parameter, bool forward) {
      const auto found =
          std::ranges::find(workload.parameters, "model.layers.0." + parameter, &Parameter::name);
      REQUIRE(found != workload.parameters.end());
      const KernelRange range = forward ? *found->forward : *found->backward;
      std::vector<std::string> named;
      for (int k = range.first; k <= range.last; ++k)
        named.push_back(
            (forward ? block.forward : block.backward)[static_cast<std::size_t>(k)].name);
      return named;
    };
    using Names = std::vector<std::string>;
    if (compute == DType::fp32) {
      CHECK(names("self_attn.k_proj.weight", true) == Names{"self_attn.k_proj"});
      CHECK(names("self_attn.k_proj.weight", false) ==
            Names{"self_attn.k_proj.grad_data", "self_attn.k_proj.grad_weight"});
      // What adds up the gradients of their input comes once, behind all of them.
      CHECK(names("self_attn.q_proj.weight", false).size() == 3);
    } else {
      CHECK(names("self_attn.k_proj.weight", true) ==
            Names{"self_attn.k_proj.cast", "self_attn.k_proj"});
      CHECK(names("self_attn.k_proj.weight", false).size() == 3);
    }
  }
}

}  // namespace ddpsim::architectures
