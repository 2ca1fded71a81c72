#pragma once

#include <optional>
#include <string>

#include "model/parallel/training.hpp"

namespace ddpsim {

// What DDP does differently while training begins, and what comm hooks do from some iteration on.
//
//     iteration      dynamic graph                      static graph
//     1              construction-time buckets          all after backward, the used map first
//     2              rebuilt, as its forward begins     construction-time buckets
//     3              rebuilt buckets                    rebuilt, as its forward begins
//
// With find_unused_parameters and a dynamic graph nothing is ever rebuilt; nor are buckets that a
// scenario spells out, or strategies other than `bucketed`. Source: reference, sections 1.2 and 2.6
// (rules R5-R10, R34).

/// Does DDP assign buckets a second time, once it has seen in what order gradients arrive?
bool rebuilds(const Training& training);

/// Is the iteration one before the buckets are assigned for the second time?
bool before_rebuild(const Training& training);

/// Are the buckets assigned for the second time as this iteration begins?
bool rebuilds_now(const Training& training);

/// A static graph's first: nothing is communicated during backward.
bool delays_all_reduce(const Training& training);

/// Are `.grad`s still views of their buckets when this iteration begins? (They are never copied
/// in.)
bool views_survive(const Training& training);

/// post_local_sgd: are models averaged once the optimizer has run? The steady state holds no such
/// step.
bool averages_models(const Training& training);

/// In which iterations it averages them: from the first one on, each so many.
struct ModelAveraging {
  int first = 1;
  int period = 1;
};
/// None: it never does.
std::optional<ModelAveraging> model_averaging(Training training);

/// ZeRO's hooks: do they not know the buckets yet? Until they have seen a backward with the rebuilt
/// ones gradients are reduced, and nobody updates parameters.
bool before_zero_steps(const Training& training);

/// The first iteration that has the same job as `iteration`; 0 where that is any. (That the
/// logger samples some of them shows between steps only: joined_jobs.hpp.)
int first_like(const Training& training, int iteration);

/// "initial buckets", "steady": what is special about Training::iteration, for people.
std::string phase_label(const Training& training);

}  // namespace ddpsim
