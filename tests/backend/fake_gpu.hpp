#pragma once

#include <barrier>
#include <chrono>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "backend/device_error.hpp"
#include "backend/nccl/gpu.hpp"

namespace ddpsim {

/// What fake GPUs of one job share: their all-reduces.
class FakeLink {
 public:
  explicit FakeLink(int ranks) : barrier_(ranks), ranks_(ranks) {}
  void all_reduce(float* values, std::int64_t count) {
    {
      const std::lock_guard lock(mutex_);
      sum_.resize(static_cast<std::size_t>(count), 0);
      for (std::int64_t i = 0; i < count; ++i) sum_[static_cast<std::size_t>(i)] += values[i];
    }
    barrier_.arrive_and_wait();
    std::memcpy(values, sum_.data(), static_cast<std::size_t>(count) * sizeof(float));
    barrier_.arrive_and_wait();
    {
      const std::lock_guard lock(mutex_);
      sum_.clear();
    }
    barrier_.arrive_and_wait();
  }
  int ranks() const { return ranks_; }

 private:
  std::barrier<> barrier_;
  int ranks_;
  std::mutex mutex_;
  std::vector<float> sum_;
};

/// One call, as it was made.
struct GpuCall {
  enum class Kind { work, record, wait, collective } kind = Kind::work;
  Stream stream = Stream::compute;
  int event = -1;
  std::string range{};           ///< innermost range it was made in
  const void* result = nullptr;  ///< what it writes first
  std::int64_t count = 0;        ///< elements of that
};

/// What work takes on a fake GPU.
struct FakePace {
  Duration gemm{}, memory{};  ///< of a GEMM; of any kernel that moves memory
  Duration collective{};      ///< of an all-reduce or exchange, besides its bytes
  double link = 0;            ///< its bytes per second; 0: they take no time
};

/// Records every call, and does on host memory, at once, what it is asked for (fp32 only). What the
/// log says of streams and events is all a GPU would know of order. Each stream has a clock: work takes
/// what the pace says, after what the stream had to do, and events are reached when that time has come.
class FakeGpu : public Gpu {
 public:
  explicit FakeGpu(FakeLink* link = nullptr, std::string uuid = "fake") : link_(link) {
    description_.name = "fake GPU";
    description_.versions = "no versions";
    description_.uuid = std::move(uuid);
    description_.multiprocessors = 10;
    description_.memory = GiB;
    description_.l2 = Bytes{4096};
  }

  std::vector<GpuCall> calls;
  std::vector<std::byte> id_received;
  FakePace pace;
  int* channels_asked = nullptr;
  std::size_t* most_pending = nullptr;  ///< entries that a stream had yet to do, at most
  bool* aborted = nullptr;
  std::string* problem = nullptr;  ///< what `failure` says
  bool stuck = false;              ///< collectives never end

  using Clock = std::chrono::steady_clock;
  static std::uint64_t nanoseconds(Clock::time_point time) {
    return static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count());
  }
  /// When a stream will have done what it was given so far.
  Clock::time_point done_at(Stream stream) { return std::max(free_[stream], Clock::now()); }

  GpuDescription description() const override { return description_; }
  std::shared_ptr<std::byte> allocate(Bytes size, const char*) override {
    auto store = std::make_shared<std::vector<float>>(static_cast<std::size_t>(size.count / 4 + 1));
    return {store, reinterpret_cast<std::byte*>(store->data())};
  }
  void fill(void* values, std::int64_t count, DType, std::uint64_t seed) override {
    auto* to = static_cast<float*>(values);
    for (std::int64_t i = 0; i < count; ++i)
      to[i] =
          static_cast<float>((static_cast<std::uint64_t>(i) * 2654435761U + seed * 97U) % 2003U) /
              1001.0F -
          1.0F;
  }
  void clear(void* values, Bytes size) override {
    std::memset(values, 0, static_cast<std::size_t>(size.count));
  }
  std::vector<float> read(const void* values, std::int64_t count, DType) override {
    const auto* from = static_cast<const float*>(values);
    return {from, from + count};
  }

  void record(int event, Stream stream) override {
    times_[event] = advance(stream, {});
    hangs_[event] = stuck && stream == Stream::communication && collectives_ > 0;
    note({GpuCall::Kind::record, stream, event});
  }
  void wait(Stream stream, int event) override {
    free_[stream] = std::max(free_[stream], times_[event]);
    note({GpuCall::Kind::wait, stream, event});
  }
  bool reached(int event) override {
    const auto found = times_.find(event);
    return found != times_.end() && !hangs_[event] && found->second <= Clock::now();
  }
  Duration between(int earlier, int later) override {
    return times_.at(later) - times_.at(earlier);
  }

  void note_clock() override { clock_ = nanoseconds(advance(Stream::compute, {})); }
  std::uint64_t noted_clock() override { return clock_; }

  void gemm(const GemmCall& call) override {
    const Gemm& g = call.gemm;
    const auto* a = static_cast<const float*>(call.left);
    const auto* b = static_cast<const float*>(call.right);
    auto* c = static_cast<float*>(call.result);
    for (std::int64_t i = 0; i < g.m; ++i)
      for (std::int64_t j = 0; j < g.n; ++j) {
        float sum = 0;
        for (std::int64_t l = 0; l < g.k; ++l)
          sum += a[call.layout == GpuGemmLayout::tn ? l * g.m + i : i * g.k + l] *
                 b[call.layout == GpuGemmLayout::nt ? j * g.k + l : l * g.n + j];
        c[i * g.n + j] = sum;
      }
    advance(Stream::compute, pace.gemm);
    note({GpuCall::Kind::work, Stream::compute, -1, "", call.result, g.m * g.n});
  }
  void scale(Stream stream, void* to, const void* from, std::int64_t count, DType,
             float factor) override {
    for (std::int64_t i = 0; i < count; ++i)
      static_cast<float*>(to)[i] = factor * static_cast<const float*>(from)[i];
    advance(stream, pace.memory);
    note({GpuCall::Kind::work, stream, -1, "", to, count});
  }
  void add(Stream stream, void* to, const void* from, std::int64_t count, DType) override {
    for (std::int64_t i = 0; i < count; ++i)
      static_cast<float*>(to)[i] += static_cast<const float*>(from)[i];
    advance(stream, pace.memory);
    note({GpuCall::Kind::work, stream, -1, "", to, count});
  }
  void move(const void*, void* to, Bytes traffic, Bytes) override {
    moved += traffic;
    advance(Stream::compute, pace.memory);
    note({GpuCall::Kind::work, Stream::compute, -1, "", to, 0});
  }
  void normalise(const void*, void* to, Bytes traffic, Bytes) override {
    moved += traffic;
    advance(Stream::compute, pace.memory);
    note({GpuCall::Kind::work, Stream::compute, -1, "", to, 0});
  }
  void spin(Duration time) override {
    advance(Stream::compute, time);
    note({GpuCall::Kind::work});
  }
  void update(const UpdateCall& call) override {
    advance(Stream::compute, pace.memory);
    note({GpuCall::Kind::work, Stream::compute, -1, "", call.parameter, call.count});
  }

  std::vector<std::byte> make_id() override { return std::vector<std::byte>(128, std::byte{42}); }
  void connect(std::span<const std::byte> id, int, int, int most) override {
    id_received.assign(id.begin(), id.end());
    if (channels_asked != nullptr) *channels_asked = most;
    if (received != nullptr) *received = id_received;
  }
  void all_reduce(void* values, std::int64_t count, DType) override {
    ++collectives_;
    if (link_ != nullptr && !stuck) link_->all_reduce(static_cast<float*>(values), count);
    transfer(4 * count);
    note({GpuCall::Kind::collective, Stream::communication, -1, "", values, count});
  }
  void broadcast(void* bytes, Bytes size) override {
    note({GpuCall::Kind::collective, Stream::communication, -1, "", bytes, size.count / 4});
  }
  void exchange(const void*, void* to, Bytes size) override {
    transfer(size.count);
    note({GpuCall::Kind::collective, Stream::communication, -1, "", to, size.count});
  }
  std::string failure() override { return problem != nullptr ? *problem : ""; }
  void abort() override {
    if (aborted != nullptr) *aborted = true;
  }
  void push_range(const std::string& name) override { ranges_.push_back(name); }
  void pop_range() override { ranges_.pop_back(); }

  Bytes moved;
  std::vector<std::byte>* received = nullptr;
  std::vector<GpuCall>* log = nullptr;  ///< outlives this

 private:
  void note(GpuCall call) {
    call.range = ranges_.empty() ? "" : ranges_.back();
    if (log != nullptr) log->push_back(call);
  }

  FakeLink* link_;
  std::uint64_t clock_ = 0;
  GpuDescription description_;
  /// When work of this length, given now, ends.
  Clock::time_point advance(Stream stream, Duration time) {
    const auto now = Clock::now();
    auto& free = free_[stream];
    free = std::max(free, now) + std::chrono::duration_cast<Clock::duration>(time);
    auto& pending = pending_[stream];
    while (!pending.empty() && pending.front() <= now) pending.pop_front();
    pending.push_back(free);
    if (most_pending != nullptr) *most_pending = std::max(*most_pending, pending.size());
    return free;
  }
  void transfer(std::int64_t bytes) {
    advance(Stream::communication,
            pace.collective + (pace.link > 0 ? from_seconds(static_cast<double>(bytes) / pace.link)
                                             : Duration{}));
  }

  std::map<int, Clock::time_point> times_;
  std::map<Stream, Clock::time_point> free_;
  std::map<Stream, std::deque<Clock::time_point>> pending_;
  std::map<int, bool> hangs_;
  int collectives_ = 0;
  std::vector<std::string> ranges_;
};

}  // namespace ddpsim
