#include "model/program/action.hpp"

#include <array>

namespace ddpsim::program {

std::string_view name_of(Collectives collective) {
  switch (collective) {
    case Collectives::all_reduce:
      return "all_reduce";
    case Collectives::all_gather:
      return "all_gather";
    case Collectives::reduce_scatter:
      return "reduce_scatter";
    case Collectives::broadcast:
      return "broadcast";
    case Collectives::all_to_all:
      return "all_to_all";
  }
  return "?";
}

std::string_view name_of(Reduction reduction) {
  switch (reduction) {
    case Reduction::none:
      return "none";
    case Reduction::sum:
      return "sum";
    case Reduction::mean:
      return "mean";
  }
  return "?";
}

std::string_view name_of(const Action& action) {
  /// As in the variant, whose last but two is told by which collective it is.
  static constexpr std::array<std::string_view, std::variant_size_v<Action>> names{
      "Wait",       "Meet",     "Pause",      "Call",          "Chunked", "Compute", "Scale",
      "Fill",       "Combine",  "Cast",       "TakeRows",      "AddRows", "Pack",    "Chunk",
      "Unchunk",    "TakePart", "Multiply",   "Orthogonalize", "Draw",    "Observe", "Quantize",
      "Dequantize", "Select",   "Spread",     "Clip",          "Noise",   "Plugin",  "Touch",
      "Update",     "Move",     "Collective", "Send",          "Receive"};
  if (const auto* collective = std::get_if<Collective>(&action)) return name_of(collective->what);
  return names[action.index()];
}

bool is_unawaited(const Action& action) {
  if (const auto* collective = std::get_if<Collective>(&action)) return collective->unawaited;
  if (const auto* move = std::get_if<Move>(&action)) return move->unawaited;
  return false;
}

std::int16_t communicator_of(const Action& action) {
  if (const auto* collective = std::get_if<Collective>(&action)) return collective->communicator;
  if (const auto* send = std::get_if<Send>(&action)) return send->communicator;
  if (const auto* receive = std::get_if<Receive>(&action)) return receive->communicator;
  return static_cast<std::int16_t>(nobody);
}

}  // namespace ddpsim::program
