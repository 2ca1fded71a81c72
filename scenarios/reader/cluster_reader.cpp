#include "scenarios/reader/cluster_reader.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

#include <fmt/format.h>

#include "model/cost/calibration_fit.hpp"
#include "scenarios/reader/calibration_reader.hpp"
#include "scenarios/reader/catalogue.hpp"
#include "scenarios/reader/quantity_text.hpp"

namespace ddpsim {
namespace {

/// Host costs where the scenario says nothing: 6 us to launch a kernel from the host; 35 us to
/// issue a collective through torch.distributed (pytorch pull request 147820: 70 us with, 35 us
/// without its second stream); a hook is one operation of a Python loop.
constexpr Launch default_launch{std::chrono::microseconds{6}, std::chrono::microseconds{35},
                                std::chrono::microseconds{12}};

void read_rates(const Yaml& given, Device& device) {
  YamlMap map(given);
  for (const DType type : all_dtypes)
    if (const auto rate = map.optional(std::string(name_of(type))))
      device.peak[static_cast<std::size_t>(type)] = rate->flop_rate();
  map.finish();
}

void read_efficiencies(const Yaml& given, Device& device) {
  YamlMap map(given);
  for (const DType type : all_dtypes)
    if (const auto share = map.optional(std::string(name_of(type))))
      device.gemm_efficiency[static_cast<std::size_t>(type)] = share->number(0.01, 1);
  map.finish();
}

void read_device_keys(const Yaml& given, Device& device) {
  YamlMap map(given);
  map.optional("base");
  if (const auto source = map.optional("source")) device.source = source->text("a text");
  if (const auto value = map.optional("compute_capability"))
    device.compute_capability = static_cast<int>(value->number(1, 20) * 10 + 0.5);
  if (const auto value = map.optional("multiprocessors"))
    device.multiprocessors = static_cast<int>(value->integer(1, 10000));
  if (const auto value = map.optional("memory")) device.memory = value->bytes();
  if (const auto value = map.optional("memory_bandwidth"))
    device.memory_bandwidth = value->bandwidth();
  if (const auto value = map.optional("memory_efficiency"))
    device.memory_efficiency = value->number(0.01, 1);
  if (const auto value = map.optional("peak")) read_rates(*value, device);
  if (const auto value = map.optional("gemm_efficiency")) read_efficiencies(*value, device);
  if (const auto value = map.optional("peer_to_peer")) device.peer_to_peer = value->boolean();
  if (const auto value = map.optional("synchronous")) device.synchronous = value->boolean();
  map.finish();
}

/// `all_reduce: [{bytes: 4096 B, time: 600 us}, ...]`.
AllReduceTable read_table(const Yaml& given) {
  AllReduceTable table;
  for (const Yaml& item :
       given.list("a list such as [{bytes: 1 MiB, time: 40 us}, ...] or the path of a CSV file")) {
    YamlMap map(item);
    const Yaml size = map.required("bytes");
    const Bytes bytes = size.bytes_or_count();
    const Duration time = map.required("time").duration();
    map.finish();
    if (!table.empty() && bytes <= table.back().first)
      size.fail("sizes must grow from entry to entry");
    table.emplace_back(bytes, time);
  }
  if (table.empty()) given.fail("expected at least one entry such as {bytes: 1 MiB, time: 40 us}");
  return table;
}

/// `all_reduce: table.csv`: lines "bytes,time_us,..."; lines starting with '#' are comments, and
/// the first other line names the columns.
AllReduceTable read_csv_table(const Yaml& given) {
  const std::filesystem::path path = given.folder() / given.text("the path of a CSV file");
  if (const std::string reason = unreadable(path); !reason.empty())
    given.fail(fmt::format("{}: {}", path.string(), reason));
  std::ifstream file(path);
  AllReduceTable table;
  std::size_t number = 0;
  bool header = false;
  const auto fail = [&](std::string_view problem) {
    throw InputError(fmt::format("{}:{}:1: {}", path.string(), number, problem));
  };
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.empty() || line.front() == '#') continue;
    const auto comma = line.find(',');
    if (comma == std::string::npos) fail("expected \"bytes,time_us\"");
    std::string first = line.substr(0, comma);
    std::string second = line.substr(comma + 1);
    second = second.substr(0, second.find(','));
    if (!header) {
      if (first != "bytes" || second != "time_us")
        fail("expected the columns \"bytes,time_us\" to be named first");
      header = true;
      continue;
    }
    const auto size = parse_integer(first);
    const auto time = parse_number(second);
    const Duration duration =
        time && std::abs(*time) <= 1e9 ? from_seconds(*time * 1e-6) : Duration{};
    if (!size || *size <= 0 || duration <= Duration::zero())
      fail("expected a size in bytes and a time in microseconds, both above zero");
    if (!table.empty() && *size <= table.back().first.count)
      fail("sizes must grow from line to line");
    table.emplace_back(Bytes{*size}, duration);
  }
  if (table.empty()) given.fail(fmt::format("{} holds no table", path.string()));
  return table;
}

void read_link_keys(const Yaml& given, Link& link) {
  YamlMap map(given);
  map.optional("base");
  if (const auto format = map.optional("format");
      format && format->text("ddpsim.link/1") != "ddpsim.link/1")
    format->fail("expected ddpsim.link/1");
  if (const auto source = map.optional("source")) link.source = source->text("a text");
  if (const auto kind = map.optional("kind")) link.kind = kind->one_of<LinkKind>(all_link_kinds);
  if (const auto value = map.optional("latency")) link.latency = value->duration_or_zero();
  if (const auto value = map.optional("bandwidth")) {
    link.bandwidth = value->bandwidth();
    link.nccl_bandwidth = Bandwidth{};  // a base's figure belongs to the base's bandwidth
  }
  if (const auto value = map.optional("nccl_bandwidth")) link.nccl_bandwidth = value->bandwidth();
  if (const auto value = map.optional("nvswitch")) link.nvswitch = value->boolean();
  if (const auto value = map.optional("nics")) link.nics = static_cast<int>(value->integer(1, 64));
  if (const auto value = map.optional("ranks"))
    link.table_ranks = static_cast<int>(value->integer(1, 1000000));
  if (const auto value = map.optional("all_reduce"))
    link.all_reduce = value->is_list() ? read_table(*value) : read_csv_table(*value);
  map.finish();
}

FixedInterference read_interference(const Yaml& given) {
  FixedInterference fixed;
  YamlMap map(given);
  if (const auto value = map.optional("compute_slowdown"))
    fixed.compute_slowdown = value->number(1, 100);
  if (const auto value = map.optional("communication_slowdown"))
    fixed.communication_slowdown = value->number(1, 100);
  map.finish();
  return fixed;
}

Duration read_launch_time(const Yaml& given) {
  const Duration time = given.duration_or_zero();
  if (time > std::chrono::seconds{1}) given.fail("expected a launch of at most one second");
  return time;
}

/// `sync`, one time for kernels and collectives, or a mapping.
void read_launch(const Yaml& given, Cluster& cluster) {
  if (given.is_map()) {
    YamlMap map(given);
    if (const auto value = map.optional("kernel")) cluster.launch.kernel = read_launch_time(*value);
    if (const auto value = map.optional("collective"))
      cluster.launch.collective = read_launch_time(*value);
    if (const auto value = map.optional("hook")) cluster.launch.hook = read_launch_time(*value);
    if (const auto value = map.optional("handover"))
      cluster.launch.handover = read_launch_time(*value);
    if (const auto value = map.optional("wait")) cluster.launch.wait = read_launch_time(*value);
    map.finish();
    return;
  }
  if (given.text("a time such as \"6 us\", or sync") == "sync") {
    cluster.device.synchronous = true;
    cluster.launch.kernel = Duration::zero();  // a call, not a launch
    return;
  }
  cluster.launch.kernel = cluster.launch.collective = read_launch_time(given);
}

/// The cluster that was measured.
Cluster calibrated(const Yaml& given) {
  Cluster cluster = cluster_of(read_calibration(given));
  cluster.device.name = printable(cluster.device.name);
  return cluster;
}

}  // namespace

Device read_device(const Yaml& given) {
  Device device;
  device.gemm_efficiency.fill(0.7);
  std::vector<Entry> entries = entry_with_bases(given, device_entries);
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry)
    read_device_keys(entry->yaml, device);
  device.name = entries.front().name;
  const auto need = [&](bool there, const char* key) {
    if (!there) entries.front().yaml.fail(fmt::format("missing key \"{}\"", key));
  };
  need(device.memory_bandwidth.bytes_per_second > 0, "memory_bandwidth");
  need(std::any_of(device.peak.begin(), device.peak.end(),
                   [](FlopRate rate) { return rate.flops_per_second > 0; }),
       "peak");
  need(device.synchronous || device.multiprocessors > 1, "multiprocessors");
  return device;
}

Link read_link(const Yaml& given) {
  Link link;
  std::vector<Entry> entries = entry_with_bases(given, link_entries);
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry)
    read_link_keys(entry->yaml, link);
  link.name = entries.front().name;
  if (link.bandwidth.bytes_per_second <= 0 && link.all_reduce.empty())
    entries.front().yaml.fail("missing key \"bandwidth\" (or a measured \"all_reduce\" table)");
  return link;
}

Cluster read_cluster(const Yaml& given) {
  Cluster cluster;
  YamlMap map(given);
  const auto calibration = map.optional("calibration");
  if (calibration) cluster = calibrated(*calibration);
  const auto device = map.optional("device");
  if (device || !calibration) cluster.device = read_device(map.required("device"));
  if (cluster.device.memory_bandwidth.bytes_per_second <= 0)
    calibration->fail("no task was measured: name the \"device\" as well");
  cluster.launch = calibration ? cluster.calibration->launch : default_launch;
  if (cluster.device.synchronous) cluster.launch.kernel = Duration::zero();
  if (const auto value = map.optional("nodes"))
    cluster.nodes = static_cast<int>(value->integer(1, 100000));
  if (const auto value = map.optional("ranks_per_node"))
    cluster.ranks_per_node = static_cast<int>(value->integer(1, 1024));
  const auto intra = map.optional("intra_node");
  const auto inter = map.optional("inter_node");
  if (intra) cluster.intra_node = read_link(*intra);
  if (inter) cluster.inter_node = read_link(*inter);
  if (calibration && (intra || inter)) cluster.calibration->all_reduce.clear();
  const bool linked = calibration && !cluster.calibration->all_reduce.empty();
  if (!linked && !intra && cluster.ranks_per_node > 1)
    given.fail(
        "missing key \"intra_node\": what links the ranks of a node, such as nvlink4 or pcie4");
  if (!linked && !inter && cluster.nodes > 1)
    given.fail("missing key \"inter_node\": what links the nodes, such as ib-ndr or ethernet-100g");
  if (const auto value = map.optional("cpu"))
    cluster.cpu = value->one_of<CpuVendor>(all_cpu_vendors);
  if (const auto value = map.optional("collectives")) {
    if (value->is_scalar() && value->text("a name") == "steps")
      value->fail(
          "steps (every ring step simulated) is not built yet; use auto, nccl, alpha-beta or "
          "table");
    cluster.collectives = value->one_of<CollectiveModel>(all_collective_models);
    const Link& link = cluster.nodes > 1 ? cluster.inter_node : cluster.intra_node;
    if (cluster.collectives == CollectiveModel::table && link.all_reduce.empty() && !linked)
      value->fail("table needs a link with an all_reduce table");
    if (cluster.collectives == CollectiveModel::alpha_beta && link.bandwidth.bytes_per_second <= 0)
      value->fail("alpha-beta needs a link with latency and bandwidth");
    if (cluster.collectives == CollectiveModel::nccl && cluster.device.compute_capability == 0)
      value->fail("nccl needs a CUDA device");
  }
  if (const auto value = map.optional("interference")) {
    if (value->is_map())
      cluster.interference = read_interference(*value);
    else if (value->text("auto or a mapping") != "auto")
      value->fail("expected auto or {compute_slowdown: 1.15, communication_slowdown: 1.05}");
  }
  if (const auto value = map.optional("launch")) read_launch(*value, cluster);
  if (const auto value = map.optional("collectives_at_once"))
    cluster.collectives_at_once = static_cast<int>(value->integer(1, 8));
  if (const auto value = map.optional("through_host")) {
    if (cluster.device.synchronous)
      value->fail("a CPU's memory is the host's: through_host is for GPUs");
    if (cluster.collectives == CollectiveModel::nccl)
      value->fail("collectives on the hosts are not NCCL's: take collectives: nccl out");
    cluster.through_host = value->bandwidth();
    // By the links as they are written: no NCCL, and no SMs taken from kernels.
    const Link& link = cluster.nodes > 1 ? cluster.inter_node : cluster.intra_node;
    if (cluster.collectives == CollectiveModel::automatic)
      cluster.collectives =
          !link.all_reduce.empty() || linked ? CollectiveModel::table : CollectiveModel::alpha_beta;
    if (!cluster.interference && !linked) cluster.interference = FixedInterference{};
  }
  map.finish();
  return cluster;
}

}  // namespace ddpsim
