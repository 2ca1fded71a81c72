// What was once accepted in silence: links that no device has, keys without effect, tables that
// hold no link's times, logs that were cut off, results under a name that no program opens.

#include <catch2/catch.hpp>

#include "tests/tools/program.hpp"

namespace ddpsim {
namespace {

Outcome run(const std::vector<std::string>& more) {
  std::vector<std::string> arguments{"run",   first_example,          "--set", "compare=[bucketed]",
                                     "--set", "workload.compute=fp16"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return ddpsim(arguments);
}

TEST_CASE("NVLink between devices that have none gets a note", "[tools][accepted]") {
  for (const char* device : {"t4", "rtx4090", "mi300x"}) {
    const Outcome outcome = run({"--device", device, "--link", "nvlink4"});
    CAPTURE(device, outcome.err);
    CHECK(outcome.code == 0);
    CHECK_THAT(outcome.err, Catch::Contains(std::string(device) + " has no NVLink"));
  }
  CHECK_THAT(run({"--device", "a100-80", "--link", "nvlink3"}).err, !Catch::Contains("NVLink"));
  CHECK_THAT(run({"--device", "t4", "--link", "pcie3"}).err, !Catch::Contains("NVLink"));
}

TEST_CASE("NVLink of another generation gets a note whichever way it was set",
          "[tools][accepted]") {
  const std::string note = "no a100-80 is known to be joined by nvlink4";
  const Scratch scratch;
  const std::string cluster =
      scratch.write("c.yaml", "device: h100-sxm\nranks_per_node: 8\nintra_node: nvlink4\n")
          .string();
  CHECK_THAT(run({"--device", "a100-80", "--link", "nvlink4"}).err, Catch::Contains(note));
  CHECK_THAT(run({"--set", "cluster.device=a100-80", "--set", "cluster.intra_node=nvlink4"}).err,
             Catch::Contains(note));
  CHECK_THAT(run({"--cluster", cluster, "--device", "a100-80"}).err,
             Catch::Contains("known to be joined by"));
  CHECK_THAT(run({"--device", "a100-80", "--link", "nvlink3"}).err, !Catch::Contains("joined by"));
  // Bridges join pairs, of GPUs of their own generation.
  const auto bridged = [](const char* device, const char* ranks) {
    return run({"--device", device, "--link", "nvlink3-bridge", "--ranks-per-node", ranks}).err;
  };
  CHECK_THAT(bridged("a100-pcie-80", "8"),
             Catch::Contains("no a100-pcie-80 is known to be joined by nvlink3-bridge"));
  CHECK_THAT(bridged("a40", "8"), Catch::Contains("nvlink3-bridge joins 2 cards"));
  CHECK_THAT(bridged("a40", "2"), !Catch::Contains("nvlink3-bridge"));
  CHECK_THAT(
      run({"--device", "a100-80", "--set", "cluster.intra_node={base: nvlink3, joins: 4}"}).err,
      Catch::Contains("joins 4 cards, and a node has 8 ranks"));
}

TEST_CASE("PCIe of a generation that the device does not have gets a note", "[tools][accepted]") {
  const auto noted = [](const char* device, const char* link) {
    return run({"--device", device, "--link", link}).err;
  };
  CHECK_THAT(noted("a100-pcie-80", "pcie5"),
             Catch::Contains("no a100-pcie-80 is known to be joined by pcie5 at 63 GB/s, for its "
                             "PCIe carries 31.5 GB/s"));
  CHECK_THAT(noted("t4", "pcie4"), Catch::Contains("its PCIe carries 15.75 GB/s"));
  CHECK_THAT(noted("a100-pcie-80", "pcie4"), !Catch::Contains("joined by"));
  CHECK_THAT(noted("h100-pcie", "pcie4"), !Catch::Contains("joined by"));  // in an older host
}

TEST_CASE("NVLink of a switch between cards that bridges join gets a note", "[tools][accepted]") {
  for (const char* device : {"a100-pcie-40", "a100-pcie-80"}) {
    CAPTURE(device);
    CHECK_THAT(run({"--device", device, "--link", "nvlink3", "--ranks-per-node", "4"}).err,
               Catch::Contains(std::string("NVLink between ") + device +
                               "s is a bridge that joins two, without a switch, and a node has 4 "
                               "ranks by nvlink3"));
  }
  CHECK_THAT(run({"--device", "h100-pcie", "--link", "nvlink4"}).err,
             Catch::Contains("NVLink between h100-pcies is a bridge"));
  CHECK_THAT(run({"--device", "a100-pcie-80", "--ranks-per-node", "2", "--set",
                  "cluster.intra_node={base: nvlink3, nvswitch: false, joins: 2}"})
                 .err,
             !Catch::Contains("bridge"));
}

TEST_CASE("links in the place of others get a note", "[tools][accepted]") {
  const auto noted = [](const char* place, const char* link) {
    return run({"--cluster", "dgx-a100", "--nodes", "2", "--set",
                std::string("cluster.") + place + "=" + link})
        .err;
  };
  CHECK_THAT(noted("inter_node", "nvlink3"),
             Catch::Contains("inter_node: nvlink3 joins the GPUs of a node, and no nodes"));
  CHECK_THAT(noted("inter_node", "pcie4"), Catch::Contains("inter_node: pcie4 joins the GPUs"));
  CHECK_THAT(noted("intra_node", "ib-hdr"),
             Catch::Contains("intra_node: ib-hdr joins nodes, and is no link between the GPUs"));
  CHECK_THAT(noted("inter_node", "ib-ndr"), !Catch::Contains("_node: "));
}

TEST_CASE("memory that is slower than any GPU's gets a note", "[tools][accepted]") {
  const auto noted = [](const char* rate) {
    return run({"--set",
                std::string("cluster.device={base: h100-sxm, memory_bandwidth: ") + rate + "}"})
        .err;
  };
  CHECK_THAT(noted("3.35 GB/s"),
             Catch::Contains("memory_bandwidth: 3.35 GB/s is less than any GPU's: is TB/s meant?"));
  CHECK_THAT(noted("3.35 TB/s"), !Catch::Contains("less than any"));
}

TEST_CASE("keys that another key of the workload makes idle get a note", "[tools][accepted]") {
  CHECK_THAT(run({"--set", "workload.channels_last=true"}).err,
             Catch::Contains("workload.channels_last has no effect: "));
  CHECK_THAT(run({"--set", "workload.dtype=bf16", "--set", "workload.compute=tf32"}).err,
             Catch::Contains("workload.compute: tf32: PyTorch multiplies tensors of bf16 in bf16"));
  CHECK_THAT(run({"--set", "workload.dtype=bf16", "--set", "workload.compute=bf16"}).err,
             !Catch::Contains("PyTorch multiplies"));
}

TEST_CASE("a note that a faster network shortens no all-reduce is held by pricing one",
          "[tools][accepted]") {
  const auto asked = [](const char* network) {
    return ddpsim({"run", first_example, "--cluster", "dgx-a100", "--nodes", "2", "--set",
                   std::string("cluster.inter_node.bandwidth=") + network, "--set",
                   "compare=[flat,bucketed]", "--json", "-"});
  };
  for (const char* network : {"12GB/s", "25GB/s", "50GB/s", "100GB/s", "200GB/s"}) {
    const Outcome outcome = asked(network);
    CAPTURE(network, outcome.err);
    REQUIRE(outcome.code == 0);
    if (outcome.err.find("a network of more bandwidth would not make them shorter") ==
        std::string::npos)
      continue;
    const Json now = outcome.json()["results"];
    const Json faster = asked("400GB/s").json()["results"];
    for (std::size_t i = 0; i < now.size(); ++i)
      CHECK(faster[i]["step_ms"].get<double>() > 0.998 * now[i]["step_ms"].get<double>());
  }
}

TEST_CASE("a note on an idle network speaks of its bandwidth, for latency counts",
          "[tools][accepted]") {
  const auto of_latency = [](const char* latency) {
    return run(
        {"--set",
         std::string("cluster={device: mi300x, nodes: 2, ranks_per_node: 8, intra_node: "
                     "infinity-fabric-mi300x, inter_node: {base: ib-ndr, nics: 8, latency: ") +
             latency + "}}",
         "--set", "compare=[flat]", "--json", "-"});
  };
  const Outcome usual = of_latency("14 us"), quick = of_latency("5 us");
  CHECK_THAT(usual.err, Catch::Contains("a network of more bandwidth would not make them shorter"));
  CHECK_THAT(usual.err, !Catch::Contains("a faster network"));
  // A ring of 16 takes 30 steps of 9 us less.
  const auto communication = [](const Outcome& outcome) {
    return outcome.json()["results"][0]["communication_ms"].get<double>();
  };
  CHECK(communication(quick) < communication(usual) - 0.2);
}

TEST_CASE("more devices in a node than NVLink joins get a note", "[tools][accepted]") {
  const auto noted = [](const char* device, const char* link, const char* ranks) {
    return run({"--device", device, "--link", link, "--nodes", "1", "--ranks-per-node", ranks}).err;
  };
  CHECK_THAT(noted("h100-sxm", "nvlink4", "1024"), Catch::Contains("any NVLink domain"));
  CHECK_THAT(noted("v100", "nvlink2", "16"), !Catch::Contains("any NVLink domain"));
  CHECK_THAT(noted("gb200", "nvlink5", "72"), !Catch::Contains("any NVLink domain"));
}

TEST_CASE("a sequence for pictures and a picture for tokens have no effect, and a note says so",
          "[tools][accepted]") {
  const Scratch scratch;
  const auto noted = [&](const std::string& workload) {
    return ddpsim({"run", scratch
                              .write("s.yaml", "workload: {" + workload + "}\n" +
                                                   "cluster: {device: h100-sxm, ranks_per_node: 2, "
                                                   "intra_node: nvlink4}\ncompare: [bucketed]\n")
                              .string()})
        .err;
  };
  CHECK_THAT(noted("model: resnet18, batch: 8, sequence: 512"),
             Catch::Contains("workload.sequence has no effect"));
  CHECK_THAT(noted("model: gpt2, batch: 1, sequence: 128, image: 64"),
             Catch::Contains("workload.image has no effect"));
  CHECK_THAT(noted("model: resnet18, batch: 8"), !Catch::Contains("has no effect"));
}

/// A scenario on two ranks with such a link between them.
std::string with_table(const Scratch& scratch, const std::string& all_reduce) {
  return scratch
      .write("s.yaml",
             "workload: {model: resnet18, batch: 8}\n"
             "cluster: {device: h100-sxm, ranks_per_node: 2,\n"
             "  intra_node: {all_reduce: [" +
                 all_reduce + "]}}\ncompare: [bucketed]\n")
      .string();
}

TEST_CASE("a table that holds no link's times is refused at its place", "[tools][accepted]") {
  const Scratch scratch;
  const auto refused = [&](const std::string& table, const std::string& says) {
    const Outcome outcome = ddpsim({"run", with_table(scratch, table)});
    CAPTURE(table, outcome.err);
    CHECK(outcome.code == 2);
    CHECK(lines_of(outcome.err).size() == 1);
    CHECK_THAT(outcome.err, Catch::Contains("s.yaml:3:") && Catch::Contains(says));
  };
  refused("{bytes: 1 KiB, time: 1000 us}, {bytes: 1 MiB, time: 10 us}",
          "more bytes take less time");
  refused("{bytes: 2101346, time: 2.1 ms}, {bytes: 2121269, time: 8.5 ms}",
          "sizes that are all but alike differ too much");
  // A protocol's change: a spike between sizes that are far apart stays.
  CHECK(ddpsim({"run", with_table(scratch,
                                  "{bytes: 64 KiB, time: 278 us}, {bytes: 256 KiB, time: "
                                  "10270 us}, {bytes: 1 MiB, time: 1474 us}")})
            .code == 0);
}

TEST_CASE("sizes beyond the link's table are told of before what rests on them",
          "[tools][accepted]") {
  const Scratch scratch;
  const std::string file =
      with_table(scratch, "{bytes: 1 MiB, time: 100 us}, {bytes: 2 MiB, time: 150 us}");
  const Outcome run = ddpsim({"run", file});
  CHECK_THAT(run.err, Catch::Contains("the link's table covers all-reduces of 1 MiB to 2 MiB"));
  const std::string tuned = ddpsim({"tune", file, "--threads", "1"}).out;
  const std::size_t told = tuned.find("extrapolated: the link's table covers"),
                    verdict = tuned.find("verdict:");
  REQUIRE(told != std::string::npos);
  REQUIRE(verdict != std::string::npos);
  CHECK(told < verdict);
}

TEST_CASE("a log of nccl-tests that ends before its largest size is told to be cut off",
          "[tools][accepted]") {
  const Scratch scratch;
  const auto imported = [&](const char* most) {
    const std::string log =
        std::string("# nThread 1 nGpus 2 minBytes 1048576 maxBytes ") + most +
        " step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0\n"
        "#  Rank  0 Group  0 Pid  1 on host device  0 [0x07] NVIDIA A100\n"
        "#  Rank  1 Group  0 Pid  1 on host device  1 [0x0f] NVIDIA A100\n"
        "#                                                              out-of-place               "
        "    "
        "    in-place\n"
        "#       size         count      type   redop    root     time   algbw   busbw #wrong     "
        "time  "
        " algbw   busbw #wrong\n"
        "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            "
        "(us) "
        " (GB/s)  (GB/s)\n"
        "     1048576        262144     float     sum      -1    100.0   10.49   10.49      0    "
        "100.0 "
        "  10.49   10.49      0\n"
        "     2097152        524288     float     sum      -1    200.0   10.49   10.49      0    "
        "200.0 "
        "  10.49   10.49      0\n"
        "     4194304       1048576     float     sum      -1    400.0   10.49   10.49      0    "
        "400.0 "
        "  10.49   10.49      0\n";
    const Outcome outcome =
        ddpsim({"import", "nccl-tests", scratch.write("log.txt", log).string()});
    CAPTURE(outcome.err);
    REQUIRE(outcome.code == 0);
    return outcome.out;
  };
  CHECK_THAT(imported("134217728"), Catch::Contains("it was cut off"));
  CHECK_THAT(imported("4194304"), !Catch::Contains("cut off"));
}

TEST_CASE("a page under the name of no page is refused", "[tools][accepted]") {
  const Scratch scratch;
  const Outcome outcome = run({"--report", scratch.path("x.txt").string()});
  CHECK(outcome.code == 2);
  CHECK_THAT(outcome.err, Catch::Contains("x.html"));
  CHECK(!std::filesystem::exists(scratch.path("x.txt")));
}

TEST_CASE("a description that adds gradients is not added to once more", "[tools][accepted]") {
  const Scratch scratch;
  std::string text = content_of(std::string(DDPSIM_TEST_DATA) + "/descriptions/resnet50.yaml");
  const std::string notes = "\nnotes:\n";
  const std::size_t place = text.find(notes);
  REQUIRE(place != std::string::npos);
  const std::string first = scratch.write("first.yaml", text).string();
  const auto noted = [&](const std::string& file, const std::string& note) {
    std::string with = text;
    return scratch.write(file, with.insert(place + notes.size(), "  - \"" + note + "\"\n"))
        .string();
  };
  const std::string later =
      noted("later.yaml", "a later micro-batch: gradients are added to those that are there");
  const std::string earlier_release =
      noted("earlier.yaml", "one of the later of 4 micro-batches: gradients are added");
  const auto run = [&](const std::string& file, const std::string& micro_batches) {
    return ddpsim({"run", file, "--cluster", "dgx-h100", "--set", "compare=[bucketed]", "--set",
                   "training.micro_batches=" + micro_batches});
  };
  for (const std::string& file : {later, earlier_release}) {
    const Outcome twice = run(file, "4");
    CHECK(twice.code == 2);
    CHECK(lines_of(twice.err).size() == 1);
    CHECK_THAT(twice.err, Catch::Contains("--set training.micro_batches=4") &&
                              Catch::Contains("describe the model without --later-micro-batch"));
  }
  CHECK(run(later, "1").code == 0);
  CHECK(run(first, "4").code == 0);
}

TEST_CASE("explain takes a key in any case of letters", "[tools][accepted]") {
  const Outcome lower = ddpsim({"explain", "training.bucket_cap"});
  CHECK(ddpsim({"explain", "Training.Bucket_Cap"}).out == lower.out);
  CHECK(lower.code == 0);
}

TEST_CASE("a slow NIC of one node is no idle network", "[tools][accepted]") {
  const auto noted = [](const std::string& more) {
    const Outcome outcome =
        run({"--set",
             "cluster={device: l40s, nodes: 2, ranks_per_node: 8, intra_node: pcie4, "
             "inter_node: {base: ethernet-100g, nics: 4}" +
                 more + "}"});
    CHECK(outcome.code == 0);
    return outcome.err.find("a network of more bandwidth would not make them shorter") !=
           std::string::npos;
  };
  CHECK(noted(""));
  CHECK_FALSE(noted(", exceptions: [{node: 1, nic: 50 Gbit/s}]"));
}

TEST_CASE("times of a workload are said to be of one micro-batch where a step has several",
          "[tools][accepted]") {
  const std::string note = "workload.times is of one micro-batch, and a step has 4 of them";
  const auto of = [](const char* micro_batches) {
    return run({"--set", "workload.times={forward: 30 ms, backward: 60 ms}", "--set",
                std::string("training.micro_batches=") + micro_batches})
        .err;
  };
  CHECK_THAT(of("4"), Catch::Contains(note));
  CHECK_THAT(of("1"), !Catch::Contains("workload.times"));
}

}  // namespace
}  // namespace ddpsim
