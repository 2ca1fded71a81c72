// Logs of NCCL, made in the format of its releases, and what the import takes from them. The
// format is that of NCCL's sources (src/init.cc, src/graph/*.cc, src/transport/*.cc,
// src/enqueue.cc) and of logs in the issues NVIDIA/nccl 226, 754, 1154, 1189, 1357, 1358, 1412,
// 1453 and 1595.

#include <algorithm>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "tests/tools/next_command.hpp"
#include "tests/tools/program.hpp"

namespace ddpsim {
namespace {

/// Lines of one rank.
class Rank {
 public:
  Rank(std::string host, int number, int device)
      : prefix_(
            fmt::format("{}:{}:{} [{}] NCCL INFO ", host, 4000 + number, 5000 + number, device)) {}
  Rank& say(const std::string& text) {
    lines_ += prefix_ + text + "\n";
    return *this;
  }
  const std::string& text() const { return lines_; }

 private:
  std::string prefix_, lines_;
};

/// Two nodes of two H100 on NVSwitch, a card of 400 Gbit/s InfiniBand each, as NCCL 2.21 says it.
std::vector<std::string> recent_ranks() {
  std::vector<std::string> texts;
  for (int r = 0; r < 4; ++r) {
    Rank rank(r < 2 ? "node-1" : "node-2", r, r % 2);
    if (r == 0) rank.say("NCCL version 2.21.5+cuda12.4");
    rank.say("NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB eth0:10.0.0.1<0>")
        .say("Using network IB")
        .say(fmt::format("ncclCommInitRank comm 0x5{0} rank {0} nranks 4 cudaDev {1} nvmlDev {1} "
                         "busId 1a000 commId 0x49bb - Init START",
                         r, r % 2))
        .say("=== System : maxBw 370.8 totalBw 370.8 ===")
        .say("CPU/0 (1/2/-1)")
        .say("+ PCI[24.0] - GPU/1A000 (0)")
        .say("              + NVL[370.8] - NVS/0")
        .say("+ PCI[48.0] - NIC/1B000")
        .say("              + NET[50.0] - NET/0 (0/1/50.000000)")
        .say("+ PCI[48.0] - NIC/1C000")
        .say("              + NET[50.0] - NET/1 (1/1/50.000000)")
        .say(
            "Pattern 4, crossNic 0, nChannels 2, bw 40.000000/40.000000, type NVL/PIX, "
            "sameChannels 1")
        .say(fmt::format(
            "comm 0x5{0} rank {0} nRanks 4 nNodes 2 localRanks 2 localRank {1} MNNVL 0", r, r % 2));
    if (r == 0)
      rank.say("Channel 00/02 :    0   1   3   2").say("Channel 01/02 :    0   1   3   2");
    rank.say(fmt::format("Trees [0] 1/2/-1->{0}->-1 [1] 1/-1/-1->{0}->2", r));
    if (r == 0)
      rank.say(
              "  Algorithm   |                            Tree                  |                  "
              "          Ring                  |                   CollNetDirect                  "
              "|")
          .say(
              "  Protocol    |             LL |          LL128 |         Simple |             LL | "
              "         LL128 |         Simple |             LL |          LL128 |         Simple "
              "|")
          .say(
              " Max NThreads |            512 |            640 |            512 |            512 | "
              "           640 |            512 |              0 |              0 |            640 "
              "|")
          .say(
              "    AllReduce |    17.4/   8.0 |    24.0/  30.0 |    56.0/  36.5 |    18.0/  10.0 | "
              "   31.0/  36.0 |    60.8/  40.0 |     0.0/   0.0 |     0.0/   0.0 |     0.0/   0.0 "
              "|");
    rank.say(
            "2 coll channels, 0 collnet channels, 0 nvls channels, 2 p2p channels, 2 p2p channels "
            "per peer")
        .say(fmt::format("ncclCommInitRank comm 0x5{0} rank {0} nranks 4 cudaDev {1} nvmlDev {1} "
                         "busId 1a000 commId 0x49bb - Init COMPLETE",
                         r, r % 2));
    const int next = r == 0 ? 1 : r == 1 ? 3 : r == 3 ? 2 : 0;
    const bool far = r == 1 || r == 2;
    rank.say(fmt::format("Channel 00/0 : {}[{}] -> {}[{}] {}", r, r % 2, next, next % 2,
                         far ? "[send] via NET/IB/0/GDRDMA" : "via P2P/CUMEM"));
    if (far)
      rank.say(fmt::format("Channel 00/0 : {}[0] -> {}[0] [receive] via NET/IB/1/GDRDMA", next, r));
    if (r == 0)
      rank.say(
              "AllReduce: opCount 0 sendbuff 0x7 recvbuff 0x7 count 1048576 datatype 7 op 0 root 0 "
              "comm 0x50 [nranks=4] stream 0x55")
          .say("4194304 Bytes -> Algo 1 proto 2 time 165.3")
          .say("4194304 Bytes -> Algo 1 proto 2 time 165.3")
          .say("4096 Bytes -> Algo 0 proto 0 time 18.1");
    texts.push_back(rank.text());
  }
  return texts;
}

/// The lines of several ranks in turns, each behind `prefix`.
std::string in_turns(const std::vector<std::string>& ranks, const std::string& prefix = "") {
  std::vector<std::vector<std::string>> lines;
  for (const std::string& rank : ranks) lines.push_back(lines_of(rank));
  std::string text;
  for (std::size_t at = 0, left = 1; left > 0; ++at) {
    left = 0;
    for (const auto& rank : lines)
      if (at < rank.size()) {
        text += prefix + rank[at] + "\n";
        ++left;
      }
  }
  return text;
}

TEST_CASE("a log of NCCL becomes a cluster that run takes", "[tools][import_nccl_log]") {
  const Scratch scratch;
  scratch.write("log.txt", in_turns(recent_ranks()));
  const Outcome outcome =
      ddpsim({"import", "nccl-log", "log.txt", "-o", "site.yaml", "--json", "-"}, scratch.folder());
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  CHECK_THAT(outcome.err,
             Catch::Contains("next: ddpsim run SCENARIO --cluster site.yaml --device"));
  const Json said = outcome.json();
  CHECK(said.at("nccl") == "2.21.5");
  CHECK(said.at("ranks") == 4);
  CHECK(said.at("nodes") == 2);
  CHECK(said.at("ranks_per_node") == 2);
  CHECK(said.at("channels") == 2);
  CHECK(said.at("rings") == Json({{0, 1, 3, 2}, {0, 1, 3, 2}}));
  CHECK(said.at("trees") == 2);
  // Of each connection the sender's line counts: 0 -> 1, 3 -> 2 within nodes, 1 -> 3, 2 -> 0.
  CHECK(said.at("transports") == Json({{"NET/IB/GDRDMA", 2}, {"P2P/CUMEM", 2}}));
  CHECK(said.at("tuning").size() == 9);
  CHECK(said.at("tuning").at(5) == Json({{"operation", "AllReduce"},
                                         {"algorithm", "Ring"},
                                         {"protocol", "Simple"},
                                         {"latency_us", 60.8},
                                         {"gb_per_s", 40.0}}));
  CHECK(said.at("calls") == Json({{{"operation", "AllReduce"}, {"bytes", 4 << 20}, {"times", 1}}}));
  REQUIRE(said.at("taken").size() == 2);
  CHECK(said.at("taken").at(0).at("algorithm") == "Tree");
  CHECK(said.at("taken").at(0).at("protocol") == "LL");
  CHECK(said.at("taken").at(1).at("times") == 2);

  const std::string site = content_of(scratch.path("site.yaml"));
  for (const char* line :
       {"\nnodes: 2\n", "\nranks_per_node: 2\n", "\nintra_node: nvlink4\n", "\ncpu: amd\n",
        "\ninter_node: {kind: infiniband, bandwidth: 50 GB/s, nics: 2}\n",
        "\ncollectives: {release: 2.26}\n", "whose line rate and latency are the catalogue's\n"})
    CHECK_THAT(site, Catch::Contains(line));
  const Outcome run = ddpsim({"run", first_example, "--cluster", "site.yaml", "--device",
                              "h100-sxm", "--set", "compare=[bucketed]", "--json", "-"},
                             scratch.folder());
  CAPTURE(run.err);
  REQUIRE(run.code == 0);
  CHECK(run.json().at("ranks") == 4);
}

TEST_CASE("where NET/IB lists other cards than GRAPH shows, a note says which count is taken",
          "[tools][import_nccl_log]") {
  const Scratch scratch;
  std::string log = in_turns(recent_ranks());
  const std::string both = "[1]mlx5_1:1/IB [RO]";
  for (std::size_t at = 0; (at = log.find(both, at)) != std::string::npos; at += both.size())
    log.replace(at, both.size(), "[1]mlx5_1:1/IB [2]mlx5_2:1/IB [3]mlx5_3:1/IB [RO]");
  const auto imported = [&](const std::string& text) {
    scratch.write("log.txt", text);
    const Outcome outcome = ddpsim({"import", "nccl-log", "log.txt"}, scratch.folder());
    CAPTURE(outcome.err);
    REQUIRE(outcome.code == 0);
    return outcome.out;
  };
  const std::string said = imported(log);
  CHECK_THAT(said, Catch::Contains("nics: 2") &&
                       Catch::Contains("note: inter_node: NET/IB lists 4 cards of node-1, GRAPH "
                                       "shows 2: 2 is taken"));
  CHECK_THAT(said, !Catch::Contains("cards of node-2"));
  CHECK_THAT(imported(in_turns(recent_ranks())), !Catch::Contains("NET/IB lists"));
}

TEST_CASE("a log of nodes of unequal size is not taken for one of nodes of the mean size",
          "[tools][import_nccl_log]") {
  const Scratch scratch;
  std::string text = in_turns(recent_ranks());
  const std::string two = "localRanks 2";
  for (std::size_t at = text.find(two); at != std::string::npos; at = text.find(two, at))
    text.replace(at, two.size(), "localRanks 3");
  scratch.write("log.txt", text);
  const Outcome outcome =
      ddpsim({"import", "nccl-log", "log.txt", "-o", "site.yaml", "--json", "-"}, scratch.folder());
  REQUIRE(outcome.code == 0);
  CHECK(outcome.json().at("ranks_per_node") == 0);
  CHECK_THAT(content_of(scratch.path("site.yaml")),
             Catch::Contains("4 ranks on 2 nodes of unequal size, and the log does not tell how "
                             "many each has: write them into its empty list") &&
                 Catch::Contains("\nranks_per_node: []\n"));
  // No command takes it for a cluster of one GPU.
  const Outcome run = ddpsim(
      {"run", first_example, "--cluster", "site.yaml", "--device", "h100-sxm"}, scratch.folder());
  CHECK(run.code == 2);
  CHECK_THAT(run.err, Catch::Contains("ranks_per_node: expected a number for each node"));
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at))
    text.replace(at, from.size(), to), at += to.size();
  return text;
}

TEST_CASE("a log that tells each node's ranks becomes nodes of unequal size",
          "[tools][import_nccl_log]") {
  const Scratch scratch;
  std::vector<std::string> ranks = recent_ranks();
  for (std::string& rank : ranks) {
    const bool second = rank.find("node-2") != std::string::npos;
    rank = replaced(rank, "localRanks 2", second ? "localRanks 1" : "localRanks 3");
    rank = replaced(rank, " rank 2 ", " rank 22 ");  // of node-2, to node-1
    if (rank.find(" rank 22 ") != std::string::npos)
      rank = replaced(replaced(rank, "node-2", "node-1"), " rank 22 ", " rank 2 ");
    rank = replaced(rank, "localRanks 1 localRank 0", "localRanks 3 localRank 2");
  }
  // Lines of all ranks, or of the first node's alone.
  for (const std::string& text : {in_turns(ranks), ranks[0]}) {
    scratch.write("log.txt", text);
    const Outcome outcome = ddpsim(
        {"import", "nccl-log", "log.txt", "-o", "site.yaml", "--json", "-"}, scratch.folder());
    REQUIRE(outcome.code == 0);
    CHECK(outcome.json().at("ranks_per_node") == Json({3, 1}));
    CHECK_THAT(content_of(scratch.path("site.yaml")),
               Catch::Contains("4 ranks on 2 nodes of unequal size: 3 + 1\n") &&
                   Catch::Contains("\nranks_per_node: [3, 1]\n"));
    // The command that `next:` names, over a scenario with `nodes: 1`, as init writes it.
    scratch.write("s.yaml",
                  "workload: {model: resnet18, batch: 8}\ncluster: {device: a10, nodes: 1, "
                  "ranks_per_node: 8, intra_node: pcie4}\ncompare: [flat]\n");
    const Outcome run = ddpsim(
        {"run", "s.yaml", "--cluster", "site.yaml", "--device", "h100-sxm", "--json", "-", "-q"},
        scratch.folder());
    CAPTURE(run.err);
    REQUIRE(run.code == 0);
    CHECK(run.json().at("cluster").at("ranks_per_node") == Json({3, 1}));
  }
}

TEST_CASE("where a log does not tell how many nodes there are, the next command asks for them",
          "[tools][import_nccl_log]") {
  const Scratch scratch;
  scratch.write("log.txt", replaced(recent_ranks()[0], "nNodes 2 localRanks 2 ", ""));
  const Outcome outcome =
      ddpsim({"import", "nccl-log", "log.txt", "-o", "site.yaml"}, scratch.folder());
  REQUIRE(outcome.code == 0);
  CHECK_THAT(outcome.err, Catch::Contains("next: ddpsim run SCENARIO --cluster site.yaml --device "
                                          "DEVICE --nodes N --ranks-per-node N\n"));
}

/// What import writes of a log in which each of `changes` was replaced, and all that it says.
Outcome imported_with(const std::vector<std::pair<std::string, std::string>>& changes) {
  const Scratch scratch;
  std::string text = in_turns(recent_ranks());
  for (const auto& [from, to] : changes) text = replaced(text, from, to);
  scratch.write("log.txt", text);
  Outcome outcome = ddpsim({"import", "nccl-log", "log.txt", "-o", "site.yaml"}, scratch.folder());
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  outcome.out = content_of(scratch.path("site.yaml"));
  return outcome;
}

TEST_CASE("NVLink between some of a node's GPUs is not taken for NVLink between all",
          "[tools][import_nccl_log]") {
  // Pairs of cards joined by bridges: NCCL's rings go through the host bridge as well.
  const Outcome pairs = imported_with(
      {{"NVL[370.8] - NVS/0", "NVL[240.0] - GPU/2A000"},
       {"bw 40.000000/40.000000, type NVL/PIX", "bw 12.000000/12.000000, type PHB/PHB"}});
  CHECK_THAT(pairs.out, Catch::Contains("\nintra_node: pcie4\n") &&
                            Catch::Contains("NVLink joins some of a node's GPUs, and NCCL's rings "
                                            "go over PCIe as well (PHB)"));
  // All of them joined directly: that link, without a switch.
  const Outcome direct = imported_with({{"NVL[370.8] - NVS/0", "NVL[240.0] - GPU/2A000"}});
  CHECK_THAT(direct.out, Catch::Contains("\nintra_node: {base: nvlink3, nvswitch: false}\n"));
}

TEST_CASE("a figure that is NCCL's own loses no share of a line rate", "[tools][import_nccl_log]") {
  CHECK_THAT(imported_with({{"[370.8]", "[111.0]"}}).out,
             Catch::Contains("\nintra_node: {kind: nvlink, bandwidth: 111 GB/s, nccl_bandwidth: "
                             "111 GB/s, carries: 1, nvswitch: true}\n"));
}

TEST_CASE("what a log tells and its cluster cannot hold stands in the next command",
          "[tools][import_nccl_log]") {
  // GPUs without peer-to-peer: the device says that.
  const Outcome memory = imported_with({{"NVL[370.8] - NVS/0", "PCI[12.0] - X/0"},
                                        {"type NVL/PIX", "type PHB/PHB"},
                                        {"via P2P/CUMEM", "via SHM/direct/direct"}});
  CHECK_THAT(memory.err, Catch::Contains("next: ddpsim run SCENARIO --cluster site.yaml --set "
                                         "'cluster.device={base: DEVICE, peer_to_peer: false}'\n"));
  CHECK_THAT(memory.out, Catch::Contains("through the host's memory alone (SHM)"));
  // There far less arrives than NCCL expects, so the figure is not what large messages reach.
  CHECK_THAT(memory.out, Catch::Contains("\nintra_node: {kind: pcie, bandwidth: ") &&
                             !Catch::Contains("carries"));
  // Cards that are named, and whose rate is not: their number.
  const Outcome cards = imported_with(
      {{"NVL[370.8] - NVS/0", "X"}, {"NET[50.0] - NET/", "X/"}, {"Pattern 4, ", "Pattern X, "}});
  CHECK_THAT(cards.err, Catch::Contains(" --link INTRA_NODE --link INTER_NODE --set "
                                        "cluster.inter_node.nics=2\n"));
}

TEST_CASE("a card in a slow slot, and copies through the host's memory, are noted",
          "[tools][import_nccl_log]") {
  const std::string slot = "for the PCIe of a card", copies = "go without GPUDirect RDMA";
  const std::string plain = imported_with({}).out;
  CHECK_THAT(plain, !Catch::Contains(slot) && !Catch::Contains(copies));
  CHECK_THAT(
      imported_with({{"PCI[48.0] - NIC/", "PCI[6.0] - NIC/"}}).out,
      Catch::Contains("inter_node: NCCL counts 6 GB/s for the PCIe of a card, less than its "
                      "port's 50 GB/s: where the card stands in such a slot, write 6 GB/s as "
                      "its bandwidth\n"));
  CHECK_THAT(
      imported_with({{"NET/IB/0/GDRDMA", "NET/IB/0"}}).out,
      Catch::Contains("inter_node: 2 of 2 connections go without GPUDirect RDMA, over copies "
                      "in the host's memory, which a prediction takes no time for\n"));
  CHECK_THAT(imported_with({{"NET/IB/0/GDRDMA", "NET/Socket/0"}}).out, !Catch::Contains(copies));
}

TEST_CASE("of nodes that differ the slowest is written with a note, whatever their order",
          "[tools][import_nccl_log]") {
  const Scratch scratch;
  for (const bool slow_first : {false, true}) {
    CAPTURE(slow_first);
    std::vector<std::string> ranks = recent_ranks();
    for (std::string& rank : ranks)
      if ((rank.find("node-1") != std::string::npos) == slow_first) {
        rank = replaced(rank, "50.000000)", "25.000000)");
        rank = replaced(rank, "[370.8]", "[240.0]");
        std::string one_card;
        for (const std::string& line : lines_of(rank))
          if (line.find("NET/1") == std::string::npos) one_card += line + "\n";
        rank = one_card;
      }
    scratch.write("log.txt", in_turns(ranks));
    const Outcome outcome = ddpsim({"import", "nccl-log", "log.txt", "-o", "-"}, scratch.folder());
    REQUIRE(outcome.code == 0);
    for (const char* line :
         {"intra_node: nodes have different NVLinks, of which NCCL counts 240 GB/s to 370.8 GB/s "
          "for a GPU: the slowest is written for all\n",
          "inter_node: nodes have different networks, from 1 card of 25 GB/s to 2 cards of 50 "
          "GB/s: the slowest is written for all\n",
          "\nintra_node: nvlink3\n",
          "\ninter_node: {kind: infiniband, bandwidth: 25 GB/s, nics: 1}\n"})
      CHECK_THAT(outcome.out, Catch::Contains(line));
  }
}

TEST_CASE("however lines are mixed, marked and spread over files, the cluster is the same",
          "[tools][import_nccl_log]") {
  const Scratch scratch;
  const std::vector<std::string> ranks = recent_ranks();
  const auto site = [&](const std::vector<std::string>& files) {
    std::vector<std::string> arguments{"import", "nccl-log"};
    arguments.insert(arguments.end(), files.begin(), files.end());
    arguments.insert(arguments.end(), {"-q", "-o", "-"});
    const Outcome outcome = ddpsim(arguments, scratch.folder());
    CAPTURE(outcome.err);
    CHECK(outcome.code == 0);
    return outcome.out;
  };
  scratch.write("log.txt", in_turns(ranks));
  const std::string expected = site({"log.txt"});
  for (const char* prefix : {"[1,0]<stdout>:", " 0: ", "[0] ", "2025-03-03T12:00:00.123Z ",
                             "[2026-05-05 06:16:47] ", "worker-0  | "}) {
    CAPTURE(prefix);
    scratch.write("log.txt", "epoch 1, loss 2.5\n" + in_turns(ranks, prefix) + "done\n");
    CHECK(site({"log.txt"}) == expected);
  }
  scratch.write("log.txt", ranks[3] + ranks[1] + ranks[0] + ranks[2]);
  CHECK(site({"log.txt"}) == expected);
  std::vector<std::string> files;
  for (std::size_t r = 0; r < ranks.size(); ++r)
    files.push_back(scratch.write(fmt::format("log.{}", r), ranks[r]).filename().string());
  std::string several = site(files);  // but for the name of the log
  const std::size_t name = several.find("log.0 and 3 more");
  REQUIRE(name != std::string::npos);
  CHECK(several.replace(name, 16, "log.txt") == expected);
}

TEST_CASE("a log of one rank says what it can, and notes what it cannot",
          "[tools][import_nccl_log]") {
  const Scratch scratch;
  scratch.write("log.txt", recent_ranks()[2]);
  const Outcome outcome = ddpsim({"import", "nccl-log", "log.txt"}, scratch.folder());
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.out, Catch::Contains("nodes: 2"));
  CHECK_THAT(outcome.out, Catch::Contains("note: lines of 1 of 4 ranks are there"));
  CHECK_THAT(outcome.out, Catch::Contains("note: NCCL does not name the GPUs: give --device"));
}

TEST_CASE("releases before 2.15 begin no communicator aloud, and count no nodes",
          "[tools][import_nccl_log]") {
  const Scratch scratch;
  std::string text;
  for (int r = 0; r < 2; ++r) {
    Rank rank(fmt::format("node-{}", r), r, 0);
    if (r == 0) text += "NCCL version 2.10.3+cuda11.3\n";
    rank.say("NCCL_ALGO set by environment to Ring")
        .say("Using network Socket")
        .say("+ PCI[12.0] - NIC/1B000")
        .say("              + NET[1.2] - NET/0 (0/0/1.250000)")
        .say(
            "Pattern 4, crossNic 0, nChannels 1, speed 1.200000/1.200000, type LOC/PHB, "
            "sameChannels 1")
        .say(fmt::format("Channel 00/02 :    0   1"))
        .say(fmt::format("Channel 00 : {}[1a000] -> {}[1a000] [send] via NET/Socket/0", r, 1 - r))
        .say("Latency/AlgBw |    Tree/    LL |    Tree/ LL128 |    Tree/Simple |    Ring/    LL |")
        .say("    AllReduce |    76.3/   0.4 |   121.4/   0.0 |   280.2/   1.0 |    66.0/   0.6 |")
        .say(fmt::format("comm 0x7{0} rank {0} nranks 2 cudaDev 0 busId 1a000 - Init COMPLETE", r));
    text += rank.text();
  }
  scratch.write("log.txt", text);
  const Outcome outcome =
      ddpsim({"import", "nccl-log", "log.txt", "-o", "site.yaml", "--json", "-"}, scratch.folder());
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  const Json said = outcome.json();
  CHECK(said.at("nodes") == 2);  // two hosts print, and all ranks are there
  CHECK(said.at("transports") == Json({{"NET/Socket", 2}}));
  CHECK(said.at("tuning").size() == 4);
  CHECK(said.at("tuning").at(2).at("protocol") == "Simple");
  const std::string site = content_of(scratch.path("site.yaml"));
  CHECK_THAT(site, Catch::Contains("inter_node: {kind: ethernet, bandwidth: 1.25 GB/s, nics: 1}"));
  CHECK_THAT(site, Catch::Contains("collectives: {release: 2.26, algorithm: ring}"));
  CHECK_THAT(site, !Catch::Contains("intra_node:"));
  CHECK(
      ddpsim({"run", first_example, "--cluster", "site.yaml", "--device", "a10"}, scratch.folder())
          .code == 0);
}

TEST_CASE("a log that does not say which network it is becomes Ethernet with a note",
          "[tools][import_nccl_log]") {
  const Scratch scratch;
  std::string text;
  for (const std::string& line : lines_of(in_turns(recent_ranks())))
    if (line.find("NET/IB : Using") == std::string::npos &&
        line.find("Using network") == std::string::npos)
      text += line + "\n";
  scratch.write("log.txt", text);
  const Outcome outcome =
      ddpsim({"import", "nccl-log", "log.txt", "-o", "site.yaml"}, scratch.folder());
  REQUIRE(outcome.code == 0);
  CHECK_THAT(content_of(scratch.path("site.yaml")), Catch::Contains("inter_node: {kind: ethernet"));
  CHECK_THAT(outcome.out, Catch::Contains("that says which network it is: taken as Ethernet"));

  // One that names no card and no rate either becomes no network, and is taken for none.
  std::string less;
  for (const std::string& line : lines_of(text))
    if (line.find("NET[") == std::string::npos && line.find("NIC/") == std::string::npos &&
        line.find("Pattern") == std::string::npos)
      less += line + "\n";
  scratch.write("less.txt", less);
  const Outcome none =
      ddpsim({"import", "nccl-log", "less.txt", "-o", "less.yaml"}, scratch.folder());
  REQUIRE(none.code == 0);
  CHECK_THAT(content_of(scratch.path("less.yaml")), !Catch::Contains("inter_node: {"));
  CHECK_THAT(none.out, !Catch::Contains("taken as Ethernet") &&
                           Catch::Contains("does not say how fast the cards are"));
}

TEST_CASE("the next command that is told has a flag for all that the log does not say",
          "[tools][import_nccl_log]") {
  const Scratch scratch;
  /// The command that the import of the log tells, without lines that hold one of `left_out`.
  const auto next = [&](const std::string& log, const std::vector<std::string>& left_out) {
    std::string text;
    for (const std::string& line : lines_of(log))
      if (std::none_of(left_out.begin(), left_out.end(), [&](const std::string& word) {
            return line.find(word) != std::string::npos;
          }))
        text += line + "\n";
    scratch.write("log.txt", text);
    const Outcome outcome =
        ddpsim({"import", "nccl-log", "log.txt", "-o", "site.yaml"}, scratch.folder());
    CAPTURE(outcome.err);
    REQUIRE(outcome.code == 0);
    const std::string command = next_command(outcome);
    // The head of the file tells the same.
    CHECK_THAT(content_of(scratch.path("site.yaml")),
               Catch::Contains(command.substr(command.find("--device"))));
    return command;
  };
  const auto ranks_of_next = [&](const std::string& command) {
    const Outcome run = follow(command + " --json -", scratch.folder(),
                               {{"SCENARIO", first_example},
                                {"DEVICE", "h100-sxm"},
                                {"--ranks-per-node N", "--ranks-per-node 2"},
                                {"--nodes N", "--nodes 2"},
                                {"INTRA_NODE", "nvlink4"},
                                {"INTER_NODE", "ib-ndr"}});
    CAPTURE(command, run.err);
    REQUIRE(run.code == 0);
    return run.json()["ranks"].get<int>();
  };
  const std::string site = "ddpsim run SCENARIO --cluster site.yaml --device DEVICE";
  const std::string log = in_turns(recent_ranks());
  const std::vector<std::string> network{"NET/IB : Using", "Using network", "NET[", "NIC/"};
  const auto with = [](std::vector<std::string> words, const std::vector<std::string>& more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  const std::vector<std::pair<std::string, std::string>> cases{
      {next(log, {}), site},
      {next(log, with(network, {"Pattern"})), site + " --link INTER_NODE"},
      {next(log, {"Pattern", "maxBw", "NVL["}), site + " --link INTRA_NODE"},
      {next(log, with(network, {"Pattern", "maxBw", "NVL["})),
       site + " --link INTRA_NODE --link INTER_NODE"},
      {next(recent_ranks()[2], {"nNodes"}), site + " --nodes N --ranks-per-node N"}};
  for (const auto& [command, expected] : cases) CHECK(command == expected);
  // Each is followed with the cluster that it was told for.
  CHECK(ranks_of_next(next(log, {})) == 4);
  CHECK(ranks_of_next(next(log, with(network, {"Pattern"}))) == 4);
  CHECK(ranks_of_next(next(log, {"Pattern", "maxBw", "NVL["})) == 4);
  CHECK(ranks_of_next(next(log, with(network, {"Pattern", "maxBw", "NVL["}))) == 4);
  CHECK(ranks_of_next(next(recent_ranks()[2], {"nNodes"})) == 4);
  std::string unequal = log;
  const std::string two = "localRanks 2";
  for (std::size_t at = unequal.find(two); at != std::string::npos; at = unequal.find(two, at))
    unequal.replace(at, two.size(), "localRanks 3");
  CHECK(next(unequal, {}) == site);
  // Its note says what to write first.
  std::string filled = content_of(scratch.path("site.yaml"));
  const std::string empty = "ranks_per_node: []";
  filled.replace(filled.find(empty), empty.size(), "ranks_per_node: [3, 1]");
  scratch.write("site.yaml", filled);
  CHECK(ranks_of_next(site) == 4);
}

TEST_CASE("of several communicators the largest is told of", "[tools][import_nccl_log]") {
  const Scratch scratch;
  std::string text;
  for (int r = 0; r < 4; ++r) {
    Rank rank("node-1", r, r);
    const auto communicator = [&](int number, int of, int size) {
      rank.say(fmt::format("comm 0x{} rank {} nranks {} cudaDev 0 busId 1 - Init START", number, of,
                           size))
          .say(fmt::format("comm 0x{} rank {} nRanks {} nNodes 1 localRanks {} localRank 0 MNNVL 0",
                           number, of, size, size))
          .say(fmt::format("{} coll channels, 0 nvls channels, 1 p2p channels", size))
          .say(fmt::format("comm 0x{} rank {} nranks {} cudaDev 0 busId 1 - Init COMPLETE", number,
                           of, size));
    };
    communicator(1, r % 2, 2);
    communicator(2, r, 4);
    communicator(3, r / 2, 2);
    text += rank.text();
  }
  scratch.write("log.txt", text);
  const Json said =
      ddpsim({"import", "nccl-log", "log.txt", "--json", "-"}, scratch.folder()).json();
  CHECK(said.at("ranks") == 4);
  CHECK(said.at("channels") == 4);
  CHECK_THAT(said.at("notes").dump(), Catch::Contains("8 more communicators of ranks"));
}

TEST_CASE("what is no log of NCCL is refused in one line", "[tools][import_nccl_log]") {
  const Scratch scratch;
  const auto refused = [&](const std::string& content, const std::string& says) {
    scratch.write("log.txt", content);
    const Outcome outcome =
        ddpsim({"import", "nccl-log", "log.txt", "-o", "site.yaml"}, scratch.folder());
    CAPTURE(outcome.err);
    CHECK(outcome.code == 2);
    CHECK(outcome.out.empty());
    CHECK(lines_of(outcome.err).size() == 1);
    CHECK_THAT(outcome.err, Catch::Contains(says));
    CHECK(!std::filesystem::exists(scratch.path("site.yaml")));
  };
  refused("", "no line of NCCL in it: expected the output of a job with NCCL_DEBUG=INFO");
  refused("hello\n", "no line of NCCL in it");
  refused("node-1:1:2 [0] NCCL INFO Using network IB\n", "no communicator in it");
  refused("node-1:1:2 [0] NCCL INFO comm 0x1 rank 7 nranks 4 - Init COMPLETE\n",
          "no communicator in it");
  refused("node-1:1:2 [0] NCCL INFO comm 0x1 rank 0 nranks 99999999999999999999 - Init COMPLETE\n",
          "no communicator in it");
  CHECK(ddpsim({"import", "nccl-log", "none.txt"}, scratch.folder()).err ==
        "ddpsim: none.txt: no such file\n");
  CHECK_THAT(ddpsim({"import", "nccl-logs", "log.txt"}, scratch.folder()).err,
             Catch::Contains("did you mean \"nccl-log\"?"));
}

TEST_CASE("nonsense in a log of NCCL is passed over, and what is kept is bounded",
          "[tools][import_nccl_log]") {
  const Scratch scratch;
  const std::string begin = "node-1:1:2 [0] NCCL INFO ";
  std::string text = begin + "comm 0x1 rank 0 nranks 2 cudaDev 0 - Init COMPLETE\n";
  for (const char* line : {"Channel",
                           "Channel 00/02 :",
                           "Channel 0 : x -> y via",
                           "Channel 0 : 0 -> 1 via",
                           "Trees",
                           "Pattern",
                           "Pattern 4, nChannels -1, bw 1e999/x, type",
                           "| | | |",
                           "Algorithm |",
                           "Protocol | LL",
                           "AllReduce | 1/2 | nan/inf | 1e400/1",
                           "+ NVL[ - NVS/0",
                           "+ NVL[x] - NVS/0",
                           "-1 Bytes -> Algo 1 proto 2",
                           "9223372036854775807 Bytes -> Algo 99 proto 99 channel{..}",
                           "AllReduce: opCount 0 count 9223372036854775807 datatype 7",
                           "Bytes -> Algo",
                           "NET/IB : Using [0]/IB ]{/RoCE",
                           "set by environment to",
                           "NET/IB: speed=99999999999 a:1/IB",
                           "\x1b[31mTrees\x1b[0m [0]",
                           "coll channels,",
                           "Using network"})
    text += begin + line + "\n";
  text += std::string("node-1:1:2 [0] NCCL INFO Using network ") + "\x1b[31mIB\n";
  text += begin + std::string(1 << 20, 'x') + "\n";
  text += std::string(1 << 20, '|') + begin + "\n";
  for (int i = 0; i < 200'000; ++i)
    text += fmt::format("{}AllReduce: {} Bytes -> Algo RING proto LL channel{{Lo..Hi}}={{0..1}}\n",
                        begin, i);
  for (int i = 0; i < 100'000; ++i) text += fmt::format("h{0}:1:2 [0] NCCL INFO Trees [0]\n", i);
  scratch.write("log.txt", text);
  const Outcome outcome =
      ddpsim({"import", "nccl-log", "log.txt", "--json", "-"}, scratch.folder());
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  const Json said = outcome.json();
  CHECK(said.at("ranks") == 2);
  CHECK(said.at("taken").size() < 5000);
  CHECK_THAT(said.at("notes").dump(), Catch::Contains("the log holds more than ddpsim keeps"));
  CHECK(outcome.out.find('\x1b') == std::string::npos);
}

}  // namespace
}  // namespace ddpsim
