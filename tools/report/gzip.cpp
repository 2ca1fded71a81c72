#include "tools/report/gzip.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <stdexcept>

#include <zlib.h>

namespace ddpsim {

std::string gzip(std::string_view text) {
  z_stream stream{};
  constexpr int gzip_format = 15 + 16;  // the largest window; zlib adds gzip's header for 16 more
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, gzip_format, 8,
                   Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::runtime_error("zlib cannot compress");
  std::string packed;
  std::array<char, 65536> part;
  int state = Z_OK;
  while (state == Z_OK) {
    if (stream.avail_in == 0 && !text.empty()) {
      const std::size_t most = std::numeric_limits<uInt>::max();
      const std::string_view next = text.substr(0, most);
      // zlib reads from here and writes nothing.
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(next.data()));
      stream.avail_in = static_cast<uInt>(next.size());
      text.remove_prefix(next.size());
    }
    stream.next_out = reinterpret_cast<Bytef*>(part.data());
    stream.avail_out = static_cast<uInt>(part.size());
    state = deflate(&stream, text.empty() ? Z_FINISH : Z_NO_FLUSH);
    packed.append(part.data(), part.size() - stream.avail_out);
  }
  deflateEnd(&stream);
  if (state != Z_STREAM_END) throw std::runtime_error("zlib cannot compress");
  return packed;
}

}  // namespace ddpsim
