#include "tools/sweep/mpi_module.hpp"

#include <mpi.h>

namespace ddpsim {
namespace {

class World : public MpiCalls {
 public:
  World() {
    int level = 0;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &level);
    takes_threads_ = level >= MPI_THREAD_FUNNELED;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
    MPI_Comm host;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &host);
    MPI_Comm_size(host, &ranks_of_host_);
    MPI_Comm_free(&host);
  }
  ~World() override { MPI_Finalize(); }
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  int rank() const override { return rank_; }
  int ranks() const override { return ranks_; }
  int ranks_of_host() const override { return ranks_of_host_; }
  bool takes_threads() const override { return takes_threads_; }

  std::vector<std::string> gather(const std::string& text) override {
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

  int agree(int number) override {
    MPI_Bcast(&number, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return number;
  }

  void abort(int code) override { MPI_Abort(MPI_COMM_WORLD, code); }

  void send(int rank, const std::vector<std::uint8_t>& bytes) override {
    MPI_Send(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, rank, 0, MPI_COMM_WORLD);
  }

  bool receive(MpiMessage& message) override {
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

 private:
  int rank_ = 0, ranks_ = 1, ranks_of_host_ = 1;
  bool takes_threads_ = false;
};

std::unique_ptr<MpiCalls> start() {
  return std::make_unique<World>();
}

}  // namespace
}  // namespace ddpsim

extern "C" __attribute__((visibility("default"))) const ddpsim::ModuleHeader* ddpsim_mpi_module() {
  static const ddpsim::MpiModule module{{DDPSIM_MODULE_BUILD}, ddpsim::start};
  return &module.header;
}
