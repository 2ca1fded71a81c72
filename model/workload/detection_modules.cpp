#include "model/workload/detection_modules.hpp"

#include <algorithm>
#include <utility>

namespace ddpsim {

using namespace eager;

Module over_levels(const PictureModules& x, const std::vector<std::vector<Module>>& levels) {
  Module all;
  for (const std::vector<Module>& level : levels) {
    for (const Module& module : level) {
      all.forward.insert(all.forward.end(), module.forward.begin(), module.forward.end());
      all.kept += module.kept;
      all.forward_working = std::max(all.forward_working, module.forward_working);
      all.backward_working = std::max(all.backward_working, module.backward_working);
      all.calls += module.calls;
      all.views += module.views;
    }
  }
  for (auto level = levels.rbegin(); level != levels.rend(); ++level) {
    const bool adds = level != levels.rbegin(), completes = level + 1 == levels.rend();
    std::vector<Parameter> complete;
    for (auto module = level->rbegin(); module != level->rend(); ++module) {
      const auto first = static_cast<int>(all.backward.size());
      all.backward.insert(all.backward.end(), module->backward.begin(), module->backward.end());
      std::vector<Parameter> trained = module->parameters;
      for (Parameter& parameter : trained) {
        parameter.ready_after += first;
        parameter.forward.reset();  // it runs at all levels
        parameter.backward.reset();
        if (!adds) continue;
        all.backward.push_back(x.maker().eager(
            parameter.name + ".accumulate", {{parameter.elements(), {again(3)}}}, Pass::backward));
        parameter.ready_after = static_cast<int>(all.backward.size()) - 1;
      }
      complete.insert(complete.begin(), trained.begin(), trained.end());
    }
    if (completes) all.parameters = std::move(complete);
  }
  return all;
}

Module joined_predictions(const PictureModules& x, const std::string& name,
                          const std::vector<Pictures>& levels) {
  const ModuleMaker& make = x.picture_maker();
  std::vector<EagerKernels> forward, backward;
  std::int64_t elements = 0;
  for (const Pictures& level : levels) {
    forward.push_back({level.elements(), {strided(2)}});
    backward.push_back({level.elements(), {strided(2)}});
    elements += level.elements();
  }
  forward.push_back({elements, {2}});
  Module module;
  module.forward = {make.eager(name, forward)};
  module.backward = {make.eager(name + ".grad", backward, Pass::backward)};
  module.forward_working = make.computed(2 * elements);
  module.backward_working = make.computed(2 * elements);
  module.views = 3 * static_cast<int>(levels.size());
  return module;
}

}  // namespace ddpsim
