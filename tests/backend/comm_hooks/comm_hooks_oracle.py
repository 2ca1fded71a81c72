"""What torch's own comm hooks make of the given gradients, on two processes over Gloo.

    python3 comm_hooks_oracle.py IN OUT

IN holds cases, one after the other, each a line of words `hook key=value ...`, then, for every
step, bucket and rank, a line with that rank's gradients. A case's `shapes` are those of its
buckets: "4x5,3;7" is two buckets, the first of a matrix and a vector. OUT has, for every case, step
and bucket, a line with the result (rank 0's; that of rank 1 must be the same) and one with every
rank's error, rank after rank (empty where the hook keeps none). A case `casts values` has one line
of numbers; its answers are four lines: bits in fp16 and bf16, then the bits of each number's sum
with the one before, of 16-bit tensors.
"""

import sys
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as processes
from torch.distributed.algorithms.ddp_comm_hooks import (default_hooks, powerSGD_hook,
                                                         quantization_hooks)

RANKS = 2


class Bucket:
    """A dist.GradBucket, which Python cannot make."""

    def __init__(self, index, last, shapes, buffer):
        self.index_, self.last_, self.shapes_, self.buffer_ = index, last, shapes, buffer

    def index(self):
        return self.index_

    def is_last(self):
        return self.last_

    def buffer(self):
        return self.buffer_

    def gradients(self):
        views, begin = [], 0
        for shape in self.shapes_:
            size = torch.Size(shape).numel()
            views.append(self.buffer_[begin : begin + size].view(shape))
            begin += size
        return views


def make_hook(name, settings):
    if "powersgd" in name:
        state = powerSGD_hook.PowerSGDState(
            None,
            matrix_approximation_rank=int(settings["rank"]),
            start_powerSGD_iter=int(settings["start"]),
            min_compression_rate=float(settings["min_compression_rate"]),
            use_error_feedback=bool(int(settings["error_feedback"])),
            warm_start=bool(int(settings["warm_start"])),
            orthogonalization_epsilon=float(settings["epsilon"]),
            random_seed=int(settings["seed"]),
        )
        batched = name == "batched_powersgd"
        hook = powerSGD_hook.batched_powerSGD_hook if batched else powerSGD_hook.powerSGD_hook
        return hook, state
    hooks = {
        "allreduce": default_hooks.allreduce_hook,
        "fp16_compress": default_hooks.fp16_compress_hook,
        "quantization_pertensor": quantization_hooks.quantization_pertensor_hook,
        "quantization_perchannel": quantization_hooks.quantization_perchannel_hook,
    }
    return hooks[name], dist.group.WORLD


def text(tensor):
    return " ".join("%.9g" % value for value in tensor.flatten().tolist())


def floats(line):
    return torch.tensor([float(word) for word in line.split()], dtype=torch.float32)


def everyones(tensor):
    tensors = [torch.empty_like(tensor) for _ in range(RANKS)]
    if tensor.numel() > 0:
        dist.all_gather(tensors, tensor)
    return tensors


def run_case(rank, words, lines, out):
    settings = dict(word.split("=") for word in words[1:])
    hook, state = make_hook(words[0], settings)
    buckets = [
        [[int(d) for d in shape.split("x")] for shape in bucket.split(",")]
        for bucket in settings["shapes"].split(";")
    ]
    for _ in range(int(settings["steps"])):
        for index, shapes in enumerate(buckets):
            mine = floats([next(lines) for _ in range(RANKS)][rank])
            bucket = Bucket(index, index + 1 == len(buckets), shapes, mine)
            result = hook(state, bucket).wait()
            result = result[0] if isinstance(result, list) else result
            error = getattr(state, "error_dict", {}).get(index, torch.empty(0))
            errors, results = everyones(error), everyones(result.contiguous())
            assert torch.equal(results[0], results[1]), words
            out.append(text(result))
            out.append(text(torch.cat(errors)))


def run_casts(lines, out):
    values = floats(next(lines))
    for kind in (torch.float16, torch.bfloat16):
        narrow = values.to(kind)
        for each in (narrow, narrow + narrow.roll(1)):
            out.append(" ".join(str(bits & 0xFFFF) for bits in each.view(torch.int16).tolist()))


class Stacked:
    """torch.distributed whose all_gather ends with one stacked tensor, as over NCCL."""

    def __getattr__(self, name):
        return getattr(dist, name)

    def all_gather(self, tensors, tensor, group, async_op):
        self.future = dist.all_gather(tensors, tensor, group=group, async_op=True).get_future()
        self.future = self.future.then(lambda _: [torch.stack(tensors)])
        return self

    def get_future(self):
        return self.future


def adapt():
    """torch 1.13's hooks as they are meant: quantisation without a GPU and NCCL; and batched
    PowerSGD hands 2-D matrices to a function that asserts 3-D ones."""
    torch.Tensor.cuda = torch.nn.Module.cuda = lambda self, *_, **__: self
    quantization_hooks.dist = Stacked()
    orthogonalize = powerSGD_hook._orthogonalize
    powerSGD_hook._orthogonalize = lambda matrix, epsilon=0: orthogonalize(
        matrix if matrix.dim() == 3 else matrix.unsqueeze(0), epsilon
    )


def run(rank, meeting, questions, answers):
    adapt()
    dist.init_process_group("gloo", init_method="file://" + meeting, rank=rank, world_size=RANKS)
    with open(questions) as file:
        lines = iter(file.read().splitlines())
    out = []
    for line in lines:
        words = line.split()
        if words[0] == "casts":
            run_casts(lines, out)
        else:
            run_case(rank, words, lines, out)
    if rank == 0:
        with open(answers, "w") as file:
            file.write("\n".join(out) + "\n")
    dist.barrier()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        arguments = (folder + "/meeting", sys.argv[1], sys.argv[2])
        processes.start_processes(run, args=arguments, nprocs=RANKS, start_method="fork")
