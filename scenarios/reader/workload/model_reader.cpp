#include "scenarios/reader/workload/model_reader.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "scenarios/reader/catalogue/entry_keys.hpp"

namespace ddpsim {
namespace {

/// The families a model description may name.
enum class FamilyName : std::uint8_t {
  cs336,
  llama,
  gpt2,
  bert,
  resnet,
  vgg,
  mlp,
  vit,
  t5,
  mixtral,
  efficientnet,
  whisper,
  dlrm,
  ssd,
  mask_rcnn
};
constexpr std::array all_families{
    FamilyName::cs336,  FamilyName::llama,   FamilyName::gpt2,         FamilyName::bert,
    FamilyName::resnet, FamilyName::vgg,     FamilyName::mlp,          FamilyName::vit,
    FamilyName::t5,     FamilyName::mixtral, FamilyName::efficientnet, FamilyName::whisper,
    FamilyName::dlrm,   FamilyName::ssd,     FamilyName::mask_rcnn};
constexpr std::string_view name_of(FamilyName family) {
  constexpr std::array<std::string_view, 15> names{
      "cs336", "llama",   "gpt2",         "bert",    "resnet", "vgg", "mlp",      "vit",
      "t5",    "mixtral", "efficientnet", "whisper", "dlrm",   "ssd", "mask_rcnn"};
  return names[static_cast<std::size_t>(family)];
}

/// Whose code a step of the family is computed as, where other people's code for the same network
/// takes another time; "" where all write it alike.
std::string_view code_of(FamilyName family) {
  switch (family) {
    case FamilyName::cs336:
      return "the CS336 course's code (eager attention, unfused RMSNorm, RoPE and SwiGLU)";
    case FamilyName::llama:
      return "Hugging Face's code (fused attention, unfused RMSNorm, RoPE and SwiGLU)";
    case FamilyName::gpt2:
      return "Hugging Face's code (fused attention, unfused gelu_new, no dropout)";
    case FamilyName::bert:
      return "Hugging Face's code (fused attention, no dropout)";
    case FamilyName::t5:
      return "Hugging Face's code (eager attention, no dropout)";
    case FamilyName::mixtral:
      return "Hugging Face's code (fused attention, one expert after the other)";
    case FamilyName::resnet:
    case FamilyName::vgg:
    case FamilyName::mlp:
    case FamilyName::vit:
    case FamilyName::efficientnet:
    case FamilyName::whisper:
    case FamilyName::dlrm:
    case FamilyName::ssd:
    case FamilyName::mask_rcnn:
      return "";
  }
  return "";
}

auto family_value() {
  return value::one_of(
      all_families,
      {"the transformers of Stanford's CS336: RMSNorm, SwiGLU, RoPE, untied embeddings, no biases, "
       "eager attention",
       "Hugging Face's Llama: the same ingredients, its own names, fused attention",
       "Hugging Face's GPT-2: LayerNorm, gelu_new of several kernels, biases, learned positions, "
       "tied embedding, fused attention, no dropout",
       "Hugging Face's BertModel with pooler: post-norm, GELU, biases, three embeddings, fused "
       "attention, no dropout",
       "torchvision's ResNets", "torchvision's VGGs without batch norm",
       "torch.nn.Sequential of Linear and ReLU in turn, with a mean squared error",
       "torchvision's vision transformers, with fused attention",
       "Hugging Face's T5 1.0: an encoder and a decoder, RMSNorm, ReLU, relative positions, one "
       "table for embeddings and output, eager attention",
       "Hugging Face's Mixtral: Llama with a choice of experts for each token, all chosen equally "
       "often, on every rank",
       "torchvision's EfficientNets B0 to B7",
       "Hugging Face's Whisper: convolutions over a spectrogram and an encoder, a decoder that "
       "also "
       "reads the encoder's result, fused attention",
       "a recommender: tables of vectors, products of all pairs of them, two networks",
       "torchvision's SSD300 over VGG-16, from a trained VGG-16; without the matching, the sorting "
       "and the loss of boxes",
       "torchvision's Mask R-CNN over ResNet-50 and a pyramid, from a trained ResNet-50; without "
       "the matching, the sorting and the loss of boxes"});
}

constexpr int many = 10'000'000, deep = 10'000;
constexpr std::size_t most_counts = 1000;

/// A model description of any family: each reads its own keys.
struct ModelDraft {
  std::string source;
  FamilyName family = FamilyName::cs336;
  TransformerShape transformer;
  ResNetShape resnet;
  VggShape vgg;
  EfficientNetShape efficientnet;
  MlpShape mlp;
  VitShape vit;
  T5Shape t5;
  MixtralShape mixtral;
  WhisperShape whisper;
  DlrmShape dlrm;
  SsdShape ssd;
  MaskRcnnShape mask_rcnn;
};

Value<std::vector<int>> counts(int least, int most) {
  auto value = value::list_of(value::whole(least, most), "a list of whole numbers");
  value.type.front().most_items = most_counts;
  value.read = [read = value.read](const Yaml& given) {
    if (given.list("a list of whole numbers").size() > most_counts)
      given.fail("expected at most 1000 entries");
    return read(given);
  };
  return value;
}

void add_family(Map<ModelDraft>& map) {
  map.key("family", family_value(), &ModelDraft::family,
          {.meaning = "The kind of network. It decides which other keys there are.",
           .example = "gpt2",
           .required = true});
  add_entry_keys(map, model_entries, &ModelDraft::source);
}

/// A field of one of the shapes.
template <typename Shape, typename Member>
auto in(Shape shape, Member member) {
  return [=](auto& draft) -> auto& {
    return draft.*shape.*member;
  };
}

template <typename Shape>
void add_kv_heads(Map<ModelDraft>& map, Shape ModelDraft::*shape) {
  map.key("kv_heads", value::whole(1, many), in(shape, &Shape::kv_heads),
          {.meaning = "How many heads keys and values have, in grouped-query attention.",
           .otherwise = "as many as heads",
           .example = "8",
           .elsewhere = {{"num_key_value_heads", "Hugging Face's"}}});
}

/// The keys that all transformers of Hugging Face's kind have. Names they have elsewhere are of
/// several libraries.
template <typename Shape>
void add_tokens_and_widths(Map<ModelDraft>& map, Shape ModelDraft::*shape) {
  const auto field = [=](auto member) { return in(shape, member); };
  map.key("layers", value::whole(1, deep), field(&Shape::layers),
          {.meaning = "How many transformer blocks there are; of T5 and Whisper, in the encoder.",
           .example = "12",
           .required = true,
           .elsewhere = {{"num_layers", "Megatron's"},
                         {"n_layer", "Hugging Face's"},
                         {"num_hidden_layers", "Hugging Face's"}}})
      .key("d_model", value::whole(1, many), field(&Shape::d_model),
           {.meaning = "The width of the residual stream.",
            .example = "768",
            .required = true,
            .elsewhere = {{"n_embd", "Hugging Face's"}, {"hidden_size", "Hugging Face's"}}})
      .key("d_ff", value::whole(1, many), field(&Shape::d_ff),
           {.meaning = "The width of the feed-forward layer; of Mixtral, of one expert.",
            .example = "3072",
            .required = true,
            .elsewhere = {{"n_inner", "Hugging Face's"}, {"intermediate_size", "Hugging Face's"}}})
      .key("heads", value::whole(1, many), field(&Shape::heads),
           {.meaning = "How many attention heads there are. They divide d_model.",
            .example = "12",
            .required = true,
            .elsewhere = {{"num_heads", "CS336's"},
                          {"n_head", "Hugging Face's"},
                          {"num_attention_heads", "Hugging Face's"}}});
  if constexpr (requires { &Shape::kv_heads; }) add_kv_heads(map, shape);
  map.key("vocabulary", value::whole(1, many), field(&Shape::vocabulary),
          {.meaning = "How many tokens the embedding knows.",
           .example = "50257",
           .required = true,
           .elsewhere = {{"vocab_size", "Hugging Face's"}}});
}

void add_transformer(Map<ModelDraft>& map, bool positions) {
  add_tokens_and_widths(map, &ModelDraft::transformer);
  if (positions)
    map.key("positions", value::whole(1, many),
            in(&ModelDraft::transformer, &TransformerShape::positions),
            {.meaning = "How many positions the model has learned: the longest sequence.",
             .example = "1024",
             .required = true,
             .elsewhere = {{"n_positions", "Hugging Face's"},
                           {"max_position_embeddings", "Hugging Face's"}}});
}

void add_t5(Map<ModelDraft>& map) {
  const auto field = [](auto member) { return in(&ModelDraft::t5, member); };
  using Shape = T5Shape;
  add_tokens_and_widths(map, &ModelDraft::t5);
  map.key("decoder_layers", value::whole(1, deep), field(&Shape::decoder_layers),
          {.meaning = "How many blocks the decoder has.",
           .otherwise = "as many as the encoder",
           .example = "12",
           .elsewhere = {{"num_decoder_layers", "Hugging Face's"}}})
      .key("head_size", value::whole(1, many), field(&Shape::head_size),
           {.meaning = "The width of one attention head.",
            .otherwise = "d_model / heads",
            .example = "64",
            .elsewhere = {{"d_kv", "Hugging Face's"}}})
      .key("position_buckets", value::whole(1, many), field(&Shape::position_buckets),
           {.meaning = "How many distances between two tokens the relative positions tell apart.",
            .elsewhere = {{"relative_attention_num_buckets", "Hugging Face's"}}})
      .key(
          "decoder_sequence", value::whole(1, many), field(&Shape::decoder_sequence),
          {.meaning = "How many tokens a sample's target has, which is what the decoder reads. The "
                      "encoder reads as many as the workload's `sequence` says.",
           .otherwise = "as many as `sequence`",
           .example = "114",
           .elsewhere = {{"target_length", ""}, {"max_target_length", "Hugging Face's"}}});
}

void add_whisper(Map<ModelDraft>& map) {
  const auto field = [](auto member) { return in(&ModelDraft::whisper, member); };
  using Shape = WhisperShape;
  add_tokens_and_widths(map, &ModelDraft::whisper);
  map.key("decoder_layers", value::whole(1, deep), field(&Shape::decoder_layers),
          {.meaning = "How many blocks the decoder has.",
           .otherwise = "as many as the encoder",
           .example = "12"})
      .key("mels", value::whole(1, many), field(&Shape::mels),
           {.meaning = "How many channels the spectrogram has.",
            .elsewhere = {{"num_mel_bins", "Hugging Face's"}}})
      .key("positions", value::whole(1, many), field(&Shape::positions),
           {.meaning = "How many positions the model has learned: the longest sequence.",
            .elsewhere = {{"max_target_positions", "Hugging Face's"}}})
      .key("source_positions", value::whole(1, many), field(&Shape::source_positions),
           {.meaning = "How many tokens the encoder reads: half the frames of a spectrogram. The "
                       "workload's `sequence` counts the decoder's.",
            .elsewhere = {{"max_source_positions", "Hugging Face's"}}});
}

void add_dlrm(Map<ModelDraft>& map) {
  const auto field = [](auto member) { return in(&ModelDraft::dlrm, member); };
  using Shape = DlrmShape;
  map.key("tables", value::whole(1, deep), field(&Shape::tables),
          {.meaning = "How many categorical features there are, each with a table."})
      .key("rows", value::whole(1, many), field(&Shape::rows),
           {.meaning = "How many rows each table has."})
      .key("width", value::whole(1, many), field(&Shape::width),
           {.meaning = "How wide a row of a table is.",
            .elsewhere = {{"arch_sparse_feature_size", "Facebook's dlrm"},
                          {"embedding_dim", "TorchRec's"}}})
      .key("dense", value::whole(1, many), field(&Shape::dense),
           {.meaning = "How many dense features there are."})
      .key("bottom", counts(1, many), field(&Shape::bottom),
           {.meaning = "The widths between the dense features and their vector.",
            .elsewhere = {{"arch_mlp_bot", "Facebook's dlrm"}}})
      .key("top", counts(1, many), field(&Shape::top),
           {.meaning = "The widths between the products of pairs and the logit.",
            .elsewhere = {{"arch_mlp_top", "Facebook's dlrm"}}});
}

void add_mixtral(Map<ModelDraft>& map) {
  const auto field = [](auto member) { return in(&ModelDraft::mixtral, member); };
  add_tokens_and_widths(map, &ModelDraft::mixtral);
  map.key("experts", value::whole(1, deep), field(&MixtralShape::experts),
          {.meaning = "How many feed-forward layers a block can choose from. Every rank has all.",
           .example = "8",
           .required = true,
           .elsewhere = {{"num_local_experts", "Hugging Face's"}}})
      .key("experts_per_token", value::whole(1, deep), field(&MixtralShape::experts_per_token),
           {.meaning = "How many experts work on a token.",
            .example = "2",
            .required = true,
            .elsewhere = {{"num_experts_per_tok", "Hugging Face's"}}});
}

template <typename Shape>
void add_classes(Map<ModelDraft>& map, Shape ModelDraft::*shape) {
  map.key("classes", value::whole(1, many), in(shape, &Shape::classes),
          {.meaning = "How many classes the last layer tells apart.",
           .elsewhere = {{"num_classes", "torchvision's"}}});
}

void add_resnet(Map<ModelDraft>& map) {
  map.key("blocks", counts(1, deep), in(&ModelDraft::resnet, &ResNetShape::blocks),
          {.meaning = "How many blocks each of the four stages has.",
           .example = "[3, 4, 6, 3]",
           .required = true})
      .key(
          "bottleneck", value::boolean(), in(&ModelDraft::resnet, &ResNetShape::bottleneck),
          {.meaning = "Whether blocks are bottlenecks of three convolutions, as from ResNet-50 on, "
                      "or basic ones of two.",
           .example = "true",
           .required = true})
      .key("groups", value::whole(1, many), in(&ModelDraft::resnet, &ResNetShape::groups),
           {.meaning = "How many groups of channels the 3x3 convolution of a bottleneck has: 32 in "
                       "ResNeXt-50.",
            .elsewhere = {{"cardinality", "the paper's"}}})
      .key("width_per_group", value::whole(1, many),
           in(&ModelDraft::resnet, &ResNetShape::width_per_group),
           {.meaning = "How many channels a group has in the first stage."});
  add_classes(map, &ModelDraft::resnet);
}

void add_vgg(Map<ModelDraft>& map) {
  map.key("channels", counts(0, many), in(&ModelDraft::vgg, &VggShape::channels),
          {.meaning = "The output channels of each convolution, 0 for a max-pool.",
           .example = "[64, 64, 0, 128, 128, 0]",
           .required = true});
  add_classes(map, &ModelDraft::vgg);
}

void add_efficientnet(Map<ModelDraft>& map) {
  map.key("width", value::number(0.1, 100),
          in(&ModelDraft::efficientnet, &EfficientNetShape::width),
          {.meaning = "The factor on channels, which are rounded to eights.",
           .example = "1.4",
           .elsewhere = {{"width_mult", "torchvision's"}}})
      .key("depth", value::number(0.1, 100),
           in(&ModelDraft::efficientnet, &EfficientNetShape::depth),
           {.meaning = "The factor on the blocks of each stage, rounded up.",
            .example = "1.8",
            .elsewhere = {{"depth_mult", "torchvision's"}}});
  add_classes(map, &ModelDraft::efficientnet);
}

template <typename Shape>
void add_trained_stages(Map<ModelDraft>& map, Shape ModelDraft::*shape, int least) {
  map.key("trained_stages", value::whole(least, 5), in(shape, &Shape::trained_stages),
          {.meaning = "How many of the backbone's five stages are trained, the last ones; those "
                      "before are frozen.",
           .elsewhere = {{"trainable_backbone_layers", "torchvision's"}}});
}

void add_ssd(Map<ModelDraft>& map) {
  add_trained_stages(map, &ModelDraft::ssd, 2);
  add_classes(map, &ModelDraft::ssd);
}

void add_mask_rcnn(Map<ModelDraft>& map) {
  const auto field = [](auto member) { return in(&ModelDraft::mask_rcnn, member); };
  using Shape = MaskRcnnShape;
  add_trained_stages(map, &ModelDraft::mask_rcnn, 0);
  map.key("picture_height", value::whole(64, 16384), field(&Shape::picture_height),
          {.meaning = "How high the pictures of a batch are, resized and padded, in pixels: a "
                      "multiple of 32."})
      .key("picture_width", value::whole(64, 16384), field(&Shape::picture_width),
           {.meaning = "How wide the pictures of a batch are, resized and padded, in pixels: a "
                       "multiple of 32. A photograph of 4:3 becomes 1066 wide and is padded."})
      .key("boxes", value::whole(1, many), field(&Shape::boxes),
           {.meaning = "How many of a picture's proposed boxes are sampled for the heads.",
            .elsewhere = {{"box_batch_size_per_image", "torchvision's"}}})
      .key("masks", value::whole(1, many), field(&Shape::masks),
           {.meaning = "How many of the sampled boxes show an object, so that their outline is "
                       "drawn. torchvision samples at most a quarter so."});
  add_classes(map, &ModelDraft::mask_rcnn);
}

void add_mlp(Map<ModelDraft>& map) {
  map.key("widths", counts(1, many), in(&ModelDraft::mlp, &MlpShape::widths),
          {.meaning = "The features between layers: Linear i takes the i-th width to the next.",
           .example = "[1024, 1024, 10]",
           .required = true})
      .key("bias", value::boolean(), in(&ModelDraft::mlp, &MlpShape::bias),
           {.meaning = "Whether layers have biases."});
}

void add_vit(Map<ModelDraft>& map) {
  const auto field = [](auto member) { return in(&ModelDraft::vit, member); };
  using Shape = VitShape;
  map.key("patch", value::whole(1, many), field(&Shape::patch),
          {.meaning = "The side of a patch in pixels. Patches divide the picture.",
           .example = "16",
           .required = true,
           .elsewhere = {{"patch_size", "torchvision's"}}})
      .key("layers", value::whole(1, deep), field(&Shape::layers),
           {.meaning = "How many transformer blocks there are.",
            .example = "12",
            .required = true,
            .elsewhere = {{"num_layers", "torchvision's"}}})
      .key("d_model", value::whole(1, many), field(&Shape::d_model),
           {.meaning = "The width of the residual stream.",
            .example = "768",
            .required = true,
            .elsewhere = {{"hidden_dim", "torchvision's"}}})
      .key("d_ff", value::whole(1, many), field(&Shape::d_ff),
           {.meaning = "The width of the feed-forward layer.",
            .example = "3072",
            .required = true,
            .elsewhere = {{"mlp_dim", "torchvision's"}}})
      .key("heads", value::whole(1, many), field(&Shape::heads),
           {.meaning = "How many attention heads there are. They divide d_model.",
            .example = "12",
            .required = true,
            .elsewhere = {{"num_heads", "torchvision's"}}});
  add_classes(map, &ModelDraft::vit);
}

Map<ModelDraft> make_map(FamilyName family) {
  Map<ModelDraft> map(fmt::format("model_{}", name_of(family)),
                      fmt::format("A network of the family {}.", name_of(family)));
  add_family(map);
  switch (family) {
    case FamilyName::cs336:
    case FamilyName::llama:
      add_transformer(map, false);
      break;
    case FamilyName::gpt2:
      add_transformer(map, true);
      map.key("activation",
              value::one_of(all_activations,
                            {"Hugging Face's, of several kernels",
                             "torch.nn.GELU, of one kernel, as nanoGPT and MPT have it"}),
              in(&ModelDraft::transformer, &TransformerShape::activation),
              {.meaning = "What is between the two layers of the feed-forward network. Autograd "
                          "keeps four results of gelu_new, and one tensor of gelu.",
               .elsewhere = {{"activation_function", "Hugging Face's", "-", "gelu_new or gelu"}}});
      break;
    case FamilyName::bert:
      add_transformer(map, true);
      break;
    case FamilyName::resnet:
      add_resnet(map);
      break;
    case FamilyName::vgg:
      add_vgg(map);
      break;
    case FamilyName::mlp:
      add_mlp(map);
      break;
    case FamilyName::vit:
      add_vit(map);
      break;
    case FamilyName::t5:
      add_t5(map);
      break;
    case FamilyName::mixtral:
      add_mixtral(map);
      break;
    case FamilyName::efficientnet:
      add_efficientnet(map);
      break;
    case FamilyName::whisper:
      add_whisper(map);
      break;
    case FamilyName::dlrm:
      add_dlrm(map);
      break;
    case FamilyName::ssd:
      add_ssd(map);
      break;
    case FamilyName::mask_rcnn:
      add_mask_rcnn(map);
      break;
  }
  return map;
}

const Map<ModelDraft>& map_of(FamilyName family) {
  static const std::vector<Map<ModelDraft>> maps = [] {
    std::vector<Map<ModelDraft>> all;
    for (const FamilyName each : all_families) all.push_back(make_map(each));
    return all;
  }();
  return maps[static_cast<std::size_t>(family)];
}

/// The family that a description, or what it is based on, names.
FamilyName family_among(const std::vector<Entry>& entries) {
  for (const Entry& entry : entries)
    if (const auto family = YamlMap(entry.yaml).find("family")) return family_value().read(*family);
  entries.front().yaml.fail("missing key \"family\"");
}

Architecture architecture_of(const ModelDraft& draft) {
  using Family = TransformerShape::Family;
  TransformerShape transformer = draft.transformer;
  switch (draft.family) {
    case FamilyName::resnet:
      return draft.resnet;
    case FamilyName::vgg:
      return draft.vgg;
    case FamilyName::mlp:
      return draft.mlp;
    case FamilyName::vit:
      return draft.vit;
    case FamilyName::t5:
      return draft.t5;
    case FamilyName::mixtral:
      return draft.mixtral;
    case FamilyName::efficientnet:
      return draft.efficientnet;
    case FamilyName::whisper:
      return draft.whisper;
    case FamilyName::dlrm:
      return draft.dlrm;
    case FamilyName::ssd:
      return draft.ssd;
    case FamilyName::mask_rcnn:
      return draft.mask_rcnn;
    case FamilyName::cs336:
      transformer.family = Family::cs336;
      return transformer;
    case FamilyName::llama:
      transformer.family = Family::llama;
      return transformer;
    case FamilyName::gpt2:
      transformer.family = Family::gpt2;
      return transformer;
    case FamilyName::bert:
      transformer.family = Family::bert;
      return transformer;
  }
  return transformer;
}

}  // namespace

const MapDescription& model_keys() {
  static const MapDescription all = [] {
    MapDescription description{
        .name = "model",
        .meaning =
            "A network as a few numbers, from which ddpsim generates layers, kernels and "
            "parameters. Which keys there are depends on `family`."};
    for (const FamilyName family : all_families) {
      const MapDescription& one = map_of(family).description();
      description.variants.push_back({std::string(name_of(family)), &one});
      for (const KeyDescription& key : one.keys)
        if (description.find(key.name) == nullptr) description.keys.push_back(key);
    }
    description.variant_key = "family";
    return description;
  }();
  return all;
}

std::optional<TokenBlocks> blocks_of(const Architecture& architecture) {
  if (const auto* shape = std::get_if<TransformerShape>(&architecture))
    return TokenBlocks{shape->d_model, shape->layers};
  if (const auto* shape = std::get_if<MixtralShape>(&architecture))
    return TokenBlocks{shape->d_model, shape->layers};
  const auto both_stacks = [](const auto& shape) {
    const int decoder = shape.decoder_layers > 0 ? shape.decoder_layers : shape.layers;
    return TokenBlocks{shape.d_model, shape.layers + decoder};
  };
  if (const auto* shape = std::get_if<T5Shape>(&architecture)) return both_stacks(*shape);
  if (const auto* shape = std::get_if<WhisperShape>(&architecture)) return both_stacks(*shape);
  return std::nullopt;
}

ModelDescription read_model(const std::vector<Entry>& entries) {
  ModelDraft draft;
  const FamilyName family = family_among(entries);
  map_of(family).read(layers_of(entries), draft);
  const bool is_fused = family == FamilyName::gpt2 &&
                        draft.transformer.activation == TransformerShape::Activation::gelu;
  const std::string_view code =
      is_fused ? "Hugging Face's code (fused attention, fused GELU, no dropout)" : code_of(family);
  return {architecture_of(draft), source_of(entries), std::string(code)};
}

}  // namespace ddpsim
