#pragma once

#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "model/program/job.hpp"

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
inline void in_fields(Work v, const Visit<Work>& visit) {
  auto& [operation, message, awaited, gemm, traffic, type, launches, tensors, call, known_time,
         by_class, caller, aside, beside_hook, optimizer_share, host, hook_calls, payload, group,
         stride, communicator, handed_over] = v;
  in_each(v, visit, operation, message, awaited, gemm, traffic, type, launches, tensors, call,
          known_time, by_class, caller, aside, beside_hook, optimizer_share, host, hook_calls,
          payload, group, stride, communicator, handed_over);
}
inline void in_fields(program::Wait, const Visit<program::Wait>&) {}
inline void in_fields(program::Meet, const Visit<program::Meet>&) {}
inline void in_fields(program::Pause, const Visit<program::Pause>&) {}
inline void in_fields(program::Slice v, const Visit<program::Slice>& visit) {
  auto& [buffer, part_of, begin, count] = v;
  in_each(v, visit, buffer, part_of, begin, count);
}
inline void in_fields(program::Operands v, const Visit<program::Operands>& visit) {
  auto& [begin, count] = v;
  in_each(v, visit, begin, count);
}
inline void in_fields(program::Call v, const Visit<program::Call>& visit) {
  auto& [what, index, reads] = v;
  in_each(v, visit, what, index, reads);
}
inline void in_fields(program::Chunked v, const Visit<program::Chunked>& visit) {
  auto& [pieces, threads, output, time] = v;
  in_each(v, visit, pieces, threads, output, time);
}
inline void in_fields(program::Compute v, const Visit<program::Compute>& visit) {
  auto& [seed, layout, motion, weight, result, fills, rows] = v;
  in_each(v, visit, seed, layout, motion, weight, result, fills, rows);
}
inline void in_fields(program::Scale v, const Visit<program::Scale>& visit) {
  auto& [to, from, factor, mean_over] = v;
  in_each(v, visit, to, from, factor, mean_over);
}
inline void in_fields(program::Fill v, const Visit<program::Fill>& visit) {
  auto& [to, value] = v;
  in_each(v, visit, to, value);
}
inline void in_fields(program::Combine v, const Visit<program::Combine>& visit) {
  auto& [to, left, right, a, b] = v;
  in_each(v, visit, to, left, right, a, b);
}
inline void in_fields(program::Cast v, const Visit<program::Cast>& visit) {
  auto& [to, from] = v;
  in_each(v, visit, to, from);
}
inline void in_fields(program::TakeRows v, const Visit<program::TakeRows>& visit) {
  auto& [to, rows, from, factor] = v;
  in_each(v, visit, to, rows, from, factor);
}
inline void in_fields(program::AddRows v, const Visit<program::AddRows>& visit) {
  auto& [to, rows, from] = v;
  in_each(v, visit, to, rows, from);
}
inline void in_fields(program::Pack v, const Visit<program::Pack>& visit) {
  auto& [to, from, factor, mean_over, zeros_behind] = v;
  in_each(v, visit, to, from, factor, mean_over, zeros_behind);
}
inline void in_fields(program::Chunk v, const Visit<program::Chunk>& visit) {
  auto& [to, places, from, parts] = v;
  in_each(v, visit, to, places, from, parts);
}
inline void in_fields(program::Unchunk v, const Visit<program::Unchunk>& visit) {
  auto& [to, places, from, parts] = v;
  in_each(v, visit, to, places, from, parts);
}
inline void in_fields(program::TakePart v, const Visit<program::TakePart>& visit) {
  auto& [to, places, from, begin, of] = v;
  in_each(v, visit, to, places, from, begin, of);
}
inline void in_fields(program::Multiply v, const Visit<program::Multiply>& visit) {
  auto& [to, left, right, m, n, k, layout] = v;
  in_each(v, visit, to, left, right, m, n, k, layout);
}
inline void in_fields(program::Orthogonalize v, const Visit<program::Orthogonalize>& visit) {
  auto& [matrix, rows, columns, epsilon] = v;
  in_each(v, visit, matrix, rows, columns, epsilon);
}
inline void in_fields(program::Draw v, const Visit<program::Draw>& visit) {
  auto& [to, fresh] = v;
  in_each(v, visit, to, fresh);
}
inline void in_fields(program::Observe v, const Visit<program::Observe>& visit) {
  auto& [scales, from, channel] = v;
  in_each(v, visit, scales, from, channel);
}
inline void in_fields(program::Quantize v, const Visit<program::Quantize>& visit) {
  auto& [codes, scales, from, channel] = v;
  in_each(v, visit, codes, scales, from, channel);
}
inline void in_fields(program::Dequantize v, const Visit<program::Dequantize>& visit) {
  auto& [to, codes, scales, channel, mean_over] = v;
  in_each(v, visit, to, codes, scales, channel, mean_over);
}
inline void in_fields(program::Select v, const Visit<program::Select>& visit) {
  auto& [pairs, from] = v;
  in_each(v, visit, pairs, from);
}
inline void in_fields(program::Spread v, const Visit<program::Spread>& visit) {
  auto& [to, pairs, of] = v;
  in_each(v, visit, to, pairs, of);
}
inline void in_fields(program::Clip v, const Visit<program::Clip>& visit) {
  auto& [gradients, norm] = v;
  in_each(v, visit, gradients, norm);
}
inline void in_fields(program::Noise v, const Visit<program::Noise>& visit) {
  auto& [to, from, deviation, seed] = v;
  in_each(v, visit, to, from, deviation, seed);
}
inline void in_fields(program::Plugin v, const Visit<program::Plugin>& visit) {
  auto& [what, code, parameter, weight, complete, reads, writes] = v;
  in_each(v, visit, what, code, parameter, weight, complete, reads, writes);
}
inline void in_fields(program::Touch v, const Visit<program::Touch>& visit) {
  auto& [what] = v;
  in_each(v, visit, what);
}
inline void in_fields(program::Update v, const Visit<program::Update>& visit) {
  auto& [optimizer, parameters, gradients, state] = v;
  in_each(v, visit, optimizer, parameters, gradients, state);
}
inline void in_fields(program::Move v, const Visit<program::Move>& visit) {
  auto& [to, from, unawaited] = v;
  in_each(v, visit, to, from, unawaited);
}
inline void in_fields(program::Collective v, const Visit<program::Collective>& visit) {
  auto& [what, reduction, communicator, root, unawaited, from, to, counts] = v;
  in_each(v, visit, what, reduction, communicator, root, unawaited, from, to, counts);
}
inline void in_fields(program::Send v, const Visit<program::Send>& visit) {
  auto& [communicator, peer, what] = v;
  in_each(v, visit, communicator, peer, what);
}
inline void in_fields(program::Receive v, const Visit<program::Receive>& visit) {
  auto& [communicator, peer, what] = v;
  in_each(v, visit, communicator, peer, what);
}
inline void in_fields(program::Origin v, const Visit<program::Origin>& visit) {
  auto& [pass, purpose, label, layer, kernel, parameter, group, hook] = v;
  in_each(v, visit, pass, purpose, label, layer, kernel, parameter, group, hook);
}
inline void in_fields(program::Deed v, const Visit<program::Deed>& visit) {
  auto& [action, origin] = v;
  in_each(v, visit, action, origin);
}
inline void in_fields(program::Actions v, const Visit<program::Actions>& visit) {
  auto& [deeds, slices] = v;
  in_each(v, visit, deeds, slices);
}
inline void in_fields(program::Stream v, const Visit<program::Stream>& visit) {
  auto& [name, beside, halts, lanes] = v;
  in_each(v, visit, name, beside, halts, lanes);
}
inline void in_fields(program::Communicator v, const Visit<program::Communicator>& visit) {
  auto& [name, at_once, groups] = v;
  in_each(v, visit, name, at_once, groups);
}
inline void in_fields(program::Buffer v, const Visit<program::Buffer>& visit) {
  auto& [holds, index, name, type, elements, place, life, start, inside] = v;
  in_each(v, visit, holds, index, name, type, elements, place, life, start, inside);
}
inline void in_fields(program::Task v, const Visit<program::Task>& visit) {
  auto& [work, deed, after_end, micro_batch, stream, communicator] = v;
  in_each(v, visit, work, deed, after_end, micro_batch, stream, communicator);
}
inline void in_fields(program::Hold v, const Visit<program::Hold>& visit) {
  auto& [before, buffer, pool, begins] = v;
  in_each(v, visit, before, buffer, pool, begins);
}
inline void in_fields(program::ParameterGroup v, const Visit<program::ParameterGroup>& visit) {
  auto& [parameters, size, name] = v;
  in_each(v, visit, parameters, size, name);
}
inline void in_fields(program::Mark v, const Visit<program::Mark>& visit) {
  auto& [kind, task, of] = v;
  in_each(v, visit, kind, task, of);
}
inline void in_fields(program::Program v, const Visit<program::Program>& visit) {
  auto& [tasks, after, holds, marks, rounds] = v;
  in_each(v, visit, tasks, after, holds, marks, rounds);
}
inline void in_fields(Passes v, const Visit<Passes>& visit) {
  auto& [forward, backward, optimizer] = v;
  in_each(v, visit, forward, backward, optimizer);
}
inline void in_fields(program::Part v, const Visit<program::Part>& visit) {
  auto& [of, whole, begin, is_kept_whole] = v;
  in_each(v, visit, of, whole, begin, is_kept_whole);
}
inline void in_fields(program::Job v, const Visit<program::Job>& visit) {
  auto& [streams, communicators, buffers, works, groups, labels, known, own, passes, programs,
         program_of, beside, state, hook, seed, gradients, parts] = v;
  static_cast<void>(known);  // shared, and hashed as `own` is
  in_each(v, visit, streams, communicators, buffers, works, groups, labels, own, passes, programs,
          program_of, beside, state, hook, seed, gradients, parts);
}
/// An action of the same kind, changed.
inline void in_fields(program::Action v, const Visit<program::Action>& visit) {
  std::visit(
      [&](const auto& kind) {
        for_each_change<std::remove_cvref_t<decltype(kind)>>(
            kind, [&](const auto& other) { visit(program::Action(other)); });
      },
      v);
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
