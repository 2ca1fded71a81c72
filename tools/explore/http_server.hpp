#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace ddpsim {

/// A request, as far as anybody here looks at it. A header that is not there, or twice, is "".
struct HttpRequest {
  std::string method, target, host, origin, content_type, body;
};

struct HttpResponse {
  unsigned status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
};

/// What a client may ask of the server's memory and time.
struct HttpLimits {
  std::uint32_t header_bytes = 8 * 1024;  ///< the request line and all headers together
  std::uint64_t body_bytes = 16 * 1024;
  std::size_t connections = 32;
  std::chrono::milliseconds request_time{10'000};  ///< from the first wait for a request to its end
};

/// Answers HTTP on 127.0.0.1 alone, by Boost.Beast. One thread moves bytes; two compute answers, so
/// that a long computation holds up nobody's connection. A client that is too slow loses its
/// connection; where there are too many connections, the one that has waited longest for its
/// request makes way.
class HttpServer {
 public:
  /// Listens on `port`; 0: on any that is free. Throws InputError if it cannot.
  explicit HttpServer(std::uint16_t port, const HttpLimits& limits = {});
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  std::uint16_t port() const;

  /// Serves until Ctrl-C or SIGTERM comes, or until `longest` has passed. `handler` is called from
  /// several threads at once and should not throw: the client of one that does gets status 500.
  void run(const std::function<HttpResponse(const HttpRequest&)>& handler,
           std::optional<std::chrono::nanoseconds> longest = std::nullopt);

  /// After run(): is an answer still being computed? The destructor waits for it.
  bool busy() const;

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace ddpsim
