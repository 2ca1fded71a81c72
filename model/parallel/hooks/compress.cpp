// The bucket travels in 16 bit, as N elements of e bytes: cast (N e + 2 N), divide (2 x 2 N),
// all-reduce 2 N, cast back (2 N + N e).

#include "model/parallel/hooks/comm_hooks.hpp"

namespace ddpsim {
namespace {

/// Source: pytorch default_hooks.py _compress_hook (rule R39).
void compress(HookWriter& writer, DType type) {
  if (writer.type() != type) writer.cast(type);
  write_allreduce(writer);
}

}  // namespace

void write_fp16_compress(HookWriter& writer) {
  compress(writer, DType::fp16);
}

void write_bf16_compress(HookWriter& writer) {
  compress(writer, DType::bf16);
}

}  // namespace ddpsim
