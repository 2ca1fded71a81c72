// The module ddpsim._native: what of the program Python calls. It returns texts of JSON, of which
// the package ddpsim makes objects; python/ddpsim/_native.pyi says the types.

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "backend/version.hpp"
#include "python/bindings/background.hpp"
#include "python/bindings/quantities.hpp"
#include "python/bindings/questions.hpp"
#include "python/bindings/shared_sweep.hpp"
#include "python/bindings/what_ifs.hpp"
#include "scenarios/reader/catalogue.hpp"
#include "scenarios/reader/format.hpp"
#include "scenarios/reader/memory_file.hpp"
#include "scenarios/reader/reference.hpp"
#include "scenarios/reader/scenario_reader.hpp"
#include "scenarios/reader/schema.hpp"
#include "sim/tune/parallel.hpp"

namespace ddpsim {
namespace {

namespace py = pybind11;
using Released = py::call_guard<py::gil_scoped_release>;

/// What the user gave is wrong: ddpsim.InputError, with the place that the text begins with.
void raise_input_error(const char* text) {
  const py::object error = py::module_::import("ddpsim._errors").attr("InputError");
  PyErr_SetObject(error.ptr(), error.attr("of_text")(text).ptr());
}

void translate(std::exception_ptr problem) {
  try {
    if (problem) std::rethrow_exception(problem);
  } catch (const InputError& wrong) {
    raise_input_error(wrong.what());
  } catch (const std::invalid_argument& refused) {  // a law refuses what the scenario asks of it
    raise_input_error(refused.what());
  }
}

std::string call_run(const Question& question, std::optional<int> steps, std::optional<int> scaling,
                     bool run_ahead, bool ddp_statistics, bool why, bool trace, bool hooks,
                     bool page, const py::object& progress) {
  RunRequest request;
  request.steps = steps;
  request.scaling = scaling;
  request.run_ahead = run_ahead;
  request.ddp_statistics = ddp_statistics;
  request.why = why;
  const RunExtras extras{trace, hooks, page};
  return in_background([=](const Tell&) { return run_answer(question, request, extras); },
                       progress);
}

std::string call_vary(const Question& question, const std::vector<std::string>& axes,
                      const std::string& best, const py::object& progress) {
  return in_background([=](const Tell&) { return vary_answer(question, axes, best); }, progress);
}

std::string call_schedule(const Question& question, bool tasks, std::optional<int> steps,
                          const py::object& progress) {
  return in_background([=](const Tell&) { return schedule_answer(question, tasks, steps); },
                       progress);
}

std::string call_tune(const Question& question, const std::string& objective,
                      const std::string& within, const std::string& largest_bucket,
                      const std::string& noise, const std::string& uncertainty,
                      const std::string& threads, const py::object& progress) {
  const TuneRequest request{objective, within, largest_bucket, noise, uncertainty, threads};
  return in_background([=](const Tell& tell) { return tune_answer(question, request, tell); },
                       progress);
}

std::string call_score(const std::vector<std::string>& files, const std::vector<Setting>& set,
                       const std::string& calibrate_on, bool laws_only,
                       const py::object& progress) {
  return in_background(
      [=](const Tell& tell) { return score_answer(files, set, calibrate_on, laws_only, tell); },
      progress);
}

std::string call_sweep(const Question& question, const std::vector<std::string>& axes, int jobs,
                       const std::string& best, const py::object& progress) {
  return in_background(
      [=](const Tell& tell) { return sweep_answer(question, axes, jobs, best, tell); }, progress);
}

void take_strategy(Differences& differences, const py::object& value) {
  if (value.is_none()) return;
  if (const auto text = text_in(value)) differences.strategy = strategy_named(*text);
  if (!differences.strategy) refuse("strategy", value, "none, naive, flat, overlap or bucketed");
}

using TakeDifference = void (*)(Differences& differences, const py::object& value);

/// What a step may differ in, and who reads each.
constexpr std::pair<std::string_view, TakeDifference> differences_by_name[]{
    {"strategy", take_strategy},
    {"bucket_cap",
     [](Differences& d, const py::object& v) { d.bucket_cap = size_given("bucket_cap", v); }},
    {"first_bucket_cap",
     [](Differences& d, const py::object& v) {
       d.first_bucket_cap = size_given("first_bucket_cap", v);
     }},
    {"bucket_caps",
     [](Differences& d, const py::object& v) { d.bucket_caps = sizes_given("bucket_caps", v); }},
    {"latency", [](Differences& d, const py::object& v) { d.latency = time_given("latency", v); }},
    {"bandwidth",
     [](Differences& d, const py::object& v) { d.bandwidth = rate_given("bandwidth", v); }},
    {"compute",
     [](Differences& d, const py::object& v) {
       d.compute = factor_given("compute", v, "a factor above zero", 1e-300).value_or(1);
     }},
    {"slowest_rank", [](Differences& d, const py::object& v) {
       d.slowest_rank = factor_given("slowest_rank", v, "a factor of 1 or more", 1);
     }}};

/// Arguments by their names, read here: what pybind11 says of an argument that is of another type
/// names the types of C++.
double step_ms(WhatIfs& study, const py::args& unnamed, const py::kwargs& named) {
  if (!unnamed.empty())
    throw py::type_error("step_ms takes arguments by name, such as bucket_cap='25 MiB'");
  Differences differences;
  for (const auto& [key, value] : named) {
    const auto name = key.cast<std::string>();
    const auto found = std::find_if(std::begin(differences_by_name), std::end(differences_by_name),
                                    [&](const auto& each) { return each.first == name; });
    if (found == std::end(differences_by_name)) {
      std::string known;
      for (const auto& each : differences_by_name)
        known.append(known.empty() ? "" : ", ").append(each.first);
      throw py::type_error("step_ms has no argument " + name + "; it has " + known);
    }
    found->second(differences, py::reinterpret_borrow<py::object>(value));
  }
  const py::gil_scoped_release released;
  return in_ms(study.step(differences));
}

std::string schema_of(const std::string& format) {
  std::string known;
  for (const Format& each : all_formats()) {
    if (each.name == format) return json_schema(each);
    known += (known.empty() ? "" : ", ") + std::string(each.name);
  }
  throw InputError("unknown format \"" + format + "\"; known: " + known);
}

}  // namespace

PYBIND11_MODULE(_native, module) {
  module.attr("__version__") = version;
  py::register_exception_translator(translate);
  py::class_<Question>(module, "Question")
      .def(py::init<std::string, std::vector<Setting>, bool>(), py::arg("file"), py::arg("set"),
           py::arg("laws_only") = false);
  py::class_<MemoryFile>(module, "MemoryFile")
      .def(py::init<std::string, std::string>(), py::arg("path"), py::arg("text"));
  const auto arg = [](const char* name) { return py::arg(name); };
  module.def("run", call_run, arg("question"), arg("steps"), arg("scaling"), arg("run_ahead"),
             arg("ddp_statistics"), arg("why"), arg("trace"), arg("hooks"), arg("page"),
             arg("progress"));
  module.def("vary", call_vary, arg("question"), arg("axes"), arg("best"), arg("progress"));
  module.def("schedule", call_schedule, arg("question"), arg("tasks"), arg("steps"),
             arg("progress"));
  module.def("tune", call_tune, arg("question"), arg("objective"), arg("within"),
             arg("largest_bucket"), arg("noise"), arg("uncertainty"), arg("threads"),
             arg("progress"));
  module.def("score", call_score, arg("files"), arg("set"), arg("calibrate_on"), arg("laws_only"),
             arg("progress"));
  module.def("sweep", call_sweep, arg("question"), arg("axes"), arg("jobs"), arg("best"),
             arg("progress"));
  module.def("list_entries", list_answer, arg("kind"), Released());
  module.def("explain", explanation, arg("key"));
  module.def("schema", schema_of, arg("format"));
  module.def("load", load_answer, arg("file"), arg("set"));
  module.def(
      "is_workload", [](const std::string& file) { return is_workload_profile(file); },
      arg("file"));
  module.def(
      "use_catalogue", [](const std::string& folder) { use_catalogue(folder); }, arg("folder"));
  module.def("wait_for_abandoned_work", wait_for_abandoned_work);

  py::class_<SharedSweep>(module, "SharedSweep")
      .def(py::init<const Question&, const std::vector<std::string>&, const std::string&>(),
           arg("question"), arg("axes"), arg("csv"), Released())
      .def_property_readonly("points", &SharedSweep::points)
      .def_property_readonly("origin", &SharedSweep::origin)
      .def("missing", &SharedSweep::missing)
      .def("compute", &SharedSweep::compute, arg("points"), arg("threads"), Released())
      .def("take", &SharedSweep::take, arg("csv"))
      .def("save", &SharedSweep::save)
      .def("answer", &SharedSweep::answer, arg("best"), Released());
  module.def("allowed_cores", allowed_cores);
  module.def("check_best", check_best, arg("best"));
  py::class_<WhatIfs>(module, "Study")
      .def(py::init<const Question&>(), arg("question"), Released())
      .def("step_ms", step_ms)
      .def_property_readonly("name", [](const WhatIfs& study) { return study.scenario().name; })
      .def_property_readonly("ranks",
                             [](const WhatIfs& study) { return study.scenario().cluster.ranks(); });
}

}  // namespace ddpsim
