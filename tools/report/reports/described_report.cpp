#include "tools/report/reports/described_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tools/report/records/described_fields.hpp"

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

}  // namespace

std::string described_text(const Scenario& scenario) {
  if (!scenario.described) return "";
  const Described& described = *scenario.described;
  std::string text = "described";
  if (!described.source.empty()) text += " by " + described.source;
  if (described.sequence > 0) text += fmt::format("; {} tokens a sample", described.sequence);
  text += attention_text(described);
  if (described.compute) {
    const bool narrow = size_of(*described.compute) < size_of(DType::fp32);
    text += fmt::format("; most products in {}{}", name_of(*described.compute),
                        narrow ? ", as under autocast" : "");
  }
  if (described.recomputed > 0)
    text += fmt::format(
        "; with activation checkpoints: the backward pass runs {} distinct kernel{} again",
        described.recomputed, described.recomputed == 1 ? "" : "s");
  text += "\n";
  for (const std::string& note : described.notes) text += fmt::format("- {}\n", note);
  return text + partial_text(scenario);
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
