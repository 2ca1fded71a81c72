// Plugins as they should not be: which one, ODD says.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "backend/plugin/ddpsim_plugin.h"

#define GOOD 0
#define ANOTHER_VERSION 1
#define EMPTY 2
#define TWICE 3
#define THROWS 4
#define NO_REGISTER 5

namespace {

/// Asks for a gradient that comes last in backward, and for one that came before.
void impatient(void*, const ddpsim_gradient* gradient) {
  std::int64_t count = -1;
  gradient->other(gradient, "0.weight", &count);
}
void patient(void*, const ddpsim_gradient* gradient) {
  for (const char* name : {"0.weight", "4.weight"}) {
    if (gradient->is_ready(gradient, name) == 0) continue;
    std::int64_t count = 0;
    const float* values = gradient->other(gradient, name, &count);
    if (values == nullptr || count == 0) gradient->fail(gradient, "ready, and yet not there");
  }
}
/// Complains if the first gradient can be read when the last one has come.
void in_flight(void*, const ddpsim_gradient* gradient) {
  if (std::strcmp(gradient->name, "0.weight") == 0 && gradient->is_ready(gradient, "4.weight") != 0)
    gradient->fail(gradient, "4.weight can be read");
}
/// Asks for the first gradient when the last one has come.
void grasping(void*, const ddpsim_gradient* gradient) {
  if (std::strcmp(gradient->name, "0.weight") == 0) gradient->other(gradient, "4.weight", nullptr);
}
void lost(void*, const ddpsim_gradient* gradient) {
  gradient->other(gradient, "no.such", nullptr);
}
void failing(void*, const ddpsim_gradient* gradient) {
  gradient->fail(gradient, "cannot go\non");
}
void throwing(void*, const ddpsim_gradient*) {
  throw std::runtime_error("thrown by the hook");
}
void leaving(void*, const ddpsim_gradient*) {
  std::exit(0);
}
/// `state` is a factor.
void times(void* state, const ddpsim_gradient* gradient) {
  for (std::int64_t i = 0; i < gradient->count; ++i)
    gradient->values[i] *= *static_cast<const float*>(state);
}

void before(void*, const float*, std::int64_t, std::int32_t, void*) {}
void after(void*, const void*, std::int64_t, std::int32_t, float*) {}

/// The mean of all ranks, in fp32.
void divided(void*, const float* bucket, std::int64_t count, std::int32_t ranks, void* payload) {
  for (std::int64_t i = 0; i < count; ++i)
    static_cast<float*>(payload)[i] = bucket[i] / static_cast<float>(ranks);
}
void taken(void*, const void* payload, std::int64_t count, std::int32_t, float* bucket) {
  std::memcpy(bucket, payload, static_cast<std::size_t>(count) * sizeof(float));
}

float half = 0.5F;

}  // namespace

#if ODD == ANOTHER_VERSION
#undef DDPSIM_PLUGIN_VERSION
#define DDPSIM_PLUGIN_VERSION 99
#endif

#if ODD == NO_REGISTER
extern "C" std::int32_t ddpsim_plugin_version(void) {
  return DDPSIM_PLUGIN_VERSION;
}
#else
DDPSIM_PLUGIN(registry) {
  if (ODD == EMPTY) return;
  if (ODD == THROWS) throw std::runtime_error("not today");
  registry->add_gradient_hook(registry, "impatient", impatient, nullptr);
  if (ODD == TWICE) registry->add_gradient_hook(registry, "impatient", impatient, nullptr);
  registry->add_gradient_hook(registry, "patient", patient, nullptr);
  registry->add_gradient_hook(registry, "in_flight", in_flight, nullptr);
  registry->add_gradient_hook(registry, "grasping", grasping, nullptr);
  registry->add_gradient_hook(registry, "lost", lost, nullptr);
  registry->add_gradient_hook(registry, "failing", failing, nullptr);
  registry->add_gradient_hook(registry, "throwing", throwing, nullptr);
  registry->add_gradient_hook(registry, "leaving", leaving, nullptr);
  registry->add_gradient_hook(registry, "half", times, &half);
  const ddpsim_comm_hook nothing{DDPSIM_FLOAT16, before, after};
  registry->add_comm_hook(registry, "nothing", &nothing, nullptr);
  const ddpsim_comm_hook mean{DDPSIM_FLOAT32, divided, taken};
  registry->add_comm_hook(registry, "mean", &mean, nullptr);
}
#endif
