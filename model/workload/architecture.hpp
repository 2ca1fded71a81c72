#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "model/workload/workload.hpp"

namespace ddpsim {

/// A transformer as a few numbers. What a family means (norms, activations, biases, parameter
/// names) is written once, in transformer.cpp.
struct TransformerShape {
  enum class Family : std::uint8_t {
    cs336,  ///< Stanford CS336: RMSNorm, SwiGLU, RoPE, untied embeddings, no biases, eager
            ///< attention
    llama,  ///< Hugging Face Llama: the same ingredients, its own names, fused attention
    gpt2,   ///< Hugging Face GPT-2: LayerNorm, GELU, biases, learned positions, tied embedding
    bert,   ///< Hugging Face BertModel with pooler: post-norm, GELU, biases, three embeddings
  };
  Family family = Family::cs336;
  int layers = 0;
  int d_model = 0;
  int d_ff = 0;
  int heads = 0;
  int kv_heads = 0;  ///< 0: as many as heads
  int vocabulary = 0;
  int positions = 0;  ///< learned positions (gpt2, bert); 0 elsewhere
  /// gpt2: between the two layers of the feed-forward network.
  enum class Activation : std::uint8_t {
    gelu_new,  ///< Hugging Face's, of several kernels, whose results autograd keeps
    gelu,      ///< torch's, of one kernel, which keeps its input alone
  };
  Activation activation = Activation::gelu_new;
};
inline constexpr std::array all_activations{TransformerShape::Activation::gelu_new,
                                            TransformerShape::Activation::gelu};
constexpr std::string_view name_of(TransformerShape::Activation activation) {
  return activation == TransformerShape::Activation::gelu ? "gelu" : "gelu_new";
}

/// torchvision's ResNets: `blocks` per stage, bottleneck blocks or basic ones. The 3x3 convolution
/// of a bottleneck may be grouped (ResNeXt) and wider (wide ResNets).
struct ResNetShape {
  std::vector<int> blocks;
  bool bottleneck = false;
  int classes = 1000;
  int groups = 1;
  int width_per_group = 64;  ///< channels of a group in the first stage
};

/// torchvision's VGGs without batch norm: output channels per convolution, 0 for a max-pool.
struct VggShape {
  std::vector<int> channels;
  int classes = 1000;
};

/// torchvision's EfficientNets B0 to B7: seven stages of inverted bottlenecks with depthwise
/// convolutions and squeeze-and-excitation, scaled in channels and in blocks.
struct EfficientNetShape {
  double width = 1;  ///< factor on channels, which are rounded to eights
  double depth = 1;  ///< factor on the blocks of a stage, rounded up
  int classes = 1000;
};

/// torchvision's vision transformers: patches of `patch` by `patch` pixels are the tokens.
struct VitShape {
  int patch = 0;
  int layers = 0;
  int d_model = 0;
  int d_ff = 0;
  int heads = 0;
  int classes = 1000;
};

/// Hugging Face's T5ForConditionalGeneration as T5 1.0 is: an encoder and a decoder of RMSNorm,
/// ReLU and relative position biases that the first layer of either trains for all; no other
/// biases; one table for both embeddings and the output projection; eager attention.
struct T5Shape {
  int layers = 0;          ///< of the encoder
  int decoder_layers = 0;  ///< 0: as many as the encoder's
  int d_model = 0;
  int d_ff = 0;
  int heads = 0;
  int head_size = 0;  ///< 0: d_model / heads
  int vocabulary = 0;
  int position_buckets = 32;  ///< rows of a relative position bias
  int decoder_sequence = 0;   ///< tokens of a sample's target; 0: as many as the encoder's
};

/// Hugging Face's WhisperForConditionalGeneration: an encoder of two convolutions over a
/// spectrogram and of transformer blocks; a decoder that reads text and the encoder's result.
struct WhisperShape {
  int layers = 0;          ///< of the encoder
  int decoder_layers = 0;  ///< 0: as many as the encoder's
  int d_model = 0;
  int d_ff = 0;
  int heads = 0;
  int vocabulary = 0;
  int mels = 80;                ///< channels of the spectrogram
  int positions = 448;          ///< that the decoder has learned
  int source_positions = 1500;  ///< tokens of the encoder: half the spectrogram's frames
};

/// Hugging Face's MixtralForCausalLM: Llama's block with a choice of feed-forward layers, of which
/// every token takes `experts_per_token`. Tokens are taken to choose all experts equally often.
struct MixtralShape {
  int layers = 0;
  int d_model = 0;
  int d_ff = 0;  ///< of one expert
  int heads = 0;
  int kv_heads = 0;  ///< 0: as many as heads
  int vocabulary = 0;
  int experts = 0;
  int experts_per_token = 0;
};

/// A multilayer perceptron, torch.nn.Sequential of Linear and ReLU in turn: Linear i takes
/// `widths[i]` features to `widths[i + 1]`. The loss is the mean squared error.
struct MlpShape {
  std::vector<int> widths;
  bool bias = true;
};

/// DLRM, a recommender: a table for each categorical feature, a network over the dense ones,
/// products of all pairs of vectors, and a network over these. Gradients of tables are dense.
struct DlrmShape {
  int tables = 26;
  int rows = 100'000;                 ///< of each table
  int width = 64;                     ///< of a row, and of the vector of the dense features
  int dense = 13;                     ///< features
  std::vector<int> bottom{512, 256};  ///< widths between the dense features and their vector
  std::vector<int> top{512, 256};     ///< widths between the pairs and the logit
};

/// torchvision's ssd300_vgg16: boxes of six sizes of pictures, which are 300 pixels square.
struct SsdShape {
  int classes = 91;        ///< the background's among them
  int trained_stages = 4;  ///< of VGG-16's five, the last; those before are frozen
};

/// torchvision's maskrcnn_resnet50_fpn: a ResNet-50 whose batch norms are frozen, a pyramid of its
/// results, proposals of boxes, and heads over those that are sampled.
struct MaskRcnnShape {
  int classes = 91;          ///< the background's among them
  int trained_stages = 3;    ///< of ResNet-50's five (its stem is one), the last
  int picture_height = 800;  ///< in pixels, as a batch is padded
  int picture_width = 1088;
  int boxes = 512;  ///< sampled of a picture's proposals
  int masks = 128;  ///< of those, how many show an object: at most a quarter in torchvision
};

using Architecture =
    std::variant<TransformerShape, ResNetShape, VggShape, MlpShape, VitShape, T5Shape, MixtralShape,
                 EfficientNetShape, WhisperShape, DlrmShape, SsdShape, MaskRcnnShape>;

/// What one rank feeds the network in one micro-batch, and in which number formats.
struct WorkloadSize {
  int batch = 1;
  int sequence = 1;             ///< tokens per sample (T5: the encoder's; Whisper: the decoder's)
  int image = 224;              ///< side of the square input picture; convolutional networks only
  DType dtype = DType::fp32;    ///< parameters, gradients and activations
  DType compute = DType::fp32;  ///< how GEMMs multiply
  bool channels_last = false;   ///< of pictures in memory, on a GPU; convolutional networks only
  /// Every so many-th block of a transformer is an activation checkpoint; 0: none is.
  /// `selective_checkpoints`: each is one that keeps what some of its operations gave.
  int checkpointed = 0;
};

inline constexpr int selective_checkpoints = -1;

/// Has the network blocks that can be activation checkpoints, or selective ones?
bool can_checkpoint(const Architecture& architecture);
bool can_checkpoint_selectively(const Architecture& architecture);

/// The network as layers, kernels and parameters: generated, so that counts are a consequence of
/// the architecture. Every GEMM appears with its shape, forward once and backward twice (data and
/// weight gradient); elementwise work appears as the eager PyTorch kernels it consists of, grouped
/// by purpose. Throws std::invalid_argument, beginning with `name`, if a number is not positive or
/// beyond any memory, heads do not divide d_model, patches the picture, a sequence is longer than
/// the positions learned, tokens are too few for every expert to get one, or a perceptron has fewer
/// than two widths.
Workload build_workload(const std::string& name, const Architecture& architecture,
                        const WorkloadSize& size);

}  // namespace ddpsim
