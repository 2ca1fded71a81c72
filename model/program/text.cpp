#include "model/program/text.hpp"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "model/base/quantity.hpp"
#include "model/program/operands.hpp"

namespace ddpsim::program {
namespace {

std::string label_of(const Job& job, std::int16_t label) {
  return label >= 0 && at(label) < job.labels.size() ? job.labels[at(label)] : "?";
}

std::string name_of_buffer(const Job& job, BufferId id) {
  if (id >= job.buffers.size()) return "no buffer";
  const Buffer& buffer = job.buffers[id];
  const std::string name = label_of(job, buffer.name);
  return buffer.index == nobody ? name : fmt::format("{}{}", name, buffer.index);
}

std::string list_of(const Job& job, const std::vector<Slice>& slices) {
  constexpr std::size_t most = 8;  // of a bucket of hundreds of gradients the first few tell
  std::string text;
  for (std::size_t i = 0; i < std::min(slices.size(), most); ++i)
    text += (i == 0 ? "" : ", ") + text_of(job, slices[i]);
  if (slices.size() > most) text += fmt::format(", ... {} in all", slices.size());
  return text;
}

std::string name_of_communicator(const Job& job, std::int16_t communicator) {
  return communicator >= 0 && at(communicator) < job.communicators.size()
             ? job.communicators[at(communicator)].name
             : "?";
}

std::string_view name_of(Pass pass) {
  switch (pass) {
    case Pass::forward:
      return "forward";
    case Pass::backward:
      return "backward";
    case Pass::optimizer:
      return "optimizer";
    case Pass::none:
      return "";
  }
  return "";
}

/// " (backward of layer 3)"
std::string place_of(const Origin& origin) {
  return origin.layer == nobody || origin.pass == Pass::none
             ? ""
             : fmt::format(" ({} of layer {})", name_of(origin.pass), origin.layer);
}

std::string text_of(const Call& call) {
  switch (call.what) {
    case Call::What::hook:
      return fmt::format(" the gradient hook of parameter {}", call.index);
    case Call::What::unit:
      return fmt::format(" a hook of unit {}", call.index);
    case Call::What::search:
      return " the search for unused parameters";
    case Call::What::outside:
      return " what is outside of the passes";
    case Call::What::user:
      return fmt::format(" the user's hook {}", call.index);
  }
  return "";
}

/// What its operands do not tell of an action.
std::string rest_of(const Job& job, const Action& action) {
  const auto mean = [&](std::int16_t communicator) {
    return communicator == nobody ? std::string()
                                  : fmt::format(" / |{}|", name_of_communicator(job, communicator));
  };
  if (const auto* scale = std::get_if<Scale>(&action)) {
    const std::string factor = scale->factor == 1 ? "" : fmt::format(" x {:g}", scale->factor);
    return factor + mean(scale->mean_over);
  }
  if (const auto* take = std::get_if<TakeRows>(&action))
    return take->factor == 1 ? "" : fmt::format(" x {:g}", take->factor);
  if (const auto* dequantize = std::get_if<Dequantize>(&action)) return mean(dequantize->mean_over);
  if (const auto* combine = std::get_if<Combine>(&action))
    return combine->a == 1 && combine->b == 1
               ? ""
               : fmt::format(" x {:g}, {:g}", combine->a, combine->b);
  if (const auto* clip = std::get_if<Clip>(&action)) return fmt::format(" to {:g}", clip->norm);
  if (const auto* collective = std::get_if<Collective>(&action)) {
    const std::string reduction = collective->reduction == Reduction::none
                                      ? ""
                                      : fmt::format(", {}", name_of(collective->reduction));
    const std::string root =
        collective->what == Collectives::broadcast ? fmt::format(" from {}", collective->root) : "";
    return fmt::format(" in {}{}{}{}", name_of_communicator(job, collective->communicator), root,
                       reduction, collective->unawaited ? ", not awaited" : "");
  }
  if (const auto* chunked = std::get_if<Chunked>(&action))
    return fmt::format(" {} in {} pieces on {} threads", to_string(chunked->output),
                       chunked->pieces, chunked->threads);
  if (const auto* plugin = std::get_if<Plugin>(&action))
    return fmt::format(" by \"{}\"", label_of(job, plugin->code));
  if (const auto* send = std::get_if<Send>(&action))
    return fmt::format(" to {} of {}", send->peer, name_of_communicator(job, send->communicator));
  if (const auto* receive = std::get_if<Receive>(&action))
    return fmt::format(" from {} of {}", receive->peer,
                       name_of_communicator(job, receive->communicator));
  return "";
}

/// "Scale slot1 <- g1 / |world|", "all_reduce b0 in world, sum"
std::string what_is_done(const Job& job, const Task& task) {
  const Deed& deed = job.deed_of(task);
  Accesses accesses = accesses_of(deed.action, job.actions_of(task));
  std::string text(name_of(deed.action));
  if (const auto* call = std::get_if<Call>(&deed.action)) text += text_of(*call);
  if (!accesses.writes.empty()) text.append(" ").append(list_of(job, accesses.writes));
  // What is changed in place is told once.
  std::erase_if(accesses.reads, [&](const Slice& slice) {
    return std::ranges::find(accesses.writes, slice) != accesses.writes.end();
  });
  if (!accesses.reads.empty()) text += " <- " + list_of(job, accesses.reads);
  return text + rest_of(job, deed.action) + place_of(deed.origin);
}

/// "0-7, 9"
std::string ranks_text(const Job& job, std::size_t program) {
  std::string text;
  for (std::size_t begin = 0; begin < job.ranks(); ++begin) {
    if (job.program_of[begin] != program) continue;
    std::size_t last = begin;
    while (last + 1 < job.ranks() && job.program_of[last + 1] == program) ++last;
    text += text.empty() ? "" : ", ";
    text += last == begin ? fmt::format("{}", begin) : fmt::format("{}-{}", begin, last);
    begin = last;
  }
  return text;
}

void add_buffers(const Job& job, std::string& text) {
  const auto out = std::back_inserter(text);
  text += "buffers\n";
  for (BufferId b = 0; b < job.buffers.size(); ++b) {
    const Buffer& buffer = job.buffers[b];
    const Bytes size = buffer.elements * size_of(buffer.type);
    fmt::format_to(out, "  {:<8} {}, {} {}, {}", name_of_buffer(job, b), name_of(buffer.holds),
                   buffer.elements, name_of(buffer.type), to_string(size));
    if (buffer.inside.buffer != no_buffer)
      fmt::format_to(out, ", a view of {}", text_of(job, buffer.inside));
    else
      fmt::format_to(out, ", {}, life: {}", name_of(buffer.place), name_of(buffer.life));
    if (buffer.start != Start::undefined)
      fmt::format_to(out, ", starts: {}", name_of(buffer.start));
    text += "\n";
  }
}

void add_communicators(const Job& job, std::string& text) {
  text += "communicators\n";
  for (const Communicator& each : job.communicators) {
    std::size_t largest = 0;
    for (const std::vector<std::int32_t>& group : each.groups)
      largest = std::max(largest, group.size());
    fmt::format_to(std::back_inserter(text), "  {:<8} {} group{} of up to {} ranks, {} at once\n",
                   each.name, each.groups.size(), each.groups.size() == 1 ? "" : "s", largest,
                   each.at_once);
  }
}

void add_program(const Job& job, const Program& program, std::string& text) {
  const auto out = std::back_inserter(text);
  std::size_t widest = 0;
  for (const Stream& stream : job.streams) widest = std::max(widest, stream.name.size());
  auto hold = program.holds.begin();
  const auto add_holds = [&](std::size_t until) {
    for (; hold != program.holds.end() && hold->before <= until; ++hold)
      fmt::format_to(out, "         {}{} {}\n", hold->begins ? "+" : "-",
                     name_of_buffer(job, hold->buffer),
                     fmt::format("({})", job.streams[hold->pool].name));
  };
  for (std::size_t t = 0; t < program.tasks.size(); ++t) {
    add_holds(t);
    const Task& task = program.tasks[t];
    fmt::format_to(out, "  {:>5}  {:<{}}  {}", t, job.streams[task.stream].name, widest,
                   what_is_done(job, task));
    std::string_view lead = "; after ";
    for (const std::uint32_t earlier : program.waits_for(t)) {
      fmt::format_to(out, "{}{}", lead, earlier);
      lead = ", ";
    }
    text += "\n";
  }
  add_holds(program.tasks.size());
}

}  // namespace

std::string text_of(const Job& job, const Slice& slice) {
  const std::string name = name_of_buffer(job, slice.buffer);
  if (slice.buffer >= job.buffers.size()) return name;
  const std::int64_t elements = job.buffers[slice.buffer].elements;
  if (slice.part_of != nobody)
    return fmt::format("{}[part of {}]", name, name_of_communicator(job, slice.part_of));
  if (slice.begin == 0 && slice.count == elements) return name;
  return fmt::format("{}[{}:{}]", name, slice.begin, slice.begin + slice.count);
}

std::string text_of(const Job& job) {
  std::string text;
  add_buffers(job, text);
  add_communicators(job, text);
  for (std::size_t p = 0; p < job.programs.size(); ++p) {
    const Program& program = job.programs[p];
    fmt::format_to(std::back_inserter(text), "program of rank{} {}{}\n",
                   std::ranges::count(job.program_of, p) == 1 ? "" : "s", ranks_text(job, p),
                   program.rounds == 1 ? "" : fmt::format(", {} rounds", program.rounds));
    add_program(job, program, text);
  }
  if (job.beside) {
    text += "beside it, again and again\n";
    add_program(job, *job.beside, text);
  }
  return text;
}

std::string name_of_task(const Job& job, const Program& program, std::size_t task) {
  const Task& named = program.tasks[task];
  return fmt::format("task {} ({} on {})", task, what_is_done(job, named),
                     job.streams[named.stream].name);
}

}  // namespace ddpsim::program
