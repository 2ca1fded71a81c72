#pragma once

#include "backend/execute/link.hpp"
#include "backend/link/gloo/connection.hpp"

namespace ddpsim {

/// Ranks on CPUs that speak over TCP. What all ranks do together, in order, is Gloo's own
/// collective; what a smaller group does, or in unequal parts, is made of messages between two:
/// rings, and a tree of broadcasts.
class GlooLink : public execute::Link {
 public:
  explicit GlooLink(Connection& connection) : connection_(connection) {}

  std::string refusal(const program::Action& action, DType type) const override;
  void run(const program::Collective& collective, const execute::Exchange& exchange) override;
  void send(std::int32_t peer, const execute::Exchange& exchange) override;
  void receive(std::int32_t peer, const execute::Exchange& exchange) override;
  void start_together() override { connection_.start_together(); }
  Instant now() const override { return connection_.now(); }
  void meet() override { connection_.meet(); }
  std::vector<Instant> latest(std::vector<Instant> mine) override {
    return connection_.latest(std::move(mine));
  }
  void disconnect() override { connection_.communicator().disconnect(); }

 private:
  void all_reduce(const program::Collective& collective, const execute::Exchange& exchange);
  void all_gather(const program::Collective& collective, const execute::Exchange& exchange);
  void reduce_scatter(const program::Collective& collective, const execute::Exchange& exchange);
  void broadcast(const program::Collective& collective, const execute::Exchange& exchange);
  void all_to_all(const execute::Exchange& exchange);
  bool is_everyone(const execute::Group& group) const;

  Connection& connection_;
};

}  // namespace ddpsim
