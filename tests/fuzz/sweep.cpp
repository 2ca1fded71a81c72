// The results of a sweep, as CSV or JSON, from which the same sweep goes on. `@0@` in the input
// stands for what row 0 has to be computed from, so that a corpus outlives a change of the program.

#include "tools/sweep/sweep.hpp"

#include <fmt/format.h>

#include "scenarios/reader/memory_file.hpp"
#include "tests/fuzz/checks.hpp"
#include "tests/fuzz/targets.hpp"
#include "tools/sweep/sweep_reader.hpp"

namespace ddpsim::fuzz {
namespace {

const Sweep& planned() {
  static const MemoryFile file(
      "/no-such-folder/sweep.yaml",
      "workload: {model: {family: mlp, widths: [8, 8]}, batch: 1}\n"
      "cluster: {device: h100-sxm, ranks_per_node: 2, intra_node: nvlink4}\n"
      "compare: [naive, flat]\n");
  static const Sweep sweep = plan_sweep(
      file.path().string(), {}, true,
      Grid({parse_axis("workload.batch=1,2"), parse_axis("training.bucket_cap=1MiB,\"2 MiB\"")}));
  return sweep;
}

std::string with_origins(std::string text) {
  for (std::size_t point = 0; point < planned().grid.points(); ++point) {
    const std::string mark = fmt::format("@{}@", point);
    for (std::size_t at = text.find(mark); at != text.npos; at = text.find(mark, at))
      text.replace(at, mark.size(), computed_from(planned(), point));
  }
  return text;
}

std::string json_without_notes(const Sweep& sweep, const PointResults& results) {
  return sweep_json(sweep, results, {});
}

template <typename Read, typename Write>
void check_results(std::string_view input, Read read, Write write) {
  const std::string path = plain_file(with_origins(std::string(input)));
  std::string text;
  try {
    text = write(planned(), read(planned(), path).results);
  } catch (const InputError& problem) {
    check_refusal(problem.what(), path);
    return;
  }
  try {
    require(write(planned(), read(planned(), plain_file(text)).results) == text,
            "written otherwise the second time", text);
  } catch (const InputError& problem) {
    require(false, problem.what(), text);
  }
}

}  // namespace

void sweep(std::string_view input) {
  static const bool whole = [] {
    PointResults all;
    for (std::size_t point = 0; point < planned().grid.points(); ++point)
      all.push_back(compute_point(planned(), point));
    check_results(sweep_csv(planned(), all), read_sweep_csv, sweep_csv);
    check_results(json_without_notes(planned(), all), read_sweep_json, json_without_notes);
    require(sweep_csv(planned(),
                      read_sweep_csv(planned(), plain_file(sweep_csv(planned(), all))).results) ==
                sweep_csv(planned(), all),
            "results that are read as others");
    return true;
  }();
  require(whole, "no sweep");
  if (input.starts_with('{'))
    check_results(input, read_sweep_json, json_without_notes);
  else
    check_results(input, read_sweep_csv, sweep_csv);
}

}  // namespace ddpsim::fuzz
