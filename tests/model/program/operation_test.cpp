// The table of operations, held against lists written out by hand.
#include "model/program/operation.hpp"

#include <set>

#include <catch2/catch.hpp>

using namespace ddpsim;

namespace {

using Kind = OperationTraits::Kind;
using Pass = OperationTraits::Pass;
using Operations = std::set<Operation>;

template <typename Property>
Operations those(Property&& property) {
  Operations all;
  for (std::size_t i = 0; i < operation_count; ++i)
    if (property(static_cast<Operation>(i))) all.insert(static_cast<Operation>(i));
  return all;
}

Operations of_kind(Kind kind) {
  return those([&](Operation operation) { return traits_of(operation).kind == kind; });
}

Operations of_pass(Pass pass) {
  return those([&](Operation operation) { return traits_of(operation).pass == pass; });
}

}  // namespace

TEST_CASE("every operation has a row of the table, and a name of its own", "[model][operation]") {
  REQUIRE(operation_table::rows.size() == operation_count);
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < operation_count; ++i) {
    const auto operation = static_cast<Operation>(i);
    CHECK(&traits_of(operation) == &operation_table::rows[i]);
    CHECK_FALSE(name_of(operation).empty());
    CHECK(names.insert(name_of(operation)).second);
  }
  // Rows stand in the order of the enumeration: the first, the last, and two between.
  CHECK(name_of(Operation::forward) == "forward");
  CHECK(name_of(Operation::search_unused) == "search unused");
  CHECK(name_of(Operation::all_gather) == "all-gather");
  CHECK(name_of(Operation::synchronize) == "synchronize");
  CHECK(name_of(Operation::pause) == "pause");
  CHECK(name_of(Operation::send_receive) == "send/receive");
}

TEST_CASE("an operation is a kernel, a collective, a transfer or the host's own",
          "[model][operation]") {
  const Operations collectives{Operation::all_reduce, Operation::broadcast,
                               Operation::all_gather, Operation::reduce_scatter,
                               Operation::all_to_all, Operation::send_receive};
  CHECK(of_kind(Kind::collective) == collectives);
  CHECK(those(is_collective) == collectives);
  CHECK(of_kind(Kind::transfer) == Operations{Operation::copy_to_host, Operation::copy_to_device});
  CHECK(of_kind(Kind::host) == Operations{Operation::hook, Operation::wait,
                                          Operation::search_unused, Operation::synchronize,
                                          Operation::outside, Operation::meet, Operation::pause,
                                          Operation::unit_hook});
  const Operations kernels{
      Operation::forward,       Operation::backward,      Operation::accumulate,
      Operation::copy_in,       Operation::concatenate,   Operation::divide,
      Operation::copy_out,      Operation::optimizer,     Operation::cast,
      Operation::correct,       Operation::pack,          Operation::draw,
      Operation::multiply,      Operation::orthogonalize, Operation::quantize,
      Operation::dequantize,    Operation::select,        Operation::own_kernel,
      Operation::gradient_hook, Operation::module_hook};
  CHECK(of_kind(Kind::kernel) == kernels);
  CHECK(those(is_kernel) == kernels);
}

TEST_CASE("a calibration holds times of every operation that computes, each once",
          "[model][operation]") {
  CHECK(Operations(kernel_operations.begin(), kernel_operations.end()) == those(is_kernel));
  CHECK(kernel_operations.size() == those(is_kernel).size());
}

TEST_CASE("what comm hooks compute may run aside", "[model][operation]") {
  CHECK(those(may_run_aside) == Operations{Operation::divide, Operation::cast, Operation::correct,
                                           Operation::pack, Operation::draw, Operation::multiply,
                                           Operation::orthogonalize, Operation::quantize,
                                           Operation::dequantize, Operation::select,
                                           Operation::own_kernel});
}

TEST_CASE("R36: a rank without inputs leaves out what computes or uses a gradient of its own",
          "[model][operation][rules]") {
  CHECK(those([](Operation operation) { return traits_of(operation).needs_inputs; }) ==
        Operations{Operation::forward, Operation::backward, Operation::accumulate,
                   Operation::copy_in, Operation::hook, Operation::gradient_hook,
                   Operation::module_hook, Operation::search_unused, Operation::optimizer});
}

TEST_CASE("hooks on gradients are part of backward, those on layers of forward",
          "[model][operation]") {
  CHECK(of_pass(Pass::forward) == Operations{Operation::forward, Operation::module_hook});
  CHECK(of_pass(Pass::backward) == Operations{Operation::backward, Operation::accumulate,
                                              Operation::copy_in, Operation::gradient_hook});
  CHECK(of_pass(Pass::optimizer) == Operations{Operation::optimizer});
}
