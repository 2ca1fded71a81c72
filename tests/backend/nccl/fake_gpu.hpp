#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "backend/cpu/float16.hpp"
#include "backend/device/cuda/gpu.hpp"
#include "backend/device_error.hpp"

namespace ddpsim {

/// What fake GPUs of one job share: their messages. Of one communicator and pair of ranks they come
/// in the order in which they were sent.
class FakeLink {
 public:
  using Message = std::vector<std::byte>;

  explicit FakeLink(int ranks) : ranks_(ranks) {}
  virtual ~FakeLink() = default;

  int ranks() const { return ranks_; }
  virtual void send(int communicator, int from, int to, std::span<const std::byte> bytes) {
    {
      const std::lock_guard lock(mutex_);
      boxes_[{communicator, from, to}].emplace_back(bytes.begin(), bytes.end());
    }
    came_.notify_all();
  }
  virtual Message receive(int communicator, int from, int to) {
    std::unique_lock lock(mutex_);
    std::deque<Message>& box = boxes_[{communicator, from, to}];
    if (!came_.wait_for(lock, std::chrono::seconds{60}, [&] { return !box.empty(); }))
      throw DeviceError("a fake GPU waits for another in vain");
    Message message = std::move(box.front());
    box.pop_front();
    return message;
  }
  /// What each rank of a group has, by place. All call it.
  virtual std::vector<Message> everyones(int communicator, const std::vector<int>& group, int me,
                                         std::span<const std::byte> mine) {
    for (const int other : group)
      if (other != me) send(communicator, me, other, mine);
    std::vector<Message> all;
    for (const int other : group)
      all.push_back(other == me ? Message(mine.begin(), mine.end())
                                : receive(communicator, other, me));
    return all;
  }

 private:
  int ranks_;
  std::mutex mutex_;
  std::condition_variable came_;
  std::map<std::tuple<int, int, int>, std::deque<Message>> boxes_;
};

/// One call, as it was made.
struct GpuCall {
  enum class Kind { work, record, wait, collective, seen } kind = Kind::work;
  GpuStream stream = first_stream;  ///< nobody's of what the host saw
  int event = -1;                   ///< recorded, waited for, or seen by the host
  std::string range{};              ///< innermost range it was made in
  const void* result = nullptr;     ///< what it writes first
  std::int64_t count = 0;           ///< how much of that, in 4 bytes
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
/// A stream that was not made is an error.
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
  Clock::time_point done_at(GpuStream stream) { return std::max(free_[stream], Clock::now()); }

  /// The `index`-th of the values that `fill` makes of a seed.
  static float filled(std::size_t index, std::uint64_t seed) {
    return static_cast<float>((index * 2654435761U + seed * 97U) % 2003U) / 1001.0F - 1.0F;
  }

  GpuDescription description() const override { return description_; }
  void make_stream(GpuStream stream) override { streams_.insert(stream); }
  std::shared_ptr<std::byte> allocate(Bytes size, const char*) override {
    auto store = std::make_shared<std::vector<float>>(static_cast<std::size_t>(size.count / 4 + 1));
    return {store, reinterpret_cast<std::byte*>(store->data())};
  }
  void fill(void* to, std::int64_t count, DType type, std::uint64_t seed) override {
    std::vector<float> values(index(count));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = filled(i, seed);
    put(to, values, type);
  }
  void clear(GpuStream stream, void* values, Bytes size) override {
    check(stream);
    std::memset(values, 0, static_cast<std::size_t>(size.count));
  }
  void copy(GpuStream stream, void* to, const void* from, Bytes size) override {
    std::memcpy(to, from, index(size.count));
    work(stream, to, size.count / 4);
  }
  void write(GpuStream stream, void* to, std::span<const float> values, DType type) override {
    put(to, {values.begin(), values.end()}, type);
    work(stream, to, words(static_cast<std::int64_t>(values.size()), type));
  }
  std::vector<float> read(const void* values, std::int64_t count, DType type) override {
    return get(values, count, type);
  }

  void record(int event, GpuStream stream) override {
    times_[event] = advance(stream, {});
    hangs_[event] = stuck && communicates_.count(stream) > 0;
    note({GpuCall::Kind::record, stream, event});
  }
  void wait(GpuStream stream, int event) override {
    check(stream);
    free_[stream] = std::max(free_[stream], times_[event]);
    note({GpuCall::Kind::wait, stream, event});
  }
  bool reached(int event) override {
    const auto found = times_.find(event);
    if (found == times_.end() || hangs_[event] || found->second > Clock::now()) return false;
    note({GpuCall::Kind::seen, -1, event});
    return true;
  }
  Duration between(int earlier, int later) override {
    return times_.at(later) - times_.at(earlier);
  }

  void note_clock() override { clock_ = nanoseconds(advance(first_stream, {})); }
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
  void set(GpuStream stream, void* to, std::int64_t count, DType type, float value) override {
    put(to, std::vector<float>(index(count), value), type);
    work(stream, to, words(count, type));
  }
  void scale(GpuStream stream, void* to, const void* from, std::int64_t count, DType type,
             float factor) override {
    std::vector<float> values = get(from, count, type);
    for (float& value : values) value *= factor;
    put(to, values, type);
    work(stream, to, words(count, type));
  }
  void combine(GpuStream stream, void* to, const void* left, const void* right, std::int64_t count,
               DType type, float a, float b) override {
    std::vector<float> values = get(left, count, type);
    const std::vector<float> others = get(right, count, type);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = a * values[i] + b * others[i];
    put(to, values, type);
    work(stream, to, words(count, type));
  }
  void move(GpuStream stream, const void*, void* to, Bytes traffic, Bytes) override {
    moved += traffic;
    work(stream, to, 0);
  }
  void normalise(GpuStream stream, const void*, void* to, Bytes traffic, Bytes) override {
    moved += traffic;
    work(stream, to, 0);
  }
  void spin(GpuStream stream, Duration time) override {
    advance(stream, time);
    note({GpuCall::Kind::work, stream});
  }
  void update(const UpdateCall& call) override {
    advance(call.stream, pace.memory);
    for (const UpdatedTensor& tensor : call.tensors) {
      update(call, tensor);
      note({GpuCall::Kind::work, call.stream, -1, "", tensor.parameter, tensor.count});
    }
  }

  void convert(GpuStream stream, void* to, DType to_type, const void* from, DType from_type,
               std::int64_t count) override {
    put(to, get(from, count, from_type), to_type);
    work(stream, to, words(count, to_type));
  }
  void orthogonalize(GpuStream stream, void* matrix, std::int64_t rows, std::int64_t columns,
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
  void observe(GpuStream stream, const QuantizeCall& call) override {
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
  void quantize(GpuStream stream, const QuantizeCall& call) override {
    const std::vector<float> values = get(call.values, call.count, call.type);
    for (std::int64_t i = 0; i < call.channel * call.channels; ++i) {
      const std::int64_t c = i / call.channel;
      const float value = i < call.count ? values[index(i)] : 0;
      const float code = std::nearbyint(value / call.scales[c]) + call.scales[call.channels + c];
      call.codes[i] = static_cast<std::uint8_t>(std::clamp(code, 0.0F, 255.0F));
    }
    work(stream, call.codes, call.channel * call.channels / 4);
  }
  void dequantize(GpuStream stream, const QuantizeCall& call, int ranks, float factor) override {
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
  void connect(std::span<const std::byte> id, int rank, int ranks, int most) override {
    rank_ = rank;
    groups_.assign(1, std::vector<int>(static_cast<std::size_t>(ranks)));
    std::iota(groups_[0].begin(), groups_[0].end(), 0);
    id_received.assign(id.begin(), id.end());
    if (channels_asked != nullptr) *channels_asked = most;
    if (received != nullptr) *received = id_received;
  }
  int split(int colour, int place) override {
    std::vector<std::pair<int, int>> members;  // place and rank
    const std::array<int, 2> mine{colour, place};
    int other = 0;
    for (const auto& bytes : everyones(0, std::as_bytes(std::span(mine)))) {
      std::array<int, 2> theirs{-1, 0};
      if (bytes.size() == sizeof theirs) std::memcpy(theirs.data(), bytes.data(), sizeof theirs);
      if (theirs[0] == colour) members.emplace_back(theirs[1], other);
      ++other;
    }
    std::sort(members.begin(), members.end());
    std::vector<int>& group = groups_.emplace_back();
    if (colour >= 0)
      for (const auto& [at, rank] : members) group.push_back(rank);
    return static_cast<int>(groups_.size()) - 1;
  }
  void all_reduce(const RanksCall& call, bool mean) override {
    begin_collective();
    put(call.to, sum_of(call, call.count, mean), call.type);
    transfer(call, call.count * size_of(call.type).count);
  }
  void broadcast(const RanksCall& call, int root) override {
    begin_collective();
    const std::size_t size = index(call.count * size_of(call.type).count);
    const bool sends = place_in(call.communicator) == static_cast<std::size_t>(root);
    const auto all = everyones(call.communicator,
                               {static_cast<const std::byte*>(sends ? call.from : call.to), size});
    if (all.size() > index(root)) put_bytes(call.to, all[index(root)]);
    transfer(call, call.count * size_of(call.type).count);
  }
  void all_gather(const RanksCall& call) override {
    begin_collective();
    const std::size_t size = index(call.count * size_of(call.type).count);
    const auto all = everyones(call.communicator, {static_cast<const std::byte*>(call.from), size});
    for (std::size_t k = 0; k < all.size(); ++k)
      put_bytes(static_cast<std::byte*>(call.to) + k * size, all[k]);
    transfer(call, call.count * size_of(call.type).count,
             static_cast<std::int64_t>(all.size() * size / 4));
  }
  void reduce_scatter(const RanksCall& call, bool mean) override {
    begin_collective();
    const auto ranks = static_cast<std::int64_t>(groups_.at(index(call.communicator)).size());
    const std::vector<float> sum = sum_of(call, ranks * call.count, mean);
    const auto own =
        sum.begin() + static_cast<std::ptrdiff_t>(place_in(call.communicator) * index(call.count));
    put(call.to, {own, own + call.count}, call.type);
    transfer(call, ranks * call.count * size_of(call.type).count);
  }
  /// What is sent to others does not wait for them.
  void exchange(int communicator, GpuStream stream, std::span<const GpuMessage> messages) override {
    begin_collective();
    const std::vector<int>& group = groups_.at(index(communicator));
    std::deque<FakeLink::Message> own;
    std::int64_t sent = 0;
    void* result = nullptr;
    for (const GpuMessage& each : messages) {
      if (each.is_received) continue;
      const std::span<const std::byte> bytes{each.data, index(each.size.count)};
      const int peer = group.at(index(each.peer));
      if (peer == rank_)
        own.emplace_back(bytes.begin(), bytes.end());
      else if (link_ != nullptr)
        link_->send(communicator, rank_, peer, bytes);
      sent += each.size.count;
    }
    for (const GpuMessage& each : messages) {
      if (!each.is_received) continue;
      const int peer = group.at(index(each.peer));
      result = each.data;
      if (peer == rank_) {
        put_bytes(each.data, own.front());
        own.pop_front();
      } else if (link_ != nullptr) {
        put_bytes(each.data, link_->receive(communicator, peer, rank_));
      }
    }
    // Counted in bytes: these move no more than they say.
    transfer({communicator, stream, nullptr, result, 0, DType::fp32}, sent, sent);
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
  /// A collective is about to be enqueued.
  virtual void begin_collective() {}

  FakeLink* link_;
  int rank_ = 0;

 private:
  void note(GpuCall call) {
    call.range = ranges_.empty() ? "" : ranges_.back();
    if (log != nullptr) log->push_back(call);
  }

  std::uint64_t clock_ = 0;
  GpuDescription description_;
  void check(GpuStream stream) const {
    if (streams_.count(stream) == 0) throw std::logic_error("a stream that was not made");
  }
  /// When work of this length, given now, ends.
  Clock::time_point advance(GpuStream stream, Duration time) {
    check(stream);
    const auto now = Clock::now();
    auto& free = free_[stream];
    free = std::max(free, now) + std::chrono::duration_cast<Clock::duration>(time);
    auto& pending = pending_[stream];
    while (!pending.empty() && pending.front() <= now) pending.pop_front();
    pending.push_back(free);
    if (most_pending != nullptr) *most_pending = std::max(*most_pending, pending.size());
    return free;
  }
  void transfer(const RanksCall& call, std::int64_t bytes) { transfer(call, bytes, bytes / 4); }
  void transfer(const RanksCall& call, std::int64_t bytes, std::int64_t noted) {
    communicates_.insert(call.stream);
    advance(call.stream,
            pace.collective + (pace.link > 0 ? from_seconds(static_cast<double>(bytes) / pace.link)
                                             : Duration{}));
    note({GpuCall::Kind::collective, call.stream, -1, "", call.to, noted});
  }
  void work(GpuStream stream, const void* result, std::int64_t count) {
    advance(stream, pace.memory);
    note({GpuCall::Kind::work, stream, -1, "", result, count});
  }

  std::size_t place_in(int communicator) const {
    const std::vector<int>& group = groups_.at(index(communicator));
    return static_cast<std::size_t>(std::find(group.begin(), group.end(), rank_) - group.begin());
  }
  /// By place; nothing where there is no link, or it no longer answers.
  std::vector<FakeLink::Message> everyones(int communicator, std::span<const std::byte> mine) {
    if (link_ == nullptr || stuck) return {};
    return link_->everyones(communicator, groups_.at(index(communicator)), rank_, mine);
  }
  /// Added up in the order of places: the same to the bit on all.
  std::vector<float> sum_of(const RanksCall& call, std::int64_t count, bool mean) {
    std::vector<float> sum = get(call.from, count, call.type);
    const auto all = everyones(call.communicator, std::as_bytes(std::span(sum)));
    for (std::size_t k = 0; k < all.size(); ++k) {
      if (all[k].size() != sum.size() * sizeof(float)) continue;
      std::vector<float> theirs(sum.size());
      put_bytes(theirs.data(), all[k]);
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = (k == 0 ? 0 : sum[i]) + theirs[i];
    }
    if (mean)
      for (float& value : sum)
        value /= static_cast<float>(groups_.at(index(call.communicator)).size());
    return sum;
  }
  static void put_bytes(void* to, const FakeLink::Message& bytes) {
    if (!bytes.empty()) std::memcpy(to, bytes.data(), bytes.size());
  }

  static void update(const UpdateCall& call, const UpdatedTensor& tensor) {
    std::vector<float> parameter = get(tensor.parameter, tensor.count, call.type);
    const std::vector<float> gradient = get(tensor.gradient, tensor.count, call.type);
    std::vector<float> momentum = get(tensor.momentum, tensor.count, call.type);
    if (call.optimizer == Optimizer::sgd) {
      for (std::size_t i = 0; i < parameter.size(); ++i) {
        momentum[i] = 0.9F * momentum[i] + (gradient[i] + 1e-4F * parameter[i]);
        parameter[i] -= 1e-4F * momentum[i];
      }
    } else {
      std::vector<float> variance = get(tensor.variance, tensor.count, call.type);
      const auto steps = static_cast<float>(call.step);
      const float first = 1 / (1 - std::pow(0.9F, steps)),
                  second = 1 / (1 - std::pow(0.999F, steps));
      const float decay = call.optimizer == Optimizer::adam ? 0 : 1e-4F * 1e-4F;
      for (std::size_t i = 0; i < parameter.size(); ++i) {
        momentum[i] = 0.9F * momentum[i] + (1 - 0.9F) * gradient[i];
        variance[i] = 0.999F * variance[i] + (1 - 0.999F) * gradient[i] * gradient[i];
        parameter[i] -= decay * parameter[i] +
                        1e-4F * (momentum[i] * first) / (std::sqrt(variance[i] * second) + 1e-8F);
      }
      put(tensor.variance, variance, call.type);
    }
    put(tensor.momentum, momentum, call.type);
    put(tensor.parameter, parameter, call.type);
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
  std::map<int, Clock::time_point> times_;
  std::map<GpuStream, Clock::time_point> free_;
  std::map<GpuStream, std::deque<Clock::time_point>> pending_;
  std::map<int, bool> hangs_;
  std::set<GpuStream> streams_, communicates_;
  std::vector<std::vector<int>> groups_{{0}};  ///< [communicator] ranks by place
  std::vector<std::string> ranges_;
};

}  // namespace ddpsim
