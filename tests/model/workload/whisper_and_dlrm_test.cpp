#include <string>

#include <catch2/catch.hpp>

#include "tests/model/workload/architectures.hpp"

using namespace ddpsim;
using namespace ddpsim::architectures;

namespace {

constexpr WhisperShape little_whisper{.layers = 2,
                                      .decoder_layers = 3,
                                      .d_model = 64,
                                      .d_ff = 160,
                                      .heads = 4,
                                      .vocabulary = 500,
                                      .mels = 16,
                                      .positions = 32,
                                      .source_positions = 50};

DlrmShape little_dlrm() {
  DlrmShape shape;
  shape.tables = 3;
  shape.rows = 20;
  shape.width = 8;
  shape.dense = 5;
  shape.bottom = {16};
  shape.top = {16};
  return shape;
}

}  // namespace

TEST_CASE("Whisper has a bias for all projections but those of keys", "[model][whisper_and_dlrm]") {
  // Convolutions, a block of either stack, norms behind both, and the decoder's two tables.
  const std::int64_t d = 64, attention = 4 * d * d + 3 * d, norm = 2 * d;
  const std::int64_t feed = 2 * d * 160 + 160 + d;
  const std::int64_t convolutions = 3 * 16 * d + d + 3 * d * d + d;
  const Workload workload = build_workload("net", little_whisper, {2, 24});
  CHECK(workload.elements() == convolutions + 2 * (attention + feed + 2 * norm) +
                                   3 * (2 * attention + feed + 3 * norm) + 2 * norm + 500 * d +
                                   32 * d);
  // 4 tensors of convolutions, 15 of a block of the encoder, 24 of one of the decoder.
  CHECK(workload.parameters.size() == 4 + 2 * 15 + 3 * 24 + 2 * 2 + 2);
  CHECK(workload.frozen == Bytes{4 * 50 * d});  // positions of the encoder
}

TEST_CASE("Whisper multiplies each weight with the tokens that meet it",
          "[model][whisper_and_dlrm]") {
  // 2 samples: 100 frames become 50 tokens; 24 tokens of text.
  const std::int64_t d = 64, matrix = d * d, feed = 2 * d * 160, source = 2 * 50, target = 2 * 24;
  const std::int64_t weights =
      2 * source * 3 * 16 * d + source * 3 * matrix + 2 * source * (4 * matrix + feed) +
      3 * (target * (6 * matrix + feed) + 2 * source * matrix) + target * 500 * d;
  // A causal query sees 12.5 of 24 keys on average; in two products.
  const std::int64_t scores = 2 * d * (2 * 2 * 50 * 50 + 3 * (24 * 25 + 2 * 24 * 50));
  CHECK(multiplied(build_workload("net", little_whisper, {2, 24}), &Layer::forward) ==
        2 * (weights + scores));
}

TEST_CASE("DLRM registers its tables first and takes the products of all pairs",
          "[model][whisper_and_dlrm]") {
  WorkloadSize size;
  size.batch = 4;
  const Workload workload = build_workload("net", little_dlrm(), size);
  CHECK(workload.parameters.front().name == "tables.0.weight");
  CHECK(workload.parameters.back().name == "top.2.bias");
  // Three tables and a dense vector are four vectors with six pairs.
  const std::int64_t weights = 5 * 16 + 16 * 8 + (8 + 6) * 16 + 16;
  CHECK(workload.elements() == 3 * 20 * 8 + weights + 16 + 8 + 16 + 1);
  CHECK(multiplied(workload, &Layer::forward) == 2 * 4 * (weights + 4 * 4 * 8));
}

TEST_CASE("a Whisper or a DLRM that cannot be built is refused by name",
          "[model][whisper_and_dlrm]") {
  const auto refuses = [](const Architecture& architecture, const WorkloadSize& size,
                          const std::string& about) {
    CHECK_THROWS_WITH(build_workload("net", architecture, size),
                      Catch::Contains("net: ") && Catch::Contains(about));
  };
  const auto whisper = [](auto member, int value) {
    WhisperShape shape = little_whisper;
    shape.*member = value;
    return shape;
  };
  refuses(whisper(&WhisperShape::mels, 0), {}, "mels must be positive");
  refuses(whisper(&WhisperShape::heads, 7), {}, "7 heads do not divide a d_model of 64");
  refuses(whisper(&WhisperShape::decoder_layers, -1), {}, "decoder_layers must not be negative");
  refuses(little_whisper, {1, 33}, "a sequence of 33 is longer than the 32 positions learned");
  DlrmShape dlrm = little_dlrm();
  dlrm.top.clear();
  refuses(dlrm, {}, "top: at least one layer");
  dlrm = little_dlrm();
  dlrm.top = {2'000'000'000};
  refuses(dlrm, {}, "a weight");
  refuses(whisper(&WhisperShape::source_positions, 2'000'000'000), {}, "the attention scores");
  dlrm = little_dlrm();
  dlrm.tables = 0;
  refuses(dlrm, {}, "tables must be positive");
}
