#include "backend/job/rendezvous.hpp"

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <thread>

#include <fcntl.h>
#include <fmt/format.h>
#include <gloo/common/error.h>
#include <gloo/rendezvous/hash_store.h>
#include <gloo/rendezvous/redis_store.h>
#include <sys/time.h>
#include <unistd.h>

#include "backend/device_error.hpp"
#include "backend/job/folder_store.hpp"
#include "backend/job/private_folder.hpp"
#include "backend/version.hpp"
#include "model/base/printable.hpp"

namespace ddpsim {
namespace {

using std::chrono::milliseconds;

/// 64-bit FNV-1a: two different requests are told apart, not protected from an attacker.
std::uint64_t digest(const std::string& text) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash;
}

std::string safe_name(const std::string& job) {
  std::string name;
  for (const char c : job)
    name += std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '.' ? c : '_';
  return name;
}

/// In a folder that a job made lies a mark, so that its last rank to leave removes it, whoever made
/// it; one that was there before has none, and stays.
class FileRendezvous : public Rendezvous {
 public:
  /// `above`: the folder that holds this one; it is removed as well once it is empty.
  explicit FileRendezvous(Folder folder, std::optional<Folder> above = std::nullopt)
      : above_(std::move(above)), folder_(std::move(folder)), store_(folder_) {
    if (!folder_.was_made()) return;
    const int file =
        openat(folder_.descriptor(), folder_mark, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    if (file >= 0) close(file);
  }
  ~FileRendezvous() override { FileRendezvous::leave(); }

  gloo::rendezvous::Store& store() override { return store_; }
  void leave() override {
    store_.remove_own();
    // Where ranks leave at once, at least the last to remove its keys sees nothing but the mark.
    if (folder_.entries() != std::vector<std::string>{folder_mark}) return;
    if (unlinkat(folder_.descriptor(), folder_mark, 0) != 0) return;
    rmdir(folder_.path().c_str());
    if (above_) rmdir(above_->path().c_str());  // not while another job is in it
  }
  std::string description() const override { return "file:" + folder_.path().string(); }

 private:
  bool has(const std::string& key) override { return store_.has(key); }

  std::optional<Folder> above_;
  Folder folder_;
  FolderStore store_;
};

class RedisRendezvous : public Rendezvous {
 public:
  RedisRendezvous(const std::string& host, int port, const std::string& job, milliseconds timeout)
      : where_(fmt::format("redis://{}:{}", host, port)),
        prefix_(job.empty() ? "ddpsim/" : fmt::format("ddpsim/{}/", job)),
        redis_(host, port, timeout),
        store_(*this) {}
  ~RedisRendezvous() override { RedisRendezvous::leave(); }

  gloo::rendezvous::Store& store() override { return store_; }
  void leave() override {
    for (const std::string& key : mine_) redis_.remove(key);
    mine_.clear();
  }
  std::string description() const override { return where_; }

 private:
  struct Redis : gloo::rendezvous::RedisStore {
    Redis(const std::string& host, int port, milliseconds timeout) : RedisStore(host, port) {
      const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(timeout);
      redisSetTimeout(redis_, timeval{std::max<time_t>(1, seconds.count()), 0});
    }
    void remove(const std::string& key) {
      freeReplyObject(redisCommand(redis_, "DEL %b", key.data(), key.size()));
    }
  };
  /// Redis with the job's prefix; remembers the keys it set.
  struct Prefixed : gloo::rendezvous::Store {
    explicit Prefixed(RedisRendezvous& owner) : rendezvous(owner) {}
    void set(const std::string& key, const std::vector<char>& data) override {
      rendezvous.redis_.set(rendezvous.prefix_ + key, data);
      rendezvous.mine_.push_back(rendezvous.prefix_ + key);
    }
    std::vector<char> get(const std::string& key) override {
      return rendezvous.redis_.get(rendezvous.prefix_ + key);
    }
    void wait(const std::vector<std::string>& keys) override { wait(keys, kDefaultTimeout); }
    void wait(const std::vector<std::string>& keys, const milliseconds& timeout) override {
      std::vector<std::string> prefixed;
      for (const std::string& key : keys) prefixed.push_back(rendezvous.prefix_ + key);
      rendezvous.redis_.wait(prefixed, timeout);
    }
    RedisRendezvous& rendezvous;
  };
  bool has(const std::string& key) override { return redis_.check({prefix_ + key}); }

  std::string where_;
  std::string prefix_;
  Redis redis_;
  Prefixed store_;
  std::vector<std::string> mine_;
};

class InProcess : public Rendezvous {
 public:
  explicit InProcess(std::shared_ptr<gloo::rendezvous::Store> store) : store_(std::move(store)) {}
  gloo::rendezvous::Store& store() override { return *store_; }
  void leave() override {}
  std::string description() const override { return "this process"; }
  bool in_one_process() const override { return true; }

 private:
  bool has(const std::string&) override { return false; }
  std::shared_ptr<gloo::rendezvous::Store> store_;
};

std::unique_ptr<Rendezvous> open_folder(const std::string& path, const std::string& job) {
  if (job.empty()) return std::make_unique<FileRendezvous>(Folder::open(path));
  return std::make_unique<FileRendezvous>(Folder::open(path).inside(safe_name(job)));
}

std::unique_ptr<Rendezvous> open_redis(const std::string& address, const std::string& job,
                                       milliseconds timeout) {
  const auto colon = address.rfind(':');
  const std::string host = address.substr(0, colon);
  int port = 6379;
  if (colon != std::string::npos) {
    const std::string text = address.substr(colon + 1);
    if (text.empty() || text.size() > 5 || text.find_first_not_of("0123456789") != text.npos ||
        (port = std::stoi(text)) < 1 || port > 65535)
      throw std::invalid_argument(fmt::format(
          "--rendezvous redis://{}: expected a port from 1 to 65535 after the colon", address));
  }
  if (host.empty())
    throw std::invalid_argument("--rendezvous redis://: expected redis://host:port");
  // Asks the server for an answer first: Gloo's store waits for ever at a port that accepts
  // connections and never answers.
  const milliseconds patience = std::min<milliseconds>(timeout, std::chrono::seconds{10});
  const timeval limit{patience.count() / 1000, patience.count() % 1000 * 1000};
  const auto cannot = [&](const std::string& why) {
    return DeviceError(
        fmt::format("no Redis server answers at {}:{}: {}", host, port, printable(why)));
  };
  redisContext* redis = redisConnectWithTimeout(host.c_str(), port, limit);
  if (redis == nullptr) throw cannot("out of memory");
  std::string problem;
  if (redis->err != 0) {
    problem = redis->errstr;
  } else {
    redisSetTimeout(redis, limit);
    auto* reply = static_cast<redisReply*>(redisCommand(redis, "PING"));
    if (reply == nullptr)
      problem = redis->err == REDIS_ERR_IO
                    ? fmt::format("something listens there, but did not answer within {} s",
                                  std::max<long>(1, patience.count() / 1000))
                    : fmt::format("what listens there is not Redis ({})", redis->errstr);
    else if (reply->type == REDIS_REPLY_ERROR)
      problem = std::string(reply->str, reply->len);
    freeReplyObject(reply);
  }
  redisFree(redis);
  if (!problem.empty()) throw cannot(problem);
  return std::make_unique<RedisRendezvous>(host, port, safe_name(job), timeout);
}

std::string text_of(const std::vector<char>& bytes) {
  return {bytes.begin(), bytes.end()};
}

}  // namespace

std::unique_ptr<Rendezvous> Rendezvous::open(const std::string& where, const std::string& job,
                                             milliseconds timeout) {
  try {
    if (where.starts_with("file:") && where.size() > 5) return open_folder(where.substr(5), job);
    if (where.starts_with("redis://")) return open_redis(where.substr(8), job, timeout);
  } catch (const gloo::Exception& problem) {
    throw DeviceError(error_line(fmt::format("rendezvous {}: {}", where, problem.what())));
  } catch (const gloo::EnforceNotMet& problem) {
    throw DeviceError(error_line(fmt::format("rendezvous {}: {}", where, problem.what())));
  }
  throw std::invalid_argument(
      fmt::format("--rendezvous {}: expected file:DIR or redis://host:port", where));
}

std::unique_ptr<Rendezvous> Rendezvous::open_own(const std::string& job) {
  constexpr int tries = 5;  // the last rank of another job may remove the folder meanwhile
  for (int tried = 1;; ++tried) try {
      Folder own = Folder::open_own();
      Folder folder = own.inside(safe_name(job));
      return std::make_unique<FileRendezvous>(std::move(folder), std::move(own));
    } catch (const DeviceError&) {
      if (tried == tries) throw;
    }
}

std::unique_ptr<Rendezvous> Rendezvous::open_closed(const std::filesystem::path& folder) {
  return std::make_unique<FileRendezvous>(Folder::open_closed(folder));
}

std::unique_ptr<Rendezvous> Rendezvous::in_process(std::shared_ptr<gloo::rendezvous::Store> store) {
  return std::make_unique<InProcess>(std::move(store));
}

void Rendezvous::meet(int rank, int ranks, const std::string& agreement, milliseconds timeout) {
  const auto key = [](int r) { return fmt::format("ddpsim-hello-{}", r); };
  const std::string mine = fmt::format("{}\n{}\n{:016x}", version, ranks, digest(agreement));
  try {
    if (has(key(rank)))
      throw DeviceError(fmt::format(
          "{} already holds a rank {}: another job uses it, or one that was killed left "
          "it behind; empty it or name another with --rendezvous",
          description(), rank));
    store().set(key(rank), {mine.begin(), mine.end()});
    const auto deadline = std::chrono::steady_clock::now() + timeout;
    for (int other = 0; other < ranks; ++other) {
      try {
        const auto left =
            std::chrono::duration_cast<milliseconds>(deadline - std::chrono::steady_clock::now());
        store().wait({key(other)}, std::max(left, milliseconds{1}));
      } catch (const gloo::Exception&) {
        throw DeviceError(fmt::format("rank {} did not come to {} within {:g} s", other,
                                      description(), static_cast<double>(timeout.count()) / 1000));
      }
      const std::string theirs = text_of(store().get(key(other)));
      if (theirs == mine) continue;
      // The other ranks need a moment to read that this rank's values differ.
      std::this_thread::sleep_for(std::min<milliseconds>(timeout, std::chrono::seconds{1}));
      const std::string their_version = theirs.substr(0, theirs.find('\n'));
      if (their_version != version)
        throw DeviceError(fmt::format(
            "rank {} runs ddpsim {}, this is {}: start the same version everywhere", other,
            their_version.size() < 40 ? their_version : "of another kind", version));
      throw DeviceError(
          fmt::format("rank {} was started with another scenario, other flags or another number of "
                      "ranks: start "
                      "every rank alike",
                      other));
    }
  } catch (const DeviceError&) {
    throw;
  } catch (const std::exception& problem) {
    throw DeviceError(error_line(fmt::format("rendezvous {}: {}", description(), problem.what())));
  }
}

}  // namespace ddpsim
