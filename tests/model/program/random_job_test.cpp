#include "tests/model/program/random_job.hpp"

#include <catch2/catch.hpp>

#include "model/program/text.hpp"
#include "tests/model/program/plain_check.hpp"
#include "tests/model/program/written_jobs.hpp"

namespace ddpsim::program {

TEST_CASE("of any job the check says what a plain one says of every rank",
          "[model][program][properties]") {
  drawn::Draw draw(41);
  int right = 0, wrong = 0;
  for (int round = 0; round < 4000; ++round) {
    const Job job = random_job(draw);
    const std::string plainly = plainly_wrong_in(job), found = written::wrong_in(job);
    CAPTURE(round, plainly, found, text_of(job));
    REQUIRE(plainly.empty() == found.empty());
    ++(found.empty() ? right : wrong);
  }
  CAPTURE(right, wrong);
  CHECK(right > 1000);
  CHECK(wrong > 1000);
}

}  // namespace ddpsim::program
