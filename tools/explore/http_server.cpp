#include "tools/explore/http_server.hpp"

#include <atomic>
#include <csignal>
#include <exception>
#include <list>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <fmt/format.h>

#include "backend/device_error.hpp"
#include "backend/thread_limits.hpp"
#include "scenarios/reader/text/input_error.hpp"

namespace ddpsim {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;

using Handler = std::function<HttpResponse(const HttpRequest&)>;

/// With every answer: what it holds stays between this server and its page.
void add_headers(http::response<http::string_body>& message) {
  message.set(http::field::cache_control, "no-store");
  message.set(http::field::x_frame_options, "DENY");
  message.set("X-Content-Type-Options", "nosniff");
  message.set("Referrer-Policy", "no-referrer");
  message.set("Cross-Origin-Opener-Policy", "same-origin");
  message.set("Cross-Origin-Resource-Policy", "same-origin");
  message.set("Content-Security-Policy",
              "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
              "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
              "frame-ancestors 'none'");
}

HttpRequest request_of(http::request<http::string_body>&& message) {
  const auto only = [&](http::field field) {
    return message.count(field) == 1 ? std::string(message[field]) : std::string();
  };
  HttpRequest request{std::string(message.method_string()),
                      std::string(message.target()),
                      only(http::field::host),
                      only(http::field::origin),
                      only(http::field::content_type),
                      {}};
  request.body = std::move(message.body());
  return request;
}

HttpResponse answer_of(const Handler& handler, const HttpRequest& request) {
  try {
    return handler(request);
  } catch (const std::exception& problem) {
    return {500, "text/plain; charset=utf-8", std::string(problem.what()) + "\n"};
  }
}

/// A second thread of `pool`; none where the system starts no more, and the first computes all.
/// (A pool of two would wait for its first for ever if the second cannot be started.)
std::jthread attached(asio::thread_pool& pool) {
  try {
    return std::jthread([&pool] { pool.attach(); });
  } catch (const std::system_error&) {
    return {};
  }
}

}  // namespace

class HttpServer::Implementation {
 public:
  Implementation(std::uint16_t port, const HttpLimits& asked) : limits(asked), acceptor_(io) {
    const tcp::endpoint place(asio::ip::address_v4::loopback(), port);
    boost::system::error_code error;
    acceptor_.open(place.protocol());
    acceptor_.set_option(tcp::acceptor::reuse_address(true));
    acceptor_.bind(place, error);
    if (!error) acceptor_.listen(static_cast<int>(limits.connections), error);
    if (!error) return;
    const std::string problem = fmt::format("--port {}: {}", port, error.message());
    if (error == boost::system::errc::address_in_use)
      throw DeviceError(problem);  // may be free later
    throw InputError(problem);
  }

  Implementation(const Implementation&) = delete;
  Implementation& operator=(const Implementation&) = delete;

  /// One connection. The threads that compute hold it by its owner alone; all else happens in the
  /// thread of run().
  class Session;

  std::uint16_t port() const { return acceptor_.local_endpoint().port(); }
  bool busy() const { return computing > 0; }

  void run(const Handler& asked, std::optional<std::chrono::nanoseconds> longest) {
    handler = asked;
    signals_.async_wait([this](boost::system::error_code error, int) {
      if (!error) io.stop();
    });
    asio::steady_timer end(io);
    if (longest) {
      end.expires_after(std::chrono::duration_cast<asio::steady_timer::duration>(*longest));
      end.async_wait([this](boost::system::error_code error) {
        if (!error) io.stop();
      });
    }
    accept();
    io.run();
    pool.stop();
  }

  // In this order: sessions end with `io`, and refer to what stands before it; the work of `pool`
  // refers to everything.
  const HttpLimits limits;
  Handler handler;
  std::list<Session*> waiting;  ///< for a request, those that wait longest first
  std::size_t connections = 0;
  std::atomic<int> computing = 0;
  asio::io_context io{1};
  asio::thread_pool pool{1};
  std::jthread second_of_pool = attached(pool);
  /// Goes first, also where the constructor throws: else the second thread would be waited for.
  struct Stopped {
    asio::thread_pool& pool;
    ~Stopped() { pool.stop(); }
  } stopped{pool};

 private:
  void accept();
  void take(tcp::socket socket);

  tcp::acceptor acceptor_;
  asio::steady_timer pause_{io};
  /// From the beginning on: one that comes before run() ends it at once.
  asio::signal_set signals_{io, SIGINT, SIGTERM};
};

class HttpServer::Implementation::Session : public std::enable_shared_from_this<Session> {
 public:
  Session(Implementation& server, tcp::socket socket)
      : server_(server),
        stream_(std::move(socket)),
        buffer_(server.limits.header_bytes + server.limits.body_bytes) {
    ++server_.connections;
  }
  ~Session() {
    wait_no_longer();
    --server_.connections;
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void read() {
    parser_.emplace();
    parser_->header_limit(server_.limits.header_bytes);
    parser_->body_limit(server_.limits.body_bytes);
    place_ = server_.waiting.insert(server_.waiting.end(), this);
    stream_.expires_after(server_.limits.request_time);
    http::async_read(stream_, buffer_, *parser_,
                     [self = shared_from_this()](beast::error_code error, std::size_t) {
                       self->wait_no_longer();
                       self->have_read(error);
                     });
  }

  /// Ends it while it waits for a request.
  void close() {
    wait_no_longer();
    stream_.close();
  }

 private:
  void wait_no_longer() {
    if (place_) server_.waiting.erase(*place_);
    place_.reset();
  }

  void have_read(beast::error_code error) {
    if (error == http::error::body_limit)
      return refuse(413, fmt::format("a request may have {} bytes\n", server_.limits.body_bytes));
    if (error == http::error::header_limit || error == http::error::buffer_overflow)
      return refuse(431, fmt::format("headers may have {} bytes\n", server_.limits.header_bytes));
    if (error && error.category() == make_error_code(http::error::bad_method).category() &&
        error != http::error::end_of_stream && error != http::error::partial_message)
      return refuse(400, "this is no HTTP request\n");
    if (error) return;  // it has gone, or was too slow
    const auto& head = parser_->get();
    version_ = head.version();
    keep_ = head.keep_alive();
    stream_.expires_never();
    ++server_.computing;
    asio::post(server_.pool, [self = shared_from_this(),
                              request = request_of(parser_->release())]() mutable {
      Implementation& server = self->server_;
      HttpResponse response = answer_of(server.handler, request);
      // The connection belongs to the other thread again before the count says so.
      asio::post(server.io, [self = std::move(self), response = std::move(response)]() mutable {
        self->write(std::move(response));
      });
      --server.computing;
    });
  }

  void refuse(unsigned status, std::string text) {
    keep_ = false;
    write({status, "text/plain; charset=utf-8", std::move(text)});
  }

  void write(HttpResponse response) {
    message_ = {};
    message_.version(version_);
    message_.result(response.status);
    message_.set(http::field::content_type, response.content_type);
    add_headers(message_);
    message_.keep_alive(keep_);
    message_.body() = std::move(response.body);
    message_.prepare_payload();
    stream_.expires_after(server_.limits.request_time);
    http::async_write(stream_, message_,
                      [self = shared_from_this()](beast::error_code error, std::size_t) {
                        if (!error && self->keep_) return self->read();
                        boost::system::error_code ignored;
                        self->stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
                      });
  }

  Implementation& server_;
  beast::tcp_stream stream_;
  beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::string_body>> parser_;
  http::response<http::string_body> message_;
  std::optional<std::list<Session*>::iterator> place_;
  unsigned version_ = 11;
  bool keep_ = false;
};

void HttpServer::Implementation::accept() {
  acceptor_.async_accept([this](boost::system::error_code error, tcp::socket socket) {
    if (!error) {
      take(std::move(socket));
      return accept();
    }
    pause_.expires_after(std::chrono::milliseconds{100});  // no file is free, perhaps
    pause_.async_wait([this](boost::system::error_code ended) {
      if (!ended) accept();
    });
  });
}

void HttpServer::Implementation::take(tcp::socket socket) {
  if (connections >= limits.connections) {
    if (waiting.empty()) return;  // all are being answered: the new one is closed
    waiting.front()->close();
  }
  std::make_shared<Session>(*this, std::move(socket))->read();
}

HttpServer::HttpServer(std::uint16_t port, const HttpLimits& limits) try
    : implementation_(std::make_unique<Implementation>(port, limits)) {
} catch (const boost::system::system_error& problem) {
  if (problem.code() != boost::system::errc::resource_unavailable_try_again) throw;
  throw DeviceError(fmt::format("no thread could be started ({}): {}", problem.code().message(),
                                what_limits_threads));
}
HttpServer::~HttpServer() = default;

std::uint16_t HttpServer::port() const {
  return implementation_->port();
}

void HttpServer::run(const Handler& handler, std::optional<std::chrono::nanoseconds> longest) {
  implementation_->run(handler, longest);
}

bool HttpServer::busy() const {
  return implementation_->busy();
}

}  // namespace ddpsim
