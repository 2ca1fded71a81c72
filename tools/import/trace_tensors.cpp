#include "tools/import/trace_tensors.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <numeric>

#include <fmt/format.h>

#include "scenarios/reader/text/input_error.hpp"
#include "tools/import/intervals.hpp"

namespace ddpsim {
namespace {

/// A gradient, in the order of the hooks.
struct Tensor {
  std::vector<std::int64_t> shape;
  std::string type;

  std::int64_t elements() const {
    return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>{});
  }
};

std::int64_t carried(const FoundStep& step) {
  std::int64_t sum = 0;
  for (const FoundCollective& each : step.all_reduces) sum += each.elements;
  return sum;
}

bool all_said(const FoundStep& step) {
  return !step.all_reduces.empty() &&
         std::all_of(step.all_reduces.begin(), step.all_reduces.end(),
                     [](const FoundCollective& each) { return each.elements >= 0; });
}

std::string type_name(const Trace& trace, std::int32_t index) {
  return index < 0 ? "" : trace.names[static_cast<std::size_t>(index)];
}

/// What the other gradients of each all-reduce leave for one whose shape nobody recorded; false if
/// they leave nothing, or there are several such.
bool fill_shapes(const FoundStep& step, std::vector<Tensor>& tensors,
                 const std::vector<std::size_t>& missing) {
  std::size_t filled = 0, begin = 0;
  for (const FoundCollective& each : step.all_reduces) {
    const std::size_t end = begin + static_cast<std::size_t>(std::max(each.tensors, 0));
    if (end > tensors.size()) return false;
    const auto first = std::lower_bound(missing.begin(), missing.end(), begin);
    const auto last = std::lower_bound(first, missing.end(), end);
    if (last - first > 1) return false;
    if (last - first == 1) {
      std::int64_t left = each.elements;
      for (std::size_t k = begin; k < end; ++k)
        if (k != *first) left -= tensors[k].elements();
      if (left <= 0) return false;
      tensors[*first] = {{left}, ""};
      ++filled;
    }
    begin = end;
  }
  return filled == missing.size();
}

/// From what was recorded when the gradients were accumulated, or copied out of their buckets.
std::vector<Tensor> by_shapes(const FoundStep& step, const Trace& trace) {
  std::vector<Tensor> tensors;
  std::vector<std::size_t> missing;
  const bool copies = step.copied_back.size() == step.hook_shapes.size();
  for (std::size_t k = 0; k < step.hook_shapes.size(); ++k) {
    const std::int32_t index = step.hook_shapes[k];
    const Shape* shape = index >= 0 ? &trace.shapes[static_cast<std::size_t>(index)]
                         : copies && step.copied_back[k].type != Shape::in_bytes
                             ? &step.copied_back[k]
                             : nullptr;
    if (shape == nullptr) missing.push_back(k);
    tensors.push_back(shape == nullptr ? Tensor{}
                                       : Tensor{shape->extents, type_name(trace, shape->type)});
  }
  if (!missing.empty() &&
      (missing.size() == tensors.size() || !fill_shapes(step, tensors, missing)))
    return {};
  return tensors;
}

/// From the copies out of the buckets, which are in the order of their contents.
std::vector<Tensor> by_copies(const FoundStep& step, const Trace& trace) {
  if (step.all_reduces.empty() || step.copied_back.size() != step.ready.size()) return {};
  const std::string& carried_type = step.all_reduces.front().type;
  std::vector<Tensor> tensors;
  for (const Shape& copy : step.copied_back) {
    if (copy.type != Shape::in_bytes) {
      tensors.push_back({copy.extents, type_name(trace, copy.type)});
      continue;
    }
    // A compressed all-reduce still leaves fp32 gradients; the sum over all will tell.
    const std::int64_t bytes = copy.extents[0];
    const std::int64_t element = size_of(gradient_type(carried_type).value_or(DType::fp32)).count;
    if (bytes <= 0 || bytes % element != 0) return {};
    tensors.push_back({{bytes / element}, carried_type});
  }
  const bool by_bytes = step.copied_back.front().type == Shape::in_bytes;
  std::int64_t sum = 0;
  for (const Tensor& tensor : tensors) sum += tensor.elements();
  if (!by_bytes || !all_said(step) || sum == carried(step)) return tensors;
  if (sum != 2 * carried(step) || gradient_type(carried_type).value_or(DType::fp32) == DType::fp32)
    return {};
  for (Tensor& tensor : tensors) tensor = {{tensor.shape[0] / 2}, "Float"};
  return tensors;
}

std::vector<Tensor> by_model(const Workload& model, const std::vector<int>& arrival) {
  std::vector<Tensor> tensors;
  for (const int index : arrival) {
    const Parameter& parameter = model.parameters[static_cast<std::size_t>(index)];
    tensors.push_back({parameter.shape, std::string(name_of(parameter.dtype))});
  }
  return tensors;
}

/// Whether the model's tensors are the trace's, one by one.
void compare(const std::vector<Tensor>& model, const std::vector<Tensor>& traced,
             const Workload& workload, const std::vector<int>& arrival, const std::string& file) {
  for (std::size_t i = 0; i < traced.size(); ++i)
    if (model[i].elements() != traced[i].elements())
      throw InputError(fmt::format(
          "{}: hook {} has a gradient of {} elements, but {} of model {} has {}: is it this model, "
          "with its gradients arriving in this order?",
          file, i, traced[i].elements(),
          workload.parameters[static_cast<std::size_t>(arrival[i])].name, workload.name,
          model[i].elements()));
}

/// Numbers of tensors that add up to the elements of each all-reduce in turn; empty if none do.
std::vector<int> counts_in_order(const FoundStep& step, const std::vector<Tensor>& tensors) {
  std::vector<int> counts;
  std::size_t next = 0;
  for (const FoundCollective& each : step.all_reduces) {
    std::int64_t sum = 0;
    int count = 0;
    for (; next < tensors.size() && sum < each.elements; ++next, ++count)
      sum += tensors[next].elements();
    if (sum != each.elements) return {};
    counts.push_back(count);
  }
  return next == tensors.size() ? counts : std::vector<int>{};
}

/// Tensors of each all-reduce, by the hooks between them.
std::vector<int> by_hooks(const FoundStep& step, Strategy strategy) {
  std::vector<int> counts;
  for (const FoundCollective& each : step.all_reduces)
    counts.push_back(strategy == Strategy::flat    ? static_cast<int>(step.ready.size())
                     : strategy == Strategy::naive ? 1
                                                   : each.tensors);
  return counts;
}

template <typename Get>
Duration median_of(const std::vector<FoundStep>& steps, Get get) {
  std::vector<Duration> times;
  for (const FoundStep& step : steps) times.push_back(get(step));
  return median(std::move(times));
}

std::vector<FoundBucket> buckets_of(TraceFinding& finding, const std::vector<int>& counts,
                                    const std::vector<Tensor>& tensors) {
  std::vector<FoundBucket> buckets;
  std::size_t next = 0;
  bool adds_up = true, alike = true;
  for (std::size_t b = 0; b < counts.size(); ++b) {
    const auto median_at = [&](auto get) {
      return median_of(finding.steps,
                       [&](const FoundStep& step) { return get(step.all_reduces[b]); });
    };
    FoundBucket& bucket = buckets.emplace_back();
    const FoundCollective& first = finding.steps.front().all_reduces[b];
    bucket.elements = first.elements;
    bucket.type = first.type;
    bucket.tensors = counts[b];
    for (const FoundStep& step : finding.steps)
      alike = alike && step.all_reduces[b].elements == first.elements;
    const std::size_t end = next + static_cast<std::size_t>(std::max(counts[b], 0));
    if (!tensors.empty() && end <= tensors.size()) {
      std::int64_t sum = 0;
      for (; next < end; ++next) sum += tensors[next].elements();
      if (bucket.elements < 0) bucket.elements = sum;
      adds_up = adds_up && bucket.elements == sum;
    }
    bucket.launched = median_at([](const FoundCollective& each) { return each.launched; });
    bucket.ran = std::all_of(finding.steps.begin(), finding.steps.end(),
                             [&](const FoundStep& step) { return step.all_reduces[b].ran; });
    bucket.start = median_at([](const FoundCollective& each) { return each.start; });
    bucket.end = median_at([](const FoundCollective& each) { return each.end; });
    bucket.took = median_at([](const FoundCollective& each) { return each.end - each.start; });
  }
  if (!adds_up)
    finding.could_not_tell.emplace_back(
        "which tensors each bucket holds: those whose hooks fired before it was launched do not "
        "add "
        "up to its elements");
  if (!alike)
    finding.notes.emplace_back(
        "the all-reduces carry other sizes in some steps; the first's are told");
  return buckets;
}

/// The types of tensors whose type nobody recorded are their bucket's.
void fill_types(TraceFinding& finding, std::vector<Tensor>& tensors, const FoundStep& step,
                const std::vector<int>& counts) {
  std::size_t next = 0;
  for (std::size_t b = 0; b < counts.size(); ++b)
    for (int i = 0; i < counts[b] && next < tensors.size(); ++i, ++next)
      if (tensors[next].type.empty()) tensors[next].type = step.all_reduces[b].type;
  const bool untold = std::any_of(tensors.begin(), tensors.end(),
                                  [](const Tensor& tensor) { return tensor.type.empty(); });
  if (untold) finding.could_not_tell.emplace_back("types of the gradients: taken for fp32");
}

DType checked_type(const std::string& spelled, const std::string& file) {
  if (spelled.empty()) return DType::fp32;
  if (const auto type = gradient_type(spelled)) return *type;
  if (const auto type = dtype_named(spelled)) return *type;
  throw InputError(
      fmt::format("{}: gradients of type {}: expected fp32, fp16 or bf16", file, spelled));
}

}  // namespace

std::optional<DType> gradient_type(const std::string& spelled) {
  std::string word;
  for (const char c : spelled)
    word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const auto has = [&](const char* part) { return word.find(part) != std::string::npos; };
  if (has("complex")) return std::nullopt;
  if (has("bfloat16")) return DType::bf16;
  if (has("half") || has("float16")) return DType::fp16;
  if (has("float") && !has("float8") && !has("float64")) return DType::fp32;
  return std::nullopt;
}

double accounted(const TraceFinding& finding) {
  const auto middle = [&](const auto& get) { return in_seconds(median_of(finding.steps, get)); };
  const double parts =
      middle([](const FoundStep& step) { return step.forward; }) +
      middle([](const FoundStep& step) { return step.backward; }) +
      middle([](const FoundStep& step) {
        return step.parts[static_cast<std::size_t>(StepPart::finishing)].length;
      }) +
      middle([](const FoundStep& step) { return step.optimizer.value_or(Duration{}); }) +
      middle([](const FoundStep& step) { return step.outside; });
  const double length = middle([](const FoundStep& step) { return step.length; });
  return length > 0 ? parts / length : 0;
}

std::int64_t bytes_of(const FoundBucket& bucket) {
  const std::optional<DType> type = bucket.type.empty() ? DType::fp32 : gradient_type(bucket.type);
  if (bucket.elements < 0 || !type) return -1;
  return bucket.elements * size_of(*type).count;
}

Duration median(std::vector<Duration> times) {
  if (times.empty()) return {};
  std::sort(times.begin(), times.end());
  const std::size_t middle = times.size() / 2;
  return times.size() % 2 == 1 ? times[middle] : (times[middle - 1] + times[middle]) / 2;
}

FoundGradients find_gradients(TraceFinding& finding, const Trace& trace, const std::string& file,
                              const std::optional<Workload>& model) {
  const FoundStep& first = finding.steps.front();
  FoundGradients gradients;
  std::vector<Tensor> tensors = by_shapes(first, trace);
  if (tensors.empty()) tensors = by_copies(first, trace);
  if (model) {
    gradients.arrival = arrival_order(*model);
    if (gradients.arrival.size() != first.ready.size())
      throw InputError(fmt::format("{}: {} gradient hooks a step, but model {} has {} parameters",
                                   file, first.ready.size(), model->name,
                                   gradients.arrival.size()));
    const std::vector<Tensor> named = by_model(*model, gradients.arrival);
    compare(named, tensors, *model, gradients.arrival, file);
    for (std::size_t i = 0; i < named.size(); ++i) {
      if (i >= tensors.size()) tensors.push_back({named[i].shape, ""});
      tensors[i].shape = named[i].shape;
    }
  } else {
    finding.could_not_tell.emplace_back(
        "names of the parameters: invented, in reverse order of arrival (--model MODEL knows "
        "them)");
  }

  std::vector<int> counts = by_hooks(first, finding.strategy);
  if (!tensors.empty() && all_said(first))
    if (std::vector<int> better = counts_in_order(first, tensors); !better.empty()) counts = better;
  gradients.buckets = buckets_of(finding, counts, tensors);
  gradients.tensors_known = !tensors.empty();
  if (gradients.tensors_known) {
    fill_types(finding, tensors, first, counts);
  } else if (all_said(first)) {
    finding.could_not_tell.emplace_back(
        "sizes of single gradients (profile with record_shapes=True, or give --model MODEL): a "
        "parameter stands for each bucket");
  } else {
    finding.could_not_tell.emplace_back(
        "sizes of the gradients (profile with record_shapes=True, or give --model MODEL)");
    return gradients;
  }

  std::vector<Duration> ready;
  for (std::size_t k = 0; k < first.ready.size(); ++k)
    ready.push_back(median_of(finding.steps, [&](const FoundStep& step) { return step.ready[k]; }));
  if (!gradients.tensors_known) {
    std::size_t hook = 0;
    std::vector<Duration> of_bucket;
    for (const FoundBucket& bucket : gradients.buckets) {
      hook = std::min(hook + static_cast<std::size_t>(std::max(bucket.tensors, 0)), ready.size());
      tensors.push_back({{bucket.elements}, bucket.type});
      of_bucket.push_back(ready[hook == 0 ? 0 : hook - 1]);
    }
    ready = std::move(of_bucket);
  }
  const std::size_t count = tensors.size();
  gradients.parameters.resize(count);
  for (std::size_t k = 0; k < count; ++k) {
    const std::size_t place =
        model ? static_cast<std::size_t>(gradients.arrival[k]) : count - 1 - k;
    ProfiledParameter& parameter = gradients.parameters[place];
    parameter.name = model                     ? model->parameters[place].name
                     : gradients.tensors_known ? fmt::format("parameter.{}", place)
                                               : fmt::format("bucket.{}", k);
    parameter.shape = tensors[k].shape;
    parameter.dtype = checked_type(tensors[k].type, file);
    parameter.ready = ready[k];
  }
  return gradients;
}

std::vector<std::string> step_doubts(const std::vector<FoundStep>& steps) {
  if (steps.size() < 3) return {};
  std::vector<Duration> lengths;
  for (const FoundStep& step : steps) lengths.push_back(step.length);
  const Duration middle = median(lengths);
  std::vector<Duration> off;
  for (const Duration length : lengths)
    off.push_back(length > middle ? length - middle : middle - length);
  // A normal spread has half of its values within 0.67449 of its deviation.
  const double spread = in_seconds(median(std::move(off))) / 0.67449 / in_seconds(middle);
  constexpr double most = 0.2;  // as of ddpsim.profile
  if (spread <= most) return {};
  const auto [shortest, longest] = std::minmax_element(lengths.begin(), lengths.end());
  return {fmt::format(
      "its steps take {:.2f} to {:.2f} ms (they differ by {:.0f} %): something disturbed them, and "
      "a quiet step may be far from their median; trace it again on a quiet machine",
      in_ms(*shortest), in_ms(*longest), 100 * spread)};
}

WorkloadProfile profile_of(const TraceFinding& finding, const FoundGradients& gradients,
                           const std::string& file) {
  if (gradients.parameters.empty())
    throw InputError(
        fmt::format("{}: the trace does not say how large its gradients are: profile with "
                    "record_shapes=True, or "
                    "name the network with --model",
                    file));
  WorkloadProfile profile;
  profile.source = fmt::format("PyTorch profiler trace {}, median of {} step{}{}{}",
                               std::filesystem::path(file).filename().string(),
                               finding.steps.size(), finding.steps.size() == 1 ? "" : "s",
                               finding.device_name.empty() ? "" : ", ", finding.device_name);
  if (finding.alone())
    profile.source += ", a group of one rank: no communication; under the profiler";
  else if (finding.ranks > 0)
    profile.source += fmt::format(", one of {} ranks", finding.ranks);
  if (!finding.alone()) profile.source += "; kernels ran beside collectives, under the profiler";
  profile.forward = median_of(finding.steps, [](const FoundStep& step) { return step.forward; });
  profile.backward = median_of(finding.steps, [](const FoundStep& step) { return step.backward; });
  for (const ProfiledParameter& parameter : gradients.parameters)
    profile.backward = std::max(profile.backward, parameter.ready);
  if (profile.forward <= Duration::zero() || profile.backward <= Duration::zero())
    throw InputError(fmt::format(
        "{}: the {} pass takes no time in it, so no profile can be made of it: trace whole steps, "
        "in which each gradient has its own hook",
        file, profile.forward <= Duration::zero() ? "forward" : "backward"));
  if (finding.steps.front().optimizer)
    profile.optimizer = median_of(
        finding.steps, [](const FoundStep& step) { return step.optimizer.value_or(Duration{}); });
  if (std::all_of(finding.steps.begin(), finding.steps.end(),
                  [](const FoundStep& step) { return step.copy_back.has_value(); }))
    profile.copy_back =
        median_of(finding.steps, [](const FoundStep& step) { return *step.copy_back; });
  profile.outside = median_of(finding.steps, [](const FoundStep& step) { return step.outside; });
  profile.doubts = step_doubts(finding.steps);
  profile.parameters = gradients.parameters;
  profile.arrival = gradients.arrival;
  if (finding.alone()) return profile;

  MeasuredRow row;
  row.strategy = finding.strategy;
  row.step = median_of(finding.steps, [](const FoundStep& step) { return step.length; });
  const Duration communication = median_of(finding.steps, [](const FoundStep& step) {
    Duration sum{};
    for (const FoundCollective& each : step.all_reduces) sum = added(sum, each.end - each.start);
    return sum;
  });
  if (communication > Duration::zero()) row.communication = {communication, {}};
  row.times = {profile.forward, profile.backward, profile.optimizer};
  Measured measured;
  measured.source = "the trace; all-reduces from this rank's arrival, waiting for others included";
  measured.rows.push_back(std::move(row));
  profile.measured = std::move(measured);
  return profile;
}

}  // namespace ddpsim
