"""How many kernels a multi-tensor ("foreach") operation launches.

A launch holds at most 320 chunks of 65536 elements, and tensors up to a number that falls with the
lists the operation goes over; a tensor that the limit of chunks cuts goes on in the next launch.
Source: aten/src/ATen/native/cuda/MultiTensorApply.cuh (depth_to_max_tensors, depth_to_max_blocks).
"""
import torch

CHUNK, CHUNKS = 65536, 320
TENSORS = {1: 110, 2: 64, 3: 48, 4: 36, 5: 30}


def launches_of(elements, lists):
    """Launches for tensors of so many elements each, in an operation over `lists` lists."""
    launches = chunks = tensors = 0
    for size in elements:
        if size == 0:
            continue
        tensors += 1
        pieces = -(-size // CHUNK)
        for piece in range(pieces):
            chunks += 1
            last = piece == pieces - 1
            if chunks == CHUNKS or (last and tensors == TENSORS[lists]):
                launches += 1
                chunks, tensors = 0, (0 if last else 1)
    return launches + (1 if chunks else 0)


def multi_tensor_launches(call):
    lists = [value for value in (*call.args, *call.kwargs.values())
             if isinstance(value, (list, tuple)) and value and isinstance(value[0], torch.Tensor)]
    results = [] if call.changed else [call.result]
    return launches_of([tensor.numel() for tensor in lists[0]],
                       min(5, len(lists) + len(results)))
