#include <optional>

#include <fmt/format.h>

#include "scenarios/reader/workload/workload_reader.hpp"
#include "tools/import/imported.hpp"
#include "tools/import/profile_file.hpp"
#include "tools/import/torch_trace.hpp"
#include "tools/import/trace_lateness.hpp"
#include "tools/import/trace_link.hpp"
#include "tools/import/trace_ranks.hpp"
#include "tools/import/trace_report.hpp"
#include "tools/import/trace_tensors.hpp"
#include "tools/report/writers/progress.hpp"

namespace ddpsim {

namespace {

/// What the traces of other ranks show; one is read at a time. `of_ddpsim` becomes true where
/// ddpsim wrote one of them.
std::vector<TraceFinding> findings_of(const ImportRequest& request, bool& of_ddpsim) {
  std::vector<TraceFinding> findings;
  for (const std::string& file : request.others) {
    Progress progress(request.quiet);
    const Trace trace = read_trace(
        file, [&](double fraction) { progress.show("reading another rank's trace", fraction); });
    of_ddpsim = of_ddpsim || trace.of_ddpsim;
    findings.push_back(find_training(trace, file));
  }
  return findings;
}

/// A command for the workload profile, with LINK in place of what its all-reduces went over.
std::string next_with_profile(const TraceFinding& finding) {
  const int nodes = finding.nodes();
  return "ddpsim tune FILE --device DEVICE" +
         (nodes > 1 ? fmt::format(" --nodes {} --ranks-per-node {} --link INTRA_NODE --link LINK",
                                  nodes, finding.devices)
                    : std::string(" --ranks N --link LINK"));
}

}  // namespace

Imported import_torch_trace(const ImportRequest& request) {
  std::optional<Workload> model;
  if (!request.model.empty()) {
    try {
      model = read_catalogue_model(request.model);
    } catch (const InputError& problem) {
      std::string said = problem.what();
      if (said.starts_with(":0:0: ")) said = said.substr(6);  // a name from the command line
      throw InputError(fmt::format("--model {}: {}", request.model, said));
    }
  }
  Trace trace;
  {
    Progress progress(request.quiet);
    trace = read_trace(request.file,
                       [&](double fraction) { progress.show("reading the trace", fraction); });
  }
  TraceFinding finding = find_training(trace, request.file);
  const FoundGradients gradients = find_gradients(finding, trace, request.file, model);
  for (const std::string& doubt : step_doubts(finding.steps)) finding.notes.push_back(doubt);
  std::string link_profile, next_of_link;
  bool of_ddpsim = trace.of_ddpsim;
  trace = Trace();
  const std::vector<TraceFinding> others = findings_of(request, of_ddpsim);
  const RankTraces traces{finding, request.file, others, request.others};
  std::optional<Lateness> lateness;
  if (!others.empty()) lateness = lateness_of(all_reduce_times(traces));
  if (lateness && of_ddpsim) {
    lateness.reset();
    finding.notes.emplace_back(
        "these traces are of ddpsim: an all-reduce begins there when the last rank has come, so "
        "lateness cannot be told from it; `ddpsim run SCENARIO --why` names the rank");
  }
  if (request.link_wanted) {
    const std::optional<Link> link =
        link_of(finding, gradients, request.file, others, request.others);
    if (!link && !request.wanted)  // it was all that was asked for
      throw InputError(fmt::format("{}: {}", request.file, finding.notes.back()));
    if (link) {
      link_profile =
          link_profile_yaml(*link,
                            "# A link profile from a profiler's trace: a scenario "
                            "names this file as its intra_node or inter_node.\n"
                            "# Kernels ran beside these all-reduces: `interference: {}` "
                            "in the cluster keeps a prediction from slowing them again.\n"
                            "# Nothing is known of smaller all-reduces.\n");
      next_of_link = next_with_link(*link);
    }
  }
  Imported imported{trace_page(finding, gradients, request.file),
                    trace_json(finding, gradients, request.file), "", std::move(link_profile), ""};
  if (lateness) {
    add_lateness(imported.page, *lateness, traces);
    imported.json["lateness"] = lateness_json(*lateness, traces);
  }
  imported.next = next_with_profile(finding);
  imported.next_of_link = std::move(next_of_link);
  // What the link profile says: kernels ran beside these all-reduces, and so did the profile's.
  if (!imported.link_profile.empty()) imported.next += " --set cluster.interference={}";
  if (request.wanted)
    imported.profile = workload_profile_yaml(profile_of(finding, gradients, request.file),
                                             "# A workload profile from a profiler's trace: a "
                                             "scenario names this file as its workload's model.\n"
                                             "# `ready`: when the device had done what the host "
                                             "had launched before the gradient's hook fired, or\n"
                                             "# the hook fired if that was later; DDP's own copies "
                                             "are taken out, for a schedule adds its own.\n");
  return imported;
}

}  // namespace ddpsim
