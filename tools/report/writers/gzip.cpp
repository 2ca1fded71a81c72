#include "tools/report/writers/gzip.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <stdexcept>

#include <zlib.h>

namespace ddpsim {

struct Gzip::Stream {
  z_stream state{};
  std::array<char, 65536> part;
};

Gzip::Gzip(std::function<void(std::string_view)> take)
    : take_(std::move(take)), stream_(std::make_unique<Stream>()) {
  constexpr int gzip_format = 15 + 16;  // the largest window; zlib adds gzip's header for 16 more
  if (deflateInit2(&stream_->state, Z_DEFAULT_COMPRESSION, Z_DEFLATED, gzip_format, 8,
                   Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::runtime_error("zlib cannot compress");
}

Gzip::~Gzip() {
  deflateEnd(&stream_->state);
}

void Gzip::deflate_all(bool last) {
  auto& [state, part] = *stream_;
  int result = Z_OK;
  do {
    state.next_out = reinterpret_cast<Bytef*>(part.data());
    state.avail_out = static_cast<uInt>(part.size());
    result = deflate(&state, last ? Z_FINISH : Z_NO_FLUSH);
    if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
      throw std::runtime_error("zlib cannot compress");
    take_({part.data(), part.size() - state.avail_out});
  } while (last ? result != Z_STREAM_END : state.avail_out == 0);
}

void Gzip::add(std::string_view text) {
  while (!text.empty()) {
    const std::string_view next = text.substr(0, std::numeric_limits<uInt>::max());
    // zlib reads from here and writes nothing.
    stream_->state.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(next.data()));
    stream_->state.avail_in = static_cast<uInt>(next.size());
    deflate_all(false);
    text.remove_prefix(next.size());
  }
}

void Gzip::finish() {
  deflate_all(true);
}

std::string gzip(std::string_view text) {
  std::string packed;
  Gzip file([&](std::string_view part) { packed += part; });
  file.add(text);
  file.finish();
  return packed;
}

}  // namespace ddpsim
