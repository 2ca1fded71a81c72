// Requests to the page of `ddpsim explore`: as the server hands them to the page (`explore`), and
// as bytes on a connection (`http`).

#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <thread>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "scenarios/reader/text/memory_file.hpp"
#include "tests/fuzz/checks.hpp"
#include "tests/fuzz/targets.hpp"
#include "tools/explore/http_server.hpp"
#include "tools/explore/site.hpp"

namespace ddpsim::fuzz {
namespace {

using Json = nlohmann::json;

/// The page of a small scenario, which can be saved nowhere.
const Site& site() {
  static const MemoryFile file(
      "/no-such-folder/explored.yaml",
      "workload: {model: {family: mlp, widths: [8, 8]}, batch: 1}\n"
      "cluster: {device: h100-sxm, ranks_per_node: 2, intra_node: nvlink4}\n"
      "compare: [naive, bucketed]\n");
  static const Explorer explorer(file.path().string(), {}, true);
  static const Site page(explorer, "t", 1);
  return page;
}

void check_answer(const HttpResponse& response) {
  if (response.status != 200) {
    require(response.body.ends_with('\n'), "a refusal without a line end", response.body);
    return check_line(std::string_view(response.body).substr(0, response.body.size() - 1));
  }
  if (response.content_type != "application/json") return;
  const Json json = Json::parse(response.body, nullptr, false);
  require(json.is_object(), "an answer that is no JSON object", response.body);
  if (json.contains("error")) check_line(json["error"].get<std::string>());
}

/// A server that never ends, on a port of its own.
std::uint16_t served_port() {
  static HttpServer& server = *new HttpServer(0);
  static const bool started = [] {
    std::thread([] {
      server.run([](const auto& request) { return site().answer(request); });
    }).detach();
    return true;
  }();
  return started ? server.port() : std::uint16_t{0};
}

/// Calls until no signal interrupts it: a fuzzer looks at its clock by one, which ends calls that
/// have a timeout too.
template <typename Call>
auto uninterrupted(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

/// Connects a socket; what a signal interrupts goes on meanwhile. Returns errno's value of what
/// went wrong, 0 of nothing.
int connect_to(int client, const sockaddr_in& address) {
  if (connect(client, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return 0;
  if (errno != EINTR) return errno;
  pollfd waiting{client, POLLOUT, 0};
  if (uninterrupted([&] { return poll(&waiting, 1, -1); }) < 0) return errno;
  int problem = 0;
  socklen_t size = sizeof problem;
  return getsockopt(client, SOL_SOCKET, SO_ERROR, &problem, &size) == 0 ? problem : errno;
}

/// What the server answers to these bytes, after which the client sends no more.
std::string answer_to(std::string_view bytes) {
  const int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(served_port());
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int problem = connect_to(client, address);
  require(problem == 0, "the server is gone", std::strerror(problem));
  const timeval patience{15, 0};  // the server itself gives up a client after 10 s
  setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  std::string answer;
  std::array<char, 65536> buffer{};
  send(client, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  shutdown(client, SHUT_WR);
  for (ssize_t got = 1; got > 0;) {
    got = uninterrupted([&] { return recv(client, buffer.data(), buffer.size(), 0); });
    require(got >= 0 || errno == ECONNRESET, "the server neither answers nor hangs up");
    answer.append(buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  }
  const linger none{1, 0};  // the port is free at once
  setsockopt(client, SOL_SOCKET, SO_LINGER, &none, sizeof none);
  close(client);
  return answer;
}

}  // namespace

/// Lines: method, target, host, origin, type of the content; the rest is the body.
void explore(std::string_view input) {
  HttpRequest request;
  for (std::string* part :
       {&request.method, &request.target, &request.host, &request.origin, &request.content_type}) {
    const std::size_t end = std::min(input.find('\n'), input.size());
    *part = input.substr(0, end);
    input.remove_prefix(std::min(end + 1, input.size()));
  }
  request.body = input;
  check_answer(site().answer(request));
}

void http(std::string_view input) {
  const std::string answer = answer_to(input);
  require(answer.empty() || answer.starts_with("HTTP/1."), "an answer that is no HTTP", answer);
  require(answer.find(" 500 ") > 12, "a failure of the server", answer);
}

}  // namespace ddpsim::fuzz
