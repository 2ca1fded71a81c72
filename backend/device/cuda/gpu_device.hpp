#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "backend/comm_hooks/draws.hpp"
#include "backend/device/cuda/gpu.hpp"
#include "backend/device/cuda/gpu_operands.hpp"
#include "backend/execute/device.hpp"

namespace ddpsim {

/// A GPU as a device: kernels are enqueued on the stream of the GPU that has the number of the
/// job's stream. Numbers of 16 bits are computed with in fp32 and rounded.
///
/// A kernel whose work has a time and no shape (a workload profile) is stood in for by one that
/// takes that long on one multiprocessor. What PyTorch's many small kernels move beyond what is
/// computed for a task is moved too.
class GpuDevice : public execute::Device {
 public:
  /// `stands_for`: this rank stands for so many, of which it alone has values (loopback); 1: for
  /// itself.
  GpuDevice(Gpu& gpu, int rank, int stands_for)
      : gpu_(gpu), operands_(gpu, rank), stands_for_(stands_for) {}

  /// Updates made and numbers drawn so far are forgotten.
  void load();
  void forget_draws() { draws_.forget(); }

  std::shared_ptr<std::byte> allocate(Bytes size, std::string_view what) override;
  void clear(const execute::Piece& piece) override;
  void copy(const execute::Piece& to, const execute::Piece& from) override;
  void put_parameters(const program::Job& job,
                      std::span<const execute::Beginning> parameters) override;
  void draw(const program::Job& job, program::BufferId buffer, const execute::Piece& piece,
            bool fresh) override;
  std::string refusal(const program::Job& job, const program::Task& task) const override;
  std::string refusal(const program::Buffer& buffer) const override;
  void begin(const program::Job& job, std::size_t program) override;
  void begin_round() override;
  void run(const execute::Doing& doing) override;
  std::int64_t overflows() override { return 0; }

 private:
  friend class GpuActions;

  void draw_on(GpuStream stream, const program::Job& job, program::BufferId buffer,
               const execute::Piece& piece, bool fresh);

  Gpu& gpu_;
  GpuOperands operands_;
  int stands_for_;
  Draws draws_;
  bool has_update_ = false;  ///< this rank's program
  int updates_ = 0;          ///< rounds with one so far
};

}  // namespace ddpsim
