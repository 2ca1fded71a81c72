#include <array>
#include <utility>

#include <fmt/format.h>

#include "scenarios/reader/text/input_error.hpp"
#include "scenarios/reader/text/nearest.hpp"
#include "tools/command/pages.hpp"
#include "tools/import/imported.hpp"
#include "tools/report/writers/notes.hpp"
#include "tools/report/writers/output.hpp"

namespace ddpsim {
namespace {

const Usage import_usage{
    "ddpsim import [flags] KIND FILE...",
    "Turns what others measured into a profile that a scenario can name, and prints what it found "
    "and "
    "what it could not.\n\n"
    "  torch-trace    a trace of PyTorch's profiler (Chrome JSON, plain or gzip): its training "
    "steps "
    "become a workload profile, its all-reduces a link profile, unless it is of one rank; more "
    "traces, of other ranks of the job (rank*.json.gz), tell who comes late to which all-reduce "
    "and by how much, and all-reduces from the last rank's arrival\n"
    "  nccl-tests     the output of all_reduce_perf, text or JSON, or a file of rccl-tests (-x): "
    "becomes a link profile\n"
    "  nccl-log       what a job printed with NCCL_DEBUG=INFO, of one rank or many, in one file or "
    "several: its nodes, links and NICs become a cluster for --cluster, and NCCL's rings, "
    "transports, tuning table and choices are listed\n"
    "  torch-profile  a file that ddpsim.profile wrote: checked in full and written anew",
    "ddpsim import torch-profile scenarios/examples/profiles/profile.yaml -o profile.yaml"};

struct Kind {
  const char* name;
  Imported (*import)(const ImportRequest& request);
};
constexpr std::array kinds{Kind{"torch-trace", import_torch_trace},
                           Kind{"nccl-tests", import_nccl_tests}, Kind{"nccl-log", import_nccl_log},
                           Kind{"torch-profile", import_torch_profile}};

const Kind& kind_named(const std::string& given) {
  std::vector<std::string> names;
  for (const Kind& kind : kinds) {
    if (kind.name == given) return kind;
    names.emplace_back(kind.name);
  }
  const std::string guess = nearest(given, names);
  throw InputError(
      fmt::format("import: unknown kind \"{}\"{}; known: torch-trace, nccl-tests, "
                  "nccl-log, torch-profile",
                  given, guess.empty() ? "" : fmt::format("; did you mean \"{}\"?", guess)));
}

bool is_kept(const std::string& file) {
  return !file.empty() && file != "-";
}

/// `text` with `by` in place of `words`, where it has these.
std::string with_word(std::string text, const std::string& words, const std::string& by) {
  const std::size_t at = text.find(words);
  return at == std::string::npos ? text : text.replace(at, words.size(), by);
}

/// What to do with the files that were written.
void tell_next(const Imported& imported, const std::string& profile, const std::string& link) {
  if (is_kept(profile)) {
    std::string next = with_word(imported.next, "FILE", profile);
    if (is_kept(link)) next = with_word(std::move(next), "--link LINK", "--link " + link);
    note("next: {}", next);
  } else if (is_kept(link)) {
    note("next: {}", with_word(imported.next_of_link, "FILE", link));
  }
}

}  // namespace

int import_command(const std::vector<std::string>& arguments) {
  CommonOptions options;
  std::string output, model, link;
  boost::program_options::options_description own;
  own.add_options()("output,o", boost::program_options::value(&output)->value_name("FILE|-"),
                    "write the profile; without it, what was found is only printed")(
      "model", boost::program_options::value(&model)->value_name("MODEL"),
      "torch-trace: the network that was trained, a catalogue name or a file with its family: "
      "gives the parameters their names and, where the trace lacks them, their sizes");
  own.add_options()("link-profile", boost::program_options::value(&link)->value_name("FILE|-"),
                    "torch-trace: write its all-reduces as a link profile");
  if (!parse(arguments, import_usage, Flag::json | Flag::tables, own, options)) return exit_done;
  const bool traces = !options.files.empty() && options.files[0] == "torch-trace";
  const bool several = traces || (!options.files.empty() && options.files[0] == "nccl-log");
  if (options.files.size() < 2)
    throw InputError(
        "import needs a kind (torch-trace, nccl-tests, nccl-log, torch-profile) and a file");
  const Kind& kind = kind_named(options.files[0]);
  if (options.files.size() > 2 && !several)
    throw InputError(fmt::format("import {} takes one file, got {}: import each by itself",
                                 options.files[0], options.files.size() - 1));
  if (!model.empty() && kind.import != import_torch_trace)
    throw InputError("--model goes with torch-trace alone");
  if (!link.empty() && !traces) throw InputError("--link-profile goes with torch-trace alone");
  check_results(options, {{"-o", output}, {"--link-profile", link}}, {{model}, {}, true});
  ImportRequest request{options.files[1], model, !output.empty(), options.quiet};
  request.others.assign(options.files.begin() + 2, options.files.end());
  request.link_wanted = !link.empty();
  const Imported imported = kind.import(request);
  Pages pages(options, {output, link});
  pages.add(imported.page);
  Outputs outputs;
  pages.add_to(outputs);
  outputs.add(options.json, json_text(imported.json));
  outputs.add(output, imported.profile);
  const std::string written_link = imported.link_profile.empty() ? "" : link;
  outputs.add(written_link, imported.link_profile);
  outputs.commit();
  if (!options.quiet) tell_next(imported, output, written_link);
  return exit_done;
}

}  // namespace ddpsim
