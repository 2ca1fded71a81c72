// A grid shared by processes.
//
// Rank 0 keeps the points nobody has begun. Every rank keeps its threads in work: when fewer points
// wait than it has threads it asks for more (rank 0 asks itself), and its requests carry what it
// has computed since the last one. An answer without points is the last: the rank finishes what it
// has, sends it, and is through. A rank has at most one request open and rank 0 answers each with
// one message, so nobody ever waits for somebody who waits for him.
//
// Portions shrink with what is left (guided self-scheduling), so that the ranks end together:
//
//     portion = points left / (2 x threads of all ranks) x threads of this rank, at least as many
//
// Only the thread that began calls MPI. Messages are looked for every few milliseconds; waiting in
// MPI itself would keep a core busy.
// Source of the portions: Polychronopoulos & Kuck, IEEE Trans. Computers C-36(12), 1987.

#include "tools/sweep/mpi_points.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <thread>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "backend/job/rank_environment.hpp"
#include "scenarios/reader/input_error.hpp"
#include "tools/report/json_writer.hpp"

namespace ddpsim {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::chrono::milliseconds patience{5}, patience_alone{100};
constexpr std::size_t largest_portion = 64;  ///< points per thread: a report stays small

/// Several processes, by mpirun or srun; others may number processes for reasons of their own.
std::optional<RankPlace> place_in_job() {
  const auto place = rank_from_environment();
  const bool shares = place && (place->launcher == "mpirun" || place->launcher == "srun");
  return shares && place->ranks > 1 ? place : std::nullopt;
}

std::size_t portion(std::size_t left, std::size_t threads, std::size_t all_threads) {
  const std::size_t share = left / (2 * std::max<std::size_t>(1, all_threads)) * threads;
  return std::min(left, std::clamp(share, threads, largest_portion * threads));
}

std::vector<std::size_t> take_front(std::vector<std::size_t>& reversed, std::size_t count) {
  std::vector<std::size_t> taken(reversed.rbegin(),
                                 reversed.rbegin() + static_cast<std::ptrdiff_t>(count));
  reversed.resize(reversed.size() - count);
  return taken;
}

/// A computed point as it travels between ranks: its number, its error and its rows.
Json message_of(const ComputedPoint& computed) {
  const auto& [point, result] = computed;
  Json rows = Json::array();
  for (const TableRow& row : result.rows) rows.push_back(json_of(List(row)));
  return {point, result.error, std::move(rows)};
}

ComputedPoint point_of(const Json& message) {
  ComputedPoint computed{message.at(0).get<std::size_t>(), {{}, message.at(1).get<std::string>()}};
  for (const Json& values : message.at(2)) {
    TableRow& row = computed.second.rows.emplace_back();
    for (std::size_t c = 0; c < figure_columns().size(); ++c)
      row.push_back(value_from_json(figure_columns()[c].kind, values.at(c)).value());
  }
  return computed;
}

/// Rank 0: has the points, and computes some itself.
class Owner {
 public:
  Owner(const MpiJob& job, PointThreads& threads, std::vector<std::size_t> points,
        const PointWatch& watch)
      : job_(job), threads_(threads), left_(std::move(points)), watch_(watch) {
    std::reverse(left_.begin(), left_.end());
    all_threads_ =
        static_cast<std::size_t>(threads.threads()) * static_cast<std::size_t>(job.ranks());
  }

  void run() {
    int others = job_.ranks() - 1;
    while (true) {
      if (watch_.stop()) stop();
      const auto own = static_cast<std::size_t>(threads_.threads());
      if (threads_.waiting() < own && !left_.empty())
        threads_.add(take_front(left_, portion(left_.size(), own, all_threads_)));
      for (MpiMessage message; others > 0 && job_.receive(message);)
        if (answer(message)) --others;
      if (others == 0 && left_.empty() && threads_.open() == 0) return;
      for (const ComputedPoint& point : threads_.take(job_.ranks() > 1 ? patience : patience_alone))
        watch_.computed(point);
      watch_.tick();
    }
  }

 private:
  void stop() {
    left_.clear();
    threads_.drop();
  }

  /// True: that rank is through.
  bool answer(const MpiMessage& message) {
    const Json report = Json::from_cbor(message.bytes);
    for (const Json& each : report.at("computed")) watch_.computed(point_of(each));
    if (report.at("stopped").get<bool>()) stop();
    if (report.at("through").get<bool>()) return true;
    const auto wanted = report.at("threads").get<std::size_t>();
    const Json points = take_front(left_, portion(left_.size(), wanted, all_threads_));
    job_.send(message.rank, Json::to_cbor(points));
    return false;
  }

  const MpiJob& job_;
  PointThreads& threads_;
  std::vector<std::size_t> left_;  ///< the next one last
  const PointWatch& watch_;
  std::size_t all_threads_;
};

/// The other ranks.
void help(const MpiJob& job, PointThreads& threads, const PointWatch& watch) {
  std::vector<ComputedPoint> computed;
  const auto report = [&](bool through) {
    Json points = Json::array();
    for (const ComputedPoint& point : computed) points.push_back(message_of(point));
    const Json json{{"computed", std::move(points)},
                    {"threads", threads.threads()},
                    {"stopped", watch.stop()},
                    {"through", through}};
    job.send(0, Json::to_cbor(json));
    computed.clear();
  };
  bool asked = false, last = false;
  while (!last || threads.open() > 0) {
    if (watch.stop()) threads.drop();
    if (!asked && !last && threads.waiting() < static_cast<std::size_t>(threads.threads())) {
      report(false);
      asked = true;
    }
    if (MpiMessage message; asked && job.receive(message)) {
      const auto points = Json::from_cbor(message.bytes).get<std::vector<std::size_t>>();
      threads.add(points);
      asked = false;
      last = points.empty();
    }
    for (ComputedPoint& point : threads.take(patience)) computed.push_back(std::move(point));
  }
  report(true);
}

}  // namespace

void compute_points(const MpiJob& job, PointThreads& threads, std::vector<std::size_t> points,
                    const PointWatch& watch) {
  if (job.rank() == 0)
    Owner(job, threads, std::move(points), watch).run();
  else
    help(job, threads, watch);
}

MpiJob::MpiJob() {
  const auto place = place_in_job();
  if (!place) return;
  if (!DDPSIM_HAS_MPI && !has_module("mpi")) {
    useful_ = place->rank == 0;
    if (useful_)
      throw InputError(
          fmt::format("{} started {} processes, but this ddpsim is built without MPI and cannot "
                      "share a sweep: start one, or build with MPI (libopenmpi-dev)",
                      place->launcher, place->ranks));
    return;
  }
  // What MPI loads in its turn expects to find MPI's own symbols.
  calls_ = reinterpret_cast<const MpiModule*>(load_module("mpi", true))->start();
  if (calls_->ranks() == place->ranks && calls_->takes_threads()) return;
  useful_ = place->rank == 0;
  const int known = calls_->ranks();
  calls_.reset();
  if (useful_)
    throw InputError(fmt::format(
        "{} started {} processes, but MPI knows of {}: start them with the mpirun of the MPI that "
        "ddpsim was built with",
        place->launcher, place->ranks, known));
}

MpiJob::~MpiJob() = default;

int MpiJob::rank() const {
  return calls_ ? calls_->rank() : 0;
}

int MpiJob::ranks() const {
  return calls_ ? calls_->ranks() : 1;
}

int MpiJob::ranks_of_host() const {
  return calls_ ? calls_->ranks_of_host() : 1;
}

std::vector<std::string> MpiJob::gather(const std::string& text) const {
  return calls_ ? calls_->gather(text) : std::vector<std::string>{text};
}

int MpiJob::agree(int number) const {
  return calls_ ? calls_->agree(number) : number;
}

void MpiJob::abort(int code) const {
  if (calls_) calls_->abort(code);
  std::_Exit(code);
}

void MpiJob::send(int rank, const std::vector<std::uint8_t>& bytes) const {
  if (calls_) calls_->send(rank, bytes);
}

bool MpiJob::receive(MpiMessage& message) const {
  return calls_ && calls_->receive(message);
}

}  // namespace ddpsim
