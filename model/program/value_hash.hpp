#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "model/program/work.hpp"

namespace ddpsim {

/// 64-bit FNV-1a over the values in turn, each as eight bytes; `Derived` adds what else it knows.
/// Source: Fowler, Noll, Vo: The FNV Non-Cryptographic Hash Algorithm, IETF draft-eastlake-fnv.
template <typename Derived>
class ValueHash {
 public:
  void add(std::uint64_t value) {
    for (int byte = 0; byte < 8; ++byte) {
      hash_ = (hash_ ^ (value & 0xFF)) * 0x100000001B3u;
      value >>= 8;
    }
  }
  template <typename Value>
  requires std::integral<Value> || std::is_enum_v<Value>
  void add(Value value) { add(static_cast<std::uint64_t>(value)); }
  void add(double value) { add(std::bit_cast<std::uint64_t>(value)); }
  void add(Duration time) { add(time.count()); }
  void add(Bytes size) { add(size.count); }
  void add(const std::string& text) {
    add(text.size());
    for (const char c : text) add(static_cast<unsigned char>(c));
  }
  template <typename Value>
  void add(const std::vector<Value>& values) {
    add(values.size());
    for (const Value& value : values) self().add(value);
  }
  template <typename... Values>
  requires(sizeof...(Values) > 1) void add(const Values&... values) { (self().add(values), ...); }

  template <typename Value>
  void add(const std::optional<Value>& value) {
    add(value.has_value());
    if (value) self().add(*value);
  }

  void add(const Gemm& gemm) { add(gemm.m, gemm.n, gemm.k, gemm.batch); }

  void add(const ClassCost& cost) {
    add(cost.work, cost.host, static_cast<double>(cost.memory_fraction));
  }

  void add(const Work& work) {
    add(work.operation, work.message, work.gemm, work.traffic, work.type, work.launches,
        work.known_time);
    add(work.caller, work.aside, work.beside_hook, work.optimizer_share, work.host,
        work.hook_calls);
    add(work.payload, work.group, work.communicator, work.handed_over);
    if (work.tensors > 0 || work.call != Duration::zero()) add(work.tensors, work.call);
    if (work.by_class) add(*work.by_class);
    if (work.stride > 1) add(work.stride);
    if (work.awaited != Operation::all_reduce) add(work.awaited);
  }

  void add(const Passes& passes) { add(passes.forward, passes.backward, passes.optimizer); }

  std::uint64_t value() const { return hash_; }

 private:
  Derived& self() { return static_cast<Derived&>(*this); }

  std::uint64_t hash_ = 0xCBF29CE484222325u;
};

}  // namespace ddpsim
