#include "scenarios/reader/format/yaml.hpp"

#include <catch2/catch.hpp>

#include "tests/scenarios/reader/refusal.hpp"

namespace ddpsim {
namespace {

TEST_CASE("the text of an input error is one printable line", "[scenarios][yaml]") {
  CHECK(std::string(InputError("two\nlines\x1b[1m").what()) == "two\\nlines\\x1b[1m");
}

TEST_CASE("the nearest name is offered if it is near enough to be a slip", "[scenarios][yaml]") {
  const std::vector<std::string> names{"buckets", "bucket_cap", "no_sync"};
  CHECK(nearest("bukets", names) == "buckets");
  CHECK(nearest("bucket_caps", names) == "bucket_cap");
  CHECK(nearest("nosync", names) == "no_sync");
  CHECK(nearest("static_graph", names).empty());
  CHECK(nearest(std::string(1'000'000, 'x'), names).empty());
  CHECK(nearest("x", {}).empty());
  CHECK(nearest("BUCKETS", names) == "buckets");  // no slip at all
  CHECK(nearest("No-Sync", names) == "no_sync");
}

TEST_CASE("an unknown key is refused where it stands, with the nearest known one",
          "[scenarios][yaml]") {
  const Scratch scratch;
  CHECK(refusal_at(scratch, 4, "  dytpe: fp32") ==
        "s.yaml:4:3: workload.dytpe: unknown key; did you mean \"dtype\"?" + known_in_workload);
  CHECK(refusal_at(scratch, 10, "  bucket_capp: 25 MiB") ==
        "s.yaml:10:3: training.bucket_capp: unknown key; did you mean \"bucket_cap\"?; known: "
        "strategy, pytorch, bucket_cap, bucket_rule, first_bucket_cap, last_bucket_cap, "
        "bucket_caps, buckets, parameter_groups, input, micro_batches, no_sync, "
        "find_unused_parameters, "
        "skip_all_reduce_unused_params, static_graph, gradient_as_bucket_view, batched_grad_copy, "
        "flattened_buckets, copied_buckets, wait_for_all, average, flat_views, "
        "broadcast_buffers, comm_hook, hooks, join, delay_all_reduce, phase, iteration, units, "
        "reshard_after_forward, reshard_after_backward, forward_prefetch, backward_prefetch, "
        "replicate, requires_all_reduce, reduce_scatter_max_input_buffers, "
        "separate_reduce_scatter_group, cuda_device_max_connections, mp_policy, offload_policy, "
        "fsdp, zero1, zero2, zero3");
  CHECK(refusal_at(scratch, 12, "zebra_crossing: 1") ==
        "s.yaml:12:1: zebra_crossing: unknown key" + known_in_scenario);
  // In flow style: "cluster: {dev..." puts the key in column 11.
  CHECK(
      refusal(scratch,
              "workload: {model: resnet18, batch: 8}\n"
              "cluster: {devices: h100-sxm, device: h100-sxm}\n") ==
      "s.yaml:2:11: cluster.devices: unknown key; did you mean \"device\"?; known: system, source, "
      "calibration, device, nodes, ranks_per_node, ranks, intra_node, inter_node, cpu, "
      "collectives, interference, skew, jitter, exceptions, launch, host, "
      "collectives_at_once, "
      "through_host, price");
}

TEST_CASE("a repeated key is refused at its second place, at any depth", "[scenarios][yaml]") {
  const Scratch scratch;
  CHECK(refusal_at(scratch, 12, "compare: [flat]") == "s.yaml:12:1: repeated key \"compare\"");
  CHECK(refusal_at(scratch, 4, "  batch: 8") == "s.yaml:4:3: workload: repeated key \"batch\"");
  CHECK(refusal_at(scratch, 4, "  'batch': 9") == "s.yaml:4:3: workload: repeated key \"batch\"");
  // "  times: {forward: 1 ms, forward: 2 ms}": the second key begins in column 26.
  CHECK(refusal_at(scratch, 4, "  times: {forward: 1 ms, forward: 2 ms}") ==
        "s.yaml:4:26: workload.times: repeated key \"forward\"");
  CHECK(refusal_at(scratch, 8,
                   "  intra_node: {all_reduce: [{bytes: 1 B, time: 1 us, bytes: 2 B}]}") ==
        "s.yaml:8:54: cluster.intra_node.all_reduce: repeated key \"bytes\"");
}

TEST_CASE("a missing key is reported at the mapping that lacks it", "[scenarios][yaml]") {
  const Scratch scratch;
  CHECK(refusal(scratch, "name: x\n") == "s.yaml:1:1: missing key \"cluster\"");
  CHECK(refusal_at(scratch, 3, "") == "s.yaml:2:3: workload: missing key \"batch\"");
  CHECK(refusal_at(scratch, 6, "") == "s.yaml:7:3: cluster: missing key \"device\"");
  CHECK(refusal_at(scratch, 3, "  bacth: 8") ==
        "s.yaml:3:3: workload.bacth: unknown key; did you mean \"batch\", which is missing?");
}

TEST_CASE("a value of the wrong kind is refused with what was expected", "[scenarios][yaml]") {
  const Scratch scratch;
  CHECK(refusal_at(scratch, 3, "  batch: eight") ==
        "s.yaml:3:10: workload.batch: expected a whole number from 1 to 10000000, got \"eight\"");
  CHECK(refusal_at(scratch, 3, "  batch: 1.5") ==
        "s.yaml:3:10: workload.batch: expected a whole number from 1 to 10000000, got \"1.5\"");
  CHECK(refusal_at(scratch, 3, "  batch: [8]") ==
        "s.yaml:3:10: workload.batch: expected a whole number, got a list");
  CHECK(refusal_at(scratch, 3, "  batch: {a: 8}") ==
        "s.yaml:3:10: workload.batch: expected a whole number, got a mapping");
  CHECK(refusal_at(scratch, 3, "  batch: ''") ==
        "s.yaml:3:10: workload.batch: expected a whole number, got nothing");
  CHECK(refusal_at(scratch, 10, "  no_sync: yes") ==
        "s.yaml:10:12: training.no_sync: expected true or false, got \"yes\"");
  CHECK(refusal_at(scratch, 11, "compare: naive") ==
        "s.yaml:11:10: compare: expected a list of strategies, such as [naive, overlap]");
  CHECK(refusal_at(scratch, 11, "compare: [[naive]]") ==
        "s.yaml:11:11: compare: expected a name, got a list");
  CHECK(refusal_at(scratch, 12, "name: [a]") == "s.yaml:12:7: name: expected a name, got a list");
  CHECK(refusal(scratch, "cluster: [3]\n") ==
        "s.yaml:1:10: cluster: expected a name from the catalogue of clusters, a path or a "
        "mapping, got a list");
  CHECK(refusal(scratch, "workload: 3\ncluster: {device: t4}\n") ==
        "s.yaml:1:11: workload: expected a mapping of keys to values");
}

TEST_CASE("a key that is no word is refused", "[scenarios][yaml]") {
  const Scratch scratch;
  CHECK(refusal_at(scratch, 12, "? [a, b]\n: 1") == "s.yaml:12:3: expected a key");
}

TEST_CASE("a quantity without its unit is refused with an example", "[scenarios][yaml]") {
  const Scratch scratch;
  CHECK(refusal_at(scratch, 10, "  bucket_cap: 25") ==
        "s.yaml:10:15: training.bucket_cap: expected a size with its unit, such as \"25 MiB\" or "
        "\"10 MB\" and above zero, got \"25\"");
  CHECK(refusal_at(scratch, 8, "  intra_node: {latency: 5, bandwidth: 1 GB/s}") ==
        "s.yaml:8:25: cluster.intra_node.latency: expected a time with its unit, such as \"250 "
        "ms\" or "
        "\"5 us\", got \"5\"");
  CHECK(refusal_at(scratch, 8, "  intra_node: {latency: 5 us, bandwidth: 450}") ==
        "s.yaml:8:42: cluster.intra_node.bandwidth: expected a rate with its unit, such as \"450 "
        "GB/s\" "
        "or \"400 Gbit/s\" and above zero, got \"450\"");
  CHECK(refusal_at(scratch, 6, "  device: {base: h100-sxm, peak: {fp32: 67}}") ==
        "s.yaml:6:41: cluster.device.peak.fp32: expected a rate with its unit, such as \"989 "
        "TFLOP/s\" "
        "and above zero, got \"67\"");
}

TEST_CASE("sizes and rates are above zero, and so are times that stand for work",
          "[scenarios][yaml]") {
  const Scratch scratch;
  const std::string size =
      "s.yaml:10:15: training.bucket_cap: expected a size with its unit, such as \"25 MiB\" or "
      "\"10 MB\" and above zero, got ";
  CHECK(refusal_at(scratch, 10, "  bucket_cap: 0 MiB") == size + "\"0 MiB\"");
  CHECK(refusal_at(scratch, 10, "  bucket_cap: -1 MiB") == size + "\"-1 MiB\"");
  CHECK(refusal_at(scratch, 10, "  bucket_cap: nan MiB") == size + "\"nan MiB\"");
  CHECK(refusal_at(scratch, 10, "  bucket_cap: inf MiB") == size + "\"inf MiB\"");
  CHECK(refusal_at(scratch, 10, "  bucket_cap: 99999999999999999999 MiB") ==
        size + "\"99999999999999999999 MiB\"");
  CHECK(refusal_at(scratch, 4, "  times: {forward: 0 ms}") ==
        "s.yaml:4:20: workload.times.forward: expected a time above zero");
  CHECK(refusal_at(scratch, 4, "  times: {forward: -1 ms}") ==
        "s.yaml:4:20: workload.times.forward: expected a time with its unit, such as \"250 ms\" or "
        "\"5 us\", got \"-1 ms\"");
}

TEST_CASE("what is quoted from the file is cut short between two characters", "[scenarios][yaml]") {
  const Scratch scratch;
  // 59 letters and 'µ', whose second byte would be the 61st: it goes as a whole.
  const std::string long_word(59, 'x');
  CHECK(refusal_at(scratch, 3, "  batch: " + long_word + "µm") ==
        "s.yaml:3:10: workload.batch: expected a whole number from 1 to 10000000, got \"" +
            long_word + "...\"");
}

TEST_CASE("a number with leading zeros is decimal, and no word turns into a truth value",
          "[scenarios][yaml]") {
  const Scratch scratch;
  const auto read = [&](int line, const std::string& text) {
    return read_scenario(scratch.write("s.yaml", spoiled(line, text)));
  };
  CHECK(read(7, "  ranks_per_node: 010").cluster.ranks() == 10);
  CHECK(read(12, "name: yes").name == "yes");
  CHECK(read(12, "name: 1e3").name == "1e3");
}

}  // namespace
}  // namespace ddpsim
