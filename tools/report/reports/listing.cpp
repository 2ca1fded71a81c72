#include "tools/report/reports/listing.hpp"

#include <fmt/format.h>

#include "model/parallel/hooks/comm_hooks.hpp"
#include "model/parallel/strategy.hpp"
#include "model/parallel/user_hook.hpp"
#include "scenarios/reader/explain/catalogue_list.hpp"
#include "tools/report/records/all_fields.hpp"
#include "tools/report/records/field_kinds.hpp"
#include "tools/report/reports/cluster_report.hpp"

namespace ddpsim {
namespace {

constexpr Field source = fields::text_field("source", "source", "Where the figures come from.")
                             .only_for(Audience::programs);

/// What JSON calls by the heading of the column.
constexpr Field column(std::string_view heading) {
  return fields::text_field(heading, heading, "");
}
constexpr Field counted(std::string_view heading) {
  return fields::count_field(heading, heading, "");
}

/// As it is written in a file.
std::string shown_price(const Price& price) {
  return fmt::format("{:g} {}/h", price.per_hour, price.currency);
}

/// What links something; nothing where nothing does.
FieldValue named(const Link& link) {
  return link.name.empty() ? FieldValue() : FieldValue(link.name);
}

Listing models() {
  Listing listing{{{column("model"), counted("tensors"), counted("parameters"),
                    column("gradients fp32"), source}}};
  for (const ModelSummary& model : list_models(&listing.left_out))
    listing.table.add(
        {model.name, model.tensors, model.elements, to_string(model.gradients), model.source});
  return listing;
}

Listing devices() {
  Listing listing{{{column("device"), counted("SMs"), column("memory"), column("bandwidth")}}};
  for (const DType type : all_dtypes) listing.table.columns.push_back(column(name_of(type)));
  // Whether it copies to other GPUs over PCIe, by the key of a device's file.
  listing.table.columns.push_back(column("peer_to_peer"));
  listing.table.columns.push_back(source);
  for (const Device& device : list_devices(&listing.left_out)) {
    TableRow row{device.name, device.multiprocessors, to_string(device.memory),
                 to_string(device.memory_bandwidth)};
    for (const DType type : all_dtypes)
      row.emplace_back(device.peak_of(type).flops_per_second > 0 ? to_string(device.peak_of(type))
                                                                 : "-");
    row.emplace_back(device.synchronous ? "-" : device.peer_to_peer ? "yes" : "no");
    row.emplace_back(device.source);
    listing.table.add(std::move(row));
  }
  return listing;
}

Listing links() {
  Listing listing{{{column("link"), column("kind"), column("latency"), column("bandwidth"),
                    column("NCCL counts"), source}}};
  for (const Link& link : list_links(&listing.left_out))
    listing.table.add(
        {link.name, name_of(link.kind), to_string(link.latency), to_string(link.bandwidth),
         link.nccl_bandwidth > Bandwidth{} ? FieldValue(to_string(link.nccl_bandwidth))
                                           : FieldValue(),
         link.source});
  return listing;
}

Listing clusters() {
  Listing listing{{{column("cluster"), column("device"), counted("ranks per node"),
                    column("intra_node"), column("inter_node"), counted("NICs"),
                    column("line rate of each"), counted("nodes"), column("price"), source}}};
  for (const ReadyCluster& ready : list_clusters(&listing.left_out)) {
    const Cluster& cluster = ready.cluster;
    const Link& network = cluster.inter_node;
    // A measured table's bandwidth is what the whole ring carries, over however many NICs.
    const bool none = network.name.empty();
    const bool measured = !network.all_reduce.empty() && network.kind == LinkKind::plain;
    listing.table.add(
        {ready.name, cluster.device.name, ranks_value(cluster.ranks_per_node),
         named(cluster.intra_node), named(network),
         none || (measured && network.nics == 0) ? FieldValue()
                                                 : FieldValue(nics_per_node(cluster)),
         none || measured ? FieldValue() : FieldValue(to_string(network.bandwidth)), ready.nodes,
         ready.price ? FieldValue(shown_price(*ready.price)) : FieldValue(), ready.source});
  }
  return listing;
}

Listing hosts() {
  Listing listing{{{column("host"), column("factor"), source}}};
  for (const Host& host : list_hosts(&listing.left_out))
    listing.table.add({host.name, fmt::format("{:g}", host.factor), host.source});
  return listing;
}

Listing operations() {
  Listing listing{{{column("operations"), column("device"), counted("rows"), source}}};
  for (const OperationsSummary& table : list_operations(&listing.left_out))
    listing.table.add({table.name, table.device, table.operations, table.source});
  return listing;
}

Listing hooks() {
  Listing listing{{{column("comm hook"), column("payload of a bucket (bytes)"),
                    column("collectives"), source}}};
  for (const CommHookRow& hook : comm_hooks())
    listing.table.add({hook.name, hook.payload, hook.collectives, hook.source});
  listing.below =
      "N elements of e bytes each, on W ranks; n x m: a compressed matrix, r its rank, U: "
      "elements that are not compressed.\n"
      "A payload is what each rank hands over: a ring all-reduce sends 2 (W - 1) / W of it, an "
      "all-gather (W - 1) times.\n"
      "fp16_compress_wrapper and bf16_compress_wrapper put any of them but ZeRO's on 16 bit: e = "
      "2.\n";
  listing.more.columns = {column("hook of training.hooks"), column("for example"),
                          column("does").with(Look{}.to_the_left())};
  for (const UserHookFacts& facts : user_hook_facts())
    listing.more.add({name_of(facts.kind),
                      fmt::format("{}: {}", name_of(facts.kind), facts.example), facts.does});
  return listing;
}

Listing strategies() {
  Listing listing{{{column("strategy"), column("meaning").with(Look{}.to_the_left())}}};
  for (const StrategyFacts& facts : strategy_facts) listing.table.add({facts.name, facts.meaning});
  return listing;
}

std::string_view in_words(Better better) {
  switch (better) {
    case Better::low:
      return "low";
    case Better::high:
      return "high";
    case Better::neither:
      return "";
  }
  return "";
}

std::string_view in_words(ValueKind kind) {
  switch (kind) {
    case ValueKind::text:
      return "text";
    case ValueKind::whole:
      return "whole number";
    case ValueKind::real:
      return "number";
    case ValueKind::flag:
      return "true or false";
    case ValueKind::list:
      return "list";
    case ValueKind::record:
      return "object";
  }
  return "";
}

/// What the keys of our JSON and the columns of our CSV mean.
Listing results() {
  Listing listing{{{column("value"), column("of"), column("type"), column("unit"), column("better"),
                    column("meaning").with(Look{}.to_the_left())}}};
  for (const FieldGroup& group : all_fields())
    for (const Field* field : group.fields)
      listing.table.add({field->name, group.name, in_words(field->kind), field->unit,
                         in_words(field->better), field->hint});
  return listing;
}

struct ListingKind {
  const char* name;
  Listing (*list)();
};
constexpr ListingKind kinds[]{
    {"models", models},         {"devices", devices}, {"links", links},
    {"clusters", clusters},     {"hosts", hosts},     {"operations", operations},
    {"strategies", strategies}, {"hooks", hooks},     {"results", results}};

}  // namespace

Page Listing::page() const {
  Page page;
  Table shown = table;  // programs get the columns that no entry says anything in as well
  for (std::size_t c = shown.columns.size(); c-- > 0;) drop_if_empty(shown, c);
  page.add(std::move(shown));
  page.add(Paragraph{below});
  if (!more.columns.empty()) page.add(more);
  if (table.columns.back().name == "source") {
    std::string sources;
    for (const TableRow& row : table.rows)
      if (const std::string& text = *row.back().text(); !text.empty())
        sources += fmt::format("{}: {}\n", *row.front().text(), text);
    if (!sources.empty()) page.add(Paragraph{"sources\n" + sources});
  }
  return page;
}

std::optional<Listing> listing_of(std::string_view kind) {
  for (const ListingKind& each : kinds)
    if (each.name == kind) return each.list();
  return std::nullopt;
}

}  // namespace ddpsim
