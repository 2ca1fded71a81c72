#pragma once

#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "model/schedule/schedule.hpp"

/// Values that differ from a given one in a single field. Each struct names all its fields in one
/// structured binding, so that one with a new field does not compile until it is added here.
namespace ddpsim::changes {

template <typename Value>
using Visit = std::function<void(const Value&)>;

/// Calls `visit` with each value that differs from `value` in one place.
template <typename Value>
void for_each_change(const Value& value, const Visit<Value>& visit);

/// Every field of `fields`, each a part of `all`, in turn; `visit` sees all of it.
template <typename All, typename... Fields>
void in_each(All& all, const Visit<All>& visit, Fields&... fields) {
  const auto change = [&](auto& field) {
    using Field = std::remove_reference_t<decltype(field)>;
    const Field before = field;
    for_each_change<Field>(before, [&](const Field& other) {
      field = other;
      visit(all);
    });
    field = before;
  };
  (change(fields), ...);
}

inline void in_fields(Gemm v, const Visit<Gemm>& visit) {
  auto& [m, n, k, batch] = v;
  in_each(v, visit, m, n, k, batch);
}
inline void in_fields(ClassCost v, const Visit<ClassCost>& visit) {
  auto& [work, host, memory_fraction] = v;
  in_each(v, visit, work, host, memory_fraction);
}
inline void in_fields(Kernel v, const Visit<Kernel>& visit) {
  // Kernels of schedules are hooks', of which neither calls nor parts are known, and nothing was
  // computed before.
  auto& [name, gemm, traffic, launches, calls, type, recomputed, tensors, call, time, parts,
         by_class, reduces_rows] = v;
  static_cast<void>(calls);
  static_cast<void>(recomputed);
  static_cast<void>(parts);
  static_cast<void>(reduces_rows);
  in_each(v, visit, name, gemm, traffic, launches, type, tensors, call, time, by_class);
}
inline void in_fields(Work v, const Visit<Work>& visit) {
  auto& [operation, message, gemm, traffic, type, launches, tensors, call, known_time, by_class,
         caller, aside, beside_hook, optimizer_share, host, hook_calls, payload, group,
         communicator, handed_over] = v;
  in_each(v, visit, operation, message, gemm, traffic, type, launches, tensors, call, known_time,
          by_class, caller, aside, beside_hook, optimizer_share, host, hook_calls, payload, group,
          communicator, handed_over);
}
inline void in_fields(Task v, const Visit<Task>& visit) {
  auto& [operation, stream, host_waits, micro_batch, work, layer, kernel, parameter, bucket, step,
         user_hook, after_begin, after_count, owner, gradient, divisor] = v;
  in_each(v, visit, operation, stream, host_waits, micro_batch, work, layer, kernel, parameter,
          bucket, step, user_hook, after_begin, after_count, owner, gradient, divisor);
}
inline void in_fields(CommStep v, const Visit<CommStep>& visit) {
  auto& [action, operation, tensor, kernel, payload, host, type, factor, divisor, group, channel,
         keeps_random, communicator, code] = v;
  in_each(v, visit, action, operation, tensor, kernel, payload, host, type, factor, divisor, group,
          channel, keeps_random, communicator, code);
}
inline void in_fields(MatrixShape v, const Visit<MatrixShape>& visit) {
  auto& [rows, columns] = v;
  in_each(v, visit, rows, columns);
}
inline void in_fields(LowRank v, const Visit<LowRank>& visit) {
  auto& [tensor, rows, columns, rank] = v;
  in_each(v, visit, tensor, rows, columns, rank);
}
inline void in_fields(Bucket v, const Visit<Bucket>& visit) {
  auto& [parameters, size, in_place, sparse, holds_gradients, delayed, steps, gradients, low_rank] =
      v;
  in_each(v, visit, parameters, size, in_place, sparse, holds_gradients, delayed, steps, gradients,
          low_rank);
}
inline void in_fields(Chunks v, const Visit<Chunks>& visit) {
  auto& [count, threads, output, time, host_memory, transfer] = v;
  in_each(v, visit, count, threads, output, time, host_memory, transfer);
}
inline void in_fields(UserHook v, const Visit<UserHook>& visit) {
  auto& [kind, value, seed, chunks, plugin, passes, launches, host, groups, layers, outputs] = v;
  in_each(v, visit, kind, value, seed, chunks, plugin, passes, launches, host, groups, layers,
          outputs);
}
inline void in_fields(Passes v, const Visit<Passes>& visit) {
  auto& [forward, backward, optimizer] = v;
  in_each(v, visit, forward, backward, optimizer);
}
inline void in_fields(LoggedIteration v, const Visit<LoggedIteration>& visit) {
  auto& [begin, end] = v;
  in_each(v, visit, begin, end);
}
inline void in_fields(Schedule::Background v, const Visit<Schedule::Background>& visit) {
  auto& [size, pause] = v;
  in_each(v, visit, size, pause);
}
inline void in_fields(Schedule v, const Visit<Schedule>& visit) {
  auto& [works, tasks, after, buckets, hooks, passes, logged, ranks, synchronous,
         collectives_at_once, ranks_without_inputs, background, rounds, hook_state, hook_seed] = v;
  in_each(v, visit, works, tasks, after, buckets, hooks, passes, logged, ranks, synchronous,
          collectives_at_once, ranks_without_inputs, background, rounds, hook_state, hook_seed);
}

template <typename>
struct IsVector : std::false_type {};
template <typename Element>
struct IsVector<std::vector<Element>> : std::true_type {};
template <typename>
struct IsOptional : std::false_type {};
template <typename Element>
struct IsOptional<std::optional<Element>> : std::true_type {};

/// A list: each element changed, one more, and the last one missing.
template <typename Element>
void in_list(const std::vector<Element>& list, const Visit<std::vector<Element>>& visit) {
  std::vector<Element> other = list;
  for (std::size_t i = 0; i < list.size(); ++i) {
    for_each_change<Element>(list[i], [&](const Element& element) {
      other[i] = element;
      visit(other);
    });
    other[i] = list[i];
  }
  other.emplace_back();
  visit(other);
  if (list.empty()) return;
  other.resize(list.size() - 1);
  visit(other);
}

template <typename Value>
void for_each_change(const Value& value, const Visit<Value>& visit) {
  if constexpr (std::is_same_v<Value, bool>) {
    visit(!value);
  } else if constexpr (std::is_enum_v<Value>) {
    visit(static_cast<Value>(static_cast<int>(value) + 1));
  } else if constexpr (std::is_arithmetic_v<Value>) {
    visit(static_cast<Value>(value + 1));
  } else if constexpr (std::is_same_v<Value, Duration>) {
    visit(value + Duration{1});
  } else if constexpr (std::is_same_v<Value, Bytes>) {
    visit(value + Bytes{1});
  } else if constexpr (std::is_same_v<Value, Bandwidth>) {
    visit({value.bytes_per_second + 1});
  } else if constexpr (std::is_same_v<Value, std::string>) {
    visit(value + "x");
  } else if constexpr (IsVector<Value>::value) {
    in_list(value, visit);
  } else if constexpr (IsOptional<Value>::value) {
    if (!value) return visit(Value{std::in_place});
    visit(std::nullopt);
    for_each_change<typename Value::value_type>(*value, [&](const auto& one) { visit(one); });
  } else {
    in_fields(value, visit);
  }
}

}  // namespace ddpsim::changes
