#include "model/timeline/port_bytes.hpp"

#include <catch2/catch.hpp>

using namespace ddpsim;

TEST_CASE("a port sends what it sends in rings", "[model][port_bytes]") {
  // Four ranks send three quarters twice, the part three times, three quarters once.
  CHECK(port_share(Operation::all_reduce, 4) == 1.5);
  CHECK(port_share(Operation::all_gather, 4) == 3);
  CHECK(port_share(Operation::reduce_scatter, 4) == 0.75);
  CHECK(port_share(Operation::all_reduce, 1) == 0);
  Work work;
  work.payload = Bytes{100};
  work.operation = Operation::all_gather;  // the whole is 400
  CHECK(port_bytes_of_parts(work, 4) == Bytes{300});
  work.payload = Bytes{400};
  work.operation = Operation::reduce_scatter;
  CHECK(port_bytes_of_parts(work, 4) == Bytes{300});
}
