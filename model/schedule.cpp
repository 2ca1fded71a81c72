#include "model/schedule.hpp"

namespace ddpsim {

std::string_view name_of(Stream stream) {
  switch (stream) {
    case Stream::host:
      return "host";
    case Stream::compute:
      return "compute";
    case Stream::communication:
      return "communication";
    case Stream::aside:
      return "aside";
  }
  return "?";
}

}  // namespace ddpsim
