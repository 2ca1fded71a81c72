#include <algorithm>
#include <cstring>

#include <gloo/context.h>
#include <gloo/transport/unbound_buffer.h>

#include "backend/device_error.hpp"
#include "backend/job/communicator.hpp"

namespace ddpsim {

void Communicator::exchange(const Message& sent, const Message& received, std::uint64_t slot) {
  const bool sends = !sent.bytes.empty(), receives = !received.bytes.empty();
  if (sends && receives && sent.rank == rank_ && received.rank == rank_) {
    if (sent.bytes.size() != received.bytes.size())
      throw DeviceError("a rank would send itself what it has no room for");
    std::memmove(received.bytes.data(), sent.bytes.data(), sent.bytes.size());
    return;
  }
  if (!sends && !receives) return;
  guarded("exchange", [&] {
    std::unique_ptr<gloo::transport::UnboundBuffer> from, to;
    if (receives) {
      to = context_->createUnboundBuffer(received.bytes.data(), received.bytes.size());
      to->recv(received.rank, slot);
    }
    if (sends) {
      from = context_->createUnboundBuffer(sent.bytes.data(), sent.bytes.size());
      from->send(sent.rank, slot);
    }
    if (receives) to->waitRecv(patience());
    if (sends) from->waitSend(patience());
  });
}

}  // namespace ddpsim
