#include "model/program/check.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "model/program/operands.hpp"
#include "model/program/text.hpp"

namespace ddpsim::program {
namespace {

[[noreturn]] void refuse(const std::string& what) {
  throw std::invalid_argument(what);
}

/// Which tasks of a program are known to have ended at some point of it.
struct Clock {
  std::vector<std::uint32_t> ended;   ///< [stream that does one task at a time] its first so many
  std::vector<std::uint32_t> others;  ///< tasks of the other streams, ascending

  void join(const Clock& other) {
    for (std::size_t s = 0; s < ended.size(); ++s) ended[s] = std::max(ended[s], other.ended[s]);
    if (other.others.empty()) return;
    std::vector<std::uint32_t> all;
    all.reserve(others.size() + other.others.size());
    std::ranges::set_union(others, other.others, std::back_inserter(all));
    others = std::move(all);
  }
};

/// Part of a buffer, and who used it last.
struct Segment {
  static constexpr std::int64_t undefined = -2, defined = -1;
  std::int64_t end = 0;
  std::int64_t writer = undefined;     ///< a task, or one of the two
  std::vector<std::uint32_t> readers;  ///< since then
};
using Segments = std::map<std::int64_t, Segment>;  ///< by their begin, one behind the other

/// Checks a program as the first rank that has it does it.
class ProgramChecker {
 public:
  ProgramChecker(const Job& job, const Program& program, std::int32_t rank)
      : job_(job),
        program_(program),
        rank_(rank),
        stream_ends_(job.streams.size()),
        stream_begins_(job.streams.size()),
        places_in_stream_(program.tasks.size()),
        counts_(job.streams.size(), 0),
        communicator_ends_(job.communicators.size()),
        last_use_(program.tasks.size(), 0),
        ends_(program.tasks.size()),
        segments_(job.buffers.size()),
        held_(job.buffers.size(), false),
        behind_(job.buffers.size()),
        unawaited_users_(job.buffers.size()),
        gone_(job.streams.size()) {
    for (std::size_t t = 0; t < program.tasks.size(); ++t)
      for (const std::uint32_t earlier : program.waits_for(t)) last_use_[earlier] = t;
    for (BufferId b = 0; b < job.buffers.size(); ++b)
      if (job.buffers[b].life != Life::held) segments_[b] = fresh(job.buffers[b]);
  }

  void run() {
    auto hold = program_.holds.begin();
    const auto hold_until = [&](std::size_t task) {
      for (; hold != program_.holds.end() && hold->before <= task; ++hold) come_or_go(*hold);
    };
    for (task_ = 0; task_ < program_.tasks.size(); ++task_) {
      hold_until(task_);
      do_task();
    }
    hold_until(program_.tasks.size());
  }

 private:
  static Segments fresh(const Buffer& buffer) {
    Segments whole;
    const bool defined = buffer.start != Start::undefined;
    whole[0] = {buffer.elements, defined ? Segment::defined : Segment::undefined, {}};
    return whole;
  }

  const Task& task() const { return program_.tasks[task_]; }
  std::string task_name() const { return name_of_task(job_, program_, task_); }
  bool one_at_a_time(std::size_t stream) const { return job_.streams[stream].lanes == 1; }

  /// What has ended when the current task begins.
  Clock begin_of_task() const {
    Clock clock;
    clock.ended.assign(job_.streams.size(), 0);
    const std::uint8_t stream = task().stream;
    // The host has come as far as this task.
    if (stream_ends_[0]) clock.join(*stream_ends_[0]);
    if (one_at_a_time(stream) && stream_ends_[stream]) clock.join(*stream_ends_[stream]);
    if (!one_at_a_time(stream) && stream_begins_[stream]) clock.join(*stream_begins_[stream]);
    for (const std::uint32_t earlier : program_.waits_for(task_)) clock.join(*ends_[earlier]);
    const std::int16_t communicator = communicator_of(job_.deed_of(task()).action);
    if (communicator != nobody && job_.communicators[at(communicator)].at_once == 1)
      if (const auto& last = communicator_ends_[at(communicator)]) clock.join(*last);
    return clock;
  }

  void do_task() {
    const Deed& deed = job_.deed_of(task());
    const Actions& actions = job_.actions_of(task());
    const std::int16_t communicator = communicator_of(deed.action);
    Membership member;
    if (communicator != nobody) {
      member = membership(job_.communicators[at(communicator)], rank_);
      if (member.group == nullptr)
        refuse(fmt::format("{}: rank {} is in no group of {}", task_name(), rank_,
                           job_.communicators[at(communicator)].name));
    }
    if (const auto* collective = std::get_if<Collective>(&deed.action)) {
      const auto ranks = static_cast<std::int64_t>(member.group->size());
      if (collective->root < 0 || collective->root >= ranks)
        refuse(fmt::format("{} sends from place {}, of {}", task_name(), collective->root, ranks));
      check_sizes(*collective, ranks);
    }
    clock_ = begin_of_task();
    unawaited_now_ = is_unawaited(deed.action);
    const Accesses accesses = accesses_of(deed.action, actions, member.place);
    for (const Slice& slice : accesses.reads) read(slice);
    for (const Slice& slice : accesses.writes) write(slice);
    if (unawaited_now_) unawaited_.push_back(static_cast<std::uint32_t>(task_));
    end_task(communicator);
  }

  void end_task(std::int16_t communicator) {
    const std::uint8_t stream = task().stream;
    if (!one_at_a_time(stream)) stream_begins_[stream] = clock_;
    places_in_stream_[task_] = counts_[stream]++;
    Clock end = clock_;
    if (one_at_a_time(stream))
      end.ended[stream] = counts_[stream];
    else
      end.others.insert(std::ranges::upper_bound(end.others, task_),
                        static_cast<std::uint32_t>(task_));
    if (communicator != nobody) communicator_ends_[at(communicator)] = end;
    for (const std::uint32_t earlier : program_.waits_for(task_))
      if (last_use_[earlier] == task_) ends_[earlier].reset();
    if (last_use_[task_] > task_) ends_[task_] = end;
    stream_ends_[stream] = std::move(end);
  }

  /// Has the task ended when the current one begins?
  bool has_ended(std::uint32_t earlier) const {
    const std::uint8_t stream = program_.tasks[earlier].stream;
    if (one_at_a_time(stream)) return clock_.ended[stream] > places_in_stream_[earlier];
    return std::ranges::binary_search(clock_.others, earlier);
  }
  bool may_be_under_way(std::uint32_t earlier) const {
    return std::ranges::binary_search(unawaited_, earlier);
  }

  void check_ended(std::uint32_t earlier, const Slice& slice, std::string_view does,
                   std::string_view did) const {
    if (has_ended(earlier) || may_be_under_way(earlier)) return;
    refuse(fmt::format("{} {} {} and does not wait for {}, which {} it", task_name(), does,
                       text_of(job_, slice), name_of_task(job_, program_, earlier), did));
  }

  /// The slice in memory of its own, which is there and may be used.
  Slice usable(const Slice& slice) {
    Slice found;
    try {
      found = placed(job_, slice, rank_);
    } catch (const std::invalid_argument& problem) {
      refuse(fmt::format("{}: {}", task_name(), problem.what()));
    }
    if (job_.buffers[found.buffer].life != Life::held) return found;
    if (!held_[found.buffer])
      refuse(fmt::format("{} uses {}, which is not there", task_name(), text_of(job_, slice)));
    if (unawaited_now_)
      add_latest(unawaited_users_[found.buffer], static_cast<std::uint32_t>(task_));
    for (const std::uint32_t earlier : behind_[found.buffer])
      if (!has_ended(earlier))
        refuse(
            fmt::format("{} uses {} and does not wait for {}, which used memory of that pool "
                        "before",
                        task_name(), text_of(job_, slice), name_of_task(job_, program_, earlier)));
    return found;
  }

  void read(const Slice& slice) {
    const Slice found = usable(slice);
    for_each_segment(found, [&](Segment& segment) {
      if (segment.writer == Segment::undefined)
        refuse(fmt::format("{} reads {}, of which nothing has written elements before it",
                           task_name(), text_of(job_, slice)));
      if (segment.writer >= 0)
        check_ended(static_cast<std::uint32_t>(segment.writer), slice, "reads", "writes");
      if (unawaited_now_) return;
      // Who waits for this task waits for those that it waited for.
      std::erase_if(segment.readers, [&](std::uint32_t earlier) { return has_ended(earlier); });
      segment.readers.push_back(static_cast<std::uint32_t>(task_));
    });
  }

  void write(const Slice& slice) {
    const Slice found = usable(slice);
    for_each_segment(found, [&](Segment& segment) {
      for (const std::uint32_t reader : segment.readers)
        if (reader != task_) check_ended(reader, slice, "writes", "reads");
      if (segment.writer >= 0 && static_cast<std::size_t>(segment.writer) != task_)
        check_ended(static_cast<std::uint32_t>(segment.writer), slice, "writes", "writes");
      // Who does not wait for this task waits for those before it.
      if (unawaited_now_ && segment.writer != Segment::undefined) return;
      segment.readers.clear();
      segment.writer = static_cast<std::int64_t>(task_);
    });
  }

  /// Cuts the buffer's segments at both ends of the slice.
  template <typename Use>
  void for_each_segment(const Slice& slice, const Use& use) {
    Segments& segments = segments_[slice.buffer];
    const std::int64_t end = slice.begin + slice.count;
    cut(segments, slice.begin);
    cut(segments, end);
    for (auto it = segments.find(slice.begin); it != segments.end() && it->first < end; ++it)
      use(it->second);
  }

  static void cut(Segments& segments, std::int64_t place) {
    auto it = segments.upper_bound(place);
    if (it == segments.begin()) return;
    --it;
    if (it->first == place || it->second.end <= place) return;
    Segment behind = it->second;
    it->second.end = place;
    segments.emplace_hint(std::next(it), place, std::move(behind));
  }

  void come_or_go(const Hold& hold) {
    const Buffer& buffer = job_.buffers[hold.buffer];
    const Slice whole{hold.buffer, static_cast<std::int16_t>(nobody), 0, buffer.elements};
    const auto refuse_hold = [&](const char* what) {
      refuse(fmt::format("before task {} {} {}", hold.before, text_of(job_, whole), what));
    };
    if (buffer.life != Life::held || buffer.inside.buffer != no_buffer)
      refuse_hold("comes or goes, and is no buffer that is held with memory of its own");
    if (hold.begins == held_[hold.buffer])
      refuse_hold(hold.begins ? "comes and is there already" : "goes and is not there");
    held_[hold.buffer] = hold.begins;
    if (hold.begins) {
      segments_[hold.buffer] = fresh(buffer);
      unawaited_users_[hold.buffer].clear();
      behind_[hold.buffer] = gone_[hold.pool];
    } else {
      std::vector<std::uint32_t>& gone = gone_[hold.pool];
      for (const auto& [begin, segment] : segments_[hold.buffer]) {
        for (const std::uint32_t reader : segment.readers) add_latest(gone, reader);
        if (segment.writer >= 0) add_latest(gone, static_cast<std::uint32_t>(segment.writer));
      }
      for (const std::uint32_t earlier : unawaited_users_[hold.buffer]) add_latest(gone, earlier);
      for (const std::uint32_t earlier : behind_[hold.buffer]) add_latest(gone, earlier);
    }
  }

  /// On a stream that does one task at a time the latest says all.
  void add_latest(std::vector<std::uint32_t>& tasks, std::uint32_t added) const {
    const std::uint8_t stream = program_.tasks[added].stream;
    for (std::uint32_t& each : tasks) {
      if (each == added) return;
      if (program_.tasks[each].stream != stream || !one_at_a_time(stream)) continue;
      each = std::max(each, added);
      return;
    }
    tasks.push_back(added);
  }

  void check_sizes(const Collective& collective, std::int64_t ranks) const {
    const std::int64_t from = collective.from.count, to = collective.to.count;
    const auto expect = [&](std::int64_t wanted, const char* of) {
      if (to != wanted)
        refuse(fmt::format("{}: {} elements among {} ranks make {} of {}, got {}", task_name(),
                           from, ranks, wanted, of, to));
    };
    if (job_.buffers[collective.from.buffer].type != job_.buffers[collective.to.buffer].type)
      refuse(fmt::format("{}: its input and its output have other number formats", task_name()));
    if (!collective.counts.empty()) return;
    const bool in_parts =
        collective.what == Collectives::reduce_scatter ||
        (collective.what == Collectives::all_gather && collective.reduction == Reduction::none);
    if (in_parts && collective.from == collective.to) return;  // in place
    switch (collective.what) {
      case Collectives::all_reduce:
      case Collectives::broadcast:
        return expect(from, "output");
      case Collectives::all_gather:
        return expect(collective.reduction == Reduction::none ? ranks * from : from, "output");
      case Collectives::reduce_scatter:
        if (from % ranks != 0)
          refuse(fmt::format("{}: {} elements are no {} equal parts", task_name(), from, ranks));
        return expect(from / ranks, "output");
      case Collectives::all_to_all:
        if (from % ranks != 0)
          refuse(fmt::format("{}: {} elements are no {} equal parts", task_name(), from, ranks));
        return expect(from, "output");
    }
  }

  const Job& job_;
  const Program& program_;
  const std::int32_t rank_;

  std::size_t task_ = 0;
  Clock clock_;                                      ///< at the begin of the current task
  bool unawaited_now_ = false;                       ///< is the current task?
  std::vector<std::optional<Clock>> stream_ends_;    ///< [stream] at the end of its latest task
  std::vector<std::optional<Clock>> stream_begins_;  ///< [stream of several lanes] at its begin
  std::vector<std::uint32_t> places_in_stream_;      ///< [task]
  std::vector<std::uint32_t> counts_;                ///< [stream] its tasks so far
  std::vector<std::optional<Clock>> communicator_ends_;
  std::vector<std::size_t> last_use_;               ///< [task] the last that waits for it; 0: none
  std::vector<std::optional<Clock>> ends_;          ///< [task] while a later one waits for it
  std::vector<Segments> segments_;                  ///< [buffer with memory of its own]
  std::vector<std::uint32_t> unawaited_;            ///< ascending
  std::vector<bool> held_;                          ///< [buffer]
  std::vector<std::vector<std::uint32_t>> behind_;  ///< [buffer that is held] what it follows
  std::vector<std::vector<std::uint32_t>> unawaited_users_;  ///< [buffer that is held]
  std::vector<std::vector<std::uint32_t>> gone_;  ///< [pool] last users of what went there
};

/// Every index points to something.
class IndexChecker {
 public:
  explicit IndexChecker(const Job& job) : job_(job) {}

  void run() const {
    if (job_.streams.empty() || job_.streams.front().lanes != 1)
      refuse("stream 0 is the host's own thread, which does one task at a time");
    for (const Stream& stream : job_.streams)
      if (stream.lanes == 0) refuse(fmt::format("stream {} has no lane", stream.name));
    for (const Communicator& communicator : job_.communicators) check_communicator(communicator);
    for (const Buffer& buffer : job_.buffers) check_buffer(buffer);
    if (job_.known) check_actions(*job_.known);
    check_actions(job_.own);
    if (job_.program_of.empty()) refuse("a job has at least one rank");
    for (const std::uint16_t program : job_.program_of)
      if (program >= job_.programs.size()) refuse("a rank has a program that is none of the job's");
    for (const Program& program : job_.programs) check_program(program);
    if (job_.beside) check_program(*job_.beside);
    for (const Slice& gradient : job_.gradients)
      if (gradient.buffer != no_buffer) check_slice(gradient);
    if (!job_.parts.empty()) check_parts();
  }

 private:
  void check_communicator(const Communicator& communicator) const {
    std::vector<bool> seen(job_.ranks(), false);
    if (communicator.at_once == 0)
      refuse(fmt::format("communicator {} has no collective at once", communicator.name));
    for (const std::vector<std::int32_t>& group : communicator.groups)
      for (const std::int32_t rank : group) {
        if (rank < 0 || at(rank) >= job_.ranks())
          refuse(fmt::format("communicator {}: {} is no rank", communicator.name, rank));
        if (seen[at(rank)])
          refuse(fmt::format("communicator {}: rank {} is in two places", communicator.name, rank));
        seen[at(rank)] = true;
      }
  }

  void check_parts() const {
    if (job_.parts.size() != job_.gradients.size())
      refuse("a job says of some parameters alone which part a rank keeps");
    for (const Part& part : job_.parts) {
      if (part.whole < 0 || part.begin < 0)
        refuse("a parameter has a negative number of elements, or begins before what is shared");
      if (part.of == nobody) continue;
      if (part.of < 0 || at(part.of) >= job_.communicators.size())
        refuse("a parameter's parts are of a communicator that is none of the job's");
      std::size_t members = 0;
      for (const auto& group : job_.communicators[at(part.of)].groups) members += group.size();
      if (members != job_.ranks())
        refuse(fmt::format("a rank keeps a part by its place in {}, in which it is not",
                           job_.communicators[at(part.of)].name));
    }
    for (const Buffer& buffer : job_.buffers)
      if (buffer.start == Start::parameters &&
          (buffer.index < 0 || at(buffer.index) >= job_.parts.size()))
        refuse("a buffer begins as a parameter that is none of the job's");
  }

  void check_buffer(const Buffer& buffer) const {
    if (buffer.elements < 0) refuse("a buffer has a negative number of elements");
    if (buffer.name < 0 || at(buffer.name) >= job_.labels.size())
      refuse("a buffer has a name that is none of the job's labels");
    if (buffer.inside.buffer != no_buffer) check_slice(buffer.inside);
  }

  void check_slice(const Slice& slice) const {
    if (slice.buffer == no_buffer) return;
    if (slice.buffer >= job_.buffers.size())
      refuse("a slice of a buffer that is none of the job's");
    if (slice.begin < 0 || slice.count < 0) refuse("a slice begins or ends before its buffer");
    if (slice.part_of == nobody) return;
    if (slice.part_of < 0 || at(slice.part_of) >= job_.communicators.size())
      refuse("a slice is a part of a communicator that is none of the job's");
  }

  void check_actions(const Actions& actions) const {
    for (const Slice& slice : actions.slices) check_slice(slice);
    for (const Deed& deed : actions.deeds) {
      if (deed.origin.label < 0 || at(deed.origin.label) >= job_.labels.size())
        refuse("a deed has a label that is none of the job's");
      const std::int16_t communicator = communicator_of(deed.action);
      if (communicator != nobody &&
          (communicator < 0 || at(communicator) >= job_.communicators.size()))
        refuse("a collective in a communicator that is none of the job's");
      const std::int16_t averaged = averaged_over(deed.action);
      if (averaged != nobody && (averaged < 0 || at(averaged) >= job_.communicators.size()))
        refuse("a mean over a communicator that is none of the job's");
      for (const Operands& operands : ranges_of(deed.action))
        if (std::uint64_t{operands.begin} + operands.count > actions.slices.size())
          refuse("operands beyond the list of slices");
      if (const auto* chunk = std::get_if<Chunk>(&deed.action))
        check_chunks(actions, chunk->to, chunk->places, chunk->from, chunk->parts);
      if (const auto* unchunk = std::get_if<Unchunk>(&deed.action))
        check_chunks(actions, unchunk->from, unchunk->places, unchunk->to, unchunk->parts);
      if (const auto* take = std::get_if<TakePart>(&deed.action)) check_taken(actions, *take);
      if (const auto* plugin = std::get_if<Plugin>(&deed.action);
          plugin != nullptr && (plugin->code < 0 || at(plugin->code) >= job_.labels.size()))
        refuse("the user's code has a name that is none of the job's labels");
      const Accesses accesses = accesses_of(deed.action, actions);
      for (const Slice& slice : accesses.reads) check_slice(slice);
      for (const Slice& slice : accesses.writes) check_slice(slice);
      if (const auto* collective = std::get_if<Collective>(&deed.action))
        for (const Slice& slice : {collective->from, collective->to})
          if (slice.buffer == no_buffer) refuse("a collective has no input or no output");
    }
  }

  /// Parts of tensors are equal, each tensor's pieces lie at a place within the first, and there
  /// are as many of them as it needs.
  void check_chunks(const Actions& actions, const Slice& packed, const Operands& places,
                    const Operands& tensors, std::int32_t parts) const {
    if (parts < 1 || packed.count % parts != 0 || places.count != tensors.count)
      refuse("tensors are cut into parts that are not equal, or not all have a place");
    for (std::uint32_t i = 0; i < places.count; ++i) {
      const Slice& place = actions.of(places)[i];
      const std::int64_t length = actions.of(tensors)[i].count;
      const bool within = place.buffer == packed.buffer && place.part_of == packed.part_of &&
                          place.begin >= packed.begin && place.count >= 0 &&
                          place.begin - packed.begin <= packed.count / parts - place.count;
      if (!within || length > place.count * parts)
        refuse("a tensor's pieces are not in the parts that it is cut into");
    }
  }

  void check_taken(const Actions& actions, const TakePart& take) const {
    if (take.places.count != take.from.count || take.of == nobody || take.to.count < 0)
      refuse("not all tensors of which a rank takes its part have a place");
    for (std::uint32_t i = 0; i < take.places.count; ++i)
      if (actions.of(take.places)[i].count != actions.of(take.from)[i].count ||
          actions.of(take.places)[i].begin < take.begin)
        refuse("a tensor of which a rank takes its part has a place of another size");
  }

  void check_program(const Program& program) const {
    std::uint32_t after = 0;
    for (std::size_t t = 0; t < program.tasks.size(); ++t) {
      const Task& task = program.tasks[t];
      if (task.stream >= job_.streams.size() || task.work >= job_.works.size() ||
          task.deed >= job_.known_deeds() + job_.own.deeds.size())
        refuse(fmt::format("task {}: its stream, its work or its deed is none of the job's", t));
      if (task.after_end < after || task.after_end > program.after.size())
        refuse(fmt::format("task {}: it waits for no slice of the list", t));
      for (const std::uint32_t earlier : program.waits_for(t))
        if (earlier >= t)
          refuse(fmt::format("task {} waits for {}, which comes later", t, earlier));
      after = task.after_end;
    }
    std::uint32_t before = 0;
    for (const Hold& hold : program.holds) {
      if (hold.before < before || hold.before > program.tasks.size() ||
          hold.buffer >= job_.buffers.size() || hold.pool >= job_.streams.size())
        refuse("a buffer comes or goes out of order, is none of the job's, or has no pool");
      before = hold.before;
    }
    for (const Mark& mark : program.marks)
      if (mark.task >= program.tasks.size() || mark.of >= program.tasks.size())
        refuse("a mark is of no task");
    if (program.rounds < 1) refuse("a program is done at least once");
  }

  static std::int16_t averaged_over(const Action& action) {
    if (const auto* scale = std::get_if<Scale>(&action)) return scale->mean_over;
    if (const auto* dequantize = std::get_if<Dequantize>(&action)) return dequantize->mean_over;
    if (const auto* pack = std::get_if<Pack>(&action)) return pack->mean_over;
    if (const auto* spread = std::get_if<Spread>(&action)) return spread->of;
    if (const auto* take = std::get_if<TakePart>(&action)) return take->of;
    return static_cast<std::int16_t>(nobody);
  }

  static std::vector<Operands> ranges_of(const Action& action) {
    if (const auto* call = std::get_if<Call>(&action)) return {call->reads};
    if (const auto* compute = std::get_if<Compute>(&action)) return {compute->fills, compute->rows};
    if (const auto* pack = std::get_if<Pack>(&action)) return {pack->to, pack->from};
    if (const auto* chunk = std::get_if<Chunk>(&action)) return {chunk->places, chunk->from};
    if (const auto* unchunk = std::get_if<Unchunk>(&action)) return {unchunk->places, unchunk->to};
    if (const auto* take = std::get_if<TakePart>(&action)) return {take->places, take->from};
    if (const auto* clip = std::get_if<Clip>(&action)) return {clip->gradients};
    if (const auto* plugin = std::get_if<Plugin>(&action))
      return {plugin->complete, plugin->reads, plugin->writes};
    if (const auto* update = std::get_if<Update>(&action))
      return {update->parameters, update->gradients, update->state};
    return {};
  }

  const Job& job_;
};

/// The members of a group do the same, in one order.
class OrderChecker {
 public:
  explicit OrderChecker(const Job& job)
      : job_(job), issued_(job.programs.size() * job.communicators.size()) {
    for (std::size_t p = 0; p < job.programs.size(); ++p)
      for (std::size_t t = 0; t < job.programs[p].tasks.size(); ++t) collect(p, t);
  }

  void run() const {
    for (std::size_t c = 0; c < job_.communicators.size(); ++c)
      for (const std::vector<std::int32_t>& group : job_.communicators[c].groups)
        check_group(c, group);
  }

 private:
  struct Issued {
    std::uint32_t task = 0;
    Collectives what = Collectives::all_reduce;
    Reduction reduction = Reduction::none;
    std::int16_t root = 0;
    std::int64_t from = 0, to = 0;
    DType type = DType::fp32;

    bool is_like(const Issued& other) const {
      return std::tie(what, reduction, root, from, to, type) ==
             std::tie(other.what, other.reduction, other.root, other.from, other.to, other.type);
    }
  };
  struct Sent {
    std::uint32_t task = 0;
    std::int64_t elements = 0;
  };
  struct OfProgram {
    std::vector<Issued> collectives;
    std::map<std::int16_t, std::vector<Sent>> sends, receives;  ///< by the peer's place
  };

  void collect(std::size_t program, std::size_t index) {
    const Task& task = job_.programs[program].tasks[index];
    const Action& action = job_.deed_of(task).action;
    const std::int16_t communicator = communicator_of(action);
    if (communicator == nobody) return;
    OfProgram& all = issued_[program * job_.communicators.size() + at(communicator)];
    const auto number = static_cast<std::uint32_t>(index);
    if (const auto* collective = std::get_if<Collective>(&action)) {
      const bool uneven = !collective->counts.empty();
      all.collectives.push_back({number, collective->what, collective->reduction, collective->root,
                                 uneven ? 0 : collective->from.count,
                                 uneven ? 0 : collective->to.count,
                                 job_.buffers[collective->to.buffer].type});
    } else if (const auto* send = std::get_if<Send>(&action)) {
      all.sends[send->peer].push_back({number, send->what.count});
    } else if (const auto* receive = std::get_if<Receive>(&action)) {
      all.receives[receive->peer].push_back({number, receive->what.count});
    }
  }

  std::size_t program_of(std::int32_t rank) const { return job_.program_of[at(rank)]; }
  const OfProgram& issued_by(std::int32_t rank, std::size_t communicator) const {
    return issued_[program_of(rank) * job_.communicators.size() + communicator];
  }
  std::string name(std::int32_t rank, std::uint32_t task) const {
    return fmt::format("{} of rank {}", name_of_task(job_, job_.programs[program_of(rank)], task),
                       rank);
  }

  void check_group(std::size_t communicator, const std::vector<std::int32_t>& group) const {
    if (group.empty()) return;
    const std::int32_t first = group.front();
    for (const std::int32_t rank : group)
      if (program_of(rank) != program_of(first)) check_alike(communicator, first, rank);
    for (std::size_t place = 0; place < group.size(); ++place)
      check_sends(communicator, group, place);
  }

  void check_alike(std::size_t communicator, std::int32_t first, std::int32_t rank) const {
    const std::vector<Issued>&one = issued_by(first, communicator).collectives,
          &other = issued_by(rank, communicator).collectives;
    for (std::size_t i = 0; i < std::min(one.size(), other.size()); ++i)
      if (!one[i].is_like(other[i]))
        refuse(
            fmt::format("collective {} of {} is {}, and {}: all ranks of a group issue the same "
                        "ones in one order",
                        i, job_.communicators[communicator].name, name(first, one[i].task),
                        name(rank, other[i].task)));
    if (one.size() != other.size())
      refuse(fmt::format("rank {} issues {} collectives in {}, and rank {} {}", first, one.size(),
                         job_.communicators[communicator].name, rank, other.size()));
  }

  void check_sends(std::size_t communicator, const std::vector<std::int32_t>& group,
                   std::size_t place) const {
    const std::int32_t rank = group[place];
    const auto here = static_cast<std::int16_t>(place);
    for (const auto& [peer, sent] : issued_by(rank, communicator).sends)
      check_met(communicator, group, rank, peer, sent, here, "sends", "receives");
    for (const auto& [peer, received] : issued_by(rank, communicator).receives)
      check_met(communicator, group, rank, peer, received, here, "receives", "sends");
  }

  void check_met(std::size_t communicator, const std::vector<std::int32_t>& group,
                 std::int32_t rank, std::int16_t peer, const std::vector<Sent>& mine,
                 std::int16_t here, std::string_view does, std::string_view other_does) const {
    if (peer < 0 || at(peer) >= group.size() || peer == here)
      refuse(fmt::format("{} has no other rank at place {} of {}", name(rank, mine[0].task), peer,
                         job_.communicators[communicator].name));
    const OfProgram& theirs = issued_by(group[at(peer)], communicator);
    const auto& of_peer = does == "sends" ? theirs.receives : theirs.sends;
    const auto found = of_peer.find(here);
    const std::size_t met = found == of_peer.end() ? 0 : found->second.size();
    if (met != mine.size())
      refuse(fmt::format("rank {} {} {} times what rank {} {} {} times", rank, does, mine.size(),
                         group[at(peer)], other_does, met));
    for (std::size_t i = 0; i < met; ++i)
      if (mine[i].elements != found->second[i].elements)
        refuse(fmt::format("{} is of {} elements, and {} of {}", name(rank, mine[i].task),
                           mine[i].elements, name(group[at(peer)], found->second[i].task),
                           found->second[i].elements));
  }

  const Job& job_;
  std::vector<OfProgram> issued_;  ///< [program x communicator]
};

/// Ranks that have one program and do not all do the same to the same elements: they have other
/// parts of a slice, one of them is a broadcast's root, or their groups are of other sizes.
class Places {
 public:
  explicit Places(const Job& job) : job_(job), of_(job.communicators.size()) {
    note(job.own);
    if (job.known) note(*job.known);
    for (const Buffer& buffer : job.buffers) note(buffer.inside);
    for (std::size_t c = 0; c < of_.size(); ++c) {
      of_[c].of_rank.resize(job.ranks());
      for (const std::vector<std::int32_t>& group : job.communicators[c].groups)
        for (std::size_t place = 0; place < group.size(); ++place)
          of_[c].of_rank[at(group[place])] = {
              static_cast<std::int32_t>(group.size()),
              of_[c].matters ? static_cast<std::int32_t>(place) : 0};
    }
  }

  /// The first rank of each kind, in order, and of `most` kinds only.
  std::vector<std::int32_t> first_ranks(std::size_t program, std::size_t most) const {
    std::vector<std::int32_t> first;
    std::set<std::vector<SizeAndPlace>> kinds;
    for (std::size_t rank = 0; rank < job_.ranks() && first.size() < most; ++rank) {
      if (job_.program_of[rank] != program) continue;
      std::vector<SizeAndPlace> kind;
      for (const OfCommunicator& each : of_) kind.push_back(each.of_rank[rank]);
      if (kinds.insert(std::move(kind)).second) first.push_back(static_cast<std::int32_t>(rank));
    }
    return first;
  }

 private:
  using SizeAndPlace = std::pair<std::int32_t, std::int32_t>;
  struct OfCommunicator {
    bool matters = false;  ///< the place, not only the size of the group
    std::vector<SizeAndPlace> of_rank;
  };

  void note(const Slice& slice) {
    if (slice.part_of != nobody) of_[at(slice.part_of)].matters = true;
  }
  void note(const Actions& actions) {
    for (const Deed& deed : actions.deeds) {
      const Accesses accesses = accesses_of(deed.action, actions);
      for (const Slice& slice : accesses.reads) note(slice);
      for (const Slice& slice : accesses.writes) note(slice);
      const auto* collective = std::get_if<Collective>(&deed.action);
      if (collective == nullptr || collective->what != Collectives::broadcast) continue;
      note(collective->from);  // which who is not the root does not read
      of_[at(collective->communicator)].matters = true;
    }
  }

  const Job& job_;
  std::vector<OfCommunicator> of_;
};

}  // namespace

void check(const Job& job) {
  IndexChecker(job).run();
  const Places places(job);
  for (std::size_t p = 0; p < job.programs.size(); ++p) {
    const std::vector<std::int32_t> ranks = places.first_ranks(p, most_places_checked);
    if (ranks.empty()) refuse(fmt::format("program {} is of no rank", p));
    for (const std::int32_t rank : ranks) ProgramChecker(job, job.programs[p], rank).run();
  }
  OrderChecker(job).run();
}

}  // namespace ddpsim::program
