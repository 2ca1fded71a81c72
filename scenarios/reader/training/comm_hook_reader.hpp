#pragma once

#include "model/parallel/comm_hook.hpp"
#include "scenarios/reader/format/format.hpp"
#include "scenarios/reader/format/yaml.hpp"

namespace ddpsim {

/// What `comm_hook:` may be.
Type comm_hook_type();

/// `comm_hook:` of a training: a name, {name: {settings}}, {fp16_compress_wrapper: a hook},
/// {plugin: name}, or a list of steps. Throws InputError.
///
///     comm_hook: fp16_compress
///     comm_hook: {powersgd: {rank: 4, start_iteration: 10}}
///     comm_hook: {bf16_compress_wrapper: {powersgd: {rank: 1}}}
///     comm_hook: [{cast: fp16}, {scale: 1/ranks}, all_reduce]
CommHook read_comm_hook(const Yaml& given);

}  // namespace ddpsim
