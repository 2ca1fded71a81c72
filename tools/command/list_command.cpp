#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "backend/backends.hpp"
#include "model/ddp/comm_hook.hpp"
#include "model/ddp/user_hook.hpp"
#include "scenarios/reader/catalogue_list.hpp"
#include "scenarios/reader/input_error.hpp"
#include "scenarios/reader/nearest.hpp"
#include "scenarios/reader/quantity_text.hpp"
#include "tools/command/command.hpp"
#include "tools/report/output.hpp"
#include "tools/report/table.hpp"

namespace ddpsim {
namespace {

const Usage usage{"ddpsim list [flags] models|devices|links|hooks|backends",
                  "Prints what the catalogue holds, with the source of its figures. Every entry "
                  "can also be written inline\n"
                  "in a scenario, or in a file of its own; `base: NAME` starts from an entry.",
                  "ddpsim list devices"};

/// A table of text cells: printed aligned, or as JSON objects.
struct Listing {
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;
  std::string below{};
  std::vector<std::string> below_header{};  ///< of rows listed below, and by JSON behind the others
  std::vector<std::vector<std::string>> below_rows{};

  /// The last column below the table, where it is the long text of a source.
  std::string text() const {
    const bool sources = header.back() == "source";
    const std::size_t columns = header.size() - (sources ? 1 : 0);
    Table table({header.begin(), header.begin() + static_cast<std::ptrdiff_t>(columns)},
                sources ? Table::Last::number : Table::Last::text);
    std::string last;
    for (const auto& row : rows) {
      table.add({row.begin(), row.begin() + static_cast<std::ptrdiff_t>(columns)});
      if (sources) last += fmt::format("{}: {}\n", row.front(), row.back());
    }
    return table.text() + below + (sources ? "\nsources\n" + last : "");
  }
};

Listing models() {
  Listing listing{{"model", "tensors", "parameters", "gradients fp32", "source"}, {}, {}};
  for (const ModelSummary& model : list_models())
    listing.rows.push_back({model.name, fmt::format("{}", model.tensors),
                            fmt::format("{}", model.elements), to_string(model.gradients),
                            model.source});
  return listing;
}

Listing devices() {
  Listing listing{
      {"device", "SMs", "memory", "bandwidth", "fp32", "tf32", "bf16", "fp16", "source"}, {}, {}};
  for (const Device& device : list_devices()) {
    std::vector<std::string> row{device.name, fmt::format("{}", device.multiprocessors),
                                 to_string(device.memory), to_string(device.memory_bandwidth)};
    for (const DType type : all_dtypes)
      row.push_back(device.peak_of(type).flops_per_second > 0 ? to_string(device.peak_of(type))
                                                              : "-");
    row.push_back(device.source);
    listing.rows.push_back(row);
  }
  return listing;
}

Listing links() {
  Listing listing{{"link", "kind", "latency", "bandwidth", "NCCL counts", "source"}, {}, {}};
  for (const Link& link : list_links())
    listing.rows.push_back({link.name, std::string(name_of(link.kind)), to_string(link.latency),
                            to_string(link.bandwidth), to_string(link.nccl_bandwidth),
                            link.source});
  return listing;
}

Listing hooks() {
  Listing listing{{"comm hook", "payload of a bucket (bytes)", "collectives", "source"}, {}, {}};
  for (const CommHookFacts& facts : comm_hook_facts())
    listing.rows.push_back({std::string(name_of(facts.kind)), std::string(facts.payload),
                            std::string(facts.collectives), std::string(facts.source)});
  listing.below =
      "\nN elements of e bytes each, on W ranks; n x m: a compressed matrix, r its rank, U: "
      "elements that "
      "are not compressed.\n"
      "A payload is what each rank hands over: a ring all-reduce sends 2 (W - 1) / W of it, an "
      "all-gather (W - 1) times.\n"
      "fp16_compress_wrapper and bf16_compress_wrapper put any of them but ZeRO's on 16 bit: e = "
      "2.\n";
  listing.below_header = {"hook of training.hooks", "for example", "does"};
  Table own(listing.below_header, Table::Last::text);
  for (const UserHookFacts& facts : user_hook_facts()) {
    listing.below_rows.push_back({std::string(name_of(facts.kind)),
                                  fmt::format("{}: {}", name_of(facts.kind), facts.example),
                                  std::string(facts.does)});
    own.add(listing.below_rows.back());
  }
  listing.below += "\n" + own.text();
  return listing;
}

Listing backend_list() {
  Listing listing{{"backend", "runs on", "status"}, {}, {}};
  for (const BackendStatus& backend : backends()) {
    const std::string missing = backend.missing();
    listing.rows.push_back({backend.name, backend.runs_on, missing.empty() ? "ready" : missing});
  }
  return listing;
}

struct Kind {
  const char* name;
  Listing (*list)();
};
constexpr Kind kinds[]{{"models", models},
                       {"devices", devices},
                       {"links", links},
                       {"hooks", hooks},
                       {"backends", backend_list}};

void print(const Listing& listing, const CommonOptions& options) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  const auto add = [&](const std::vector<std::string>& header,
                       const std::vector<std::vector<std::string>>& rows) {
    for (const auto& row : rows) {
      nlohmann::ordered_json object;
      for (std::size_t c = 0; c < row.size(); ++c) {
        if (const auto number = parse_integer(row[c]))  // what has a unit stays text
          object[header[c]] = *number;
        else
          object[header[c]] = row[c];
      }
      json.push_back(object);
    }
  };
  add(listing.header, listing.rows);
  add(listing.below_header, listing.below_rows);
  Outputs outputs;
  if (!options.quiet && options.json != "-") outputs.add("-", listing.text());
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
  if (!parse(arguments, of_backends, Flag::json | Flag::quiet, {}, options)) return exit_done;
  if (!options.files.empty()) throw InputError("backends takes no file");
  print(backend_list(), options);
  return exit_done;
}

int list_command(const std::vector<std::string>& arguments) {
  CommonOptions options;
  if (!parse(arguments, usage, Flag::json | Flag::quiet, {}, options)) return exit_done;
  if (options.files.size() != 1)
    throw InputError("list needs one of: models, devices, links, hooks, backends");
  for (const Kind& kind : kinds) {
    if (kind.name != options.files[0]) continue;
    print(kind.list(), options);
    return exit_done;
  }
  const std::string guess =
      nearest(options.files[0], {"models", "devices", "links", "hooks", "backends"});
  throw InputError(fmt::format(
      "unknown list \"{}\"{}; known: models, devices, links, hooks, backends", options.files[0],
      guess.empty() ? "" : fmt::format("; did you mean \"{}\"?", guess)));
}

}  // namespace ddpsim
