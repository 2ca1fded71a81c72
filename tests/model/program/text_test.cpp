#include "model/program/text.hpp"

#include <catch2/catch.hpp>

#include "tests/model/program/written_jobs.hpp"

namespace ddpsim::program {

TEST_CASE("a job says which buffer goes where", "[model][program]") {
  const std::string text = text_of(written::ddp());
  CHECK_THAT(text, Catch::StartsWith("buffers\n"
                                     "  w0       parameter, 4 fp32, 16 B, device, life: job, "
                                     "starts: parameters\n"));
  CHECK_THAT(text, Catch::Contains("  slot1    bucket, 4 fp32, 16 B, a view of b0\n"));
  CHECK_THAT(text, Catch::Contains("communicators\n"
                                   "  world    1 group of up to 2 ranks, 1 at once\n"
                                   "program of ranks 0-1\n"
                                   "      0  compute  Compute <- w0\n"
                                   "      1  compute  Compute <- w1\n"
                                   "      2  compute  Compute g1 <- w1\n"
                                   "      3  host     Call the gradient hook of parameter 1\n"
                                   "      4  compute  Scale slot1 <- g1 / |world|\n"
                                   "      5  nccl     all_reduce b0 in world, sum; after 4\n"));
  CHECK_THAT(text, Catch::EndsWith("     14  compute  Update w0, w1, moments <- g0, g1\n"));
}

TEST_CASE("a job says when memory comes and goes, and whose part is whose", "[model][program]") {
  CHECK_THAT(text_of(written::fsdp()),
             Catch::Contains("         +o0 (copy in)\n"
                             "      0  copy in  Scale o0[part of shard] <- p0\n"
                             "      1  gather   all_gather o0 <- o0[part of shard] in shard; after "
                             "0\n"
                             "         +f0 (compute)\n"));
}

}  // namespace ddpsim::program
