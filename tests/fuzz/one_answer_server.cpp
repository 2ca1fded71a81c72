#include "tests/fuzz/one_answer_server.hpp"

#include <thread>

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/fuzz/checks.hpp"

namespace ddpsim::fuzz {

OneAnswerServer& OneAnswerServer::here() {
  static OneAnswerServer& server = *new OneAnswerServer;
  return server;
}

OneAnswerServer::OneAnswerServer() : listening_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* place = reinterpret_cast<sockaddr*>(&address);
  require(bind(listening_, place, size) == 0 && listen(listening_, 8) == 0 &&
              getsockname(listening_, place, &size) == 0,
          "no port to listen on");
  port_ = ntohs(address.sin_port);
  std::thread([this] { serve(); }).detach();
}

void OneAnswerServer::answer_with(std::string_view text) {
  const std::lock_guard lock(mutex_);
  text_ = text;
}

std::string OneAnswerServer::next() {
  const std::lock_guard lock(mutex_);
  const std::size_t end = text_.find("%%\n");
  std::string answer = text_.substr(0, end);
  if (end != std::string::npos) text_.erase(0, end + 3);
  return answer;
}

void OneAnswerServer::serve() {
  for (;;) {
    const int client = accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) continue;
    const std::string answer = next();
    send(client, answer.data(), answer.size(), MSG_NOSIGNAL);
    shutdown(client, SHUT_WR);
    // The client hangs up first, so that its port is the one that stays taken for a while.
    std::string said(4096, ' ');
    while (recv(client, said.data(), said.size(), 0) > 0) {
    }
    const linger none{1, 0};
    setsockopt(client, SOL_SOCKET, SO_LINGER, &none, sizeof none);
    close(client);
  }
}

}  // namespace ddpsim::fuzz
