#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/comm_hooks/draws.hpp"
#include "backend/device/cpu/chunk_pool.hpp"
#include "backend/device/cpu/kernel_operands.hpp"
#include "backend/device/cpu/sparse_rows.hpp"
#include "backend/device/cpu/user_code.hpp"
#include "backend/execute/device.hpp"

namespace ddpsim {

/// A CPU as a device: kernels are loops and products in fp32 on the calling thread, and 16-bit
/// numbers are widened, computed with and rounded.
///
/// A kernel whose work has a time and no shape (a workload profile) is stood in for by a loop that
/// takes that much of the thread's time on a processor.
class CpuDevice : public execute::Device {
 public:
  /// `plugins`: the user's own code, or null; it must outlive this object.
  explicit CpuDevice(int rank, const Plugins* plugins = nullptr)
      : operands_(rank), sparse_rows_(rank), user_code_(plugins) {}

  /// Jobs are of this workload from now on. Updates made and numbers drawn so far are forgotten.
  /// `workload` must outlive its jobs.
  void load(const Workload& workload);

  std::shared_ptr<std::byte> allocate(Bytes size, std::string_view what) override;
  void clear(const execute::Piece& piece) override;
  void copy(const execute::Piece& to, const execute::Piece& from) override;
  void put_parameters(const program::Job& job,
                      std::span<const execute::Beginning> parameters) override;
  std::string refusal(const program::Job& job, const program::Task& task) const override;
  std::string refusal(const program::Buffer& buffer) const override;
  void begin(const program::Job& job, std::size_t program) override;
  void begin_round() override;
  void run(const execute::Doing& doing) override;
  void draw(const program::Job& job, program::BufferId buffer, const execute::Piece& piece,
            bool fresh) override;
  std::int64_t overflows() override { return overflows_.exchange(0); }

  /// What kernels read besides buffers.
  const KernelOperands& operands() const { return operands_; }

 private:
  friend class CpuActions;

  void take_in_pieces(const program::Chunked& chunked);

  KernelOperands operands_;
  SparseRows sparse_rows_;
  UserCode user_code_;
  std::map<int, ChunkPool> pools_;  ///< by their threads
  std::vector<float> output_;       ///< of a layer, as they copied it
  bool has_update_ = false;         ///< this rank's program
  int updates_ = 0;                 ///< rounds with one so far
  std::atomic<std::int64_t> overflows_{0};
  std::mutex casting_;
  /// By where they lie: infinite or NaN among 16-bit values when they were made.
  std::map<const std::byte*, std::int64_t> not_finite_;
  Draws draws_;
};

}  // namespace ddpsim
