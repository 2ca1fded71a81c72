#include "model/program/message.hpp"

namespace ddpsim {

std::string_view name_of(Message message) {
  switch (message) {
    case Message::gradients:
      return "gradients";
    case Message::buffers:
      return "buffers";
    case Message::own:
      return "own";
    case Message::bucket_indices:
      return "bucket indices";
    case Message::bucket_lengths:
      return "bucket lengths";
    case Message::used_map:
      return "used map";
    case Message::active_ranks:
      return "active ranks";
    case Message::early_end:
      return "early end";
    case Message::buffer_source:
      return "buffer source";
    case Message::will_sync:
      return "will sync";
    case Message::parameters:
      return "parameters";
    case Message::norm:
      return "norm of gradients";
    case Message::sparse_shape:
      return "sparse shape";
    case Message::sparse_indices:
      return "sparse indices";
    case Message::sparse_values:
      return "sparse values";
  }
  return "?";
}

}  // namespace ddpsim
