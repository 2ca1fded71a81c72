#include "backend/comm_hooks/gathered.hpp"

#include <algorithm>
#include <stdexcept>

namespace ddpsim {

void sum_gathered(std::span<const std::byte> all, DType type, const Values& values) {
  const InFull sum(values);
  std::ranges::fill(sum.get(), 0.0F);
  Numbers theirs;
  theirs.resize(type, values.size());
  const std::size_t each = values.bytes().size();
  for (std::size_t begin = 0; begin < all.size(); begin += each) {
    std::ranges::copy(all.subspan(begin, each), theirs.values().bytes().begin());
    add(Values(sum.get()), theirs.values());
  }
  sum.put_back();
}

void put_parts_together(std::span<const std::byte> all, const Values& values) {
  const std::span<std::byte> to = values.bytes();
  if (all.size() < to.size())
    throw std::logic_error("a comm hook's parts are those of fewer ranks");
  std::ranges::copy(all.first(to.size()), to.begin());
}

void take_part(const Values& values, int rank, std::size_t size, std::vector<std::byte>& part) {
  const std::span<std::byte> bytes = values.bytes();
  const std::size_t begin = std::min(bytes.size(), static_cast<std::size_t>(rank) * size);
  part.assign(size, std::byte{0});
  std::ranges::copy(bytes.subspan(begin, std::min(size, bytes.size() - begin)), part.begin());
}

}  // namespace ddpsim
