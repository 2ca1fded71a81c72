#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "model/cost/port_law.hpp"
#include "tests/model/cost/public_sweeps.hpp"

// Fits the constants of model/cost/port_law.cpp on the public sweeps of tests/data, and says how
// far the law is from them:
//
//     fit_ports TESTS/DATA            the errors of the law as it is, beside NCCL's own model
//     fit_ports TESTS/DATA --fit      fits anew, and prints the constants
//     fit_ports TESTS/DATA --leave    fits without each source in turn, and predicts that source
//     fit_ports TESTS/DATA --rows     every row: measured, the law's time, and what the law chose
//     fit_ports TESTS/DATA --shards   every row of an all-gather or a reduce-scatter, as CSV, by
//                                     constants that are fitted without its source
//     fit_ports TESTS/DATA --fit-shards  fits the constants of these two, and prints them
//     fit_ports TESTS/DATA --rates    rates of both on 1 to 32 nodes of H100, measured and by the
//                                     law, as CSV: none is fitted
//
// Each source counts alike, however many rows it has; the loss is the mean of |log(law /
// measured)|, at most 0.6 a row. Constants move one at a time, in steps that shrink.

namespace ddpsim {
namespace {

using sweeps::Sweep;

struct Constant {
  const char* name;
  double least, most;
  std::function<double&(PortConstants&)> of;
};

/// No link carries more than its line rate, and PCIe no more than packets of 256 bytes with 24 of
/// headers leave. Where a bound is within that: a message of 1 GiB takes at most 1.35 times its
/// bytes through the narrowest port, and the smallest on Hopper 13 us.
const std::vector<Constant>& constants() {
  static const std::vector<Constant> all{
      {"nvlink", 0.79, 1, [](PortConstants& c) -> double& { return c.nvlink; }},
      {"nvls", 0.4, 1, [](PortConstants& c) -> double& { return c.nvls; }},
      {"pcie", 0.78, 0.92, [](PortConstants& c) -> double& { return c.pcie; }},
      {"host", 0.78, 0.92, [](PortConstants& c) -> double& { return c.host; }},
      {"network", 0.5, 1, [](PortConstants& c) -> double& { return c.network; }},
      {"start us", 0, 3, [](PortConstants& c) -> double& { return c.start_us; }},
  };
  return all;
}

/// The constants of all-gathers and reduce-scatters.
const std::vector<Constant>& shard_constants() {
  static const std::vector<Constant> all{
      {"blackwell", 0.7, 1, [](PortConstants& c) -> double& { return c.blackwell; }},
      {"in place", 0, 1, [](PortConstants& c) -> double& { return c.in_place; }},
  };
  return all;
}

/// law / measured of every point.
std::vector<double> ratios(const Sweep& sweep, const PortConstants& constants) {
  const PortLaw law(sweep.cluster, constants);
  std::vector<double> ratios;
  for (const sweeps::Point& point : sweep.points) {
    const double time = in_us(law.chosen(sweep.collective, point.size).time());
    ratios.push_back(sweep.measured_us(time, constants.start_us) / point.time_us);
  }
  return ratios;
}

std::vector<double> ratios_of_nccl(const Sweep& sweep) {
  const NcclLaw law(nccl_system(sweep.cluster));
  std::vector<double> ratios;
  for (const sweeps::Point& point : sweep.points) {
    const double time = in_us(law.choose(sweep.collective, point.size).time);
    ratios.push_back(sweep.measured_us(time, 0) / point.time_us);
  }
  return ratios;
}

double loss(const std::vector<Sweep>& sweeps, const PortConstants& constants) {
  std::map<std::string, std::pair<double, int>> by_source;
  for (const Sweep& sweep : sweeps)
    for (const double ratio : ratios(sweep, constants)) {
      auto& [sum, count] = by_source[sweep.source];
      sum += std::min(0.6, std::abs(std::log(ratio)));
      ++count;
    }
  double sum = 0;
  for (const auto& [source, part] : by_source) sum += part.first / part.second;
  return sum / static_cast<double>(by_source.size());
}

PortConstants fit(const std::vector<Sweep>& sweeps, const std::vector<Constant>& constants,
                  PortConstants best = fitted_ports()) {
  double least = loss(sweeps, best);
  for (double step = 0.16; step > 0.004; step /= 2)
    for (const Constant& constant : constants)
      for (const double factor : {1 + step, 1 / (1 + step)})
        while (true) {
          PortConstants next = best;
          double& value = constant.of(next);
          value = std::clamp(value * factor, constant.least, constant.most);
          const double found = loss(sweeps, next);
          if (found >= least - 1e-6) break;
          least = found;
          best = next;
        }
  return best;
}

/// The rows from 1 MiB of the sweeps that are not outside, nor of the source.
std::vector<Sweep> rows_of_shards(const std::vector<Sweep>& sweeps, const std::string& but) {
  std::vector<Sweep> found;
  for (const Sweep& sweep : sweeps) {
    if (sweep.outside || sweep.source == but) continue;
    found.push_back(sweep);
    std::erase_if(found.back().points, [](const sweeps::Point& point) { return point.size < MiB; });
  }
  return found;
}

/// From values that no sweep has seen.
PortConstants fit_shards(const std::vector<Sweep>& sweeps, const std::string& but) {
  PortConstants start = fitted_ports();
  for (const Constant& constant : shard_constants()) constant.of(start) = 1;
  return fit(rows_of_shards(sweeps, but), shard_constants(), start);
}

struct Summary {
  double median = 0, ninth = 0;
};

Summary summary(std::vector<double> ratios) {
  for (double& ratio : ratios) ratio = std::abs(ratio - 1);
  std::sort(ratios.begin(), ratios.end());
  return {ratios[ratios.size() / 2], ratios[ratios.size() * 9 / 10]};
}

void print(const char* what, const std::vector<double>& ratios) {
  const Summary found = summary(ratios);
  std::printf("%-52s %4zu rows  median %5.1f %%  nine in ten within %5.1f %%\n", what,
              ratios.size(), 100 * found.median, 100 * found.ninth);
}

template <class RatiosOf>
void print_all(const std::vector<Sweep>& sweeps, const RatiosOf& ratios_of, bool each) {
  std::vector<double> all, with_outside, usual, gibibyte;
  for (const Sweep& sweep : sweeps) {
    const std::vector<double> found = ratios_of(sweep);
    if (each) print(sweep.file.c_str(), found);
    with_outside.insert(with_outside.end(), found.begin(), found.end());
    if (sweep.outside) continue;
    all.insert(all.end(), found.begin(), found.end());
    for (std::size_t i = 0; i < found.size(); ++i) {
      const Bytes size = sweep.points[i].size;
      if (size == GiB) gibibyte.push_back(found[i]);
      if (size >= KiB && size <= 8 * GiB) usual.push_back(found[i]);
    }
  }
  print("all but hosts' memory and clouds' plugins", all);
  print("of these, 1 KiB to 8 GiB", usual);
  print("all", with_outside);
  print("at 1 GiB", gibibyte);
}

void print(const PortConstants& values, const std::vector<Constant>& constants) {
  PortConstants copy = values;
  for (const Constant& constant : constants)
    std::printf("%-20s %.3f\n", constant.name, constant.of(copy));
}

/// One line for each row of a sweep, with every combination's time beside the chosen one's.
void print_rows(const Sweep& sweep) {
  const PortLaw law(sweep.cluster);
  std::printf("%s\n%12s %12s %12s %7s  %s\n", sweep.file.c_str(), "bytes", "measured us", "law us",
              "error", "chosen, bound by; all others in us");
  for (const sweeps::Point& point : sweep.points) {
    const PortLaw::Price found = law.chosen(sweep.collective, point.size);
    const double time = sweep.measured_us(in_us(found.time()), fitted_ports().start_us);
    std::printf("%12lld %12.1f %12.1f %+5.0f %%  %s %s, %s;",
                static_cast<long long>(point.size.count), point.time_us, time,
                100 * (time / point.time_us - 1), name_of(*found.choice.algorithm).data(),
                name_of(*found.choice.protocol).data(), name_of(found.choice.bound).data());
    for (const NcclAlgorithm algorithm : all_nccl_algorithms)
      for (const NcclProtocol protocol : all_nccl_protocols)
        if (const auto other = law.price(sweep.collective, algorithm, protocol, point.size))
          std::printf(" %s %s %.0f", name_of(algorithm).data(), name_of(protocol).data(),
                      in_us(other->time()));
    std::printf("\n");
  }
}

/// Prints of every row: file, source, is it outside, collective, ranks, bytes, measured and by law,
/// us, the algorithm, the protocol, what bounds it; by constants of shards that are fitted without
/// the source.
void print_shards(const std::vector<Sweep>& sweeps) {
  for (const Sweep& sweep : sweeps) {
    const PortLaw law(sweep.cluster, fit_shards(sweeps, sweep.source));
    for (const sweeps::Point& point : sweep.points) {
      const PortLaw::Price found = law.chosen(sweep.collective, point.size);
      std::printf("%s,%s,%d,%s,%d,%lld,%.2f,%.2f,%s,%s,%s\n", sweep.file.c_str(),
                  sweep.source.c_str(), sweep.outside,
                  sweep.collective == Collective::all_gather ? "all-gather" : "reduce-scatter",
                  sweep.cluster.ranks(), static_cast<long long>(point.size.count), point.time_us,
                  sweep.measured_us(in_us(found.time()), fitted_ports().start_us),
                  name_of(*found.choice.algorithm).data(), name_of(*found.choice.protocol).data(),
                  name_of(found.choice.bound).data());
    }
  }
}

/// Prints of every rate: collective, nodes, ranks of each, measured and by the law (GB/s).
void print_rates(const std::vector<sweeps::Rate>& rates, const PortConstants& constants) {
  for (const sweeps::Rate& rate : rates) {
    const PortLaw law(rate.cluster(), constants);
    const double found = sweeps::gigabytes_per_second(
        [&](Bytes size) { return in_us(law.chosen(rate.collective, size).time()); });
    std::printf("%s,%d,%d,%.1f,%.1f\n",
                rate.collective == Collective::all_gather ? "all-gather" : "reduce-scatter",
                rate.nodes, rate.ranks_per_node, rate.gigabytes_per_second, found);
  }
}

int main_of(int count, char** words) {
  if (count < 2) {
    std::fprintf(stderr,
                 "usage: fit_ports TESTS/DATA [--fit | --leave | --rows | --shards | --fit-shards "
                 "| --rates]\n");
    return 2;
  }
  const std::vector<Sweep> sweeps = sweeps::all_sweeps(words[1]);
  std::vector<Sweep> inside;
  for (const Sweep& sweep : sweeps)
    if (!sweep.outside) inside.push_back(sweep);
  const std::string mode = count > 2 ? words[2] : "";
  if (mode == "--leave") {
    std::vector<double> all;
    std::map<std::string, std::vector<Sweep>> by_source;
    for (const Sweep& sweep : inside) by_source[sweep.source].push_back(sweep);
    for (const auto& [source, left_out] : by_source) {
      std::vector<Sweep> others;
      for (const Sweep& sweep : inside)
        if (sweep.source != source) others.push_back(sweep);
      const PortConstants found = fit(others, constants());
      std::vector<double> ratios_here;
      for (const Sweep& sweep : left_out)
        for (const double ratio : ratios(sweep, found)) ratios_here.push_back(ratio);
      print(source.c_str(), ratios_here);
      all.insert(all.end(), ratios_here.begin(), ratios_here.end());
    }
    print("every source predicted without itself", all);
    return 0;
  }
  if (mode == "--shards") {
    print_shards(sweeps::shard_sweeps(words[1]));
    return 0;
  }
  if (mode == "--fit-shards") {
    print(fit_shards(sweeps::shard_sweeps(words[1]), ""), shard_constants());
    return 0;
  }
  if (mode == "--rates") {
    print_rates(sweeps::all_rates(words[1]), fitted_ports());
    return 0;
  }
  if (mode == "--rows") {
    for (const Sweep& sweep : sweeps) print_rows(sweep);
    for (const Sweep& sweep : sweeps::shard_sweeps(words[1])) print_rows(sweep);
    return 0;
  }
  PortConstants values = fitted_ports();
  if (mode == "--fit") {
    values = fit(inside, constants());
    print(values, constants());
  } else {
    std::printf("NCCL's own model\n");
    print_all(sweeps, ratios_of_nccl, true);
  }
  std::printf("\nby ports\n");
  print_all(
      sweeps, [&](const Sweep& sweep) { return ratios(sweep, values); }, true);
  return 0;
}

}  // namespace
}  // namespace ddpsim

int main(int count, char** words) {
  return ddpsim::main_of(count, words);
}
