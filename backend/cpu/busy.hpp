#pragma once

#include "model/base/quantity.hpp"

namespace ddpsim {

/// What the processor has given this thread so far.
Duration processor_time();

/// Takes this much CPU time of this thread: what another thread on the same core takes does not
/// count.
void be_busy(Duration time);

}  // namespace ddpsim
