// The user's own code makes of the bucket what is summed over ranks, and of the sum the bucket.

#include "model/parallel/hooks/comm_hooks.hpp"

namespace ddpsim {

void write_plugin(HookWriter& writer) {
  const program::Slice data = writer.data();
  const program::Slice payload = writer.buffer("payload", writer.hook.plugin_type, data.count);
  const auto call = [&](std::string_view label, program::Plugin::What what,
                        const std::vector<program::Slice>& reads, const program::Slice& writes) {
    const program::Operands read = writer.list(reads);
    writer.kernel(label, Operation::own_kernel, writer.bytes_of(data) + writer.bytes_of(payload),
                  program::Plugin{.what = what,
                                  .code = writer.label(writer.hook.plugin),
                                  .reads = read,
                                  .writes = writer.list({writes})});
  };
  call("plugin before", program::Plugin::What::before, {data}, payload);
  writer.all_reduce("all-reduce payload", payload);
  call("plugin after", program::Plugin::What::after, {payload, data}, data);
}

}  // namespace ddpsim
