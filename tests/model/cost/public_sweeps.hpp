#pragma once

#include <algorithm>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "model/cluster/cluster.hpp"
#include "model/cost/nccl_law.hpp"

/// Public sweeps of collectives, and the clusters they ran on by their data sheets alone. Each
/// file's header names the machine and where the figures are from.
namespace ddpsim::sweeps {

struct Point {
  Bytes size;
  double time_us = 0;
};

struct Sweep {
  std::string file;
  std::string source;  ///< sweeps of one source are left out together
  Cluster cluster;
  std::vector<Point> points;
  int gpus_per_process = 1;
  /// What no data sheet says slows it: not fitted, and counted apart.
  bool outside = false;
  Collective collective = Collective::all_reduce;
  bool of_kernels = false;  ///< no launch is in the times

  /// What would be measured of a collective that takes so long by the law. nccl-tests enqueues for
  /// one GPU after another, 4.9 us each (the two logs of one A100 host, tests/data/nccl-tests, with
  /// one process and with eight). `launch_us`: of a kernel.
  double measured_us(double by_law_us, double launch_us) const {
    return std::max(of_kernels ? by_law_us - launch_us : by_law_us,
                    gpus_per_process > 1 ? 4.9 * gpus_per_process : 0);
  }
};

inline Link link_of(LinkKind kind, double gigabytes, bool nvswitch = false) {
  Link link;
  link.kind = kind;
  link.latency = usual_latency(kind);
  link.bandwidth = gigabytes_per_second(gigabytes);
  link.nvswitch = nvswitch;
  return link;
}

inline Cluster node(int capability, int gpus, LinkKind kind, double gigabytes,
                    bool nvswitch = true) {
  Cluster cluster;
  cluster.device.compute_capability = capability;
  cluster.device.peer_to_peer = kind == LinkKind::nvlink;
  cluster.ranks_per_node = gpus;
  cluster.intra_node = link_of(kind, gigabytes, nvswitch && kind == LinkKind::nvlink);
  return cluster;
}

inline Cluster nodes(int count, Cluster cluster, int nics, double gigabytes,
                     LinkKind kind = LinkKind::infiniband) {
  cluster.nodes = count;
  cluster.inter_node = link_of(kind, gigabytes);
  cluster.inter_node.nics = nics;
  return cluster;
}

inline Cluster forced(Cluster cluster, NcclAlgorithm algorithm,
                      std::optional<NcclProtocol> protocol = {}) {
  cluster.forced = {algorithm, protocol, {}};
  return cluster;
}

inline Cluster amd(Cluster cluster) {
  cluster.cpu = CpuVendor::amd;
  return cluster;
}

/// The rows of a file, the quicker of out-of-place and in-place times: what differs is set-up.
inline std::vector<Point> points_of(const std::string& file) {
  std::ifstream in(file);
  if (!in) throw std::runtime_error(file + ": not there");
  std::vector<Point> points;
  for (std::string line; std::getline(in, line);) {
    std::istringstream fields(line);
    Point point;
    double in_place = 0;
    char comma = 0;
    if (!(fields >> point.size.count >> comma >> point.time_us)) continue;
    if (fields >> comma >> in_place) point.time_us = std::min(point.time_us, in_place);
    points.push_back(point);
  }
  return points;
}

/// All-reduces. `folder`: tests/data.
inline std::vector<Sweep> all_sweeps(const std::string& folder) {
  const auto ring = NcclAlgorithm::ring;
  const Cluster v100 = node(70, 8, LinkKind::nvlink, 150, false),
                a100 = node(80, 8, LinkKind::nvlink, 300),
                h100 = node(90, 8, LinkKind::nvlink, 450),
                b200 = node(100, 8, LinkKind::nvlink, 900);
  const auto pcie = [](int capability, int gpus, double gigabytes) {
    return node(capability, gpus, LinkKind::pcie, gigabytes);
  };
  const std::string tests = "nccl-tests/allreduce_", clusters = "clusters/allreduce_";
  std::vector<Sweep> sweeps{
      {tests + "2x_h100_nvswitch", "digitalocean", node(90, 2, LinkKind::nvlink, 450), {}, 2},
      {tests + "8x_h100_nvswitch_p5", "aws p5", h100, {}},
      {tests + "8x_a100_nvswitch_8proc", "thanos", a100, {}},
      {tests + "8x_a100_nvswitch_1proc", "thanos", a100, {}, 8},
      {tests + "16x_h200_2nodes_large", "h200 demo", nodes(2, h100, 8, 50), {}},
      {tests + "16x_b200_2nodes_lambda", "lambda", nodes(2, b200, 8, 50), {}},
      {tests + "4x_rtx5090_pcie", "5090", amd(pcie(120, 4, 63)), {}, 4},
      {clusters + "1024x_h100_128nodes_ring",
       "nccl-tests 322",
       forced(nodes(128, h100, 8, 50), ring, NcclProtocol::ll128),
       {}},
      {clusters + "1536x_v100_96nodes_dgx2h",
       "dgx-2h",
       nodes(96, node(70, 16, LinkKind::nvlink, 150), 8, 12.5),
       {}},
      {clusters + "16x_a100_2nodes_16x100g_roce", "oci a100", nodes(2, a100, 16, 12.5), {}},
      {clusters + "16x_h100_2nodes_ndr", "nccl-tests 309, first", nodes(2, h100, 8, 50), {}},
      {clusters + "32x_h100_4nodes_ndr", "nccl-tests 309, first", nodes(4, h100, 8, 50), {}},
      {clusters + "16x_h100_2nodes_ndr_c2", "nccl-tests 309, second", nodes(2, h100, 8, 50), {}},
      {clusters + "16x_h100_2nodes_ndr_c2_ring",
       "nccl-tests 309, second",
       forced(nodes(2, h100, 8, 50), ring),
       {}},
      {clusters + "32x_h100_4nodes_ndr_c2", "nccl-tests 309, second", nodes(4, h100, 8, 50), {}},
      {clusters + "64x_h100_8nodes_ndr_c2", "nccl-tests 309, second", nodes(8, h100, 8, 50), {}},
      {clusters + "64x_h100_8nodes_ndr_c2_24ctas",
       "nccl-tests 309, second",
       nodes(8, h100, 8, 50),
       {}},
      {clusters + "16x_h200_2nodes_oci", "oci h200", nodes(2, h100, 8, 50), {}},
      // The log says neither NCCL's release nor what ran. Counted as rings' its bytes are 22.9 of
      // the 25 GB/s a node has; the trees that NCCL 2.28 takes there would send half of that.
      {clusters + "16x_v100_2nodes_2x100g_roce",
       "deepops v100",
       forced(nodes(2, v100, 2, 12.5), ring),
       {}},
      {clusters + "2x_h100_2nodes_4nics",
       "nccl 1357",
       forced(nodes(2, node(90, 1, LinkKind::nvlink, 450), 4, 50), NcclAlgorithm::tree),
       {}},
      {clusters + "32x_a100_4nodes_dgx", "deepops a100", amd(nodes(4, a100, 8, 25)), {}},
      {clusters + "72x_gb200_1rack", "coreweave", node(100, 72, LinkKind::nvlink, 900), {}},
      // Kernels that copy through the host's memory, at a rate that differs from host to host, and
      // a network of GPUDirect-TCPX with 120 us a step: no data sheet says so.
      {tests + "2x_rtx2080ti_pcie", "2080 ti", pcie(75, 2, 15.75), {}, 2, true},
      {tests + "2x_rtx4090_pcie_docker", "4090", pcie(89, 2, 31.5), {}, 2, true},
      {tests + "2x_rtx4090_pcie_k8s", "4090", pcie(89, 2, 31.5), {}, 2, true},
      {tests + "4x_rtx4090_pcie_docker", "4090", pcie(89, 4, 31.5), {}, 4, true},
      {tests + "16x_h100_2nodes_a3mega",
       "a3-mega",
       nodes(2, h100, 8, 25, LinkKind::ethernet),
       {},
       1,
       true},
      // TCP sockets, whose stream fills a slow line as RDMA's messages do not.
      {clusters + "2x_2nodes_25gbe",
       "g5",
       nodes(2, pcie(80, 1, 31.5), 1, 3.125, LinkKind::ethernet),
       {},
       1,
       true},
      // A cloud's network and tuner plugins, and a NIC that is not the one beside the GPU: see the
      // file's header.
      {tests + "2x_h200_2nodes_1nic_roce",
       "dranet",
       nodes(2, node(90, 1, LinkKind::nvlink, 450), 1, 50),
       {},
       1,
       true},
  };
  for (Sweep& sweep : sweeps) {
    // All of these logs are older than NCCL 2.28.
    sweep.cluster.forced.release = NcclRelease::before_2_28;
    sweep.points = points_of(folder + "/" + sweep.file + ".csv");
    // By the notes of their headers: host noise below 32 MiB, and the set-up of an algorithm.
    const auto drop = [&](std::int64_t from, std::int64_t to) {
      std::erase_if(sweep.points,
                    [&](const Point& p) { return p.size.count >= from && p.size.count <= to; });
    };
    if (sweep.source == "deepops v100") drop(0, 32 * MiB.count - 1);
    if (sweep.source == "dgx-2h") drop(256 * KiB.count, 512 * KiB.count);
  }
  return sweeps;
}

/// All-gathers and reduce-scatters; sizes are of the whole array. `folder`: tests/data.
inline std::vector<Sweep> shard_sweeps(const std::string& folder) {
  constexpr auto gathers = Collective::all_gather, scatters = Collective::reduce_scatter;
  const Cluster h100 = node(90, 8, LinkKind::nvlink, 450),
                b200 = node(100, 8, LinkKind::nvlink, 900);
  const auto lone = [](int capability, double gigabytes) {
    return nodes(2, node(capability, 1, LinkKind::nvlink, 450), 1, gigabytes);
  };
  // Four GPUs of a tray, each with two ports of 400 Gbit/s.
  const Cluster trays = nodes(2, node(103, 4, LinkKind::nvlink, 900), 8, 50);
  const std::string gather = "collectives/allgather_", scatter = "collectives/reducescatter_";
  std::vector<Sweep> sweeps{
      // One process drives all GPUs: up to 8 MiB all its collectives, all-reduces of NVLS too, take
      // 43 to 50 us.
      {gather + "8x_h100_nvswitch_bf16", "h100 bf16", h100, {}, 8, false, gathers},
      {scatter + "8x_h100_nvswitch_bf16", "h100 bf16", h100, {}, 8, false, scatters},
      {gather + "8x_h100_kernels", "megatron 5596", h100, {}, 1, false, gathers, true},
      {scatter + "8x_h100_kernels", "megatron 5596", h100, {}, 1, false, scatters, true},
      {gather + "2x_b200_nvlink",
       "dranet b200",
       node(100, 2, LinkKind::nvlink, 900),
       {},
       1,
       false,
       gathers},
      {gather + "8x_b200_torch", "triton 2361", b200, {}, 1, false, gathers},
      {gather + "2x_b200_2nodes_1nic_roce", "dranet b200", lone(100, 50), {}, 1, false, gathers},
      {gather + "8x_gb300_2trays_rdma", "a4x max", trays, {}, 1, false, gathers},
      {gather + "8x_gb300_2trays_rdma_run2", "a4x max", trays, {}, 1, false, gathers},
      // One of the bridge's two links: see the file's header.
      {gather + "2x_rtx2080ti_nvlink",
       "2080 ti bridge",
       node(75, 2, LinkKind::nvlink, 25, false),
       {},
       1,
       false,
       gathers},
      {gather + "2x_gb10_2nodes_200g", "gb10", lone(121, 25), {}, 1, false, gathers},
      // NCCL copies from GPU to GPU past no more than switches of PCIe, unless it is told to.
      {gather + "2x_pcie5_flashinfer",
       "flashinfer",
       node(120, 2, LinkKind::pcie, 63),
       {},
       1,
       false,
       gathers},
      {scatter + "8x_pcie5_flashinfer",
       "flashinfer",
       node(120, 8, LinkKind::pcie, 63),
       {},
       1,
       false,
       scatters},
      // As among the all-reduces: clouds' plugins, a NIC that is not beside the GPU, kernels that
      // copy through the host's memory, and a node that is set up badly.
      {gather + "2x_h200_2nodes_1nic_roce", "dranet h200", lone(90, 50), {}, 1, true, gathers},
      {gather + "16x_h100_2nodes_a3mega",
       "dstack",
       nodes(2, h100, 8, 25, LinkKind::ethernet),
       {},
       1,
       true,
       gathers},
      {gather + "16x_h100_2nodes_a3high",
       "dstack",
       nodes(2, h100, 4, 25, LinkKind::ethernet),
       {},
       1,
       true,
       gathers},
      {gather + "16x_b200_2nodes_roce_slow",
       "dranet b200",
       nodes(2, b200, 8, 50),
       {},
       1,
       true,
       gathers},
      {"nccl-tests/allgather_2x_rtx2080ti_pcie",
       "2080 ti",
       node(75, 2, LinkKind::pcie, 15.75),
       {},
       2,
       true,
       gathers},
  };
  for (Sweep& sweep : sweeps) {
    if (sweep.source != "a4x max" && sweep.source != "gb10" && sweep.source != "triton 2361" &&
        sweep.source != "megatron 5596" && sweep.source != "flashinfer")
      sweep.cluster.forced.release = NcclRelease::before_2_28;
    sweep.points = points_of(folder + "/" + sweep.file + ".csv");
    // Below, a call of torch takes longer than the collective: see the file's header.
    if (sweep.source == "triton 2361")
      std::erase_if(sweep.points, [](const Point& point) { return point.size < 512 * MiB; });
  }
  return sweeps;
}

/// What all sizes of a gather or a scatter reach on nodes of H100 with a NIC of 400 Gbit/s for each
/// GPU, as tests/data/collectives/rates_h100_roce_400g.csv has it: bytes/s beyond the time of the
/// smallest.
struct Rate {
  Collective collective = Collective::all_gather;
  int nodes = 1, ranks_per_node = 1;
  double gigabytes_per_second = 0;

  Cluster cluster() const {
    const Cluster inside = node(90, ranks_per_node, LinkKind::nvlink, 450);
    Cluster all = nodes == 1 ? inside : sweeps::nodes(nodes, inside, ranks_per_node, 50);
    all.forced.release = NcclRelease::before_2_28;
    return all;
  }
};

inline std::vector<Rate> all_rates(const std::string& folder) {
  const std::string file = folder + "/collectives/rates_h100_roce_400g.csv";
  std::ifstream in(file);
  if (!in) throw std::runtime_error(file + ": not there");
  std::vector<Rate> rates;
  for (std::string line; std::getline(in, line);) {
    const bool gathers = line.starts_with("all_gather,");
    if (!gathers && !line.starts_with("reduce_scatter,")) continue;
    std::istringstream fields(line.substr(line.find(',') + 1));
    Rate rate{gathers ? Collective::all_gather : Collective::reduce_scatter};
    double startup_us = 0;
    char comma = 0;
    fields >> rate.nodes >> comma >> rate.ranks_per_node >> comma >> startup_us >> comma >>
        rate.gigabytes_per_second;
    rates.push_back(rate);
  }
  return rates;
}

/// What the source makes of times, of a law's.
template <class TimeUs>
double gigabytes_per_second(const TimeUs& time_us) {
  double least = time_us(4 * KiB), most = 0;
  for (const Bytes size : {16 * KiB, 64 * KiB}) least = std::min(least, time_us(size));
  for (Bytes size = 128 * MiB; size <= GiB; size = 2 * size)
    most = std::max(most, 1e-3 * static_cast<double>(size.count) / (time_us(size) - least));
  return most;
}

}  // namespace ddpsim::sweeps
