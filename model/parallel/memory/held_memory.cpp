// Memory comes and goes in the order in which the host issues tasks. A layer of two modules a, b,
// both kept for backward, where b's backward pass makes a gradient g:
//
//     forward   +kept a +working a | a | -working a +kept b +working b | b | -working b
//     backward  +working b | +g b | -working b -kept b +working a | a | -working a -kept a

#include "model/parallel/memory/held_memory.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "model/parallel/passes_of.hpp"
#include "model/parallel/write/step_writer.hpp"
#include "model/program/memory_along.hpp"
#include "model/program/operands.hpp"

namespace ddpsim::program {
namespace {

constexpr std::uint32_t never = ~std::uint32_t{0};

/// What buffers are called that a job of a step does not have.
enum class Name : std::uint8_t {
  kept,
  in_forward,
  in_backward,
  in_update,
  made,
  rows,
  other_state,
  frozen,
  batch,
  workspaces,
  unsent_buffers
};
constexpr std::array<std::string_view, 11> names{
    "kept",        "in forward", "in backward", "in update",  "made",          "rows",
    "other state", "frozen",     "batch",       "workspaces", "unsent buffers"};

/// What a module of the network takes: buffers of the job, or none where it takes nothing.
struct ModuleBuffers {
  std::int32_t layer = 0;
  std::int32_t first_forward = 0, first_backward = 0;  ///< kernels of the layer's passes
  BufferId kept = no_buffer, in_forward = no_buffer, in_backward = no_buffer;
};

/// Adds the buffers that a job lacks, and says which of all of them come and go.
class Buffers {
 public:
  Buffers(Job& job, const Workload& workload, const Training& training)
      : job_(job),
        workload_(workload),
        passes_(passes_of(workload, training)),
        has_sparse_(std::ranges::any_of(workload.parameters, &Parameter::sparse)),
        first_name_(static_cast<int>(job.labels.size())) {
    job_.labels.insert(job_.labels.end(), names.begin(), names.end());
    find_roots();
    hold_what_is_used(training);
    add_modules();
    add_what_stays();
  }

  BufferId add(Name name, std::int32_t index, Holds holds, Bytes size, Life life = Life::held) {
    if (size <= Bytes{}) return no_buffer;
    job_.buffers.push_back({.holds = holds,
                            .index = index,
                            .name = static_cast<std::int16_t>(first_name_ + static_cast<int>(name)),
                            .type = DType::fp8_e4m3,
                            .elements = size.count,
                            .life = life});
    return static_cast<BufferId>(job_.buffers.size() - 1);
  }

  /// The memory that a buffer of the job's own lies in.
  BufferId root(BufferId buffer) const { return roots_[buffer]; }
  /// The memory it lies in, if that comes and goes with its use; no_buffer: it stays.
  BufferId used_root(BufferId buffer) const { return used_roots_[buffer]; }
  /// What comes and goes in its place.
  BufferId held(BufferId root) const { return in_place_of_[root]; }
  bool is_held(BufferId root) const { return in_place_of_[root] != no_buffer; }
  bool stays_to_the_end(BufferId root) const { return stays_[root]; }
  std::size_t of_job() const { return roots_.size(); }
  const std::vector<ModuleBuffers>& modules() const { return modules_; }

 private:
  void find_roots() {
    roots_.resize(job_.buffers.size());
    for (BufferId b = 0; b < job_.buffers.size(); ++b) {
      roots_[b] = b;
      while (job_.buffers[roots_[b]].is_view()) roots_[b] = job_.buffers[roots_[b]].inside.buffer;
    }
  }

  /// Does DDP, or whoever trains, keep memory of that kind from step to step?
  static bool is_kept(Holds holds, const Training& training) {
    if (holds == Holds::bucket) return training.wraps_buckets() && !training.flattened_buckets;
    // zero_grad sets gradients to zero, where it does not drop them; a sparse one has no rows then.
    return holds == Holds::gradient && training.pytorch == PyTorch::v1_13;
  }
  bool is_sparse_gradient(const Buffer& buffer) const {
    return has_sparse_ && buffer.holds == Holds::gradient &&
           workload_.parameters[at(buffer.index)].sparse;
  }

  void hold_what_is_used(const Training& training) {
    const std::size_t own = job_.buffers.size();
    stays_.assign(own, false);
    in_place_of_.assign(own, no_buffer);
    for (const Slice& gradient : job_.gradients)
      if (!gradient.empty()) stays_[roots_[gradient.buffer]] = true;
    for (BufferId b = 0; b < own; ++b) {
      Buffer& buffer = job_.buffers[b];
      const bool is_state = buffer.holds == Holds::optimizer;
      if (is_state) stays_[b] = true;
      if (buffer.is_view() || buffer.place == Place::host) continue;
      // What a comm hook gathered stays for a step that gathers nothing, which only a measurement
      // has.
      const bool is_gathered = buffer.holds == Holds::gathered && buffer.life != Life::held;
      if (is_gathered) buffer.holds = Holds::hook;
      if (buffer.life != Life::step && !is_state && !is_gathered) continue;
      const bool may_be_kept =
          buffer.holds == Holds::bucket || (stays_[b] && !is_sparse_gradient(buffer));
      if (may_be_kept && is_kept(buffer.holds, training)) continue;
      buffer.life = Life::held;
      in_place_of_[b] = b;
    }
    for (BufferId b = 0; b < own; ++b) take_rows_of_sparse(b);
    for (BufferId b = 0; b < own; ++b) {
      const bool is_state = job_.buffers[roots_[b]].holds == Holds::optimizer;
      used_roots_.push_back(is_held(roots_[b]) && !is_state ? roots_[b] : no_buffer);
    }
  }

  /// A sparse gradient is as large as its rows and their indices.
  void take_rows_of_sparse(BufferId gradient) {
    if (!is_held(gradient) || !is_sparse_gradient(job_.buffers[gradient])) return;
    const std::int32_t index = job_.buffers[gradient].index;
    const Parameter& parameter = workload_.parameters[at(index)];
    in_place_of_[gradient] = add(Name::rows, index, Holds::gradient,
                                 parameter.sparse_values() + parameter.sparse_indices());
  }

  void add_modules() {
    if (!has_memory(passes_)) return;
    Bytes kept;
    for (std::size_t l = 0; l < passes_.layers.size(); ++l)
      for (const ModuleMemory& memory : passes_.layers[l].memory) {
        const auto number = static_cast<std::int32_t>(modules_.size());
        kept += memory.kept;
        // What is alive at most is told of the whole step.
        const auto beside_kept = [&](const std::optional<Bytes>& most, Bytes working) {
          return most ? *most - std::min(kept, *most) : working;
        };
        modules_.push_back({.layer = static_cast<std::int32_t>(l),
                            .first_forward = memory.first_forward,
                            .first_backward = memory.first_backward});
        ModuleBuffers& module = modules_.back();
        module.kept = add(Name::kept, number, Holds::activation, memory.kept);
        module.in_forward = add(Name::in_forward, number, Holds::working,
                                beside_kept(memory.forward_peak, memory.forward_working));
        module.in_backward = add(Name::in_backward, number, Holds::working,
                                 beside_kept(memory.backward_peak, memory.backward_working));
      }
  }

  void add_what_stays() {
    add(Name::frozen, nobody, Holds::frozen, beside_frozen_parts(), Life::job);
    add(Name::batch, nobody, Holds::input, workload_.inputs, Life::job);
    add(Name::workspaces, nobody, Holds::workspace, workload_.workspaces, Life::job);
    Bytes unsent;
    for (const BufferGroup& group : workload_.buffers) unsent += group.size;
    for (const Buffer& buffer : job_.buffers)
      if (buffer.holds == Holds::module_buffer && buffer.life == Life::job)
        unsent = unsent - buffer.elements * size_of(buffer.type);
    add(Name::unsent_buffers, nobody, Holds::module_buffer, unsent, Life::job);
  }

  /// What is frozen of which the job has no parts of its own.
  Bytes beside_frozen_parts() const {
    Bytes beside = workload_.frozen;
    const auto is_part = [](const Buffer& buffer) {
      return buffer.holds == Holds::frozen && buffer.life == Life::job;
    };
    if (std::ranges::any_of(job_.buffers, is_part))
      for (const FrozenParameter& each : workload_.frozen_parameters)
        beside = beside - std::min(beside, each.size());
    return beside;
  }

  Job& job_;
  const Workload& workload_;
  const Workload& passes_;
  /// Where it is false, gradients may be those of units, which outnumber parameters at times:
  /// strategies that shard take dense gradients only.
  bool has_sparse_;
  int first_name_;                            ///< index into Job::labels
  std::vector<BufferId> roots_, used_roots_;  ///< [buffer of the job's own]
  std::vector<BufferId> in_place_of_;         ///< likewise
  std::vector<bool> stays_;                   ///< likewise
  std::vector<ModuleBuffers> modules_;        ///< in forward order
};

/// Writes the holds of one program.
class ProgramMemory {
 public:
  ProgramMemory(const Job& job, const Program& program, Buffers& buffers)
      : job_(job),
        program_(program),
        buffers_(buffers),
        own_pool_(stream_of_network(job, program)),
        uses_(buffers.of_job()) {}

  /// Holds of what the tasks use, and of what their modules take.
  void walk() {
    Accesses accesses;
    for (std::uint32_t t = 0; t < program_.tasks.size(); ++t) {
      const Task& task = program_.tasks[t];
      const Deed& deed = job_.deed_of(task);
      find_accesses(deed.action, job_.actions_of(task), nobody, accesses);
      if (std::holds_alternative<Compute>(deed.action)) {
        pass_module(t, task.micro_batch, deed.origin);
        if (pass_ == Pass::backward) add_unmade(t, deed.origin, accesses.writes);
      }
      packs_ = std::holds_alternative<Pack>(deed.action);
      for (const Slice& slice : accesses.reads) use(t, slice, false);
      for (const Slice& slice : accesses.writes) use(t, slice, true);
    }
    end_pass();
    for (BufferId b = 0; b < uses_.size(); ++b)
      if (uses_[b].last != never) close(b);
  }

  void comes(std::uint32_t before, BufferId buffer) { comes(before, buffer, own_pool_); }
  void goes(std::uint32_t before, BufferId buffer) { goes(before, buffer, own_pool_); }

  /// In order. Before one task, what goes makes room for what comes.
  std::vector<Hold> holds() && {
    const std::array<const std::vector<Hold>*, 4> lists{&program_.holds, &going_, &of_modules_,
                                                        &coming_};
    std::vector<std::uint32_t> places(program_.tasks.size() + 2);  // [task] of its first hold
    for (const auto* list : lists)
      for (const Hold& each : *list) ++places[each.before + 1];
    for (std::size_t t = 1; t < places.size(); ++t) places[t] += places[t - 1];
    std::vector<Hold> all(places.back());
    for (const auto* list : lists)
      for (const Hold& each : *list) all[places[each.before]++] = each;
    return all;
  }

 private:
  /// A buffer between the first task that uses it and the last.
  struct Use {
    std::uint32_t first = never, last = never;
    std::int16_t micro_batch = 0;
    std::uint8_t pool = 0;
    bool packed = false;      ///< with others in one go
    std::size_t made_in = 0;  ///< which section of a backward pass made it, from 1 on; 0: none
  };

  static void hold(std::vector<Hold>& list, std::uint32_t before, BufferId buffer,
                   std::uint8_t pool, bool begins) {
    if (buffer != no_buffer)
      list.push_back({.before = before, .buffer = buffer, .pool = pool, .begins = begins});
  }
  void of_modules(std::uint32_t before, BufferId buffer, bool begins) {
    hold(of_modules_, before, buffer, own_pool_, begins);
  }
  void comes(std::uint32_t before, BufferId buffer, std::uint8_t pool) {
    hold(coming_, before, buffer, pool, true);
  }
  void goes(std::uint32_t before, BufferId buffer, std::uint8_t pool) {
    hold(going_, before, buffer, pool, false);
  }

  /// PyTorch takes memory on the stream that is current, which is that of the first task that uses
  /// it. Streams of a communicator's own, and those of its copies, never are: who calls it has
  /// taken the memory before.
  std::uint8_t pool_of(std::uint32_t task) const {
    const std::uint8_t stream = program_.tasks[task].stream;
    for (const StepStream never_current :
         {StepStream::host, StepStream::communication, StepStream::to_host, StepStream::to_device})
      if (job_.streams[stream].name.starts_with(name_of(never_current))) return own_pool_;
    return stream;
  }

  /// Memory that a later micro-batch writes anew has gone in between.
  void use(std::uint32_t task, const Slice& slice, bool writes) {
    const BufferId root = buffers_.used_root(slice.buffer);
    if (root == no_buffer) return;
    Use& now = uses_[root];
    const std::int16_t micro_batch = program_.tasks[task].micro_batch;
    const bool anew = writes && now.last != task && micro_batch != now.micro_batch &&
                      !buffers_.stays_to_the_end(root);
    if (now.last != never && anew) close(root);
    if (now.last == never) {
      now.first = task;
      now.pool = pool_of(task);
      now.made_in = in_section_ && last_ == task ? ends_.size() : 0;
    }
    now.last = task;
    now.micro_batch = micro_batch;
    now.packed = now.packed || packs_;
  }

  void close(BufferId root) {
    const Use done = std::exchange(uses_[root], {});
    if (is_passing(root, done) && buffers_.modules().empty()) return;
    comes(done.first, buffers_.held(root), done.pool);
    if (!buffers_.stays_to_the_end(root)) {
      const bool is_made = done.made_in > 0 && job_.buffers[root].holds == Holds::gradient;
      goes(std::max(done.last + 1, is_made ? ends_[done.made_in - 1] : 0), buffers_.held(root),
           done.pool);
    }
  }

  /// Is it a gradient that goes in its own micro-batch, one after the other? Where nothing is known
  /// of what passes take, that is not counted: a layer of a profile makes all of its own at once.
  bool is_passing(BufferId root, const Use& use) const {
    return use.made_in > 0 && job_.buffers[root].holds == Holds::gradient && !use.packed &&
           !buffers_.stays_to_the_end(root) &&
           program_.tasks[use.first].micro_batch == program_.tasks[use.last].micro_batch;
  }

  /// A gradient that goes to memory which is there already is memory of its own for a while.
  void add_unmade(std::uint32_t task, const Origin& origin, const std::vector<Slice>& gradients) {
    if (buffers_.modules().empty()) return;
    Bytes size;
    for (const Slice& slice : gradients)
      if (const BufferId root = buffers_.root(slice.buffer);
          !buffers_.is_held(root) && job_.buffers[root].life != Life::held)
        size += size_of(job_, slice);
    const BufferId added = buffers_.add(Name::made, origin.layer, Holds::gradient, size);
    if (added == no_buffer) return;
    comes(task, added);
    made_.push_back(added);
  }

  /// A kernel of the network: the modules before it have begun by then, or ended.
  void pass_module(std::uint32_t task, std::int16_t micro_batch, const Origin& origin) {
    if (origin.layer == nobody || (origin.pass != Pass::forward && origin.pass != Pass::backward))
      return;
    if (origin.pass != pass_ || micro_batch != micro_batch_) {
      end_pass();
      const bool was_seen = saw_forward_ && micro_batch == micro_batch_;
      if (origin.pass == Pass::backward && !was_seen) keep_all(task);
      saw_forward_ = origin.pass == Pass::forward;
      pass_ = origin.pass;
      micro_batch_ = micro_batch;
    }
    last_ = task;
    for (; begun_ < buffers_.modules().size() && has_begun(next_module(), origin); ++begun_)
      begin_module(task, next_module());
    if (pass_ != Pass::backward) return;
    if (buffers_.modules().empty()) end_section(task);  // each kernel by itself
    if (!in_section_) begin_section();
  }

  const ModuleBuffers& next_module() const {
    const std::vector<ModuleBuffers>& modules = buffers_.modules();
    return modules[pass_ == Pass::forward ? begun_ : modules.size() - 1 - begun_];
  }
  bool has_begun(const ModuleBuffers& module, const Origin& kernel) const {
    const bool forward = pass_ == Pass::forward;
    if (module.layer == kernel.layer)
      return (forward ? module.first_forward : module.first_backward) <= kernel.kernel;
    return forward == (module.layer < kernel.layer);
  }

  /// The forward pass has no kernels.
  void keep_all(std::uint32_t before) {
    for (const ModuleBuffers& module : buffers_.modules()) of_modules(before, module.kept, true);
  }

  void begin_module(std::uint32_t before, const ModuleBuffers& module) {
    end_module(before);
    current_ = &module;
    if (pass_ == Pass::forward) {
      of_modules(before, module.kept, true);
      of_modules(before, module.in_forward, true);
    } else {
      of_modules(before, module.in_backward, true);
      begin_section();
    }
  }

  void end_module(std::uint32_t before) {
    end_section(before);
    if (current_ == nullptr) return;
    if (pass_ == Pass::forward) {
      of_modules(before, current_->in_forward, false);
    } else {
      of_modules(before, current_->in_backward, false);
      of_modules(before, current_->kept, false);
    }
    current_ = nullptr;
  }

  /// Begins a backward pass: gradients that do not stay go when it ends.
  void begin_section() {
    in_section_ = true;
    ends_.push_back(never);
  }
  void end_section(std::uint32_t before) {
    if (!in_section_) return;
    ends_.back() = before;
    for (const BufferId each : made_) goes(before, each);
    made_.clear();
    in_section_ = false;
  }

  /// Modules that have not begun by then have no kernels.
  void end_pass() {
    if (pass_ == Pass::none) return;
    for (; begun_ < buffers_.modules().size(); ++begun_) begin_module(last_ + 1, next_module());
    end_module(last_ + 1);
    pass_ = Pass::none;
    begun_ = 0;
  }

  const Job& job_;
  const Program& program_;
  Buffers& buffers_;
  const std::uint8_t own_pool_;  ///< of the stream of the network's kernels
  std::vector<Hold> going_, of_modules_, coming_;
  std::vector<Use> uses_;  ///< [buffer of the job's own]

  Pass pass_ = Pass::none;
  std::int16_t micro_batch_ = 0;
  bool saw_forward_ = false;                ///< of this micro-batch
  std::uint32_t last_ = never;              ///< kernel of the network
  bool packs_ = false;                      ///< does the current task?
  std::size_t begun_ = 0;                   ///< modules of this pass
  const ModuleBuffers* current_ = nullptr;  ///< whose pass is under way
  bool in_section_ = false;                 ///< of a backward pass: a module, or what comes before
  std::vector<std::uint32_t> ends_;         ///< of those
  std::vector<BufferId> made_;              ///< gradients that go once it ends
};

/// What updates keep and take.
class UpdateMemory {
 public:
  UpdateMemory(const Workload& workload, Optimizer optimizer, Buffers& buffers,
               ProgramMemory& memory)
      : workload_(workload),
        optimizer_(optimizer),
        buffers_(buffers),
        memory_(memory),
        has_state_(workload.parameters.size()),
        is_there_(buffers.of_job()) {}

  void add(const Job& job, const Program& program) {
    for (std::uint32_t t = 0; t < program.tasks.size(); ++t) {
      const Deed& deed = job.deed_of(program.tasks[t]);
      const bool is_hooks = deed.origin.purpose == Purpose::hook;
      if (deed.origin.pass == Pass::optimizer && !is_hooks) {
        first_ = std::min(first_, t);
        end_ = t + 1;
      }
      if (const auto* update = std::get_if<Update>(&deed.action))
        add(job, job.actions_of(program.tasks[t]), *update, t, is_hooks);
    }
    if (first_ != never) take(together_, first_, end_);
    memory_.comes(0, buffers_.add(Name::other_state, nobody, Holds::optimizer, state_));
  }

 private:
  void add(const Job& job, const Actions& actions, const Update& update, std::uint32_t task,
           bool is_hooks) {
    std::vector<std::int32_t> parameters;
    const auto updated = actions.of(update.parameters), gradients = actions.of(update.gradients);
    for (std::size_t i = 0; i < updated.size(); ++i) {
      const std::vector<std::int32_t> mine = updated_by(job, updated[i], gradients[i]);
      std::int64_t all = 0;
      for (const std::int32_t each : mine) all += workload_.parameters[at(each)].elements();
      parameters.insert(parameters.end(), mine.begin(), mine.end());
      updated_ += updated[i].count;
      of_ += all;
      for (const std::int32_t each : mine)
        if (counts_first(has_state_, at(each)))
          state_ += part(optimizer_state(optimizer_, workload_, at(each)), updated[i].count, all);
    }
    for (const Slice& each : actions.of(update.state)) {
      const Buffer& kept = job.buffers[each.buffer];
      if (!counts_first(is_there_, each.buffer)) continue;
      memory_.comes(0, each.buffer);
      state_ = state_ - kept.elements * size_of(kept.type);
    }
    if (is_hooks)
      take(parameters, task, task + 1);
    else
      together_.insert(together_.end(), parameters.begin(), parameters.end());
  }

  /// The parameter that the slice is, or is a part of; or those of which ranks share the gradients
  /// that lie in `gradient`.
  static std::vector<std::int32_t> updated_by(const Job& job, const Slice& parameter,
                                              const Slice& gradient) {
    std::vector<std::int32_t> shared;
    for (std::size_t p = 0; p < job.parts.size(); ++p)
      if (job.parts[p].of != nobody && job.gradients[p] == gradient)
        shared.push_back(static_cast<std::int32_t>(p));
    if (!shared.empty()) return shared;
    return {job.buffers[parameter.buffer].index};
  }

  /// What so many elements take, where all of them take `all`.
  static Bytes part(Bytes all, std::int64_t elements, std::int64_t of) {
    if (elements == of || of == 0) return all;
    return Bytes{static_cast<std::int64_t>(
        static_cast<double>(all.count) * static_cast<double>(elements) / static_cast<double>(of))};
  }

  /// Micro-batches update with the same state.
  static bool counts_first(std::vector<bool>& counted, std::size_t index) {
    const bool is_first = !counted[index];
    counted[index] = true;
    return is_first;
  }

  void take(const std::vector<std::int32_t>& parameters, std::uint32_t from, std::uint32_t to) {
    const BufferId taken =
        buffers_.add(Name::in_update, nobody, Holds::working,
                     part(optimizer_working(optimizer_, workload_, parameters), updated_, of_));
    memory_.comes(from, taken);
    memory_.goes(to, taken);
  }

  const Workload& workload_;
  Optimizer optimizer_;
  Buffers& buffers_;
  ProgramMemory& memory_;
  std::vector<bool> has_state_;         ///< [parameter]
  std::vector<bool> is_there_;          ///< [buffer]
  Bytes state_;                         ///< that the job does not hold
  std::int64_t updated_ = 0, of_ = 0;   ///< elements: of shards, and of their whole parameters
  std::vector<std::int32_t> together_;  ///< parameters that no hook updates
  std::uint32_t first_ = never, end_ = 0;
};

/// PyTorch makes a tensor of what all codes say, from which gradients are copied; ranks put it in
/// the comm hook's data at once. Here it has memory of its own, and what is copied or widened out
/// of those data behind it comes from there, but for the hook's own steps in a later micro-batch.
void give_results_memory(Job& job) {
  std::map<BufferId, BufferId> results;  // [of the data] its result
  const auto move_to_result = [&](Slice& slice) {
    if (const auto found = results.find(slice.buffer); found != results.end())
      slice.buffer = found->second;
  };
  for (Deed& deed : job.own.deeds) {
    if (auto* made = std::get_if<Dequantize>(&deed.action)) {
      if (!results.contains(made->to.buffer)) {
        Buffer result = job.buffers[made->to.buffer];
        result.holds = Holds::hook;
        result.life = Life::step;
        result.start = Start::undefined;
        results[made->to.buffer] = static_cast<BufferId>(job.buffers.size());
        job.buffers.push_back(result);
      }
      move_to_result(made->to);
    } else if (auto* copied = std::get_if<Scale>(&deed.action)) {
      if (copied->from.buffer != copied->to.buffer && deed.origin.label == 0 &&
          !results.contains(copied->to.buffer))
        move_to_result(copied->from);
    } else if (auto* widened = std::get_if<Cast>(&deed.action)) {
      if (!results.contains(widened->to.buffer)) move_to_result(widened->from);
    }
  }
}

}  // namespace

Job with_memory(Job job, const Workload& workload, Optimizer optimizer, const Training& training) {
  give_results_memory(job);
  Buffers buffers(job, workload, training);
  for (Program& program : job.programs) {
    ProgramMemory memory(job, program, buffers);
    memory.walk();
    UpdateMemory(workload, optimizer, buffers, memory).add(job, program);
    program.holds = std::move(memory).holds();
  }
  return job;
}

}  // namespace ddpsim::program
