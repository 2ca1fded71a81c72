#pragma once

#include <cstdint>
#include <string>

#include "model/workload/architecture.hpp"
#include "model/workload/layer_builder.hpp"

namespace ddpsim {

/// What flows through a convolutional network: a batch of pictures of one size.
struct Pictures {
  std::int64_t batch = 0, channels = 0, height = 0, width = 0;

  std::int64_t places() const { return height * width; }  ///< of a picture
  std::int64_t elements() const { return batch * channels * places(); }
};

/// A square window over pictures. `rounds_up`: a pool's last window may reach over the edge.
struct Window {
  std::int64_t size = 1, stride = 1, padding = 0, dilation = 1;
  bool rounds_up = false;
};

/// The pictures that a window leaves of `before`, with so many channels. Throws
/// std::invalid_argument if nothing is left.
Pictures after(const Pictures& before, const Window& window, std::int64_t channels);

/// Throws std::invalid_argument if the batch or its pictures have no extent, or if an activation of
/// `most_channels` channels at their full size is beyond any memory.
void check_pictures(const WorkloadSize& size, std::int64_t most_channels);

/// The modules of convolutional networks; those that change the pictures' shape write it back.
class PictureModules {
 public:
  explicit PictureModules(const WorkloadSize& size)
      : make_(size.dtype, size.compute),
        run_(make_.casts() ? size.compute : size.dtype, size.compute),
        last_(size.channels_last) {}

  /// Each group of channels is an implicit matrix product: pixels x output channels, over the
  /// window; a window of one pixel is a product for each picture. The windows overlap in the input
  /// and are never written out, so that input, weight and output are moved once each.
  Module convolution(const std::string& name, Pictures& pictures, std::int64_t channels,
                     const Window& window, bool biased = false, Input input = Input::activation,
                     std::int64_t groups = 1) const;

  /// Both ways the statistics take a pass of their own before the result can be written, in one
  /// kernel of cuDNN's that has a block of threads for each channel.
  Module batch_norm(const std::string& name, const Pictures& pictures) const;

  /// torchvision's FrozenBatchNorm2d: a factor and a summand of every channel, which five small
  /// kernels make of its four buffers each time.
  Module frozen_norm(const std::string& name, const Pictures& pictures) const;

  /// In place, as torchvision writes it: what it reads is gone, its result is kept.
  Module relu(const std::string& name, std::int64_t elements) const;

  Module add(const std::string& name, const Pictures& pictures) const;

  /// In place, as torchvision writes it: autograd copies what it reads first, and keeps the copy;
  /// its result is kept by what reads that.
  Module silu(const std::string& name, std::int64_t elements) const;

  Module sigmoid(const std::string& name, std::int64_t elements) const;

  /// Every channel times its own factor. Backward: both products, one of them summed over pixels.
  Module scale(const std::string& name, const Pictures& pictures) const;

  /// Whole pictures dropped by a random mask of one number each. What it writes is read again.
  Module drop_pictures(const std::string& name, const Pictures& pictures) const;

  /// Marks the module's result as kept, by a convolution that reads it.
  void keep_result(Module& module, const Pictures& pictures) const;

  Module fork(const std::string& name, const Pictures& pictures) const;

  /// Keeps for every output where its maximum was, in 8 bytes.
  Module max_pool(const std::string& name, Pictures& pictures, const Window& window) const;

  /// The mean of every picture's channels (forward reads, backward fills); or a grid of such means.
  Module average_pool(const std::string& name, Pictures& pictures, std::int64_t side) const;

  /// A transposed convolution with bias whose windows do not overlap: each pixel becomes a square
  /// of `side` by `side`. Its kernels are those of the convolution that it undoes.
  Module unfolding(const std::string& name, Pictures& pictures, std::int64_t channels,
                   std::int64_t side) const;

  Module linear(const std::string& name, std::int64_t rows, std::int64_t in, std::int64_t out,
                Operand operand) const;

  const ModuleMaker& maker() const { return make_; }
  /// Makes kernels over pictures, which have the format of products under autocast too.
  const ModuleMaker& picture_maker() const { return run_; }

  Module cross_entropy(const std::string& name, std::int64_t rows, std::int64_t classes) const;

 private:
  /// A module over pictures, of which `kept` elements are kept. Returns what is kept, to add to.
  Bytes& in_computed_format(Module& module, std::int64_t elements, std::int64_t kept) const;

  ModuleMaker make_;
  ModuleMaker run_;  ///< of kernels: pictures have the format of products, under autocast too
  bool last_;        ///< channels lie together
};

}  // namespace ddpsim
