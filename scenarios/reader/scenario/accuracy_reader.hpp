#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/dtype.hpp"

namespace ddpsim {

/// What predictions were fitted to before they were held against measured rows: nothing, the step
/// without communication, the `naive` step, the `naive` and the `overlap` one, a `sharded` step, a
/// calibration of the machine, or a profile of the model. `described`: nothing either, and the
/// model was not of the catalogue but described, operation by operation.
enum class FittedOn : std::uint8_t {
  laws,
  none,
  naive,
  both,
  sharded,
  calibration,
  profile,
  described
};
inline constexpr std::array all_fitted_on{
    FittedOn::laws,    FittedOn::none,        FittedOn::naive,   FittedOn::both,
    FittedOn::sharded, FittedOn::calibration, FittedOn::profile, FittedOn::described};
constexpr std::string_view name_of(FittedOn fitted) {
  constexpr std::array<std::string_view, all_fitted_on.size()> names{
      "laws", "none", "naive", "both", "sharded", "calibration", "profile", "described"};
  return names[static_cast<std::size_t>(fitted)];
}

/// How far predictions of one measured setup were off.
struct KnownErrors {
  std::string setup;   ///< the name of its file in scenarios/measured, or of an experiment's case
  std::string device;  ///< of each rank
  std::string link;    ///< the kind of the link that decides; "" of one rank
  int ranks = 1;
  FittedOn fitted = FittedOn::laws;
  std::vector<double> errors;      ///< the predicted over the measured step, less 1; a row each
  std::optional<DType> compute{};  ///< how most products are multiplied; none: not known
  bool sharded = false;            ///< of steps of FSDP; or of those under which ranks keep all
};

/// The file accuracy.csv of the catalogue, which tools/accuracy writes: a line for each setup,
/// number of ranks and way of fitting; nothing where the catalogue has none. Throws InputError.
std::vector<KnownErrors> read_known_errors();

/// Why that file tells nothing: "FOLDER/accuracy.csv: no such file"; "" where it can be read.
std::string why_no_known_errors();
/// What to do about that.
inline constexpr const char* how_to_know_errors =
    "copy accuracy.csv from the installed catalogue, or install ddpsim again";

}  // namespace ddpsim
