#pragma once

// The figures of a training step, each described once: tables, CSV, JSON and `ddpsim list results`
// print them from here.

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

#include "model/parallel/strategy.hpp"
#include "tools/report/records/cluster_fields.hpp"

namespace ddpsim::fields {

inline constexpr Field format = text_field(
    "format", "format", "Which of this program's formats the file has, and its version.");
inline constexpr Field version_of_program = text_field("version", "version", "Of this program.");
inline constexpr Field scenario = text_field("scenario", "scenario", "The name of the scenario.");
inline constexpr Field ranks =
    count_field("ranks", "ranks", "How many ranks the job has, one device each.");
inline constexpr Field notes = list_field(
    "notes",
    "What one should know beside the figures, a sentence each: what a terminal shows on stderr as "
    "`note: ...`, in the same order, also with --quiet.");
inline constexpr Field results = list_field("results", "One object for each strategy.");
inline constexpr Field set{.name = "set",
                           .label = "set",
                           .kind = ValueKind::record,
                           .hint = "The keys that --vary varies, with their values here."};

// Whose figures they are.
/// "How gradients are averaged: none, naive, flat, overlap or bucketed.", and zeros.
inline constexpr auto meaning_of_strategy = [] {
  std::array<char, 160> text{};
  auto end = text.begin();
  const auto add = [&](std::string_view part) { end = std::ranges::copy(part, end).out; };
  add("How gradients are averaged: ");
  for (std::size_t i = 0; i < strategy_facts.size(); ++i) {
    if (i > 0) add(i + 1 < strategy_facts.size() ? ", " : " or ");
    add(strategy_facts[i].name);
  }
  add(".");
  return text;
}();
inline constexpr Field strategy =
    text_field("strategy", "strategy", meaning_of_strategy.data()).with(most);
/// "bucketed, 1+25 MiB"
inline constexpr Field result_label =
    text_field(
        "label", "strategy",
        "The strategy, with the settings that distinguish it from others: in `bucketed, 1+25 "
        "MiB` the first bucket ends at 1 MiB, the others at 25 MiB.")
        .with(most);
inline constexpr Field strategy_in_words = result_label.only_for(Audience::people);
inline constexpr Field implementation = text_field(
    "implementation", "implementation",
    "The strategy under the name that the result tables of the course CS336 have for it.");
inline constexpr Field model_size = text_field(
    "model_size", "model", "The workload: the name of a model of the catalogue, or of a profile.");
inline constexpr Field d_model =
    count_field("d_model", "d_model",
                "The width of the residual stream of a transformer; nothing for other workloads.");
inline constexpr Field num_layers = count_field(
    "num_layers", "layers", "How many blocks a transformer has; nothing for other workloads.");
inline constexpr Field world_size = ranks.named("world_size").labelled("ranks");
inline constexpr Field bucket_cap_bytes =
    bytes_field("bucket_cap_bytes", "cap",
                "The bucket cap; nothing where a list of caps, groups, or the buckets themselves "
                "are given, or the strategy has no buckets.");

// The figures.
inline constexpr Field step_ms =
    ms_field("step_ms", "step ms", "The training step, to the end of its last task on all ranks.",
             Better::low)
        .with(most);
inline constexpr Field forward_ms =
    ms_field("forward_ms", "forward ms", "How long the forward passes took.", Better::low)
        .with(little);
inline constexpr Field backward_ms =
    ms_field(
        "backward_ms", "backward ms",
        "From the loss to the last gradient, with interference and the copies that run in between.",
        Better::low)
        .with(little);
inline constexpr Field optimizer_ms =
    ms_field("optimizer_ms", "optimizer ms", "How long the optimizer's kernels took.", Better::low)
        .with(little);
inline constexpr Field communication_ms =
    ms_field("communication_ms", "comm ms",
             "For how long collectives, each from the moment when its last rank has arrived, or "
             "their copies to the host and back were under way. Those of the network itself are "
             "part of its passes.",
             Better::low);
inline constexpr Field exposed_ms =
    ms_field(
        "exposed_ms", "exposed ms",
        "How much longer the step is than without communication, with waiting, interference and "
        "copies; waits for batches (training.input) are left out of both.",
        Better::low)
        .with(much);
inline constexpr Field overlap_ratio =
    ratio_field("overlap_ratio", "overlap",
                "max(0, 1 - exposed / communication): the part of communication that is hidden; 1 "
                "where nothing is communicated.",
                Better::high, percent)
        .with(much);
/// The overlap ratio, or nothing where nothing is communicated.
inline constexpr Field overlap = overlap_ratio.named("overlap").only_for(Audience::people);
inline constexpr Field collectives =
    count_field("collectives", "collectives",
                "How many collectives the step has besides those of the network itself.",
                Better::low)
        .with(little);
inline constexpr Field wire_bytes = bytes_field(
    "wire_bytes", "wire",
    "How many bytes each rank hands to collectives in a step; of gathers and reduce-scatters of "
    "parts that ranks keep (fsdp), how many cross its port: (W - 1) / W of the whole.",
    Better::low);
inline constexpr Field port_bytes = bytes_field(
    "port_bytes", "sent",
    "How many bytes each rank sends through its port in a step's collectives, as by a "
    "ring of W ranks: 2 (W - 1) / W of what is all-reduced, (W - 1) / W of what is "
    "gathered or reduce-scattered. There only where a strategy that shards is compared.",
    Better::low);
inline constexpr Field speedup_vs_naive =
    ratio_field("speedup_vs_naive", "speedup",
                "The step under naive over this one; nothing of one rank, which averages with "
                "nobody.",
                Better::high, {"{:.3f}x"})
        .with(much);
inline constexpr Field bound = text_field(
    "bound", "bound",
    "What most of the critical path consists of: compute, interference (what kernels take longer "
    "beside collectives), the link's bandwidth, its latency, or launch, the host's launches; input "
    "where the step waits for its next batches.");
inline constexpr Field band_low_ms =
    ms_field("step_low_ms", "step low ms",
             "The lower end of a band around the prediction: of measured steps that were predicted "
             "from the same kind of knowledge, nine in ten took "
             "no less than this and no more than step_high_ms, in proportion to the predicted "
             "step; nothing where no such steps were measured, or where the catalogue has no "
             "accuracy.csv, which a note says.");
inline constexpr Field band_high_ms =
    ms_field("step_high_ms", "step high ms", "The upper end of the band that step_low_ms begins.");
inline constexpr Field known_from = text_field(
    "known_from", "known from",
    "What the step is predicted from: laws, described model, step without communication, naive "
    "step, naive and overlap steps, calibration, or profile.");
inline constexpr Field comm_hook =
    text_field("comm_hook", "comm hook", "What a bucket does instead of a plain all-reduce.");
inline constexpr Field comm_hook_ms = ms_field(
    "comm_hook_ms", "hook ms", "The time of the comm hook's own kernels, added up.", Better::low);
inline constexpr Field comm_hook_memory_bytes = bytes_field(
    "comm_hook_memory_bytes", "hook memory",
    "The memory that the comm hook keeps from step to step, besides the buckets.", Better::low);

// The buckets of a step.
inline constexpr Field buckets = list_field(
    "buckets",
    "One object for each bucket, in order; empty under a strategy that shards, which has units.");
inline constexpr Field index = count_field("index", "bucket", "Which bucket it is, from 0.");
inline constexpr Field bytes = bytes_field("bytes", "size", "The size of the bucket's gradients.");
inline constexpr Field parameters =
    list_field("parameters", "The names of the parameters whose gradients are in the bucket.");
inline constexpr Field ready_ms =
    ms_field("ready_ms", "ready ms",
             "When the last gradient of the bucket was in place, from the start of the step.")
        .with(thousandths);
inline constexpr Field start_ms =
    ms_field("start_ms", "start ms",
             "When the all-reduce began on all ranks, from the start of the step. Of a comm hook's "
             "several collectives in a bucket: the first.")
        .with(thousandths);
inline constexpr Field end_ms =
    ms_field("end_ms", "end ms",
             "When the all-reduce ended, from the start of the step. Of a comm hook's several "
             "collectives in a bucket: the last.")
        .with(thousandths);
inline constexpr Field bucket_exposed_ms =
    ms_field("exposed_ms", "exposed ms",
             "How long the compute stream stood still during the all-reduce of the bucket, or "
             "during all its collectives of a comm hook, and during their copies to the host and "
             "back as far as no collective was under way.",
             Better::low)
        .with(thousandths)
        .with(much);

// How a collective runs.
inline constexpr Field algorithm = text_field("algorithm", "algorithm",
                                              "The algorithm that the collective runs as: tree, "
                                              "ring, nvls or nvls_tree of NCCL, or one of Gloo's.");
inline constexpr Field protocol =
    text_field("protocol", "protocol", "NCCL's protocol: ll, ll128 or simple.");
inline constexpr Field channels =
    count_field("channels", "channels",
                "How many channels of NCCL the collective takes; each is a thread block, which "
                "holds a multiprocessor.");
inline constexpr Field nics =
    count_field("nics", "NICs", "How many NICs of a node the collective uses.");
inline constexpr Field collective_bound = text_field(
    "bound", "bound",
    "What most of the collective's time goes to: latency (its steps), port (what joins a "
    "GPU to others of its node), host memory (through which GPUs of a node reach each other), "
    "memory (of a host that adds up), pcie (a GPU's way to the NICs), nic, or sms.");
/// "ring simple, 24 channels, nic"
inline constexpr Field how =
    text_field("how", "how", "Algorithm, protocol, channels, NICs, and what bounds the collective.")
        .with(Look{}.to_the_left())
        .only_for(Audience::people);

/// All that `run --json` and `run --csv` hold of a strategy.
inline constexpr std::array of_run{&format,           &version_of_program,
                                   &scenario,         &ranks,
                                   &cluster,          &notes,
                                   &results,          &set,
                                   &strategy,         &result_label,
                                   &implementation,   &model_size,
                                   &d_model,          &num_layers,
                                   &world_size,       &bucket_cap_bytes,
                                   &step_ms,          &forward_ms,
                                   &backward_ms,      &optimizer_ms,
                                   &communication_ms, &exposed_ms,
                                   &overlap_ratio,    &collectives,
                                   &wire_bytes,       &port_bytes,
                                   &speedup_vs_naive, &bound,
                                   &band_low_ms,      &band_high_ms,
                                   &known_from,       &comm_hook,
                                   &comm_hook_ms,     &comm_hook_memory_bytes,
                                   &buckets};
/// The fields of a bucket.
inline constexpr std::array of_bucket{
    &index,     &bytes,    &parameters, &ready_ms, &start_ms,        &end_ms, &bucket_exposed_ms,
    &algorithm, &protocol, &channels,   &nics,     &collective_bound};

}  // namespace ddpsim::fields
