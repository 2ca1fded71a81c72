#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace ddpsim {

/// Makes a gzip file of a text that comes in parts. Equal texts give equal bytes, however they are
/// divided: the file names no time. Each call throws std::runtime_error if zlib fails.
class Gzip {
 public:
  /// `take` gets the file, part by part.
  explicit Gzip(std::function<void(std::string_view)> take);
  ~Gzip();

  void add(std::string_view text);
  void finish();

 private:
  struct Stream;
  void deflate_all(bool last);

  std::function<void(std::string_view)> take_;
  std::unique_ptr<Stream> stream_;
};

/// A whole text as a gzip file.
std::string gzip(std::string_view text);

}  // namespace ddpsim
