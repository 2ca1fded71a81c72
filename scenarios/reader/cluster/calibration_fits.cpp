#include "scenarios/reader/cluster/calibration_fits.hpp"

#include <cmath>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "model/cost/calibration_fit.hpp"

namespace ddpsim {
namespace {

/// The name of a fit, and its figures in order.
struct Fit {
  std::string name;
  std::vector<std::pair<std::string, std::string>> figures;
};

/// What the law has of its three terms, and how near it comes.
Fit fit_of(std::string name, const CostLaw& law, const char* constant) {
  Fit fit{std::move(name), {}};
  if (law.constant > Duration::zero()) fit.figures.emplace_back(constant, to_string(law.constant));
  if (std::isfinite(law.arithmetic.flops_per_second))
    fit.figures.emplace_back("arithmetic", to_string(law.arithmetic));
  if (std::isfinite(law.bandwidth.bytes_per_second))
    fit.figures.emplace_back("bandwidth", to_string(law.bandwidth));
  fit.figures.emplace_back("error", fmt::format("{:.1f} %", 100 * law.residual));
  fit.figures.emplace_back("points", std::to_string(law.points));
  return fit;
}

std::vector<Fit> fits_of(const Calibration& calibration) {
  std::vector<Fit> fits;
  for (const DType type : all_dtypes)
    if (const auto law = fit_gemm(calibration.tasks, type))
      fits.push_back(fit_of(fmt::format("gemm {}", name_of(type)), *law, "constant"));
  if (const auto law = fit_streaming(calibration.tasks))
    fits.push_back(fit_of("streaming", *law, "constant"));
  if (const auto law = fit_all_reduce(calibration.all_reduce))
    fits.push_back(fit_of("all_reduce", *law, "latency"));
  if (const auto law = fit_interference(calibration))
    fits.push_back({"interference",
                    {{"multiprocessors_taken", fmt::format("{:.4g}", law->multiprocessors_taken)},
                     {"taken_per_channel", fmt::format("{:.4g}", law->taken_per_channel)},
                     {"memory_per_link_byte", fmt::format("{:.4g}", law->memory_per_link_byte)},
                     {"bandwidth_lost", fmt::format("{:.4g}", law->bandwidth_lost)},
                     {"points", std::to_string(law->points)}}});
  return fits;
}

}  // namespace

void write_fits(YAML::Emitter& out, const Calibration& calibration) {
  const std::vector<Fit> fits = fits_of(calibration);
  if (fits.empty()) return;
  out << YAML::Newline
      << YAML::Comment(
             "Laws through the points above, for people: what reads this file computes them anew.\n"
             "time = constant + flops / arithmetic + bytes / bandwidth; error: median, relative");
  out << YAML::Key << "fits" << YAML::Value << YAML::BeginMap;
  for (const Fit& fit : fits) {
    out << YAML::Key << fit.name << YAML::Value << YAML::Flow << YAML::BeginMap;
    for (const auto& [name, figure] : fit.figures)
      out << YAML::Key << name << YAML::Value << figure;
    out << YAML::EndMap;
  }
  out << YAML::EndMap;
}

}  // namespace ddpsim
