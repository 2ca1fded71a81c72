"""How a model is sharded, as torch.distributed.fsdp takes it."""
from __future__ import annotations

from typing import Any

# {(replicas, ranks of each): (process group of all ranks, mesh)}: each mesh has communicators.
_meshes: dict[tuple[int, int], tuple[Any, Any]] = {}
_TYPES = {'bf16': 'bfloat16', 'fp16': 'float16', 'fp32': 'float32'}


def keywords(wrapping: dict[str, Any]) -> dict[str, Any]:
    """The keyword arguments of fully_shard, where they are not its defaults."""
    found: dict[str, Any] = {}
    if wrapping['replicate'] > 1:
        found['mesh'] = _mesh(wrapping['replicate'], wrapping['shard'])
    if wrapping['mp_policy']:
        found['mp_policy'] = _policy(wrapping['mp_policy'])
    if wrapping['reshard_after_forward'] is not None:
        found['reshard_after_forward'] = wrapping['reshard_after_forward']
    if wrapping['offloads']:
        found['offload_policy'] = _offload_policy()
    return found


def _policy(types: dict[str, str]) -> Any:
    try:
        import torch
        from torch.distributed.fsdp import MixedPrecisionPolicy
    except ImportError:
        return types
    return MixedPrecisionPolicy(**{key: getattr(torch, _TYPES[each])
                                   for key, each in types.items()})


def _offload_policy() -> Any:
    try:
        from torch.distributed.fsdp import CPUOffloadPolicy
    except ImportError:
        return {}
    return CPUOffloadPolicy()


def _mesh(replicate: int, shard: int) -> Any:
    """Making a mesh is a collective of all ranks: each of them asks for it. It is made once in a
    job."""
    shape = {'replicate': replicate, 'shard': shard}
    try:
        import torch
        import torch.distributed as dist
        from torch.distributed.device_mesh import init_device_mesh
    except ImportError:
        return shape
    if not dist.is_available() or not dist.is_initialized():
        return shape
    world, mesh = _meshes.get((replicate, shard), (None, None))
    if world is not dist.group.WORLD:
        device = 'cuda' if torch.cuda.is_available() else 'cpu'
        mesh = init_device_mesh(device, tuple(shape.values()), mesh_dim_names=tuple(shape))
        _meshes[replicate, shard] = dist.group.WORLD, mesh
    return mesh
