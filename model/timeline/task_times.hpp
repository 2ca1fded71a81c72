#pragma once

#include "model/base/quantity.hpp"
#include "model/cluster/collective_choice.hpp"

namespace ddpsim {

/// When one task of one rank happened. The marks of a program are tasks too: a hook fired when its
/// host task began, a bucket was full when its all-reduce was issued.
struct TaskTimes {
  Instant issued{};    ///< the host began to enqueue it (or to run it)
  Instant enqueued{};  ///< the host was done enqueueing
  Instant start{};     ///< its work began; of a collective: when the last rank had arrived
  Instant end{};
};

/// What a prediction knows of a piece of work besides its times, to tell what bounds a step.
struct TaskDetail {
  Duration latency{};         ///< collectives: the part that is not transfer
  Duration filling{};         ///< collectives: of it, the part in which bytes are under way
  Duration alone{};           ///< what is computed: how long it takes beside no collective
  Duration last_launch{};     ///< it ends no earlier than this after its last launch
  CollectiveChoice choice{};  ///< collectives: how it runs, and what bounds it
  Duration take_up{};         ///< collectives: from being enqueued to the stream's taking it up
};

}  // namespace ddpsim
