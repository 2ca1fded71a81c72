#include <fmt/format.h>

#include "backend/run/backends.hpp"
#include "scenarios/reader/text/input_error.hpp"
#include "scenarios/reader/text/nearest.hpp"
#include "tools/command/command.hpp"
#include "tools/command/pages.hpp"
#include "tools/report/records/field_kinds.hpp"
#include "tools/report/reports/listing.hpp"
#include "tools/report/writers/json_writer.hpp"
#include "tools/report/writers/notes.hpp"
#include "tools/report/writers/output.hpp"

namespace ddpsim {
namespace {

const std::vector<std::string> list_names{"models",   "devices",    "links",      "clusters",
                                          "hosts",    "operations", "strategies", "hooks",
                                          "backends", "results"};

const Usage list_usage{
    fmt::format("ddpsim list [flags] {}", fmt::join(list_names, "|")),
    "Prints what the catalogue holds, with the source of its figures. Every entry "
    "can also be written inline\n"
    "in a scenario, or in a file of its own; `base: NAME` starts from an entry. "
    "`strategies` says how gradients\n"
    "can be averaged, and `results` what the values in our JSON and CSV mean.",
    "ddpsim list devices"};

constexpr Field column(std::string_view heading) {
  return fields::text_field(heading, heading, "");
}

Listing backend_list() {
  Listing listing{
      {{column("backend"), column("runs on"), column("status").with(Look{}.to_the_left())}}};
  for (const BackendStatus& backend : backends()) {
    const std::string missing = backend.missing();
    listing.table.add({backend.name, backend.runs_on, missing.empty() ? "ready" : missing});
  }
  return listing;
}

void print(const Listing& listing, const CommonOptions& options) {
  check_places({{"--json", options.json}, {"--markdown", options.markdown}}, {});
  Pages pages(options);
  pages.add(listing.page());
  nlohmann::ordered_json json = json_of(listing.table);
  for (nlohmann::ordered_json& row : json_of(listing.more)) json.push_back(std::move(row));
  Outputs outputs;
  pages.add_to(outputs);
  outputs.add(options.json, json_text(json));
  outputs.commit();
}

}  // namespace

int backends_command(const std::vector<std::string>& arguments) {
  const Usage of_backends{"ddpsim backends [flags]",
                          "Prints what can run a schedule for real on this machine, and what the "
                          "others miss.",
                          "ddpsim backends"};
  CommonOptions options;
  if (!parse(arguments, of_backends, Flag::json | Flag::tables, {}, options)) return exit_done;
  if (!options.files.empty()) throw InputError("backends takes no file");
  print(backend_list(), options);
  return exit_done;
}

int list_command(const std::vector<std::string>& arguments) {
  CommonOptions options;
  if (!parse(arguments, list_usage, Flag::json | Flag::tables, {}, options)) return exit_done;
  if (options.files.size() != 1)
    throw InputError(fmt::format("list needs one of: {}", fmt::join(list_names, ", ")));
  const std::optional<Listing> listing =
      options.files[0] == "backends" ? backend_list() : listing_of(options.files[0]);
  if (listing) {
    print(*listing, options);
    for (const std::string& problem : listing->left_out)
      note("ddpsim: left out of this list: {}", problem);
    return listing->left_out.empty() ? exit_done : exit_input;
  }
  const std::string guess = nearest(options.files[0], list_names);
  throw InputError(fmt::format("unknown list \"{}\"{}; known: {}", options.files[0],
                               guess.empty() ? "" : fmt::format("; did you mean \"{}\"?", guess),
                               fmt::join(list_names, ", ")));
}

}  // namespace ddpsim
