#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "model/parallel/hooks/hook_writer.hpp"

namespace ddpsim {

/// Where a comm hook leaves its result.
enum class HookResult : std::uint8_t {
  in_bucket,
  elsewhere,   ///< gradients that are views of the bucket take a copy
  parameters,  ///< of the bucket are updated: no optimizer follows the backward pass
};

/// A comm hook, as a row of the table of all: what it does, and a line of `ddpsim list hooks`.
struct CommHookRow {
  CommHookKind kind;
  std::string_view name;
  void (*write)(HookWriter&);  ///< what it does with a bucket; null: nothing
  std::string_view payload;    ///< of one bucket: N elements of e bytes, W ranks
  std::string_view collectives;
  std::string_view source;
  HookResult result = HookResult::in_bucket;
};
/// [kind]
std::span<const CommHookRow> comm_hooks();
const CommHookRow& row_of(CommHookKind kind);

/// Does the hook do anything with buckets?
bool works_on_buckets(const CommHook& hook);

/// What the hook does with a bucket, in order; the memory it needs for that is made.
std::vector<HookTask> tasks_of(program::JobMemory& memory, const CommHook& hook,
                               const HookedBucket& bucket, const HookCall& call);

/// Does one of these compute anything behind the first collective, beside the backward pass?
bool computes_aside(std::span<const HookTask> tasks);

// What each hook does, in a file of its name or, where it is one of several alike, of theirs.
void write_allreduce(HookWriter& writer);
void write_fp16_compress(HookWriter& writer);
void write_bf16_compress(HookWriter& writer);
void write_powersgd(HookWriter& writer);
void write_batched_powersgd(HookWriter& writer);
void write_quantization_pertensor(HookWriter& writer);
void write_quantization_perchannel(HookWriter& writer);
void write_post_local_sgd(HookWriter& writer);
void write_optimizer_overlap(HookWriter& writer);
void write_zero_step(HookWriter& writer);
void write_zero_step_interleaved(HookWriter& writer);
void write_own_steps(HookWriter& writer);
void write_plugin(HookWriter& writer);

}  // namespace ddpsim
