#include "model/workload/architecture.hpp"

#include <algorithm>
#include <set>

#include <catch2/catch.hpp>

#include "tests/model/workload/architectures.hpp"

using namespace ddpsim;
using namespace ddpsim::architectures;

namespace {

std::vector<std::string> names(const Workload& workload, std::size_t from, std::size_t count) {
  std::vector<std::string> found;
  for (std::size_t i = from; i < from + count; ++i) found.push_back(workload.parameters.at(i).name);
  return found;
}

std::vector<std::string> arrival_names(const Workload& workload) {
  std::vector<std::string> found;
  for (const int index : arrival_order(workload))
    found.push_back(workload.parameters[static_cast<std::size_t>(index)].name);
  return found;
}

/// DDP's buckets in their plainest form: walk the arrivals, close once full; the first cap is 1
/// MiB.
struct PlainBucket {
  int tensors = 0;
  Bytes size;
};
std::vector<PlainBucket> plain_buckets(const Workload& workload, Bytes cap) {
  std::vector<PlainBucket> closed;
  PlainBucket open;
  for (const int index : arrival_order(workload)) {
    open.tensors += 1;
    open.size += workload.parameters[static_cast<std::size_t>(index)].size();
    if (open.size < (closed.empty() ? 1 * MiB : cap)) continue;
    closed.push_back(open);
    open = {};
  }
  if (open.tensors > 0) closed.push_back(open);
  return closed;
}

}  // namespace

TEST_CASE("CS336 models have the course's tensors and elements", "[model][architecture]") {
  struct Row {
    TransformerShape shape;
    std::size_t tensors;
    std::int64_t elements;
  };
  // Tensors: 9 a block and 3. Elements: 2 * 10000 d + d + layers (4 d^2 + 3 d ff + 2 d), for the
  // small one 15360000 + 768 + 12 * (2359296 + 7077888 + 1536) = 128625408.
  for (const Row& row :
       std::vector<Row>{{cs336_small, 111, 128'625'408},
                        {{Family::cs336, 24, 1024, 4096, 16, 0, 10000, 0}, 219, 423'183'360},
                        {{Family::cs336, 36, 1280, 5120, 20, 0, 10000, 0}, 327, 969'411'840},
                        {cs336_xl_2025, 435, 1'998'235'200},
                        {{Family::cs336, 32, 2560, 10240, 32, 0, 10000, 0}, 291, 3'406'809'600}}) {
    const Workload workload = build(row.shape);
    CHECK(workload.parameters.size() == row.tensors);
    CHECK(workload.elements() == row.elements);
    CHECK(workload.layers.size() == static_cast<std::size_t>(row.shape.layers) + 2);
  }
}

TEST_CASE("published models have their published tensors and elements", "[model][architecture]") {
  struct Row {
    Architecture architecture;
    std::size_t tensors;
    std::int64_t elements;
  };
  // torchvision's: num_params of its weights. The others, with d = 768, ff = 3072, as sums:
  // BERT: (30522 + 512 + 2 + 2) d + 12 (4 d^2 + 2 d ff + 9 d + ff) + d^2 + d = 109482240,
  // GPT-2, its tied table counted once: (50257 + 1024) d + 12 (4 d^2 + 2 d ff + 9 d + ff) + 2 d,
  // Llama, d = 4096, ff = 11008: 2 * 32000 d + d + 32 (4 d^2 + 3 d ff + 2 d) = 6738415616.
  for (const Row& row : std::vector<Row>{
           {resnet18, 62, 11'689'512},
           {resnet50, 161, 25'557'032},
           {ResNetShape{{3, 4, 23, 3}, true, 1000}, 314, 44'549'160},
           {vgg16, 32, 138'357'544},
           {ResNetShape{{3, 4, 6, 3}, true, 1000, 32, 4}, 161, 25'028'904},
           {ResNetShape{{3, 4, 23, 3}, true, 1000, 32, 8}, 314, 88'791'336},
           {ResNetShape{{3, 4, 6, 3}, true, 1000, 1, 128}, 161, 68'883'240},
           {VitShape{16, 12, 768, 3072, 12, 1000}, 152, 86'567'656},
           {VitShape{16, 24, 1024, 4096, 16, 1000}, 296, 304'326'632},
           {bert_base, 199, 109'482'240},
           {TransformerShape{Family::bert, 24, 1024, 4096, 16, 0, 30522, 512}, 391, 335'141'888},
           {gpt2_small, 148, 124'439'808},
           {TransformerShape{Family::gpt2, 48, 1600, 6400, 25, 0, 50257, 1024}, 580, 1'557'611'200},
           {llama2_7b, 291, 6'738'415'616}}) {
    const Workload workload = build(row.architecture);
    CHECK(workload.parameters.size() == row.tensors);
    CHECK(workload.elements() == row.elements);
  }
}

TEST_CASE("grouped queries narrow keys and values", "[model][architecture]") {
  // Llama-3-8B: 32 query heads share 8 key heads of 128. Source: 8.03 B parameters, its model card;
  // 2 * 128256 * 4096 + 4096 + 32 (2 * 4096^2 + 2 * 1024 * 4096 + 3 * 14336 * 4096 + 2 * 4096).
  const Workload workload =
      build(TransformerShape{Family::llama, 32, 4096, 14336, 32, 8, 128256, 0});
  CHECK(workload.elements() == 8'030'261'248);
}

TEST_CASE("parameters are registered in PyTorch's order by PyTorch's names",
          "[model][architecture]") {
  using Names = std::vector<std::string>;
  CHECK(names(build(cs336_small), 0, 11) ==
        Names{"token_embeddings.weight", "layers.0.ln1.weight", "layers.0.attn.q_proj.weight",
              "layers.0.attn.k_proj.weight", "layers.0.attn.v_proj.weight",
              "layers.0.attn.output_proj.weight", "layers.0.ln2.weight", "layers.0.ffn.w1.weight",
              "layers.0.ffn.w2.weight", "layers.0.ffn.w3.weight", "layers.1.ln1.weight"});
  CHECK(names(build(cs336_small), 109, 2) == Names{"ln_final.weight", "lm_head.weight"});
  CHECK(names(build(llama2_7b), 6, 5) == Names{"model.layers.0.mlp.up_proj.weight",
                                               "model.layers.0.mlp.down_proj.weight",
                                               "model.layers.0.input_layernorm.weight",
                                               "model.layers.0.post_attention_layernorm.weight",
                                               "model.layers.1.self_attn.q_proj.weight"});
  CHECK(names(build(gpt2_small), 0, 6) ==
        Names{"transformer.wte.weight", "transformer.wpe.weight", "transformer.h.0.ln_1.weight",
              "transformer.h.0.ln_1.bias", "transformer.h.0.attn.c_attn.weight",
              "transformer.h.0.attn.c_attn.bias"});
  CHECK(names(build(bert_base), 0, 6) ==
        Names{"embeddings.word_embeddings.weight", "embeddings.position_embeddings.weight",
              "embeddings.token_type_embeddings.weight", "embeddings.LayerNorm.weight",
              "embeddings.LayerNorm.bias", "encoder.layer.0.attention.self.query.weight"});
  CHECK(names(build(bert_base), 197, 2) == Names{"pooler.dense.weight", "pooler.dense.bias"});
  CHECK(names(build(resnet50), 0, 4) ==
        Names{"conv1.weight", "bn1.weight", "bn1.bias", "layer1.0.conv1.weight"});
  CHECK(names(build(resnet50), 12, 4) ==
        Names{"layer1.0.downsample.0.weight", "layer1.0.downsample.1.weight",
              "layer1.0.downsample.1.bias", "layer1.1.conv1.weight"});
  CHECK(names(build(vgg16), 2, 6) == Names{"features.2.weight", "features.2.bias",
                                           "features.5.weight", "features.5.bias",
                                           "features.7.weight", "features.7.bias"});
  CHECK(names(build(vgg16), 26, 6) == Names{"classifier.0.weight", "classifier.0.bias",
                                            "classifier.3.weight", "classifier.3.bias",
                                            "classifier.6.weight", "classifier.6.bias"});
}

TEST_CASE("weights have PyTorch's shapes", "[model][architecture]") {
  using Shape = std::vector<std::int64_t>;
  CHECK(build(cs336_small).parameters[7].shape == Shape{3072, 768});    // w1: [d_ff, d]
  CHECK(build(cs336_small).parameters[8].shape == Shape{768, 3072});    // w2
  CHECK(build(gpt2_small).parameters[4].shape == Shape{768, 3 * 768});  // Conv1D: [in, out]
  CHECK(build(resnet50).parameters[0].shape == Shape{64, 3, 7, 7});
  CHECK(build(vgg16).parameters[26].shape == Shape{4096, 512 * 7 * 7});
}

TEST_CASE("every family is sound and its names are unique", "[model][architecture]") {
  for (const Workload& workload : one_of_each_family()) {
    CHECK_NOTHROW(check(workload));
    CHECK(workload.name == "net");
    CHECK_FALSE(workload.source.empty());
    std::set<std::string> seen;
    for (const Parameter& parameter : workload.parameters)
      CHECK(seen.insert(parameter.name).second);
  }
}

TEST_CASE("convolutional gradients arrive in reverse registration order", "[model][architecture]") {
  for (const Architecture& architecture : std::vector<Architecture>{resnet18, resnet50, vgg16}) {
    const std::vector<int> order = arrival_order(build(architecture));
    CHECK(std::is_sorted(order.rbegin(), order.rend()));
  }
}

TEST_CASE("ResNets fill the buckets DistributedDataParallel was seen to use",
          "[model][architecture]") {
  const auto in_bytes = [](const std::vector<PlainBucket>& all) {
    std::vector<std::int64_t> sizes;
    for (const PlainBucket& bucket : all) sizes.push_back(bucket.size.count);
    return sizes;
  };
  using Sizes = std::vector<std::int64_t>;
  CHECK(in_bytes(plain_buckets(build(resnet18), 25 * MiB)) ==
        Sizes{2'052'000, 28'852'224, 15'853'824});
  CHECK(in_bytes(plain_buckets(build(resnet18), 35 * MiB)) ==
        Sizes{2'052'000, 38'297'600, 6'408'448});
  // A profiler trace of two A100s: HolisticTraceAnalysis, tests/data/nccl_parser_config.
  const std::vector<PlainBucket> traced = plain_buckets(build(resnet50), 25 * MiB);
  CHECK(in_bytes(traced) ==
        Sizes{4 * 2'049'000, 4 * 7'875'584, 4 * 6'563'840, 4 * 6'637'568, 4 * 2'431'040});
  std::vector<int> tensors;
  for (const PlainBucket& bucket : traced) tensors.push_back(bucket.tensors);
  CHECK(tensors == std::vector<int>{2, 15, 12, 51, 81});
}

TEST_CASE("the output projection arrives first and the token table last", "[model][architecture]") {
  CHECK(arrival_names(build(cs336_small)).front() == "lm_head.weight");
  CHECK(arrival_names(build(cs336_small)).back() == "token_embeddings.weight");
  CHECK(arrival_names(build(llama2_7b)).back() == "model.embed_tokens.weight");
  CHECK(arrival_names(build(bert_base)).front() == "pooler.dense.bias");
  CHECK(arrival_names(build(bert_base)).back() == "embeddings.word_embeddings.weight");
  // GPT-2's head is the token table: that gradient waits for the embedding's backward.
  CHECK(arrival_names(build(gpt2_small)).front() == "transformer.ln_f.bias");
  CHECK(arrival_names(build(gpt2_small)).back() == "transformer.wte.weight");
  CHECK(build(gpt2_small).parameters[0].layer == 0);
}

TEST_CASE("inside a block gradients arrive as backward reaches them", "[model][architecture]") {
  // w2 was used last; w3 before w1, v before k before q.
  const std::vector<std::string> order = arrival_names(build(cs336_small));
  std::vector<std::string> block;
  for (const std::string& name : order)
    if (name.starts_with("layers.5.")) block.push_back(name.substr(9));
  CHECK(block == std::vector<std::string>{"ffn.w2.weight", "ffn.w3.weight", "ffn.w1.weight",
                                          "ln2.weight", "attn.output_proj.weight",
                                          "attn.v_proj.weight", "attn.k_proj.weight",
                                          "attn.q_proj.weight", "ln1.weight"});
}

TEST_CASE("what cannot be built is refused by name", "[model][architecture]") {
  const auto refuses = [](const Architecture& architecture, const WorkloadSize& size,
                          const std::string& about) {
    CHECK_THROWS_AS(build_workload("net", architecture, size), std::invalid_argument);
    CHECK_THROWS_WITH(build_workload("net", architecture, size),
                      Catch::Contains("net: ") && Catch::Contains(about));
  };
  const auto small = [](auto member, int value) {
    TransformerShape shape = cs336_small;
    shape.*member = value;
    return shape;
  };
  refuses(small(&TransformerShape::layers, 0), {}, "layers must be positive, got 0");
  refuses(small(&TransformerShape::d_model, -768), {}, "d_model must be positive, got -768");
  refuses(small(&TransformerShape::d_ff, 0), {}, "d_ff must be positive");
  refuses(small(&TransformerShape::heads, 0), {}, "heads must be positive");
  refuses(small(&TransformerShape::heads, 5), {}, "5 heads do not divide a d_model of 768");
  refuses(small(&TransformerShape::vocabulary, 0), {}, "vocabulary must be positive");
  refuses(small(&TransformerShape::kv_heads, 4), {}, "only the llama family");
  refuses(TransformerShape{Family::llama, 1, 64, 64, 8, 3, 10, 0}, {},
          "3 kv_heads do not divide 8");
  refuses(TransformerShape{Family::bert, 1, 64, 64, 8, 0, 10, 0}, {}, "positions must be positive");
  refuses(gpt2_small, {1, 1025}, "a sequence of 1025 is longer than the 1024 positions");
  refuses(cs336_small, {0, 16}, "batch must be positive");
  refuses(cs336_small, {1, 0}, "sequence must be positive");
  refuses(cs336_small, {1'000'000'000, 1'000'000'000}, "would hold");
  refuses(ResNetShape{{2, 2, 2}, false, 1000}, {}, "four stages, got 3");
  refuses(ResNetShape{{2, 2, 0, 2}, false, 1000}, {}, "blocks must be positive");
  refuses(ResNetShape{{2, 2, 2, 2}, false, 0}, {}, "classes must be positive");
  refuses(resnet18, {1, 1, 0}, "image must be positive");
  refuses(VggShape{{}, 1000}, {}, "begins with a convolution");
  refuses(VggShape{{64, -1}, 1000}, {}, "channels must be positive");
  refuses(vgg16, {1, 1, 16}, "image: too small");
}

TEST_CASE("a shape without layers, width or any other extent is refused by that extent's name",
          "[model][architecture]") {
  int refused = 0;
  const auto refuse_each = [&](const auto& good, const WorkloadSize& size, const auto& extents) {
    CHECK_NOTHROW(build_workload("net", good, size));
    for (const auto& [member, name] : extents) {
      auto shape = good;
      shape.*member = -1;
      CAPTURE(name);
      CHECK_THROWS_WITH(build_workload("net", shape, size),
                        Catch::Contains(std::string(name) + " must be positive, got -1"));
      ++refused;
    }
    for (int WorkloadSize::*extent : {&WorkloadSize::batch, &WorkloadSize::sequence}) {
      WorkloadSize none = size;
      if (none.*extent == 1 && extent == &WorkloadSize::sequence) continue;  // pictures
      none.*extent = 0;
      CHECK_THROWS_WITH(build_workload("net", good, none),
                        Catch::Contains("must be positive, got 0"));
    }
  };
  using Vit = VitShape;
  refuse_each(VitShape{16, 1, 64, 128, 4, 10}, {2, 1, 64},
              std::vector<std::pair<int Vit::*, const char*>>{{&Vit::patch, "patch"},
                                                              {&Vit::layers, "layers"},
                                                              {&Vit::d_model, "d_model"},
                                                              {&Vit::d_ff, "d_ff"},
                                                              {&Vit::heads, "heads"},
                                                              {&Vit::classes, "classes"}});
  using T5 = T5Shape;
  refuse_each(
      T5Shape{1, 1, 64, 128, 4, 0, 100, 32, 0}, {2, 16},
      std::vector<std::pair<int T5::*, const char*>>{{&T5::layers, "layers"},
                                                     {&T5::d_model, "d_model"},
                                                     {&T5::d_ff, "d_ff"},
                                                     {&T5::heads, "heads"},
                                                     {&T5::vocabulary, "vocabulary"},
                                                     {&T5::position_buckets, "position_buckets"}});
  using Whisper = WhisperShape;
  refuse_each(WhisperShape{1, 1, 64, 128, 4, 100, 80, 448, 100}, {2, 16},
              std::vector<std::pair<int Whisper::*, const char*>>{
                  {&Whisper::layers, "layers"},
                  {&Whisper::d_model, "d_model"},
                  {&Whisper::d_ff, "d_ff"},
                  {&Whisper::heads, "heads"},
                  {&Whisper::vocabulary, "vocabulary"},
                  {&Whisper::mels, "mels"},
                  {&Whisper::positions, "positions"},
                  {&Whisper::source_positions, "source_positions"}});
  using Mixtral = MixtralShape;
  refuse_each(MixtralShape{1, 64, 128, 4, 2, 100, 4, 2}, {2, 16},
              std::vector<std::pair<int Mixtral::*, const char*>>{
                  {&Mixtral::layers, "layers"},
                  {&Mixtral::d_model, "d_model"},
                  {&Mixtral::d_ff, "d_ff"},
                  {&Mixtral::heads, "heads"},
                  {&Mixtral::kv_heads, "kv_heads"},
                  {&Mixtral::vocabulary, "vocabulary"},
                  {&Mixtral::experts, "experts"},
                  {&Mixtral::experts_per_token, "experts_per_token"}});
  using Dlrm = DlrmShape;
  refuse_each(DlrmShape{}, {8, 1},
              std::vector<std::pair<int Dlrm::*, const char*>>{{&Dlrm::tables, "tables"},
                                                               {&Dlrm::rows, "rows"},
                                                               {&Dlrm::width, "width"},
                                                               {&Dlrm::dense, "dense"}});
  refuse_each(ResNetShape{{1, 1, 1, 1}, true, 10}, {2, 1, 64},
              std::vector<std::pair<int ResNetShape::*, const char*>>{
                  {&ResNetShape::classes, "classes"},
                  {&ResNetShape::groups, "groups"},
                  {&ResNetShape::width_per_group, "width_per_group"}});
  refuse_each(EfficientNetShape{}, {2, 1, 64},
              std::vector<std::pair<int EfficientNetShape::*, const char*>>{
                  {&EfficientNetShape::classes, "classes"}});
  refuse_each(
      SsdShape{}, {2, 1, 300},
      std::vector<std::pair<int SsdShape::*, const char*>>{{&SsdShape::classes, "classes"}});
  refuse_each(MaskRcnnShape{}, {2, 1, 300},
              std::vector<std::pair<int MaskRcnnShape::*, const char*>>{
                  {&MaskRcnnShape::classes, "classes"},
                  {&MaskRcnnShape::boxes, "boxes"},
                  {&MaskRcnnShape::masks, "masks"}});
  DlrmShape narrow;
  narrow.top = {512, 0};
  CHECK_THROWS_WITH(build_workload("net", narrow, {8}),
                    Catch::Contains("widths must be positive, got 0"));
  CHECK(refused == 40);
}

TEST_CASE("a shape or size whose tensors nobody could count is refused by the tensor",
          "[model][architecture]") {
  const auto refuses = [](const Architecture& shape, const WorkloadSize& size,
                          const std::string& what) {
    CAPTURE(what);
    CHECK_THROWS_WITH(build_workload("net", shape, size), Catch::Contains(what + " would hold"));
  };
  const int many = 100'000'000, most = 2'000'000'000;
  using Shape = TransformerShape;
  refuses(Shape{Family::gpt2, 1, 65'536, 64, 1, 0, most, 64}, {1, 16}, "a weight");
  refuses(Shape{Family::gpt2, 1, 65'536, most, 1, 0, 64, 64}, {1, 16}, "a weight");
  refuses(Shape{Family::gpt2, 1, 64, 64, 1, 0, many, 64}, {1'000'000, 16}, "an activation");
  refuses(Shape{Family::cs336, 1, 64, 64, 1, 0, 64, 0}, {1000, 1'000'000}, "the attention scores");
  refuses(MixtralShape{1, 65'536, 65'536, 4, 0, 100, 100'000, 1}, {1, 100'000},
          "a block's experts");
  refuses(MixtralShape{1, 65'536, 64, 4, 0, most, 4, 2}, {1, 16}, "a weight");
  refuses(SsdShape{many}, {1000, 1, 300}, "predictions");
  refuses(SsdShape{}, {most, 1, 300}, "an activation");
  MaskRcnnShape boxes;
  boxes.boxes = many;
  refuses(boxes, {1000, 1, 300}, "the boxes");
  MaskRcnnShape outlines;
  outlines.boxes = outlines.masks = outlines.classes = 1'000'000;
  refuses(outlines, {1, 1, 300}, "the outlines");
}

TEST_CASE("an EfficientNet is at most a hundred times as wide or deep", "[model][architecture]") {
  for (const double factor : {0.0, -1.0, 100.1}) {
    CHECK_THROWS_WITH(build_workload("net", EfficientNetShape{factor, 1}, {1, 1, 64}),
                      Catch::Contains("width: 0 to 100"));
    CHECK_THROWS_WITH(build_workload("net", EfficientNetShape{1, factor}, {1, 1, 64}),
                      Catch::Contains("depth: 0 to 100"));
  }
  CHECK_NOTHROW(build_workload("net", EfficientNetShape{100, 1}, {1, 1, 64}));
  CHECK_NOTHROW(build_workload("net", EfficientNetShape{0.5, 100}, {1, 1, 64}));
}
