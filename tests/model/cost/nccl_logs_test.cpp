#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "model/cost/nccl_law.hpp"

// How far NCCL's time model is from public nccl-tests logs (out-of-place times); how far the law is
// that predictions use, see port_law_test.cpp. Each log's header
// names the machine; what the law needs beyond that is assumed where the cluster is made. The bands
// say what to expect of the law: about right for large messages over NVLink and RDMA, up to twice
// too fast for small ones, and many times too fast wherever data passes through a host.

using namespace ddpsim;

namespace {

const std::string log_folder = std::string(DDPSIM_TEST_DATA) + "/nccl-tests";

struct Row {
  Bytes size;
  double time_us;
};

std::vector<Row> rows_of(const std::string& file) {
  std::ifstream in(log_folder + "/" + file);
  REQUIRE(in);
  std::vector<Row> rows;
  for (std::string line; std::getline(in, line);) {
    std::istringstream fields(line);
    Row row;
    char comma = 0;
    if (fields >> row.size.count >> comma >> row.time_us) rows.push_back(row);
  }
  REQUIRE_FALSE(rows.empty());
  return rows;
}

Cluster logged_node(int ranks, int capability, LinkKind kind, double gigabytes,
                    CpuVendor cpu = CpuVendor::intel) {
  Cluster cluster;
  cluster.ranks_per_node = ranks;
  cluster.cpu = cpu;
  cluster.device.compute_capability = capability;
  cluster.device.peer_to_peer = kind == LinkKind::nvlink;
  cluster.intra_node.kind = kind;
  cluster.intra_node.nccl_bandwidth = gigabytes_per_second(gigabytes);
  cluster.intra_node.nvswitch = kind == LinkKind::nvlink;
  return cluster;
}

/// Two nodes with one RDMA NIC of that speed for each GPU.
Cluster two_of(Cluster node, double nic_gigabytes) {
  node.nodes = 2;
  node.inter_node.kind = LinkKind::infiniband;
  node.inter_node.bandwidth = gigabytes_per_second(nic_gigabytes);
  return node;
}

Cluster hopper_node(int ranks) {
  return logged_node(ranks, 90, LinkKind::nvlink, 18 * 20.6);
}
Cluster b200_node() {
  return logged_node(8, 100, LinkKind::nvlink, 18 * 40.1);
}
Cluster amd_node_of_5090() {
  return logged_node(4, 120, LinkKind::pcie, 48, CpuVendor::amd);
}
Cluster a100_node() {
  return logged_node(8, 80, LinkKind::nvlink, 12 * 20.0);
}

/// Model over measurement, rounded outwards to two decimals.
struct Band {
  double least, most;
};

struct Log {
  std::string file;
  Cluster cluster;
  Band all, large;  ///< over all sizes, and from 64 MiB on
};

std::vector<Log> logs() {
  const Cluster pcie4_pair = logged_node(2, 89, LinkKind::pcie, 24);
  return {
      // NVLink: right to a tenth or so from 64 MiB on. Below, kernels start later than NCCL thinks,
      // most of all where one process starts them for every GPU in turn.
      {"allreduce_2x_h100_nvswitch.csv", hopper_node(2), {0.49, 1.01}, {0.90, 1.01}},
      {"allreduce_8x_h100_nvswitch_p5.csv", hopper_node(8), {0.66, 1.17}, {0.83, 1.02}},
      {"allreduce_8x_a100_nvswitch_8proc.csv", a100_node(), {0.51, 1.03}, {0.87, 0.98}},
      {"allreduce_8x_a100_nvswitch_1proc.csv", a100_node(), {0.35, 0.98}, {0.78, 0.98}},
      // RDMA, 400 Gb/s for each GPU (the log does not say; nor that the CPUs are Intel's).
      {"allreduce_16x_h200_2nodes_large.csv",
       two_of(hopper_node(8), 50),
       {0.98, 1.04},
       {0.98, 1.04}},
      // The same NICs assumed. For large messages the law is slower than the machine: its search
      // gives an NVLS head no more on NVLink than its NIC has, 48 GB/s, and 0.74 of that counts.
      // The 0.23 is one row, 512 KiB: 241 us out of place, 126 in place.
      {"allreduce_16x_b200_2nodes_lambda.csv", two_of(b200_node(), 50), {0.23, 1.42}, {0.91, 1.42}},
      // 200 Gb/s for each GPU, but through GPUDirect-TCPXO: the smallest messages take 120 us.
      {"allreduce_16x_h100_2nodes_a3mega.csv",
       two_of(hopper_node(8), 25),
       {0.17, 1.10},
       {0.40, 1.10}},
      // One RoCE NIC of 400 Gb/s in a virtual machine: it reaches 32 of its 50 GB/s.
      {"allreduce_2x_h200_2nodes_1nic_roce.csv",
       two_of(hopper_node(1), 50),
       {0.34, 0.67},
       {0.64, 0.67}},
      // GeForce GPUs cannot copy to each other: data goes through host memory, and NCCL counts the
      // PCIe links alone. The slower the host, the further off.
      {"allreduce_4x_rtx5090_pcie.csv", amd_node_of_5090(), {0.43, 0.83}, {0.57, 0.58}},
      {"allreduce_2x_rtx4090_pcie_docker.csv", pcie4_pair, {0.10, 0.96}, {0.10, 0.12}},
      {"allreduce_2x_rtx4090_pcie_k8s.csv", pcie4_pair, {0.18, 0.79}, {0.18, 0.20}},
      {"allreduce_4x_rtx4090_pcie_docker.csv",
       logged_node(4, 89, LinkKind::pcie, 24),
       {0.12, 0.67},
       {0.12, 0.13}},
      {"allreduce_2x_rtx2080ti_pcie.csv",
       logged_node(2, 75, LinkKind::pcie, 12),
       {0.39, 0.80},
       {0.39, 0.41}},
  };
}

// Outside the law: ranks that share one GPU wait for its time slices, and one rank only copies.
const std::set<std::string> outside{"allreduce_2ranks_on_1x_rtx5090_socket.csv",
                                    "allreduce_3ranks_on_1x_rtx5090_socket.csv",
                                    "allreduce_1x_rtx5090_single_rank.csv"};

// Other operations than all-reduce; NCCL prices no send and receive.
const std::set<std::string> other_operations{
    "allgather_2ranks_on_1x_rtx5090_socket.csv", "allgather_2x_rtx2080ti_pcie.csv",
    "broadcast_2x_rtx2080ti_pcie.csv", "sendrecv_2x_a100_nv4.csv"};

double ratio(const NcclLaw& law, const Row& row) {
  return in_us(law.choose(Collective::all_reduce, row.size).time) / row.time_us;
}

/// The band over the rows from `least_size` on.
Band band_of(const Log& log, Bytes least_size) {
  const NcclLaw law(nccl_system(log.cluster));
  Band band{std::numeric_limits<double>::infinity(), 0};
  for (const Row& row : rows_of(log.file)) {
    if (row.size < least_size) continue;
    band.least = std::min(band.least, ratio(law, row));
    band.most = std::max(band.most, ratio(law, row));
  }
  return band;
}

/// Inside the band stated, which is no wider than two decimals make it.
void check_band(const Band& found, const Band& stated) {
  CHECK(found.least >= stated.least);
  CHECK(found.least < stated.least + 0.01);
  CHECK(found.most <= stated.most);
  CHECK(found.most > stated.most - 0.01);
}

}  // namespace

TEST_CASE("the law is as far from public logs as stated, and no further", "[model][nccl_logs]") {
  for (const Log& log : logs()) {
    CAPTURE(log.file);
    check_band(band_of(log, Bytes{0}), log.all);
    check_band(band_of(log, 64 * MiB), log.large);
  }
}

TEST_CASE("the law over the log has the ratios worked out apart from it", "[model][nccl_logs]") {
  using Ratios = std::vector<std::pair<Bytes, double>>;
  const auto check = [](const std::string& file, const Cluster& cluster, const Ratios& expected) {
    const NcclLaw law(nccl_system(cluster));
    std::map<Bytes, double> found;
    for (const Row& row : rows_of(file)) found[row.size] = ratio(law, row);
    for (const auto& [size, value] : expected) {
      CAPTURE(file, to_string(size));
      CHECK(found.at(size) == Approx(value).epsilon(0).margin(0.005));
    }
  };
  check("allreduce_2x_h100_nvswitch.csv", hopper_node(2),
        {{KiB, 0.50},
         {64 * KiB, 0.59},
         {MiB, 0.58},
         {16 * MiB, 0.84},
         {64 * MiB, 0.90},
         {256 * MiB, 0.96},
         {GiB, 1.00}});
  check("allreduce_8x_h100_nvswitch_p5.csv", hopper_node(8),
        {{KiB, 0.91},
         {64 * KiB, 0.83},
         {MiB, 0.98},
         {16 * MiB, 0.70},
         {64 * MiB, 0.83},
         {256 * MiB, 0.90},
         {GiB, 0.93},
         {4 * GiB, 1.00}});
  check("allreduce_8x_a100_nvswitch_8proc.csv", a100_node(),
        {{KiB, 0.61},
         {64 * KiB, 0.51},
         {MiB, 0.95},
         {16 * MiB, 0.81},
         {64 * MiB, 0.89},
         {256 * MiB, 0.91},
         {GiB, 0.96},
         {4 * GiB, 0.97}});
  check("allreduce_16x_h200_2nodes_large.csv", two_of(hopper_node(8), 50),
        {{GiB, 0.98}, {4 * GiB, 1.03}});
}

TEST_CASE("every log is compared or left out by name", "[model][nccl_logs]") {
  std::set<std::string> named = outside;
  named.insert(other_operations.begin(), other_operations.end());
  for (const Log& log : logs()) named.insert(log.file);
  std::set<std::string> present;
  for (const auto& entry : std::filesystem::directory_iterator(log_folder))
    present.insert(entry.path().filename().string());
  CHECK(present == named);
}
