// Hooks of one's own for ddpsim: what the header asks for, in C++.
//
//     g++ -std=c++17 -O3 -shared -fPIC -I backend/plugin -o libmy_hooks.so
//         scenarios/examples/plugin/my_hooks.cpp
//     ddpsim validate scenarios/examples/plugin/plugin.yaml --plugin ./libmy_hooks.so

#include <cmath>
#include <cstring>
#include <string>

#include "ddpsim_plugin.h"

namespace {

/// Centralises a gradient: each row (output) loses its mean. Source: Yong et al., Gradient
/// Centralization, ECCV 2020. Gradients of one dimension stay.
void centralize(void*, const ddpsim_gradient* gradient) {
  if (gradient->dimensions < 2) return;
  const std::int64_t rows = gradient->shape[0];
  const std::int64_t columns = gradient->count / rows;
  for (std::int64_t r = 0; r < rows; ++r) {
    float* row = gradient->values + r * columns;
    double sum = 0;
    for (std::int64_t c = 0; c < columns; ++c) sum += row[c];
    const auto mean = static_cast<float>(sum / static_cast<double>(columns));
    for (std::int64_t c = 0; c < columns; ++c) row[c] -= mean;
  }
}

/// A weight's gradient, scaled down where it is longer than its bias's. The bias is asked for
/// first: in backward it may come later.
void balance(void*, const ddpsim_gradient* gradient) {
  const std::string name = gradient->name;
  const std::size_t end = name.rfind(".weight");
  if (end == std::string::npos) return;
  const std::string bias = name.substr(0, end) + ".bias";
  if (gradient->is_ready(gradient, bias.c_str()) == 0) return;
  std::int64_t count = 0;
  const float* other = gradient->other(gradient, bias.c_str(), &count);
  double theirs = 0, mine = 0;
  for (std::int64_t i = 0; i < count; ++i) theirs += static_cast<double>(other[i]) * other[i];
  for (std::int64_t i = 0; i < gradient->count; ++i)
    mine += static_cast<double>(gradient->values[i]) * gradient->values[i];
  if (mine <= theirs || mine == 0) return;
  const auto factor = static_cast<float>(std::sqrt(theirs / mine));
  for (std::int64_t i = 0; i < gradient->count; ++i) gradient->values[i] *= factor;
}

/// A payload of bfloat16, cut off rather than rounded: half the bytes.
void cut(void*, const float* bucket, std::int64_t count, std::int32_t ranks, void* payload) {
  auto* to = static_cast<std::uint16_t*>(payload);
  for (std::int64_t i = 0; i < count; ++i) {
    const float mean = bucket[i] / static_cast<float>(ranks);
    std::uint32_t bits = 0;
    std::memcpy(&bits, &mean, sizeof(bits));
    to[i] = static_cast<std::uint16_t>(bits >> 16);
  }
}

void widen(void*, const void* payload, std::int64_t count, std::int32_t, float* bucket) {
  const auto* from = static_cast<const std::uint16_t*>(payload);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint32_t bits = static_cast<std::uint32_t>(from[i]) << 16;
    std::memcpy(bucket + i, &bits, sizeof(bits));
  }
}

}  // namespace

DDPSIM_PLUGIN(registry) {
  registry->add_gradient_hook(registry, "centralize", centralize, nullptr);
  registry->add_gradient_hook(registry, "balance", balance, nullptr);
  const ddpsim_comm_hook cut_bf16{DDPSIM_BFLOAT16, cut, widen};
  registry->add_comm_hook(registry, "cut_bf16", &cut_bf16, nullptr);
}
