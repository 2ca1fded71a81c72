// Debian's libgloo-dev leaves this header out, though gloo/transport/tcp/pair.h and context.h
// include it. Here is what those two need of it to be compiled: the size of what a pair holds. This
// folder is searched last, so a Gloo that brings the header has its own.
#pragma once

#include <memory>

namespace gloo {

/// Passed by reference only.
template <typename Buffer>
class NonOwningPtr;

/// To Gloo's library, which alone makes and uses them, this is one weak pointer.
template <typename Buffer>
class WeakNonOwningPtr final {
  std::weak_ptr<Buffer> pointer_;
};

}  // namespace gloo
