/* A plugin of ddpsim: a shared library with gradient hooks and comm hooks of your own. C or C++;
 * this header is all it needs.
 *
 *     #include "ddpsim_plugin.h"
 *
 *     static void halve(void* state, const ddpsim_gradient* gradient) {
 *       for (int64_t i = 0; i < gradient->count; ++i) gradient->values[i] *= 0.5f;
 *     }
 *
 *     DDPSIM_PLUGIN(registry) { registry->add_gradient_hook(registry, "halve", halve, NULL); }
 *
 *     g++ -std=c++17 -O3 -shared -fPIC -I backend/plugin halve.cpp -o libhalve.so
 *     ddpsim validate scenario.yaml --plugin ./libhalve.so \
 *       --set 'training.hooks=[{plugin: {name: halve, parameter: "*"}}]'
 *
 * What a hook costs in a prediction is said in the scenario ({plugin: {name: halve, parameter: "*",
 * passes: 2, launches: 1, host: 5 us}}); with a calibration, what it took there counts.
 *
 * Threads: the host thread of a rank calls a gradient hook, in the order of the step, and a comm
 * hook's `before`; a thread that communicates calls its `after` (with collectives_at_once: 2, two
 * of them do). With the backend `threads` the ranks are threads of one process and call at the same
 * time, with the same `state`. Exceptions: one that leaves a hook ends the run with its text; none
 * of ddpsim's ever enters a plugin.
 * A full example is in scenarios/examples/plugin. */
#ifndef DDPSIM_PLUGIN_H
#define DDPSIM_PLUGIN_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Grows when a struct here changes. ddpsim refuses a plugin of another version. */
#define DDPSIM_PLUGIN_VERSION 1

/* A gradient that has just become complete: the one this call is about, so there is no other that a
 * hook could hold by mistake. Pointers are valid during the call. */
typedef struct ddpsim_gradient {
  int32_t rank, ranks;
  int32_t micro_batch; /* its own gradient, not yet added to those before it */
  int32_t dimensions;  /* of `shape` */
  const char* name;    /* of the parameter */
  const char* layer;   /* whose backward completed it */
  const int64_t* shape;
  int64_t count;          /* elements, row-major */
  float* values;          /* to read and write */
  const float* parameter; /* the parameter's values */

  /* Has the gradient of the parameter `name` become complete in this micro-batch, and is it not
   * being reduced in place already? */
  int (*is_ready)(const struct ddpsim_gradient* gradient, const char* name);
  /* Its values, after the hooks it has met so far, and how many; read only. One that is not ready
   * is NULL, and the run ends with an error that names both: ask is_ready first, or only for what
   * comes earlier in `ddpsim schedule`. */
  const float* (*other)(const struct ddpsim_gradient* gradient, const char* name, int64_t* count);
  /* Ends the run with this message when the hook returns. */
  void (*fail)(const struct ddpsim_gradient* gradient, const char* message);
  void* host; /* ddpsim's own */
} ddpsim_gradient;

typedef void (*ddpsim_gradient_hook)(void* state, const ddpsim_gradient* gradient);

enum { DDPSIM_FLOAT32 = 0, DDPSIM_FLOAT16 = 1, DDPSIM_BFLOAT16 = 2 };

/* What stands in place of a bucket's all-reduce: `before` makes the payload, which is summed over
 * ranks in its type, and `after` makes the bucket of the sum. DDP has not divided: one of them
 * divides by `ranks`. */
typedef struct ddpsim_comm_hook {
  int32_t payload_type; /* DDPSIM_FLOAT32, ...: `count` elements of it travel */
  void (*before)(void* state, const float* bucket, int64_t count, int32_t ranks, void* payload);
  void (*after)(void* state, const void* payload, int64_t count, int32_t ranks, float* bucket);
} ddpsim_comm_hook;

/* Names are up to 100 printable characters, each once. `state` is handed to every call. */
typedef struct ddpsim_registry {
  void (*add_gradient_hook)(struct ddpsim_registry* registry, const char* name,
                            ddpsim_gradient_hook hook, void* state);
  void (*add_comm_hook)(struct ddpsim_registry* registry, const char* name,
                        const ddpsim_comm_hook* hook, void* state);
  void* host; /* ddpsim's own */
} ddpsim_registry;

#if defined(__GNUC__)
#define DDPSIM_EXPORT __attribute__((visibility("default")))
#else
#define DDPSIM_EXPORT
#endif

#ifdef __cplusplus
#define DDPSIM_PLUGIN_EXTERN extern "C"
#else
#define DDPSIM_PLUGIN_EXTERN extern
#endif

/* Once in a plugin, followed by the body of the function that registers its hooks. */
#define DDPSIM_PLUGIN(registry)                                                     \
  DDPSIM_PLUGIN_EXTERN DDPSIM_EXPORT int32_t ddpsim_plugin_version(void);           \
  DDPSIM_PLUGIN_EXTERN DDPSIM_EXPORT void ddpsim_plugin_register(ddpsim_registry*); \
  int32_t ddpsim_plugin_version(void) {                                             \
    return DDPSIM_PLUGIN_VERSION;                                                   \
  }                                                                                 \
  void ddpsim_plugin_register(ddpsim_registry*(registry))

#ifdef __cplusplus
}
#endif

#endif
