#pragma once

#include <barrier>
#include <chrono>
#include <cmath>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "backend/cpu/float16.hpp"
#include "backend/device_error.hpp"
#include "backend/nccl/device/gpu.hpp"

namespace ddpsim {

/// What fake GPUs of one job share: their collectives.
class FakeLink {
 public:
  explicit FakeLink(int ranks) : barrier_(ranks), ranks_(ranks) {}
  virtual ~FakeLink() = default;
  virtual void all_reduce(float* values, std::int64_t count) {
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
  /// [rank][size], of which this rank's is there.
  virtual void all_gather(std::byte* parts, int rank, std::size_t size) {
    {
      const std::lock_guard lock(mutex_);
      parts_.resize(static_cast<std::size_t>(ranks_) * size);
      std::memcpy(parts_.data() + static_cast<std::size_t>(rank) * size,
                  parts + static_cast<std::size_t>(rank) * size, size);
    }
    barrier_.arrive_and_wait();
    std::memcpy(parts, parts_.data(), parts_.size());
    barrier_.arrive_and_wait();
  }
  int ranks() const { return ranks_; }

 private:
  std::vector<std::byte> parts_;
  std::barrier<> barrier_;
  int ranks_;
  std::mutex mutex_;
  std::vector<float> sum_;
};

/// One call, as it was made.
struct GpuCall {
  enum class Kind { work, record, wait, collective, seen } kind = Kind::work;
  Stream stream = Stream::compute;
  int event = -1;                ///< recorded, waited for, or seen by the host
  std::string range{};           ///< innermost range it was made in
  const void* result = nullptr;  ///< what it writes first
  std::int64_t count = 0;        ///< how much of that, in 4 bytes
};

/// What work takes on a fake GPU.
struct FakePace {
  Duration gemm{}, memory{};  ///< of a GEMM; of any kernel that moves memory
  Duration collective{};      ///< of an all-reduce or exchange, besides its bytes
  double link = 0;            ///< its bytes per second; 0: they take no time
};

/// Records every call, and does on host memory, at once, what it is asked for. What the log says of
/// streams and events is all a GPU would know of order. Each stream has a clock: work takes what
/// the pace says, after what the stream had to do, and events are reached when that time has come.
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
  void fill(void* to, std::int64_t count, DType type, std::uint64_t seed) override {
    std::vector<float> values(index(count));
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<float>((i * 2654435761U + seed * 97U) % 2003U) / 1001.0F - 1.0F;
    put(to, values, type);
  }
  void clear(Stream, void* values, Bytes size) override {
    std::memset(values, 0, static_cast<std::size_t>(size.count));
  }
  void write(Stream stream, void* to, std::span<const float> values, DType type) override {
    put(to, {values.begin(), values.end()}, type);
    work(stream, to, words(static_cast<std::int64_t>(values.size()), type));
  }
  std::vector<float> read(const void* values, std::int64_t count, DType type) override {
    return get(values, count, type);
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
    if (found == times_.end() || hangs_[event] || found->second > Clock::now()) return false;
    note({GpuCall::Kind::seen, Stream::host, event});
    return true;
  }
  Duration between(int earlier, int later) override {
    return times_.at(later) - times_.at(earlier);
  }

  void note_clock() override { clock_ = nanoseconds(advance(Stream::compute, {})); }
  std::uint64_t noted_clock() override { return clock_; }

  void gemm(const GemmCall& call) override {
    const Gemm& g = call.gemm;
    const std::vector<float> a = get(call.left, g.m * g.k, call.type);
    const std::vector<float> b = get(call.right, g.k * g.n, call.type);
    std::vector<float> c;
    for (std::int64_t i = 0; i < g.m; ++i)
      for (std::int64_t j = 0; j < g.n; ++j) {
        float sum = 0;
        for (std::int64_t l = 0; l < g.k; ++l)
          sum += a[index(call.layout == GpuGemmLayout::tn ? l * g.m + i : i * g.k + l)] *
                 b[index(call.layout == GpuGemmLayout::nt ? j * g.k + l : l * g.n + j)];
        c.push_back(sum);
      }
    put(call.result, c, call.result_type);
    advance(call.stream, pace.gemm);
    note({GpuCall::Kind::work, call.stream, -1, "", call.result,
          words(g.m * g.n, call.result_type)});
  }
  void scale(Stream stream, void* to, const void* from, std::int64_t count, DType type,
             float factor) override {
    std::vector<float> values = get(from, count, type);
    for (float& value : values) value *= factor;
    put(to, values, type);
    work(stream, to, words(count, type));
  }
  void add(Stream stream, void* to, const void* from, std::int64_t count, DType type) override {
    combine(to, get(to, count, type), get(from, count, type), type, 1);
    work(stream, to, words(count, type));
  }
  void move(Stream stream, const void*, void* to, Bytes traffic, Bytes) override {
    moved += traffic;
    work(stream, to, 0);
  }
  void normalise(const void*, void* to, Bytes traffic, Bytes) override {
    moved += traffic;
    work(Stream::compute, to, 0);
  }
  void spin(Stream stream, Duration time) override {
    advance(stream, time);
    note({GpuCall::Kind::work, stream});
  }
  void update(const UpdateCall& call) override { work(call.stream, call.parameter, call.count); }

  void convert(Stream stream, void* to, DType to_type, const void* from, DType from_type,
               std::int64_t count) override {
    put(to, get(from, count, from_type), to_type);
    work(stream, to, words(count, to_type));
  }
  void subtract(Stream stream, void* to, const void* left, const void* right, std::int64_t count,
                DType type) override {
    combine(to, get(left, count, type), get(right, count, type), type, -1);
    work(stream, to, words(count, type));
  }
  void orthogonalize(Stream stream, void* matrix, std::int64_t rows, std::int64_t columns,
                     DType type, float epsilon) override {
    std::vector<float> values = get(matrix, rows * columns, type);
    const auto at = [&](std::int64_t row, std::int64_t column) -> float& {
      return values[index(row * columns + column)];
    };
    for (std::int64_t i = 0; i < columns; ++i) {
      float squares = 0;
      for (std::int64_t row = 0; row < rows; ++row) squares += at(row, i) * at(row, i);
      for (std::int64_t row = 0; row < rows; ++row) at(row, i) /= std::sqrt(squares) + epsilon;
      for (std::int64_t j = i + 1; j < columns; ++j) {
        float product = 0;
        for (std::int64_t row = 0; row < rows; ++row) product += at(row, i) * at(row, j);
        for (std::int64_t row = 0; row < rows; ++row) at(row, j) -= product * at(row, i);
      }
    }
    put(matrix, values, type);
    work(stream, matrix, words(rows * columns, type));
  }
  void observe(Stream stream, const QuantizeCall& call) override {
    const std::vector<float> values = get(call.values, call.count, call.type);
    for (std::int64_t c = 0; c < call.channels; ++c) {
      float least = 0, most = 0;
      for (std::int64_t i = c * call.channel; i < std::min(call.count, (c + 1) * call.channel); ++i)
        least = std::min(least, values[index(i)]), most = std::max(most, values[index(i)]);
      const float scale = std::max((most - least) / 255, 0x1p-23F);
      call.scales[c] = scale;
      call.scales[call.channels + c] = -std::nearbyint(least / scale);
    }
    work(stream, call.scales, 2 * call.channels);
  }
  void quantize(Stream stream, const QuantizeCall& call) override {
    const std::vector<float> values = get(call.values, call.count, call.type);
    for (std::int64_t i = 0; i < call.channel * call.channels; ++i) {
      const std::int64_t c = i / call.channel;
      const float value = i < call.count ? values[index(i)] : 0;
      const float code = std::nearbyint(value / call.scales[c]) + call.scales[call.channels + c];
      call.codes[i] = static_cast<std::uint8_t>(std::clamp(code, 0.0F, 255.0F));
    }
    work(stream, call.codes, call.channel * call.channels / 4);
  }
  void dequantize(Stream stream, const QuantizeCall& call, int ranks, float factor) override {
    std::vector<float> values(index(call.count));
    for (std::int64_t i = 0; i < call.count; ++i) {
      const std::int64_t c = i / call.channel;
      for (std::int64_t r = 0; r < ranks; ++r) {
        const float* scales = call.scales + 2 * r * call.channels;
        const auto code = static_cast<float>(call.codes[r * call.channel * call.channels + i]);
        values[index(i)] += scales[c] * (code - scales[call.channels + c]);
      }
      values[index(i)] *= factor;
    }
    put(call.values, values, call.type);
    work(stream, call.values, words(call.count, call.type));
  }

  std::vector<std::byte> make_id() override { return std::vector<std::byte>(128, std::byte{42}); }
  void connect(std::span<const std::byte> id, int rank, int, int most) override {
    rank_ = rank;
    id_received.assign(id.begin(), id.end());
    if (channels_asked != nullptr) *channels_asked = most;
    if (received != nullptr) *received = id_received;
  }
  void all_reduce(void* values, std::int64_t count, DType type) override {
    ++collectives_;
    if (link_ != nullptr && !stuck) {
      std::vector<float> sum = get(values, count, type);
      link_->all_reduce(sum.data(), count);
      put(values, sum, type);
    }
    transfer(values, count * size_of(type).count);
  }
  void broadcast(void* bytes, Bytes size) override {
    if (link_ != nullptr && link_->ranks() > 1 && !stuck) {
      std::vector<std::byte> all(index(link_->ranks() * size.count));
      std::memcpy(all.data() + rank_ * size.count, bytes, index(size.count));
      link_->all_gather(all.data(), rank_, index(size.count));
      std::memcpy(bytes, all.data(), index(size.count));
    }
    transfer(bytes, size.count);
  }
  void all_gather(void* parts, Bytes size) override {
    ++collectives_;
    if (link_ != nullptr && !stuck)
      link_->all_gather(static_cast<std::byte*>(parts), rank_, index(size.count));
    transfer(parts, size.count, (link_ != nullptr ? link_->ranks() : 1) * size.count / 4);
  }
  void reduce_scatter(void* parts, std::int64_t count, DType type) override {
    const std::int64_t ranks = link_ != nullptr ? link_->ranks() : 1;
    std::vector<float> sum = get(parts, ranks * count, type);
    if (link_ != nullptr) link_->all_reduce(sum.data(), ranks * count);
    for (std::int64_t i = 0; i < ranks * count; ++i)
      if (i / count != rank_) sum[index(i)] = std::nanf("");  // nobody may use it
    put(parts, sum, type);
    transfer(parts, ranks * count * size_of(type).count);
  }
  void exchange(const void* from, void* to, Bytes size) override {
    std::memcpy(to, from, index(size.count));
    transfer(to, size.count, size.count);
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

 protected:
  FakeLink* link_;

 private:
  void note(GpuCall call) {
    call.range = ranges_.empty() ? "" : ranges_.back();
    if (log != nullptr) log->push_back(call);
  }

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
  void transfer(void* result, std::int64_t bytes) { transfer(result, bytes, bytes / 4); }
  void transfer(void* result, std::int64_t bytes, std::int64_t noted) {
    advance(Stream::communication,
            pace.collective + (pace.link > 0 ? from_seconds(static_cast<double>(bytes) / pace.link)
                                             : Duration{}));
    note({GpuCall::Kind::collective, Stream::communication, -1, "", result, noted});
  }
  void work(Stream stream, const void* result, std::int64_t count) {
    advance(stream, pace.memory);
    note({GpuCall::Kind::work, stream, -1, "", result, count});
  }

  static std::int64_t words(std::int64_t count, DType type) {
    return count * size_of(type).count / 4;
  }
  static std::size_t index(std::int64_t at) { return static_cast<std::size_t>(at); }
  static std::vector<float> get(const void* from, std::int64_t count, DType type) {
    std::vector<float> values(index(count));
    if (size_of(type).count == 4)
      std::memcpy(values.data(), from, 4 * index(count));
    else
      widen(type, {static_cast<const std::uint16_t*>(from), index(count)}, values);
    return values;
  }
  static void put(void* to, const std::vector<float>& values, DType type) {
    if (size_of(type).count == 4)
      std::memcpy(to, values.data(), 4 * values.size());
    else
      narrow(type, values, {static_cast<std::uint16_t*>(to), values.size()});
  }
  static void combine(void* to, std::vector<float> left, const std::vector<float>& right,
                      DType type, float sign) {
    for (std::size_t i = 0; i < left.size(); ++i) left[i] += sign * right[i];
    put(to, left, type);
  }

  std::map<int, Clock::time_point> times_;
  std::map<Stream, Clock::time_point> free_;
  std::map<Stream, std::deque<Clock::time_point>> pending_;
  std::map<int, bool> hangs_;
  int collectives_ = 0;
  int rank_ = 0;
  std::vector<std::string> ranges_;
};

}  // namespace ddpsim
