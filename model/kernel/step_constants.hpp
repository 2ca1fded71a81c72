#pragma once

namespace ddpsim {

/// A kernel with one block of threads for each channel, of n elements:
///
///     t = start + ((n x block)^sharpness + (bytes / rate)^sharpness)^(1 / sharpness)
struct BlockPerChannel {
  double start_us;
  double block_ns;  ///< what a block takes for an element
  double rate;      ///< TB/s of the whole device
  double sharpness;
};

/// The constants of laws that come from kernels of whole steps, because single operations measure
/// the host there or find another cache; those of other laws stand beside them. A device may carry
/// others (Device::step_constants): those that are computed without a network whose steps are then
/// predicted (tests/experiments/left_out.py).
///
/// Source: what tests/experiments/left_out.py computes from all networks of tests/data/h200, of
/// each the networks that it names. Rates are in TB/s, of an H200.
struct StepConstants {
  /// What moves plainly and fits the second-level cache is quicker, and so is what takes twice as
  /// much: factors of the rate. lm350, resnet101, mobile.
  double warm = 1.35, half_warm = 1.11;
  /// cuDNN's copies between layouts. resnet101 and, in 32 bits, mobile.
  double layout_start_us = 4.75, layout_rate = 4, layout_narrow_rate = 2.75;

  /// cuDNN's batch norm: channels that are read twice, and those that are read once, because a
  /// block can hold so many bytes (forward 4 for an element, backward 8: the middle between the
  /// most that was seen held and the least that was not). resnet101, mobile.
  BlockPerChannel batch_norm{1.01, 0.57, 3.03, 3.44}, batch_norm_backward{0, 1.51, 3.52, 2.85};
  double batch_norm_once_rate = 2.3, batch_norm_backward_once_rate = 1.72;
  double batch_norm_held_bytes = 123000;
  /// PyTorch's batch norm in bf16. resnet101.
  BlockPerChannel batch_norm_statistics{4.16, 0.875, 0.816, 6.24},
      batch_norm_own{1.67, 2.05, 1.5, 2.93};
  double batch_norm_transform_rate = 1.71, batch_norm_transform_small_rate = 0.336;
  /// The rates of batch norms with channels last; `few`: with up to 48 channels. Fitted to the
  /// steps of resnet101 and mobile.
  double statistics_last_rate = 0.637, statistics_last_few_rate = 0.425;
  double statistics_last_backward_rate = 1.94;
  double transform_last_rate = 2.79, transform_last_backward_rate = 3.04;

  /// The gradients of a layer norm's input, and of its weight and bias. lm350.
  double layer_norm_backward_rate = 4.19, layer_norm_weights_rate = 1.58;
  /// cuDNN's gradient of attention: its start; its sums of result times gradient, and its copy of
  /// the queries' gradient. lm350.
  double attention_backward_start_us = 24.1, attention_sums_rate = 1.83, attention_copy_rate = 3.3;
  /// The memory-efficient kernel's in fp32, TFLOP/s at heads of 64. lm350.
  double efficient_backward_tflops = 33.9;
  /// Results of a pool's gradient, 10^9 a second. resnet101.
  double max_pool_backward = 22.4, max_pool_backward_last = 28.2;

  /// What a product of tensor cores takes in a step, over what it takes in a loop of its own, where
  /// power lowers the clock. lm350, resnet101, mobile.
  double product_of_a_step = 0.94;
  /// A share of the rate of large products on the H200, by its lanes: for pictures in 16 bits whose
  /// rows do not begin at 16 bytes, multiplied by themselves. resnet101.
  double unaligned_picture = 0.194;

  /// What a multi-tensor kernel of an optimizer reaches of the rate of one that streams through one
  /// tensor, for its blocks are cut from tensors of all sizes; few: below 100 tensors. lm350,
  /// llama1b; lstm, dlrm.
  double optimizer_rate = 0.7, optimizer_few_rate = 0.72;
  /// What gathering and grouping a tensor whose gradient is new costs the host, where a launch
  /// takes it 6 us. resnet101, mobile.
  double optimizer_tensor_us = 5.6;
  /// What a call of PyTorch costs the host in a step, over what it costs where it is called again
  /// and again. resnet101.
  double host_of_a_step = 1.5;
};

}  // namespace ddpsim
