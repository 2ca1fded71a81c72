#include "backend/comm_hooks/action_table.hpp"

namespace ddpsim {

ActionMeaning meaning_of(CommAction action) {
  using enum HookPrimitive;
  using Piece = HookPiece;
  switch (action) {
    case CommAction::divide:
      return {divide, Piece::data};
    case CommAction::narrow:
    case CommAction::widen:
      return {cast, Piece::data};
    case CommAction::scale:
      return {scale, Piece::data};
    case CommAction::reduce:
      return {all_reduce, Piece::data};

    case CommAction::pad:
      return {pad, Piece::data};
    case CommAction::add_error:
      return {add, Piece::data, Piece::error};
    case CommAction::keep_input:
      return {copy, Piece::input, Piece::data};
    case CommAction::pack:
      return {pack, Piece::small, Piece::data};
    case CommAction::draw_q:
      return {draw, Piece::q};
    case CommAction::orthogonalize_q:
      return {orthogonalize, Piece::q};
    case CommAction::project:  // P = M Q
      return {multiply, Piece::p, Piece::matrix, Piece::q};
    case CommAction::reduce_small:
      return {all_reduce, Piece::small};
    case CommAction::unpack:
      return {unpack, Piece::data, Piece::small};
    case CommAction::reduce_p:
      return {all_reduce, Piece::p};
    case CommAction::orthogonalize_p:
      return {orthogonalize, Piece::p};
    case CommAction::back_project:  // Q = M^T P
      return {multiply, Piece::q, Piece::matrix, Piece::p};
    case CommAction::reduce_q:
      return {all_reduce, Piece::q};
    case CommAction::divide_q:
      return {divide, Piece::q};
    case CommAction::reconstruct:  // M = P Q^T
      return {multiply, Piece::matrix, Piece::p, Piece::q};
    case CommAction::keep_error:
      return {subtract, Piece::error, Piece::input, Piece::data};
    case CommAction::unpad:
      return {unpad, Piece::data};

    case CommAction::observe:
      return {observe, Piece::scales, Piece::data};
    case CommAction::gather_scales:
      return {all_gather, Piece::scales};
    case CommAction::quantize:
      return {quantize, Piece::codes, Piece::data, Piece::scales};
    case CommAction::gather_codes:
      return {all_gather, Piece::codes};
    case CommAction::dequantize:
      return {dequantize, Piece::data, Piece::codes, Piece::scales};

    case CommAction::select:
      return {select, Piece::pairs, Piece::data};
    case CommAction::gather_pairs:
      return {all_gather, Piece::pairs};
    case CommAction::spread_pairs:
      return {spread, Piece::data, Piece::pairs};
    case CommAction::scatter_reduce:
      return {reduce_scatter, Piece::data};
    case CommAction::gather_parts:
      return {all_gather, Piece::own_part};
    case CommAction::gather_sum:
      return {all_gather, Piece::data};
    case CommAction::broadcast:
      return {broadcast, Piece::data};
    case CommAction::touch:
      return {touch, Piece::data};

    case CommAction::synchronize:
      return {nothing};
    case CommAction::update:
      return {update, Piece::parameters};
    case CommAction::send_parameters:
      return {broadcast, Piece::parameters};
    case CommAction::reduce_subgroup:
      return {all_reduce, Piece::data};
    case CommAction::divide_subgroup:
      return {divide, Piece::data};
    case CommAction::plugin_before:
      return {plugin_before, Piece::plugin_payload, Piece::data};
    case CommAction::plugin_reduce:
      return {all_reduce, Piece::plugin_payload};
    case CommAction::plugin_after:
      return {plugin_after, Piece::data, Piece::plugin_payload};
  }
  return {};
}

}  // namespace ddpsim
