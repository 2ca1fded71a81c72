#include "tests/model/program/random_job.hpp"

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "model/program/operands.hpp"

namespace ddpsim::program {
namespace {

constexpr std::int64_t elements = 36;  // of each buffer: equal parts among 1, 2, 3, 4, 6 or 9
constexpr std::int16_t world = 0, stage = 1, chain = 2;

class JobDrawer {
 public:
  explicit JobDrawer(drawn::Draw& draw)
      : draw_(draw), stages_(draw.between(1, 3)), replicas_(draw.between(1, 3)) {}

  Job draw() {
    job_.labels = {""};
    job_.works.emplace_back();
    add_streams();
    add_ranks();
    add_buffers();
    for (int left = draw_.between(4, 16); left > 0; --left) {
      if (draw_.one_in(3)) communicate();
      for (int s = 0; s < stages_; ++s)
        if (!draw_.one_in(3)) compute(s);
    }
    return std::move(job_);
  }

 private:
  void add_streams() {
    job_.streams.push_back({.name = "host"});
    for (int i = draw_.between(2, 4); i > 0; --i)
      job_.streams.push_back({.name = fmt::format("stream {}", i),
                              .lanes = static_cast<std::uint8_t>(draw_.one_in(5) ? 2 : 1)});
  }

  void add_ranks() {
    for (int s = 0; s < stages_; ++s)
      for (int r = 0; r < replicas_; ++r) job_.program_of.push_back(static_cast<std::uint16_t>(s));
    job_.programs.resize(static_cast<std::size_t>(stages_));
    uses_.resize(job_.programs.size());
    for (const char* name : {"world", "stage", "chain"})
      job_.communicators.push_back(
          {.name = name, .at_once = static_cast<std::uint8_t>(draw_.one_in(4) ? 2 : 1)});
    job_.communicators[world].groups.resize(1);
    job_.communicators[stage].groups.resize(static_cast<std::size_t>(stages_));
    job_.communicators[chain].groups.resize(static_cast<std::size_t>(replicas_));
    for (std::int32_t rank = 0; rank < stages_ * replicas_; ++rank) {
      job_.communicators[world].groups[0].push_back(rank);
      job_.communicators[stage].groups[at(rank / replicas_)].push_back(rank);
      job_.communicators[chain].groups[at(rank % replicas_)].push_back(rank);
    }
  }
  std::int64_t members(std::int16_t communicator) const {
    return static_cast<std::int64_t>(job_.communicators[at(communicator)].groups[0].size());
  }

  void add_buffers() {
    for (int b = draw_.between(3, 8); b > 0; --b) {
      job_.labels.push_back(fmt::format("b{}", b));
      job_.buffers.push_back({.holds = Holds::activation,
                              .name = static_cast<std::int16_t>(job_.labels.size() - 1),
                              .elements = elements,
                              .life = draw_.one_in(3)   ? Life::held
                                      : draw_.one_in(2) ? Life::step
                                                        : Life::job,
                              .start = Start::zeros});
      if (draw_.one_in(60)) job_.buffers.back().start = Start::undefined;
    }
    // Views, of the first buffers.
    for (int v = draw_.between(0, 2); v > 0; --v) {
      Buffer view = job_.buffers[at(draw_.between(0, 2))];
      const auto parent = static_cast<BufferId>(draw_.between(0, 2));
      view.elements = elements / 2;
      view.life = job_.buffers[parent].life;
      view.inside = {.buffer = parent, .begin = 9 * draw_.between(0, 2), .count = view.elements};
      job_.buffers.push_back(view);
    }
    there_.assign(job_.programs.size(), std::vector<bool>(job_.buffers.size(), false));
  }

  /// A slice of `count` elements of any buffer that is there; at times, of one that is not.
  Slice slice(int program, std::int64_t count) {
    BufferId buffer = 0;
    do {
      buffer = static_cast<BufferId>(draw_.between(0, static_cast<int>(job_.buffers.size()) - 1));
    } while (job_.buffers[buffer].elements < count);
    come(program, buffer);
    const auto communicator = static_cast<std::int16_t>(draw_.between(0, 2));
    const std::int64_t whole = job_.buffers[buffer].elements;
    if (count * members(communicator) <= whole && draw_.one_in(2))
      return {.buffer = buffer, .part_of = communicator, .count = count};
    return {.buffer = buffer,
            .begin = draw_.between(0, static_cast<int>(whole - count)),
            .count = count};
  }
  Slice some(int program) { return slice(program, draw_.between(1, 6)); }

  /// Held memory comes before its first use, and at times goes and comes again.
  void come(int program, BufferId buffer) {
    while (job_.buffers[buffer].inside.buffer != no_buffer)
      buffer = job_.buffers[buffer].inside.buffer;
    if (job_.buffers[buffer].life != Life::held) return;
    const std::vector<bool>::reference is_there = there_[at(program)][buffer];
    if (is_there && draw_.one_in(6)) hold(program, buffer, false);
    if (!is_there && !draw_.one_in(200)) hold(program, buffer, true);
  }
  void hold(int program, BufferId buffer, bool begins) {
    Program& of = job_.programs[at(program)];
    of.holds.push_back({.before = static_cast<std::uint32_t>(of.tasks.size()),
                        .buffer = buffer,
                        .pool = static_cast<std::uint8_t>(draw_.between(0, 1)),
                        .begins = begins});
    there_[at(program)][buffer] = begins;
  }

  Operands list(std::initializer_list<Slice> slices) {
    return job_.own.add(std::vector<Slice>(slices));
  }

  void compute(int program) {
    const std::int64_t count = draw_.between(1, 12);
    const auto of = [&] { return slice(program, count); };
    switch (draw_.between(0, 9)) {
      case 0:
        return add(program, Fill{.to = of()});
      case 1:
        return add(program, Touch{.what = of()});
      case 2:
        return add(program, Combine{.to = of(), .left = of(), .right = of()});
      case 3:
        return add(program, Call{.reads = list({some(program), some(program)})});
      case 4:
        return add(program, Pack{.to = list({of()}), .from = list({some(program), some(program)})});
      case 5:
        return add(program, Compute{.weight = of(), .fills = list({some(program)})});
      case 6:
        return add(program, Wait{});
      case 7:
        return add(program, Move{.to = of(), .from = of(), .unawaited = draw_.one_in(4)});
      default:
        return add(program, Scale{.to = of(), .from = of()});
    }
  }

  void communicate() {
    const int kind = draw_.between(0, 2);
    if (kind == 2 && stages_ > 1) {
      const int from = draw_.between(0, stages_ - 2);
      const std::int64_t count = draw_.between(1, 12);
      add(from, Send{.communicator = chain,
                     .peer = static_cast<std::int16_t>(from + 1),
                     .what = slice(from, count)});
      add(from + 1, Receive{.communicator = chain,
                            .peer = static_cast<std::int16_t>(from),
                            .what = slice(from + 1, draw_.one_in(60) ? count + 1 : count)});
      return;
    }
    // Within a stage, or of all ranks.
    const std::int16_t communicator = kind == 0 ? world : kind == 1 ? stage : chain;
    const int only = draw_.between(0, stages_ - 1);
    Collective collective{.communicator = communicator};
    collective.what = draw_.any_of(std::vector{Collectives::all_reduce, Collectives::all_gather,
                                               Collectives::reduce_scatter, Collectives::broadcast,
                                               Collectives::all_to_all});
    const std::int64_t ranks = members(communicator);
    std::int64_t from = ranks * draw_.between(1, static_cast<int>(18 / ranks)), to = from;
    if (collective.what == Collectives::broadcast)
      collective.root = static_cast<std::int16_t>(draw_.between(0, static_cast<int>(ranks) - 1));
    if (collective.what == Collectives::all_gather) from /= ranks;
    if (collective.what == Collectives::reduce_scatter) to /= ranks;
    for (int s = 0; s < stages_; ++s) {
      if (communicator == stage && s != only) continue;
      if (draw_.one_in(150)) continue;  // one stage forgets it
      collective.from = slice(s, from);
      collective.to = draw_.one_in(2) && from == to ? collective.from : slice(s, to);
      collective.unawaited = draw_.one_in(8);
      add(s, collective);
    }
  }

  void add(int program, Action action) {
    Program& of = job_.programs[at(program)];
    const auto stream =
        static_cast<std::uint8_t>(draw_.between(0, static_cast<int>(job_.streams.size()) - 1));
    const Uses uses = uses_of(action);
    for (std::uint32_t earlier = 0; earlier < of.tasks.size(); ++earlier) {
      const bool in_turn = of.tasks[earlier].stream == stream && job_.streams[stream].lanes == 1;
      if (!in_turn && uses.clash(uses_[at(program)][earlier]) && !draw_.one_in(12))
        of.after.push_back(earlier);
    }
    job_.own.deeds.push_back({.action = std::move(action), .origin = {}});
    of.tasks.push_back({.deed = static_cast<std::uint32_t>(job_.own.deeds.size() - 1),
                        .after_end = static_cast<std::uint32_t>(of.after.size()),
                        .stream = stream});
    uses_[at(program)].push_back(uses);
  }

  /// Which buffers a task uses, whatever part of them; all that are held are one.
  struct Uses {
    std::uint64_t reads = 0, writes = 0;

    bool clash(const Uses& other) const {
      return (writes & (other.reads | other.writes)) != 0 || (reads & other.writes) != 0;
    }
  };
  Uses uses_of(const Action& action) const {
    const Accesses accesses = accesses_of(action, job_.own, 0);
    Uses uses;
    for (const Slice& each : accesses.reads) uses.reads |= bit_of(each);
    for (const Slice& each : accesses.writes) uses.writes |= bit_of(each);
    uses.writes |= (uses.reads | uses.writes) & held;
    return uses;
  }
  static constexpr std::uint64_t held = std::uint64_t{1} << 63;
  std::uint64_t bit_of(const Slice& slice) const {
    BufferId buffer = slice.buffer;
    while (job_.buffers[buffer].inside.buffer != no_buffer)
      buffer = job_.buffers[buffer].inside.buffer;
    return job_.buffers[buffer].life == Life::held ? held : std::uint64_t{1} << buffer;
  }

  drawn::Draw& draw_;
  int stages_, replicas_;
  Job job_;
  std::vector<std::vector<Uses>> uses_;   ///< [program][task]
  std::vector<std::vector<bool>> there_;  ///< [program][buffer]
};

}  // namespace

Job random_job(drawn::Draw& draw) {
  return JobDrawer(draw).draw();
}

}  // namespace ddpsim::program
