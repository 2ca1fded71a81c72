#include "model/program/buffer.hpp"

namespace ddpsim::program {

std::string_view name_of(Holds holds) {
  switch (holds) {
    case Holds::parameter:
      return "parameter";
    case Holds::gradient:
      return "gradient";
    case Holds::bucket:
      return "bucket";
    case Holds::optimizer:
      return "optimizer";
    case Holds::activation:
      return "activation";
    case Holds::gathered:
      return "gathered";
    case Holds::scattered:
      return "scattered";
    case Holds::hook:
      return "hook";
    case Holds::module_buffer:
      return "module buffer";
    case Holds::note:
      return "note";
    case Holds::frozen:
      return "frozen";
    case Holds::input:
      return "input";
    case Holds::workspace:
      return "workspace";
    case Holds::working:
      return "working";
  }
  return "?";
}

std::string_view name_of(Life life) {
  switch (life) {
    case Life::job:
      return "job";
    case Life::step:
      return "step";
    case Life::held:
      return "held";
  }
  return "?";
}

std::string_view name_of(Start start) {
  switch (start) {
    case Start::undefined:
      return "undefined";
    case Start::zeros:
      return "zeros";
    case Start::parameters:
      return "parameters";
    case Start::random:
      return "random";
  }
  return "?";
}

std::string_view name_of(Place place) {
  switch (place) {
    case Place::device:
      return "device";
    case Place::host:
      return "host";
  }
  return "?";
}

}  // namespace ddpsim::program
