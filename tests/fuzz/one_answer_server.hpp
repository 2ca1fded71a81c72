#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

namespace ddpsim::fuzz {

/// A server on 127.0.0.1 that gives each connection bytes that were made up before, whatever the
/// client says, and hangs up.
class OneAnswerServer {
 public:
  /// The one of this process, which never ends.
  static OneAnswerServer& here();

  std::uint16_t port() const { return port_; }
  /// The next connection gets the text up to a line `%%`, the one after it the text behind it, and
  /// so on; what comes after the last gets the last.
  void answer_with(std::string_view text);

 private:
  OneAnswerServer();
  void serve();
  std::string next();

  int listening_ = -1;
  std::uint16_t port_ = 0;
  std::mutex mutex_;
  std::string text_;
};

}  // namespace ddpsim::fuzz
