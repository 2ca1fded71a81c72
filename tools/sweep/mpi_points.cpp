// A grid shared by processes.
//
// Rank 0 keeps the points nobody has begun. Every rank keeps its threads in work: when fewer points
// wait than it has threads it asks for more (rank 0 asks itself), and its requests carry what it has
// computed since the last one. An answer without points is the last: the rank finishes what it has,
// sends it, and is through. A rank has at most one request open and rank 0 answers each with one
// message, so nobody ever waits for somebody who waits for him.
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

#if DDPSIM_HAS_MPI
#include <mpi.h>
#endif

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
    all_threads_ = static_cast<std::size_t>(threads.threads() * job.ranks());
  }

  void run() {
    int others = job_.ranks() - 1;
    while (true) {
      if (watch_.stop()) stop();
      const auto own = static_cast<std::size_t>(threads_.threads());
      if (threads_.waiting() < own && !left_.empty())
        threads_.add(take_front(left_, portion(left_.size(), own, all_threads_)));
      for (MpiJob::Message message; others > 0 && job_.receive(message);)
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
  bool answer(const MpiJob::Message& message) {
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
    if (MpiJob::Message message; asked && job.receive(message)) {
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

#if DDPSIM_HAS_MPI

MpiJob::MpiJob() {
  const auto place = place_in_job();
  if (!place) return;
  int level = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
  if (ranks_ != place->ranks || level < MPI_THREAD_FUNNELED) {
    useful_ = place->rank == 0;
    const int known = ranks_;
    ranks_ = 1;
    rank_ = 0;
    MPI_Finalize();
    if (useful_)
      throw InputError(fmt::format(
          "{} started {} processes, but MPI knows of {}: start them with the mpirun of the MPI "
          "that ddpsim was built with",
          place->launcher, place->ranks, known));
    return;
  }
  MPI_Comm host;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &host);
  MPI_Comm_size(host, &ranks_of_host_);
  MPI_Comm_free(&host);
}

MpiJob::~MpiJob() {
  if (ranks_ > 1) MPI_Finalize();
}

std::vector<std::string> MpiJob::gather(const std::string& text) const {
  if (ranks_ == 1) return {text};
  const auto count = static_cast<std::size_t>(ranks_);
  const int size = static_cast<int>(text.size());
  std::vector<int> sizes(count), places(count);
  MPI_Gather(&size, 1, MPI_INT, sizes.data(), 1, MPI_INT, 0, MPI_COMM_WORLD);
  for (std::size_t r = 1; r < count; ++r) places[r] = places[r - 1] + sizes[r - 1];
  std::string all(static_cast<std::size_t>(places.back() + sizes.back()), ' ');
  MPI_Gatherv(text.data(), size, MPI_CHAR, all.data(), sizes.data(), places.data(), MPI_CHAR, 0,
              MPI_COMM_WORLD);
  std::vector<std::string> texts;
  for (std::size_t r = 0; rank_ == 0 && r < count; ++r)
    texts.push_back(
        all.substr(static_cast<std::size_t>(places[r]), static_cast<std::size_t>(sizes[r])));
  return texts;
}

int MpiJob::agree(int number) const {
  if (ranks_ > 1) MPI_Bcast(&number, 1, MPI_INT, 0, MPI_COMM_WORLD);
  return number;
}

void MpiJob::abort(int code) const {
  MPI_Abort(MPI_COMM_WORLD, code);
  std::_Exit(code);
}

void MpiJob::send(int rank, const std::vector<std::uint8_t>& bytes) const {
  MPI_Send(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, rank, 0, MPI_COMM_WORLD);
}

bool MpiJob::receive(Message& message) const {
  if (ranks_ == 1) return false;
  int there = 0;
  MPI_Status status;
  MPI_Iprobe(MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &there, &status);
  if (there == 0) return false;
  int size = 0;
  MPI_Get_count(&status, MPI_BYTE, &size);
  message.rank = status.MPI_SOURCE;
  message.bytes.resize(static_cast<std::size_t>(size));
  MPI_Recv(message.bytes.data(), size, MPI_BYTE, status.MPI_SOURCE, 0, MPI_COMM_WORLD,
           MPI_STATUS_IGNORE);
  return true;
}

#else

MpiJob::MpiJob() {
  const auto place = place_in_job();
  if (!place) return;
  useful_ = place->rank == 0;
  if (useful_)
    throw InputError(
        fmt::format("{} started {} processes, but this ddpsim is built without MPI and cannot "
                    "share a sweep: start one, or build with MPI (libopenmpi-dev)",
                    place->launcher, place->ranks));
}

MpiJob::~MpiJob() = default;

std::vector<std::string> MpiJob::gather(const std::string& text) const {
  return {text};
}
int MpiJob::agree(int number) const {
  return number;
}
void MpiJob::abort(int code) const {
  std::_Exit(code);
}
void MpiJob::send(int, const std::vector<std::uint8_t>&) const {}
bool MpiJob::receive(Message&) const {
  return false;
}

#endif

}  // namespace ddpsim
