#include "tools/report/reports/described_report.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tools/report/records/described_fields.hpp"
#include "tools/report/reports/cluster_report.hpp"
#include "tools/study/point_notes.hpp"

namespace ddpsim {
namespace {

List texts(const std::vector<std::string>& lines) {
  List list;
  for (const std::string& line : lines) list.emplace_back(line);
  return list;
}

/// "; attention as flash, 1.23 TFLOP, of which a causal mask leaves out 0.61".
std::string attention_text(const Described& described) {
  if (described.attention.empty() && described.attention_flops == 0) return "";
  std::string text = "; attention";
  if (!described.attention.empty()) text += " as " + described.attention;
  if (described.attention_flops > 0)
    text += fmt::format(", {:.4g} TFLOP", 1e-12 * described.attention_flops);
  if (described.masked_flops > 0)
    text +=
        fmt::format(", of which a causal mask leaves out {:.4g}", 1e-12 * described.masked_flops);
  return text;
}

/// What a description was made with that a user may have forgotten: autocast and checkpoints.
std::vector<std::string> modes_of(const Described& described) {
  std::vector<std::string> modes;
  if (described.compute) {
    const bool narrow = size_of(*described.compute) < size_of(DType::fp32);
    modes.push_back(fmt::format("most products in {}{}", name_of(*described.compute),
                                narrow ? ", as under autocast" : ""));
  }
  if (described.recomputed > 0)
    modes.push_back(fmt::format(
        "with activation checkpoints: the backward pass runs {} distinct kernel{} again",
        described.recomputed, described.recomputed == 1 ? "" : "s"));
  return modes;
}

}  // namespace

std::string described_text(const Scenario& scenario) {
  if (!scenario.described) return "";
  const Described& described = *scenario.described;
  std::string text = "described";
  if (!described.source.empty()) text += " by " + described.source;
  if (described.sequence > 0) text += fmt::format("; {} tokens a sample", described.sequence);
  text += attention_text(described);
  for (const std::string& mode : modes_of(described)) text += "; " + mode;
  text += "\n";
  for (const std::string& note : described.notes) text += fmt::format("- {}\n", note);
  return text + partial_text(scenario);
}

std::string code_text(const Scenario& scenario) {
  const bool measured = scenario.measured || scenario.times.forward || scenario.times.backward;
  if (scenario.code.empty() || measured) return "";
  return fmt::format(
      "{} is computed as by {}; if yours is another, capture it with `ddpsim describe`",
      shown_name(scenario.workload.name, "model"), scenario.code);
}

std::string described_modes_text(const Scenario& scenario) {
  if (!scenario.described) return "";
  const std::vector<std::string> modes = modes_of(*scenario.described);
  return modes.empty() ? "" : fmt::format("described: {}", fmt::join(modes, "; "));
}

std::string described_modes_text(const std::vector<ModesAtPoint>& looked_at, std::size_t points) {
  const bool alike = std::ranges::all_of(
      looked_at, [&](const ModesAtPoint& point) { return point.text == looked_at.front().text; });
  if (alike) return looked_at.empty() ? "" : looked_at.front().text;
  PointNotes notes;
  for (const ModesAtPoint& point : looked_at)
    notes.add(point.settings, point.text.empty() ? std::vector<std::string>{}
                                                 : std::vector<std::string>{point.text});
  return fmt::format("{}", fmt::join(notes.lines(points), "\n"));
}

Record described_entry(const Scenario& scenario) {
  if (!scenario.described) return {};
  const Described& described = *scenario.described;
  Record record;
  record.add(fields::described_source, described.source)
      .add(fields::described_batch, described.batch)
      .add(fields::described_sequence,
           described.sequence > 0 ? FieldValue(described.sequence) : FieldValue())
      .add(fields::described_attention,
           described.attention.empty() ? FieldValue() : FieldValue(described.attention))
      .add(fields::described_compute,
           described.compute ? FieldValue(name_of(*described.compute)) : FieldValue())
      .add(fields::described_recomputed, described.recomputed)
      .add(fields::attention_flops, described.attention_flops)
      .add(fields::masked_flops, described.masked_flops)
      .add(fields::described_notes, texts(described.notes))
      .add(fields::partial, texts(described.partial));
  return Record().add(fields::described, std::move(record));
}

std::string partial_text(const Scenario& scenario) {
  if (!scenario.described || scenario.described->partial.empty()) return "";
  return fmt::format(
      "partial: no rule prices {}: only their bytes are counted, so a step "
      "takes at least as long as predicted here\n",
      fmt::join(scenario.described->partial, ", "));
}

}  // namespace ddpsim
