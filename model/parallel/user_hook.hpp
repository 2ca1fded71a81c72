#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/program/operation.hpp"
#include "model/workload/workload.hpp"

namespace ddpsim {

/// What a hook that the user attaches to parameters or layers does.
///
/// All but `chunks` are gradient hooks. Each fires once in every micro-batch, when that
/// micro-batch's gradient is complete (all uses of a tied parameter added up), before it is added
/// to `.grad` and before DDP's own hook copies it: torch's Tensor.register_hook. So every strategy,
/// with no_sync or without, averages the same hooked gradients.
enum class UserHookKind : std::uint8_t {
  clip,    ///< gradients x norm / |gradients|, where they are longer than `norm`
  scale,   ///< gradient x factor
  noise,   ///< gradient + normal noise of deviation `deviation`, another on every rank
  decay,   ///< gradient + rate x parameter (L2)
  record,  ///< only notes that it fired
  chunks,  ///< forward: the layer's output in parallel chunks on host threads
  plugin,  ///< the user's own code
};
inline constexpr std::array all_user_hooks{
    UserHookKind::clip,   UserHookKind::scale,  UserHookKind::noise, UserHookKind::decay,
    UserHookKind::record, UserHookKind::chunks, UserHookKind::plugin};
std::string_view name_of(UserHookKind kind);

/// A forward hook that hands a layer's output to a pool of host threads and joins them before the
/// next layer. It pays only for work that the threads do much faster than the device: the device
/// stands still meanwhile, and a GPU's output goes to the host and back.
struct Chunks {
  int count = 1;    ///< pieces of the output
  int threads = 1;  ///< of the pool
  Bytes output;     ///< of the layer; zero in a scenario: found from its kernels
  /// What one thread would take for all of it besides reading and writing it once; zero: nothing.
  Duration time{};
  Bandwidth host_memory{10e9};  ///< reads and writes of the host, all threads together
  Bandwidth transfer{25e9};     ///< between a GPU and the host
  bool operator==(const Chunks&) const = default;
};

/// To hand a piece to a thread of the pool and to hear that it is done: an assumption, two
/// wake-ups.
inline constexpr Duration chunk_handover = std::chrono::microseconds{10};

/// Host time of one layer's chunks: memory once in and out, `time` in whole rounds of the pool, and
/// the hand-over of each piece.
///
///     t = 2 output / host_memory + ceil(count / threads) time / count + count x 10 us
Duration host_time(const Chunks& chunks);

/// A hook of `training.hooks`, in the order given.
struct UserHook {
  UserHookKind kind = UserHookKind::record;
  double value = 0;  ///< norm, factor, deviation or rate
  std::uint64_t seed = 0;
  Chunks chunks;
  std::string plugin;  ///< its name in the library
  double passes = 2;   ///< plugin: reads and writes of every element, together
  int launches = 1;    ///< plugin
  Duration host{};     ///< plugin: host time besides
  /// [group] parameters whose gradients it is given together, in registration order: one, or those
  /// of a layer. The members of a group reach DDP's hook only when it has run.
  std::vector<std::vector<std::int32_t>> groups;
  std::vector<std::int32_t> layers;  ///< chunks: index into Workload::layers
  std::vector<Bytes> outputs;        ///< chunks: [of `layers`]

  /// The seed of the noise for one parameter's gradient.
  std::uint64_t seed_of(std::int32_t parameter) const {
    return seed + 0x9e3779b97f4a7c15U * static_cast<std::uint64_t>(parameter + 1);
  }

  bool operator==(const UserHook&) const = default;
};

/// "clip 1", "chunks 4 on 2 threads", "plugin sign"
std::string label(const UserHook& hook);

/// The operation that its kernel is priced and measured as.
Operation priced_as(UserHookKind kind);

/// Its kernel on `size` bytes of gradient: clip reads, reads and writes (3 passes); scale 2; noise
/// is drawn and added (4); decay reads the parameter as well (3). Without traffic: `record`.
Kernel kernel_of(const UserHook& hook, Bytes size);

/// Does `text` match `pattern`, in which `*` stands for any text, dots included?
bool matches(std::string_view pattern, std::string_view text);

/// Bytes of a layer's output: what the last GEMM of its forward writes, in its first parameter's
/// type (or its GEMM's); of a layer without one, half of its last kernel's traffic. None: its
/// kernels have no shapes.
std::optional<Bytes> output_of(const Layer& layer);

/// A row of `ddpsim list hooks`.
struct UserHookFacts {
  UserHookKind kind;
  std::string_view example;
  std::string_view does;
};
std::vector<UserHookFacts> user_hook_facts();

}  // namespace ddpsim
