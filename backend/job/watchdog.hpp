#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "backend/job/processor_time.hpp"

namespace ddpsim {

/// A connection by which two ranks show each other that they live. Owns its socket.
class PulseLine {
 public:
  explicit PulseLine(int other, int socket) : other_(other), socket_(socket) {}
  ~PulseLine();
  PulseLine(PulseLine&& from) noexcept;
  PulseLine& operator=(PulseLine&&) = delete;

  enum class Word : std::uint32_t {
    alive = 1,  ///< with how long processors lacked, in all
    bye = 2,    ///< done: silence means nothing from now on
    gone = 3,   ///< rank 0 to the others: the connection to `rank` broke
    silent = 4  ///< rank 0 to the others: `rank` gave no sign of life for the timeout
  };
  struct Message {
    Word word = Word::alive;
    std::int32_t rank = 0;
    std::int64_t lacked_ns = 0;
  };

  int other() const { return other_; }
  int socket() const { return socket_; }
  bool open() const { return socket_ >= 0; }
  void say(const Message& message);
  /// The next whole message that has arrived; none: no more for now, or the line broke.
  std::optional<Message> hear();
  /// The other end has closed, without a word.
  bool broken() const { return broken_; }
  void hang_up();

  std::chrono::nanoseconds silent{0};   ///< since the last word, as far as it counts
  std::chrono::nanoseconds lacked{0};   ///< what the other end said last
  std::chrono::nanoseconds counted{0};  ///< of that, what has been counted

 private:
  int other_, socket_;
  bool broken_ = false;
  std::string received_;
};

/// Tells a rank that waits in vain from one that waits for somebody slow.
///
/// A thread of its own, of ordinary priority however the rank computes, says several times a
/// timeout that the rank lives, and hears it of the others: every rank talks to rank 0, which tells
/// all. It ends the rank's connections, with a reason, when
///
///   a rank is gone      its connection broke and it had not said goodbye
///   a rank is silent    no sign of life for the timeout: it is stopped, or its host is unreachable
///   nothing comes       a call has been under way for the timeout and moved no byte
///
/// Time in which a rank lacked a processor does not count: beside other programs a rank may be so
/// slow that nothing comes for long, and nothing is wrong. What a rank lacked it says with every
/// sign of life, and the longest lack of any rank is taken off the time that all have waited.
///
/// If the rank has still not ended a while after its connections (its host thread gets no
/// processor, or is in a call that does not end), and `last_resort` allows it, the watchdog prints
/// the reason as the rank's line and ends the process with code 1.
class Watchdog {
 public:
  struct Options {
    int rank = 0;
    std::chrono::milliseconds timeout{60000};
    bool last_resort = true;             ///< the process is this rank and nothing else
    std::function<void()> disconnect{};  ///< ends every call under way; from the watchdog's thread
  };

  /// Made on the rank's host thread. `lines`: of rank 0, those to all others; else that to rank 0.
  /// `moved` counts whenever bytes of a call have moved.
  Watchdog(Options options, std::vector<PulseLine> lines,
           std::shared_ptr<const std::atomic<std::uint64_t>> moved);
  /// Says goodbye, unless an exception ends the rank.
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// As long as an object of this class lives, a call is under way that needs the other ranks.
  class Waiting {
   public:
    explicit Waiting(Watchdog* watchdog) : watchdog_(watchdog) {
      if (watchdog_ != nullptr) number_ = watchdog_->begin();
    }
    ~Waiting() {
      if (watchdog_ != nullptr) watchdog_->end(number_);
    }
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

   private:
    Watchdog* watchdog_;
    std::uint64_t number_ = 0;
  };

  /// Why the watchdog has ended the connections; empty if it has not ended them.
  std::string reason() const;

 private:
  using Clock = std::chrono::steady_clock;
  using Time = std::chrono::nanoseconds;

  std::uint64_t begin();
  void end(std::uint64_t number);
  void watch();
  void listen(Clock::time_point until);
  void hear(PulseLine& line);
  void count(Time passed, Time late);
  Time excuse(Time own_lack);
  void count_silence(Time passed, Time late);
  void count_waiting(Time passed);
  void tell(const PulseLine::Message& message);
  void rank_is_gone(int rank);
  void rank_is_silent(int rank);
  void give_up(const std::string& reason);
  void end_process_if_late() const;

  Options options_;
  std::vector<PulseLine> lines_;
  std::shared_ptr<const std::atomic<std::uint64_t>> moved_;
  ProcessorLack host_lack_;
  Time tick_;
  Time lacked_{0};       ///< of this rank; on rank 0, in each tick the longest of all ranks
  Time own_unheard_{0};  ///< own lack since rank 0 said the last time what all lacked
  Time waited_{0};       ///< by the oldest call under way, as far as it counts
  std::uint64_t moved_before_ = 0, waited_for_ = 0;
  std::optional<Clock::time_point> gave_up_;
  int wake_;

  mutable std::mutex mutex_;  ///< of the three below
  std::set<std::uint64_t> under_way_;
  std::uint64_t calls_ = 0;
  std::string reason_;

  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace ddpsim
