#include "tools/import/trace_names.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <string>

#include "tools/kineto/kineto_words.hpp"

namespace ddpsim {
namespace {

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// Lower case, without underscores: "AllReduce", "all_reduce" and "allreduce_" are one word.
std::string folded(std::string_view text) {
  std::string word;
  for (const char c : text)
    if (c != '_') word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return word;
}

template <std::size_t N>
bool starts_with_one_of(std::string_view text, const std::array<std::string_view, N>& beginnings) {
  return std::any_of(beginnings.begin(), beginnings.end(),
                     [&](std::string_view beginning) { return text.starts_with(beginning); });
}

NameMeaning host_meaning(std::string_view name) {
  constexpr std::string_view step = kineto::profiler_step, evaluate = kineto::evaluate_function,
                             accumulate = kineto::accumulate_grad;
  constexpr std::array<std::string_view, 3> on_the_cpu{kineto::gloo, "mpi:", "ucc:"};
  constexpr std::array<std::string_view, 6> calls{
      kineto::record_param_comms, kineto::nccl,        "rccl:", kineto::c10d,
      "c10d_functional::",        "_c10d_functional::"};
  NameMeaning meaning{.matters = true};
  if (name.starts_with(step)) {
    meaning.kind = HostKind::step;
    const std::string_view digits = name.substr(step.size());
    std::from_chars(digits.data(), digits.data() + digits.size(), meaning.number);
  } else if (name.starts_with(kineto::ddp_forward)) {
    meaning.kind = HostKind::forward;
  } else if (name.starts_with(kineto::optimizer_step)) {
    meaning.kind = HostKind::optimizer;
  } else if (name.starts_with("Optimizer.zero_grad#")) {
    meaning.kind = HostKind::zero_grad;
  } else if (name.starts_with("enumerate(DataLoader)")) {
    meaning.kind = HostKind::loading;
  } else if (name.starts_with(evaluate)) {
    meaning.kind =
        name.substr(evaluate.size()).starts_with(accumulate) ? HostKind::hook : HostKind::node;
  } else if (name == accumulate) {
    meaning.kind = HostKind::accumulate;
  } else if (contains(name, kineto::copy_bucket_to_grad)) {
    meaning.kind = HostKind::copy_out;
  } else if (name.starts_with(kineto::reducer)) {
    meaning.kind = HostKind::copy_in;
  } else if (starts_with_one_of(name, on_the_cpu)) {
    meaning.kind = HostKind::execution;
    meaning.collective_kind = collective_kind_of(name);
  } else if (starts_with_one_of(name, calls)) {
    meaning.kind = HostKind::call;
    if (name != kineto::record_param_comms) meaning.collective_kind = collective_kind_of(name);
  } else {
    meaning.matters = name.starts_with(kineto::aten);
  }
  return meaning;
}

}  // namespace

Source source_of(std::string_view category) {
  constexpr std::array<std::string_view, 6> device{kineto::kernel, kineto::gpu_memcpy, "gpu_memset",
                                                   "Kernel",       "Memcpy",           "Memset"};
  constexpr std::array<std::string_view, 4> host{"", kineto::cpu_op, kineto::user_annotation,
                                                 "Operator"};
  if (std::find(device.begin(), device.end(), category) != device.end()) return Source::device;
  if (std::find(host.begin(), host.end(), category) != host.end()) return Source::host;
  if (contains(category, "runtime") || contains(category, "driver") || category == "Runtime")
    return Source::runtime;
  return Source::ignored;
}

NameMeaning meaning_of(Source source, std::string_view name) {
  NameMeaning meaning;
  switch (source) {
    case Source::host:
      return host_meaning(name);
    case Source::runtime:
      meaning.graph = contains(name, "GraphLaunch");
      meaning.sync = contains(name, "Synchronize");
      meaning.matters = meaning.sync || contains(name, "Launch") || contains(name, "Memcpy") ||
                        contains(name, "Memset");
      return meaning;
    case Source::device:
      meaning.matters = true;
      meaning.kernel = !name.starts_with("Memcpy") && !name.starts_with("Memset") &&
                       !name.starts_with("CopyDevice") && !name.starts_with("FillBuffer");
      meaning.collective =
          (contains(name, "nccl") || contains(name, "rccl")) && contains(name, "Kernel");
      if (meaning.collective) meaning.collective_kind = collective_kind_of(name);
      return meaning;
    case Source::ignored:
      return meaning;
  }
  return meaning;
}

CollectiveKind collective_kind_of(std::string_view name) {
  const std::string word = folded(name);
  if (contains(word, "allreduce")) return CollectiveKind::all_reduce;
  if (contains(word, "reducescatter")) return CollectiveKind::reduce_scatter;
  if (contains(word, "allgather")) return CollectiveKind::all_gather;
  if (contains(word, "broadcast")) return CollectiveKind::broadcast;
  if (contains(word, "generic")) return CollectiveKind::unknown;  // one kernel for all
  if (contains(word, "wait") || contains(word, "barrier") || contains(word, "init") ||
      contains(word, "monitored"))
    return CollectiveKind::none;
  return CollectiveKind::other;
}

}  // namespace ddpsim
