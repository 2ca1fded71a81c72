#pragma once

#include <optional>
#include <tuple>
#include <vector>

#include "model/schedule/schedule.hpp"
#include "model/workload/optimizer.hpp"
#include "model/workload/workload.hpp"

namespace ddpsim {

/// What tells one kind of task from another: those of a kind take the same time on a machine.
struct TaskKind {
  Operation operation = Operation::forward;
  std::optional<Gemm> gemm;
  Bytes traffic;
  DType type = DType::fp32;
  bool aside = false;  ///< a comm hook's, behind a collective

  auto key() const {
    const Gemm g = gemm.value_or(Gemm{});
    return std::tuple(operation, gemm.has_value(), g.m, g.n, g.k, g.batch, traffic.count, type,
                      aside);
  }
  friend bool operator<(const TaskKind& a, const TaskKind& b) { return a.key() < b.key(); }
};

/// Tells kinds in schedules of one workload, which must outlive it.
class TaskKinds {
 public:
  TaskKinds(const Workload& workload, Optimizer optimizer);

  /// Nothing if the task is no computation, or one whose time is given.
  std::optional<TaskKind> of(const Schedule& schedule, const Task& task) const;

 private:
  std::optional<TaskKind> of_gradient(const Schedule& schedule, const Task& task) const;
  static std::optional<TaskKind> of(Operation operation, const Kernel& kernel);

  const Workload& workload_;
  std::vector<Kernel> optimizer_;
};

}  // namespace ddpsim
