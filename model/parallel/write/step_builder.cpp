#include "model/parallel/write/step_builder.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

namespace ddpsim {
namespace {

constexpr std::string_view whole_buckets = "kernels work on whole buckets";

}  // namespace

StepBuilder::StepBuilder(const StepWorks& all, const Training& how)
    : works(all),
      training(how),
      writer(all.table, all.device),
      has_readers(std::ranges::any_of(
          how.hooks, [](const UserHook& hook) { return hook.kind == UserHookKind::plugin; })) {}

std::vector<std::int32_t> StepBuilder::used(std::vector<std::int32_t> parameters) const {
  std::erase_if(parameters, [this](std::int32_t index) { return unused(index); });
  return parameters;
}

Bucket& StepBuilder::add_bucket(std::vector<std::int32_t> parameters) {
  Bucket& bucket = buckets.emplace_back();
  bucket.parameters = std::move(parameters);
  for (const std::int32_t index : bucket.parameters) bucket.size += works.gradients[at(index)].size;
  return bucket;
}

void StepBuilder::lay_out_buckets(const std::function<void(std::int32_t)>& then) {
  bucket_of.assign(works.parameters(), nobody);
  for (std::int32_t b = 0; b < bucket_count(); ++b) {
    for (const std::int32_t index : bucket(b).parameters) bucket_of[at(index)] = b;
    memory.add_bucket(bucket(b));
    then(b);
  }
  launched.assign(buckets.size(), nobody);
  gradient.assign(buckets.size(), nobody);
  writer.sent.assign(buckets.size(), nobody);
}

void StepBuilder::begin_micro_batch(std::int16_t number) {
  writer.micro_batch = number;
  memory.begin_micro_batch(number);
  if (has_readers) list_gradients();
}

/// The gradients of this micro-batch in the order in which they become complete.
void StepBuilder::list_gradients() {
  std::vector<program::Slice> gradients;
  for (const std::int32_t each : works.in_backward()) gradients.push_back(memory.computed(each));
  complete = program::CompleteGradients(writer.memory, gradients);
}

void StepBuilder::take_from_readers(std::int32_t index) {
  if (!has_readers || writer.micro_batch > 0) return;  // later ones compute theirs elsewhere
  for (const std::int32_t each : bucket(index).parameters)
    if (memory.where(each) == memory.slot(each)) complete.take(memory.slot(each));
}

void StepBuilder::all_reduce(std::int32_t index, bool handed_over) {
  StepWriter::Sending sending;
  sending.work.operation = Operation::all_reduce;
  sending.work.payload = bucket(index).size;
  sending.work.handed_over = handed_over;
  sending.what.reduction = divides() ? program::Reduction::sum : program::Reduction::mean;
  if (divisor() == 1) sending.what.reduction = program::Reduction::sum;
  sending.what.from = sending.what.to = memory.bucket(index);
  sending.what.unawaited = bucket(index).delayed;
  sending.of.group = sending.copied_for = index;
  sending.input = writer.last_kernel;
  sending.ready = gradient[at(index)];
  launched[at(index)] = writer.send(sending);
  if (writer.marks != nullptr) writer.marks->launched(writer.newest());
  take_from_readers(index);
}

void StepBuilder::wait(std::int32_t index) {
  writer.await(launched[at(index)], index);
  if (writer.marks != nullptr) writer.marks->awaited(writer.newest(), launched[at(index)]);
}

void StepBuilder::fire_hook(std::int32_t parameter, std::int32_t index) {
  Work work;
  work.operation = Operation::hook;
  work.hook_calls = 1;
  writer.host_task(Operation::hook, work,
                   program::Call{.what = program::Call::What::hook, .index = parameter},
                   {.parameter = parameter, .group = index});
}

void StepBuilder::divide_bucket(std::int32_t index, const Work& work) {
  const program::Slice& all = memory.bucket(index);
  writer.kernel_task(Operation::divide, work,
                     program::Scale{.to = all, .from = all, .factor = share()}, {.group = index});
  step_has(whole_buckets);
}

void StepBuilder::divide_each(std::int32_t index, const std::vector<KnownWork>& work) {
  for (const std::int32_t each : used(bucket(index).parameters)) {
    const program::Slice& slot = memory.slot(each);
    writer.kernel_task(Operation::divide, work[at(each)],
                       program::Scale{.to = slot, .from = slot, .factor = share()},
                       {.parameter = each, .group = index});
  }
}

void StepBuilder::gradients_come(std::size_t layer, std::size_t kernel) {
  const GradientBinding& written = works.layers[layer].gradients[kernel];
  const auto comes = [this](std::int32_t each) {
    if (memory.is_sharded(each)) writer.comes(memory.computed(each), StepStream::compute);
  };
  if (written.result != nobody) comes(written.result);
  for (const std::int32_t each : written.fills) comes(each);
}

void StepBuilder::put_in(std::int32_t parameter, std::uint32_t work, float factor) {
  const program::Slice& slot = memory.slot(parameter);
  program::Action action = program::Fill{slot};
  if (!unused(parameter)) {
    memory.put_in(parameter);
    action = program::Scale{.to = slot, .from = memory.where(parameter), .factor = factor};
  }
  writer.kernel_task(Operation::copy_in, work, action,
                     {.parameter = parameter, .group = bucket_of[at(parameter)]});
}

void StepBuilder::concatenate(std::int32_t index, const Work& work) {
  std::vector<program::Slice> from, to;
  for (const std::int32_t each : used(bucket(index).parameters)) {
    from.push_back(memory.where(each));
    to.push_back(memory.slot(each));
    memory.put_in(each);
  }
  const program::Operands written = writer.memory.list(to);
  writer.kernel_task(Operation::concatenate, work,
                     program::Pack{.to = written, .from = writer.memory.list(from)},
                     {.group = index});
  step_has(whole_buckets);
}

void StepBuilder::copy_out(std::int32_t index, const std::vector<KnownWork>& work) {
  for (const std::int32_t each : used(bucket(index).parameters)) {
    writer.kernel_task(Operation::copy_out, work[at(each)],
                       program::Scale{.to = memory.take_back(each), .from = memory.slot(each)},
                       {.parameter = each, .group = index});
    if (writer.marks != nullptr) writer.marks->taken(writer.newest(), each);
  }
}

std::uint32_t StepBuilder::part_of_update(KnownWork known, std::int64_t share, std::int64_t all) {
  // Over parts of tensors a kernel goes in chunks: of fewer tensors there are fewer of them.
  const double part = static_cast<double>(share) / static_cast<double>(all);
  const auto of = [&](std::int64_t count) {
    if (share == 1) return count / all;
    return static_cast<std::int64_t>(part * static_cast<double>(count));
  };
  Work work = works.table[known.number];
  work.traffic = Bytes{of(work.traffic.count)};
  if (work.by_class)
    work.by_class->work =
        share == 1 ? work.by_class->work / all : scaled(work.by_class->work, part);
  if (work.known_time)
    work.known_time = share == 1 ? *work.known_time / all : scaled(*work.known_time, part);
  const auto launches = share == 1 ? static_cast<std::int32_t>((work.launches + all - 1) / all)
                                   : static_cast<std::int32_t>(std::ceil(part * work.launches));
  if (work.by_class)
    work.by_class->host = work.by_class->host * launches / std::max(1, work.launches);
  work.launches = launches;
  return writer.number_of(work);
}

program::Job StepBuilder::finish(int without_inputs) {
  program::Job& job = writer.memory.job;
  job.state = job.hook;
  for (const Bucket& each : buckets) {
    job.groups.push_back({each.parameters, each.size});
    if (!job.state.empty()) job.state += fmt::format("; {}", fmt::join(each.parameters, " "));
  }
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(works.parameters()); ++i)
    job.gradients.push_back(memory.gradient_now(i));
  job.parts = memory.parts();
  return writer.finish(without_inputs, memory.all_gradients());
}

}  // namespace ddpsim
