#include "backend/link/gloo/connection.hpp"

namespace ddpsim {
namespace {

/// How far ahead a common start is agreed on: the message must reach every rank first, even one
/// whose scheduler acts only at clock ticks (4 ms at 250 Hz).
constexpr Duration head_start = std::chrono::milliseconds{5};

}  // namespace

Connection::Connection(Rendezvous& rendezvous, int rank, int ranks, const std::string& interface,
                       std::chrono::milliseconds timeout)
    : communicator_(rendezvous, rank, ranks, interface, timeout),
      clock_(communicator_, head_start) {}

void Connection::start_together() {
  Instant agreed;
  on_thread([&] {
    clock_.align();
    agreed = clock_.agree_on_start();
  });
  clock_.wait_until(agreed);
  clock_.begin_at(agreed);
}

void Connection::meet() {
  Instant agreed;
  on_thread([&] { agreed = clock_.agree_on_start(); });
  clock_.wait_until(agreed);
}

std::vector<Instant> Connection::latest(std::vector<Instant> mine) {
  on_thread([&] { mine = clock_.latest(std::move(mine)); });
  return mine;
}

}  // namespace ddpsim
