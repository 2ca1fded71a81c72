#include "scenarios/reader/cluster/cluster_reader.hpp"

#include <chrono>

#include <catch2/catch.hpp>

#include "tests/scenarios/reader/refusal.hpp"

namespace ddpsim {
namespace {

using namespace std::chrono_literals;

Cluster cluster_with(const Scratch& scratch, int line, const std::string& text) {
  return read_scenario(scratch.write("s.yaml", spoiled(line, text))).cluster;
}

TEST_CASE("a device written out has what is written and nothing else",
          "[scenarios][cluster_reader]") {
  const Scratch scratch;
  const Device device =
      cluster_with(
          scratch, 6,
          "  device: {source: mine, compute_capability: 8.9, multiprocessors: 142, memory: 48 GB,\n"
          "    memory_bandwidth: 864 GB/s, memory_efficiency: 0.91, gemm_efficiency: {fp32: 0.5},\n"
          "    peak: {fp32: 91.6 TFLOP/s, tf32: 183 TFLOP/s}, peer_to_peer: true}")
          .device;
  CHECK(device.name == "inline");
  CHECK(device.source == "mine");
  CHECK(device.compute_capability == 89);
  CHECK(device.multiprocessors == 142);
  CHECK(device.memory == Bytes{48'000'000'000});
  CHECK(device.memory_bandwidth == gigabytes_per_second(864));
  CHECK(device.memory_efficiency == 0.91);
  CHECK(device.peak_of(DType::fp32).flops_per_second == Approx(91.6e12));
  CHECK(device.peak_of(DType::bf16).flops_per_second == 0);
  CHECK(device.efficiency_of(DType::fp32) == 0.5);
  CHECK(device.peer_to_peer);
  CHECK(!device.synchronous);
}

TEST_CASE("a device lacking what no law can do without is refused", "[scenarios][cluster_reader]") {
  const Scratch scratch;
  CHECK(refusal_at(scratch, 6, "  device: {peak: {fp32: 1 TFLOP/s}, multiprocessors: 8}") ==
        "s.yaml:6:11: cluster.device: missing key \"memory_bandwidth\"");
  CHECK(refusal_at(scratch, 6, "  device: {memory_bandwidth: 1 GB/s, multiprocessors: 8}") ==
        "s.yaml:6:11: cluster.device: missing key \"peak\"");
  CHECK(refusal_at(scratch, 6, "  device: {memory_bandwidth: 1 GB/s, peak: {fp32: 1 TFLOP/s}}") ==
        "s.yaml:6:11: cluster.device: missing key \"multiprocessors\"");
  CHECK(refusal_at(scratch, 6, "  device: {base: h100-sxm, peak: {fp64: 1 TFLOP/s}}") ==
        "s.yaml:6:35: cluster.device.peak.fp64: unknown key; did you mean \"fp32\"?; known: fp32, "
        "tf32, bf16, fp16");
}

TEST_CASE("a bandwidth written over a base keeps the share of it that NCCL's figure is",
          "[scenarios][cluster_reader]") {
  const Scratch scratch;
  const Link link =
      cluster_with(scratch, 8, "  intra_node: {base: nvlink4, bandwidth: 100 GB/s}").intra_node;
  CHECK(link.bandwidth == gigabytes_per_second(100));
  // 370.8 of 450 GB/s
  CHECK(link.nccl_bandwidth.bytes_per_second == Approx(370.8e9 * 100 / 450));
  CHECK(link.kind == LinkKind::nvlink);
  CHECK(link.nvswitch);
}

TEST_CASE("a link needs a bandwidth or a table", "[scenarios][cluster_reader]") {
  const Scratch scratch;
  CHECK(refusal_at(scratch, 8, "  intra_node: {latency: 5 us}") ==
        "s.yaml:8:15: cluster.intra_node: missing key \"bandwidth\" (or a measured \"all_reduce\" "
        "table)");
  CHECK(refusal_at(scratch, 8, "  intra_node: {kind: nvlnk, bandwidth: 1 GB/s}") ==
        "s.yaml:8:22: cluster.intra_node.kind: unknown name \"nvlnk\"; did you mean \"nvlink\"?; "
        "known: "
        "plain, nvlink, pcie, ethernet, infiniband");
  CHECK(
      refusal_at(scratch, 8, "  intra_node: {bandwith: 1 GB/s}") ==
      "s.yaml:8:16: cluster.intra_node.bandwith: unknown key; did you mean \"bandwidth\"?; known: "
      "format, written_by, base, source, kind, latency, bandwidth, nccl_bandwidth, carries, "
      "nvswitch, joins, nics, "
      "ranks, nodes, smallest_node, all_reduce, doubts, end");
  CHECK(refusal_at(scratch, 8, "  intra_node: {bandwidth: 1 GB/s, format: ddpsim.workload/1}") ==
        "s.yaml:8:43: cluster.intra_node.format: expected ddpsim.link/1");
}

TEST_CASE("a key that is needed and misspelt is named where it stands",
          "[scenarios][cluster_reader]") {
  const Scratch scratch;
  CHECK(refusal_at(scratch, 6, "  devise: h100-sxm") ==
        "s.yaml:6:3: cluster.devise: unknown key; did you mean \"device\", which is missing?");
  CHECK(refusal_at(scratch, 8, "  intra_nodes: nvlink4") ==
        "s.yaml:8:3: cluster.intra_nodes: unknown key; did you mean \"intra_node\", which is "
        "missing?");
  CHECK(refusal_at(scratch, 8, "  intra_node: nvlink4\n  nodes: 2\n  inter_nod: ib-ndr") ==
        "s.yaml:10:3: cluster.inter_nod: unknown key; did you mean \"inter_node\", which is "
        "missing?");
}

TEST_CASE("a device of one multiprocessor is one, and a link of next to no bandwidth none",
          "[scenarios][cluster_reader]") {
  const Scratch scratch;
  CHECK(refusal_at(scratch, 6, "  device: {base: h100-sxm, multiprocessors: 1}").empty());
  CHECK(refusal_at(scratch, 8, "  intra_node: {latency: 5 us, bandwidth: 1 B/s}") ==
        "s.yaml:8:42: cluster.intra_node.bandwidth: expected a rate such as \"50 GB/s\" and at "
        "least 1 kB/s, got \"1 B/s\"");
  CHECK(refusal_at(scratch, 8, "  intra_node: {latency: 5 us, bandwidth: 1 kB/s}").empty());
}

TEST_CASE("ranks that talk need a link to talk over", "[scenarios][cluster_reader]") {
  const Scratch scratch;
  CHECK(refusal_at(scratch, 8, "") ==
        "s.yaml:6:3: cluster: missing key \"intra_node\": what links the ranks of a node, such as "
        "nvlink4 "
        "or pcie4");
  CHECK(refusal_at(scratch, 8, "  intra_node: nvlink4\n  nodes: 2") ==
        "s.yaml:6:3: cluster: missing key \"inter_node\": what links the nodes, such as ib-ndr or "
        "ethernet-100g");
  CHECK(
      cluster_with(scratch, 8, "  intra_node: nvlink4\n  nodes: 2\n  inter_node: ib-ndr").ranks() ==
      4);
}

TEST_CASE("nodes with unequal numbers of ranks are a list", "[scenarios][cluster_reader]") {
  const Scratch scratch;
  const auto listed = [&](const std::string& ranks) {
    return cluster_with(scratch, 7, "  ranks_per_node: " + ranks + "\n  inter_node: ib-ndr");
  };
  const Cluster uneven = listed("[8, 8, 4]");
  CHECK(uneven.nodes == 3);
  CHECK(uneven.ranks_per_node == RanksPerNode({8, 8, 4}));
  CHECK(uneven.ranks() == 20);
  CHECK(listed("[8, 4]\n  nodes: 2\n  ranks: 12").ranks() == 12);
  // Equal ones are the one number.
  const Cluster even = listed("[4, 4]");
  CHECK(even.nodes == 2);
  CHECK(even.ranks_per_node == 4);
  CHECK(cluster_with(scratch, 7, "  ranks_per_node: [2]").nodes == 1);
  // A list beside a ready cluster says how many of its nodes there are.
  const auto of_system = [&](const std::string& keys) {
    return read_scenario(scratch.write("s.yaml",
                                       "workload: {model: resnet18, batch: 8}\ncluster: "
                                       "{system: dgx-h100, " +
                                           keys + "}\n"))
        .cluster;
  };
  CHECK(of_system("ranks_per_node: [8, 4]").nodes == 2);
  CHECK(of_system("ranks_per_node: [8, 4]").ranks() == 12);
}

TEST_CASE("a colon without a blank in braces is told where it stands",
          "[scenarios][cluster_reader]") {
  const Scratch scratch;
  const std::string workload = "workload: {model: resnet18, batch: 8}\n";
  CHECK(refusal(scratch, workload + "cluster: {system: dgx-h100, nodes:2}\n") ==
        "s.yaml:2:29: cluster: expected a blank after \"nodes:\"");
  CHECK(refusal(scratch, workload + "cluster: {system:dgx-h100, nodes: 2}\n") ==
        "s.yaml:2:11: cluster: expected a blank after \"system:\"");
  CHECK(refusal(scratch,
                workload + "cluster: {system: dgx-h100, exceptions: [{rank:2, compute: 1.3x}]}\n")
            .ends_with("expected a blank after \"rank:\""));
}

TEST_CASE("a list of ranks that does not fit is refused where it stands",
          "[scenarios][cluster_reader]") {
  const Scratch scratch;
  const std::string list = "  ranks_per_node: [8, 4]\n  inter_node: ib-ndr\n";
  CHECK(refusal_at(scratch, 7, list + "  nodes: 3") ==
        "s.yaml:9:10: cluster.nodes: ranks_per_node lists 2 nodes: write nodes: 2, or leave nodes "
        "out");
  CHECK(refusal_at(scratch, 7, "  ranks_per_node: [4, 4]\n  inter_node: ib-ndr\n  nodes: 3") ==
        "s.yaml:9:10: cluster.nodes: ranks_per_node lists 2 nodes: write nodes: 2, or leave nodes "
        "out");
  CHECK(refusal_at(scratch, 7, list + "  ranks: 16") ==
        "s.yaml:9:10: cluster.ranks: 16 ranks are not 8 + 4 = 12, as ranks_per_node lists: leave "
        "one of the two out");
  CHECK(refusal_at(scratch, 7, "  ranks_per_node: [8, 0]") ==
        "s.yaml:7:23: cluster.ranks_per_node: expected a whole number from 1 to 1024, got "
        "\"0\"");
  CHECK(refusal_at(scratch, 7, "  ranks_per_node: []") ==
        "s.yaml:7:19: cluster.ranks_per_node: expected a number for each node, such as [8, 4]");
  CHECK(refusal_at(scratch, 7, "  ranks_per_node: [8, 4]") ==
        "s.yaml:6:3: cluster: missing key \"inter_node\": what links the nodes, such as ib-ndr or "
        "ethernet-100g");
  const std::string small =
      "workload: {model: resnet18, batch: 8}\ncluster: {system: dgx-h100, "
      "ranks_per_node: [8, 4]";
  CHECK(refusal(scratch, small + "}\n", {{"cluster.nodes", "4"}}) ==
        "--set cluster.nodes=4: ranks_per_node lists 2 nodes: write nodes: 2, or leave nodes out");
  CHECK(refusal(scratch, small + ", collectives: {algorithm: nvls_tree}}\n") ==
        "s.yaml:2:66: cluster.collectives: NCCL does not offer that algorithm and protocol on "
        "these links and devices");
  const std::string hook = "}\ntraining: {comm_hook: {post_local_sgd: {";
  CHECK(refusal(scratch, small + hook + "start_iteration: 10}}}\ncompare: [bucketed]\n") ==
        "s.yaml:3:23: training.comm_hook: subgroups of post_local_sgd have one size, and the nodes "
        "have 8 + 4 ranks: write a `subgroup` that divides each of these");
  CHECK(refusal(scratch, small + hook + "subgroup: 4}}}\ncompare: [bucketed]\n").empty());
}

TEST_CASE("counts of nodes and ranks have bounds", "[scenarios][cluster_reader]") {
  const Scratch scratch;
  CHECK(refusal_at(scratch, 7, "  ranks_per_node: 0") ==
        "s.yaml:7:19: cluster.ranks_per_node: expected a whole number from 1 to 1024, got \"0\"");
  CHECK(refusal_at(scratch, 7, "  ranks_per_node: -2") ==
        "s.yaml:7:19: cluster.ranks_per_node: expected a whole number from 1 to 1024, got \"-2\"");
  CHECK(refusal_at(scratch, 7, "  ranks_per_node: 1\n  nodes: 123456789012345678901234567890") ==
        "s.yaml:8:10: cluster.nodes: expected a whole number from 1 to 100000, got "
        "\"123456789012345678901234567890\"");
}

TEST_CASE("an all-reduce table grows in size and has positive times",
          "[scenarios][cluster_reader]") {
  const Scratch scratch;
  const auto table = [&](const std::string& entries) {
    return refusal_at(scratch, 8, "  intra_node: {all_reduce: [" + entries + "]}");
  };
  // The first entry begins in column 29.
  CHECK(table("{bytes: 1 KiB, time: 40 us}, {bytes: 1 KiB, time: 50 us}") ==
        "s.yaml:8:66: cluster.intra_node.all_reduce.bytes: sizes must grow from entry to entry");
  CHECK(table("{bytes: 1 KiB, time: 0 us}") ==
        "s.yaml:8:50: cluster.intra_node.all_reduce.time: expected a time above zero");
  CHECK(table("{bytes: 1 KiB}") ==
        "s.yaml:8:29: cluster.intra_node.all_reduce: missing key \"time\"");
  CHECK(table("") ==
        "s.yaml:8:28: cluster.intra_node.all_reduce: expected at least one entry such as {bytes: 1 "
        "MiB, "
        "time: 40 us}");
  // The key itself says bytes: a bare number is one.
  const Link link =
      cluster_with(scratch, 8, "  intra_node: {all_reduce: [{bytes: 4096, time: 600 us}]}")
          .intra_node;
  CHECK(link.all_reduce == AllReduceTable{{4 * KiB, 600us}});
}

TEST_CASE("a CSV table is refused at the line that is wrong", "[scenarios][cluster_reader]") {
  const Scratch scratch;
  const auto refused = [&](const std::string& table) {
    scratch.write("t.csv", table);
    return refusal_at(scratch, 8, "  intra_node: {all_reduce: t.csv}");
  };
  const std::string numbers =
      "expected a size in bytes and a time in microseconds, both above zero";
  CHECK(refused("# about\n\nbytes,time_us\n1024,40\n2048,forty\n") == "t.csv:5:1: " + numbers);
  CHECK(refused("bytes,time_us\n-1024,40\n") == "t.csv:2:1: " + numbers);
  CHECK(refused("bytes,time_us\n0,40\n") == "t.csv:2:1: " + numbers);
  CHECK(refused("bytes,time_us\n1024,0\n") == "t.csv:2:1: " + numbers);
  CHECK(refused("bytes,time_us\n1024,nan\n") == "t.csv:2:1: " + numbers);
  CHECK(refused("bytes,time_us\n1024,1e300\n") == "t.csv:2:1: " + numbers);
  CHECK(refused("bytes,time_us\n1024,1e-9\n") == "t.csv:2:1: " + numbers);  // no whole picosecond
  CHECK(refused("bytes,time_us\n1.5,40\n") == "t.csv:2:1: " + numbers);
  CHECK(refused("bytes,time_us\n99999999999999999999,40\n") == "t.csv:2:1: " + numbers);
  CHECK(refused("bytes,time_us\n2048,40\n1024,50\n") ==
        "t.csv:3:1: sizes must grow from line to line");
  CHECK(refused("bytes,time_us\n1024\n") == "t.csv:2:1: expected \"bytes,time_us\"");
  CHECK(refused("1024,40\n") ==
        "t.csv:1:1: expected the columns \"bytes,time_us\" to be named first");
  CHECK(refused("size,time\n1024,40\n") ==
        "t.csv:1:1: expected the columns \"bytes,time_us\" to be named first");
}

TEST_CASE("a CSV table that is none is refused where it is named", "[scenarios][cluster_reader]") {
  const Scratch scratch;
  scratch.write("empty.csv", "");
  scratch.write("comments.csv", "# nothing\n# here\n");
  scratch.write("big.csv", std::string(9'000'000, '1'));
  std::filesystem::create_directory(scratch.path("folder.csv"));
  const std::string at = "s.yaml:8:28: cluster.intra_node.all_reduce: ";
  const auto refused = [&](const std::string& name) {
    return refusal_at(scratch, 8, "  intra_node: {all_reduce: " + name + "}");
  };
  CHECK(refused("empty.csv") == at + "empty.csv holds no table");
  CHECK(refused("comments.csv") == at + "comments.csv holds no table");
  CHECK(refused("none.csv") == at + "none.csv: no such file");
  CHECK(refused("folder.csv") == at + "folder.csv: not a file");
  CHECK(refused("big.csv") == at + "big.csv: larger than 8 MiB");
}

TEST_CASE("a CSV table reads with comments, blank lines, more columns and Windows line ends",
          "[scenarios][cluster_reader]") {
  const Scratch scratch;
  scratch.write("t.csv", "# about\r\n\r\nbytes,time_us,busbw\r\n1024,40.5,3\r\n2048,50,4\r\n");
  const Link link =
      cluster_with(scratch, 8, "  intra_node: {all_reduce: t.csv, ranks: 2}").intra_node;
  CHECK(link.all_reduce == AllReduceTable{{1 * KiB, 40'500ns}, {2 * KiB, 50us}});
  CHECK(link.table_ranks == 2);
}

TEST_CASE("launch is a time, sync, or a time for each kind of call",
          "[scenarios][cluster_reader]") {
  const Scratch scratch;
  const auto with = [&](const std::string& launch) {
    return cluster_with(scratch, 8, "  intra_node: nvlink4\n  launch: " + launch);
  };
  CHECK(with("9 us").launch.kernel == 9us);
  CHECK(with("9 us").launch.collective == 9us);
  CHECK(with("sync").device.synchronous);
  CHECK(with("sync").launch.kernel == Duration::zero());
  const Launch each = with("{kernel: 1 us, collective: 2 us, hook: 3 us}").launch;
  CHECK(each.kernel == 1us);
  CHECK(each.collective == 2us);
  CHECK(each.hook == 3us);
  CHECK(refusal_at(scratch, 8, "  intra_node: nvlink4\n  launch: async") ==
        "s.yaml:9:11: cluster.launch: expected a time with its unit, such as \"250 ms\" or \"5 "
        "us\", got "
        "\"async\"");
}

TEST_CASE("interference is auto or two factors of at least one", "[scenarios][cluster_reader]") {
  const Scratch scratch;
  const auto with = [&](const std::string& text) {
    return spoiled(8, "  intra_node: nvlink4\n  interference: " + text);
  };
  CHECK(!read_scenario(scratch.write("s.yaml", with("auto"))).cluster.interference);
  const auto fixed =
      read_scenario(scratch.write("s.yaml", with("{compute_slowdown: 1.15}"))).cluster.interference;
  REQUIRE(fixed);
  CHECK(fixed->compute_slowdown == 1.15);
  CHECK(fixed->communication_slowdown == 1);
  CHECK(refusal(scratch, with("{compute_slowdown: 0.5}")) ==
        "s.yaml:9:36: cluster.interference.compute_slowdown: expected a number from 1 to 100, got "
        "\"0.5\"");
  CHECK(refusal(scratch, with("{compute_slowdown: nan}")) ==
        "s.yaml:9:36: cluster.interference.compute_slowdown: expected a number from 1 to 100, got "
        "\"nan\"");
  CHECK(refusal(scratch, with("off")) ==
        "s.yaml:9:17: cluster.interference: expected auto or {compute_slowdown: 1.15, "
        "communication_slowdown: 1.05}");
}

TEST_CASE("a law of collectives that the link cannot feed is refused",
          "[scenarios][cluster_reader]") {
  const Scratch scratch;
  const auto refused = [&](const std::string& law) {
    return refusal_at(scratch, 8, "  intra_node: nvlink4\n  collectives: " + law);
  };
  CHECK(refused("nccl").empty());
  CHECK(refused("alpha-beta").empty());
  CHECK(refused("table") ==
        "s.yaml:9:16: cluster.collectives: table needs a link with an all_reduce table");
  CHECK(refused("steps") ==
        "s.yaml:9:16: cluster.collectives: steps (every ring step simulated) is not built yet; use "
        "auto, "
        "nccl, alpha-beta, table or gloo");
  CHECK(refused("ncl") ==
        "s.yaml:9:16: cluster.collectives: unknown name \"ncl\"; did you mean \"nccl\"?; known: "
        "auto, nccl, "
        "alpha-beta, table, gloo");
  CHECK(refusal_at(
            scratch, 8,
            "  intra_node: {all_reduce: [{bytes: 1 B, time: 1 us}]}\n  collectives: alpha-beta") ==
        "s.yaml:9:16: cluster.collectives: alpha-beta needs a link with latency and bandwidth");
  CHECK(refusal_at(scratch, 6, "  device: generic-cpu\n  collectives: nccl") ==
        "s.yaml:7:16: cluster.collectives: nccl needs a CUDA device");
}

TEST_CASE("an algorithm, a protocol and channels can be forced upon NCCL",
          "[scenarios][cluster_reader]") {
  const Scratch scratch;
  const auto with = [&](const std::string& collectives) {
    return cluster_with(scratch, 8, "  intra_node: nvlink4\n  collectives: {" + collectives + "}");
  };
  const Cluster cluster = with("law: nccl, algorithm: ring, protocol: ll128, channels: 4");
  CHECK(cluster.collectives == CollectiveModel::nccl);
  CHECK(cluster.forced.algorithm == NcclAlgorithm::ring);
  CHECK(cluster.forced.protocol == NcclProtocol::ll128);
  CHECK(cluster.forced.channels == 4);
  // What is forced is NCCL's, so NCCL's law prices it; a mapping may also say the law alone.
  CHECK(with("algorithm: tree").collectives == CollectiveModel::nccl);
  CHECK(with("law: alpha-beta").collectives == CollectiveModel::alpha_beta);
  CHECK_FALSE(with("law: nccl").forced.algorithm);
  // What a link measured goes before the law, unless the law is named.
  const auto measured = [&](const std::string& collectives) {
    return cluster_with(scratch, 8,
                        "  intra_node: {base: nvlink4, ranks: 8, all_reduce: [{bytes: 1 MiB, time: "
                        "1 ms}]}\n  collectives: {" +
                            collectives + "}")
        .collectives;
  };
  CHECK(measured("algorithm: tree, channels: 4") == CollectiveModel::automatic);
  CHECK(measured("law: nccl, algorithm: tree") == CollectiveModel::nccl);
  const auto refused = [&](const std::string& collectives) {
    return refusal_at(scratch, 8, "  intra_node: nvlink4\n  collectives: {" + collectives + "}");
  };
  CHECK(refused("law: alpha-beta, algorithm: ring") ==
        "s.yaml:9:16: cluster.collectives: algorithm, protocol and channels are NCCL's: take law: "
        "nccl");
  CHECK(
      refused("algorithm: nvls_tree") ==
      "s.yaml:9:16: cluster.collectives: NCCL does not offer that algorithm and protocol on these "
      "links and devices");
  CHECK(refused("channels: 65") ==
        "s.yaml:9:27: cluster.collectives.channels: expected a whole number from 1 to 64, got "
        "\"65\"");
  CHECK(
      refusal_at(scratch, 6, "  device: generic-cpu\n  collectives: {algorithm: ring}") ==
      "s.yaml:7:16: cluster.collectives: algorithm, protocol and channels are NCCL's, which needs "
      "a CUDA device");
}

TEST_CASE("between CPUs Gloo's algorithms can be asked for", "[scenarios][cluster_reader]") {
  const Scratch scratch;
  const std::string link = "  intra_node: {latency: 20 us, bandwidth: 3 GB/s}\n  collectives: ";
  const std::vector<Setting> cpu{{"cluster.device", "generic-cpu"}};
  const auto with = [&](const std::string& collectives) {
    return read_scenario(scratch.write("s.yaml", spoiled(8, link + collectives)), cpu).cluster;
  };
  const auto refused = [&](const std::string& collectives) {
    return refusal(scratch, spoiled(8, link + collectives), cpu);
  };
  CHECK(with("gloo").collectives == CollectiveModel::gloo);
  CHECK_FALSE(with("gloo").forced.gloo);
  CHECK(with("{law: gloo, algorithm: ring}").forced.gloo == GlooAlgorithm::ring);
  CHECK(with("{law: gloo, algorithm: halving_doubling}").forced.gloo ==
        GlooAlgorithm::halving_doubling);
  CHECK_THAT(refused("{law: gloo, algorithm: tree}"),
             Catch::Contains("tree is NCCL's: of Gloo take ring or halving_doubling"));
  CHECK_THAT(refused("{law: gloo, protocol: simple}"),
             Catch::Contains("protocol and channels are NCCL's"));
  CHECK_THAT(refused("{algorithm: halving_doubling}"),
             Catch::Contains("halving_doubling is Gloo's: take law: gloo"));
  CHECK_THAT(refusal_at(scratch, 8, "  intra_node: nvlink4\n  collectives: gloo"),
             Catch::Contains("gloo runs on hosts: name a CPU as the device, or through_host"));
}

TEST_CASE("a link without a latency has that of its kind", "[scenarios][cluster_reader]") {
  const Scratch scratch;
  const auto latency = [&](const std::string& link) {
    return cluster_with(scratch, 8, "  intra_node: {" + link + ", bandwidth: 100 GB/s}")
        .intra_node.latency;
  };
  CHECK(latency("kind: nvlink") == std::chrono::nanoseconds{3400});
  CHECK(latency("kind: pcie") == std::chrono::nanoseconds{5700});
  CHECK(latency("kind: nvlink, latency: 0 us") == Duration::zero());
  CHECK(latency("kind: plain") == Duration::zero());
}

TEST_CASE("ranks differ by the usual skew, unless a scenario or a calibration says",
          "[scenarios][cluster_reader]") {
  const Scratch scratch;
  const auto skew = [&](const std::string& lines) {
    return cluster_with(scratch, 8, "  intra_node: nvlink4" + lines).skew;
  };
  CHECK(skew("") == usual_skew);
  CHECK(skew("\n  skew: 0.5 %") == Approx(0.005));
  CHECK(skew("\n  skew: 0.02") == 0.02);
  CHECK(skew("\n  skew: 0 %") == 0);
  CHECK(refusal_at(scratch, 8, "  intra_node: nvlink4\n  skew: 120 %") ==
        "s.yaml:9:9: cluster.skew: expected a share from 0 % to 100 %, got \"120 %\"");
  CHECK(refusal_at(scratch, 8, "  intra_node: nvlink4\n  skew: 5") ==
        "s.yaml:9:9: cluster.skew: expected a share from 0 to 1, got 5: write \"5 %\" or 0.05");
}

TEST_CASE("jitter is a share, and steps are alike where nothing says so",
          "[scenarios][cluster_reader]") {
  const Scratch scratch;
  const auto jitter = [&](const std::string& lines) {
    return cluster_with(scratch, 8, "  intra_node: nvlink4" + lines).jitter;
  };
  CHECK(!jitter(""));
  CHECK(jitter("\n  jitter: 2 %") == Approx(0.02));
  CHECK(jitter("\n  jitter: 0") == 0.0);
  CHECK(refusal_at(scratch, 8, "  intra_node: nvlink4\n  jitter: 40 %") ==
        "s.yaml:9:11: cluster.jitter: expected a share from 0 % to 30 %, got \"40 %\"");
}

TEST_CASE("R37, R38: how many collectives run at once, and whether over the hosts",
          "[scenarios][cluster_reader]") {
  const Scratch scratch;
  const Cluster cluster = cluster_with(
      scratch, 8, "  intra_node: nvlink4\n  collectives_at_once: 2\n  through_host: 20 GB/s");
  CHECK(cluster.collectives_at_once == 2);
  REQUIRE(cluster.through_host);
  CHECK(cluster.through_host->bytes_per_second == 20e9);
  // Over the hosts NCCL has no say, and kernels keep their SMs, unless a law is asked for.
  CHECK(cluster.collectives == CollectiveModel::alpha_beta);
  REQUIRE(cluster.interference);
  CHECK(cluster.interference->compute_slowdown == 1);
  CHECK(cluster_with(scratch, 8,
                     "  intra_node: nvlink4\n  through_host: 20 GB/s\n  collectives: gloo")
            .collectives == CollectiveModel::gloo);
  CHECK(refusal_at(scratch, 8, "  intra_node: nvlink4\n  collectives_at_once: 0") ==
        "s.yaml:9:24: cluster.collectives_at_once: expected a whole number from 1 to 8, got \"0\"");
  CHECK(
      refusal_at(scratch, 6, "  device: generic-cpu\n  through_host: 20 GB/s") ==
      "s.yaml:7:17: cluster.through_host: a CPU's memory is the host's: through_host is for GPUs");
}

}  // namespace
}  // namespace ddpsim
