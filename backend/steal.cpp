#include "backend/steal.hpp"

#include <cctype>
#include <fstream>
#include <sstream>

#include <unistd.h>

namespace ddpsim {
namespace {

struct Stolen {
  double seconds = 0;
  int processors = 0;
};

Stolen stolen_until_now(const std::string& stat) {
  Stolen stolen;
  std::ifstream file(stat);
  for (std::string line; std::getline(file, line) && line.rfind("cpu", 0) == 0;) {
    if (line.size() < 4 || std::isdigit(static_cast<unsigned char>(line[3])) == 0) continue;  // sum
    ++stolen.processors;
    std::istringstream fields(line);
    std::string name;
    double ticks = 0;
    fields >> name;
    for (int field = 0; field < 8; ++field)
      if (!(fields >> ticks)) ticks = 0;  // an old kernel does not say
    stolen.seconds += ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
  }
  return stolen;
}

}  // namespace

Steal::Steal(std::string stat)
    : stat_(std::move(stat)),
      begin_(std::chrono::steady_clock::now()),
      stolen_(stolen_until_now(stat_).seconds) {}

double Steal::share() const {
  using namespace std::chrono;
  const duration<double> passed = steady_clock::now() - begin_;
  if (passed < milliseconds{50}) return 0;
  const Stolen now = stolen_until_now(stat_);
  return now.processors == 0 ? 0 : (now.seconds - stolen_) / (passed.count() * now.processors);
}

}  // namespace ddpsim
