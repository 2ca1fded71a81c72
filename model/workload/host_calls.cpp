#include "model/workload/host_calls.hpp"

namespace ddpsim {
namespace {

constexpr Duration us(double microseconds) {
  return Duration{static_cast<std::int64_t>(microseconds * 1e6 + 0.5)};
}

// Rows of the table, microseconds: called without autograd, with it, under autocast, and backward.
constexpr double plain_add = 6.96;
constexpr double add = 7.58, linear = 25.43, layer_norm = 14.46, conv2d = 24.19, batch_norm = 32.19,
                 view = 1.94, softmax = 7.84, matmul = 14.03, cast = 9.54, sdpa = 34.10;
constexpr double cast_linear = 18.37, cast_conv2d = 30.51, cast_matmul = 13.04, cast_cast = 9.56;
constexpr double add_back = 15.17, gelu_back = 22.51, linear_back = 77.43, layer_norm_back = 43.92,
                 conv2d_back = 56.12, batch_norm_back = 46.52, softmax_back = 25.73;

CallTime forward_time(Call call, bool narrow) {
  switch (call) {
    case Call::follows:
    case Call::clears:
      return {};
    case Call::elementwise:
    case Call::again:
    case Call::gelu:
      return {us(add)};
    case Call::cast:
      return {us(cast)};
    case Call::layer_norm:
      return {us(layer_norm)};
    case Call::softmax:
      return {us(softmax)};
    case Call::batch_norm:  // without its count of batches
      return {us(batch_norm - plain_add)};
    case Call::convolution:  // under autocast without the cast of its picture
      return {us(narrow ? cast_conv2d - cast_cast : conv2d), 2};
    case Call::attention:  // without the view and the cast around it
      return {us(sdpa - view - cast), 2};
    case Call::product:
      return {us(narrow ? cast_matmul : matmul)};
    case Call::linear:
      return {us(narrow ? cast_linear : linear)};
  }
  return {};
}

CallTime backward_time(Call call) {
  switch (call) {
    case Call::follows:
    case Call::clears:
      return {};
    case Call::elementwise:
      return {us(add_back)};
    case Call::again:
      return {us(plain_add)};
    case Call::cast:
      return {us(cast)};
    case Call::gelu:
      return {us(gelu_back)};
    case Call::layer_norm:
      return {us(layer_norm_back), 2};
    case Call::softmax:
      return {us(softmax_back)};
    case Call::batch_norm:
      return {us(batch_norm_back)};
    case Call::convolution:
      return {us(conv2d_back), 3};
    case Call::attention:
      return {us(conv2d_back), 4};
    case Call::product:
    case Call::linear:  // two products and the sum of a bias's gradient share the row
      return {us(linear_back / 3)};
  }
  return {};
}

}  // namespace

CallTime call_time(Call call, bool backward, DType type) {
  return backward ? backward_time(call) : forward_time(call, size_of(type) < size_of(DType::fp32));
}

}  // namespace ddpsim
