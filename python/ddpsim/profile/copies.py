"""Copies as DistributedDataParallel makes them."""
import torch

from .messages import KIB, MIB
from .spread import Spread


def copy_times(job, largest):
    """[(operation, bytes moved, Spread)] of gradients of 4 KiB and up. As in a step, the gradient
    was written just before it goes into its bucket, and the bucket not for long: sets of tensors
    larger than a cache take turns."""
    cache, clock = 64 * MIB, job.clock
    results = []
    size = 4 * KIB
    while size <= largest:
        job.alive()
        count = size // 4
        sets = max(2, min(64, cache // size))
        gradients = [torch.ones(count, device=job.device) for _ in range(sets)]
        views = [torch.ones(count, device=job.device) for _ in range(sets)]

        def copy_in(index):
            torch.mul(gradients[index], 1 / job.ranks, out=views[index])

        def copy_out(index):
            gradients[index].copy_(views[index])

        def accumulate(index):
            gradients[index].add_(views[index])

        def divide(index):
            gradients[index].div_(job.ranks)
        for operation, action, traffic in (('copy in', copy_in, 2), ('copy out', copy_out, 2),
                                           ('accumulate', accumulate, 3), ('divide', divide, 2)):
            marks = []
            for repeat in range(max(10, min(sets, 40))):
                index = repeat % sets
                if operation == 'copy in':
                    gradients[index].fill_(1.0)
                begin = clock.mark()
                action(index)
                marks.append((begin, clock.mark()))
            clock.settle()
            results.append(
                (operation, traffic * size, Spread([clock.seconds(*pair) for pair in marks[2:]])))
        size *= 4
    return results


def flatten_times(job, largest):
    """Times of copies of gradients into a flat tensor that each step allocates anew. Memory that
    the C library asks the system for each time (above 32 MiB: mallopt(3), M_MMAP_THRESHOLD) has
    pages to which nobody has written, and the first write to each costs more than the copy: hence
    the sizes on either side."""
    sizes = [size for size in (64 * KIB, MIB, 4 * MIB, 16 * MIB, 30 * MIB, 34 * MIB, 64 * MIB)
             if size <= largest]
    results = []
    for size in sizes:
        job.alive()
        gradients = [torch.ones(size // 64, device=job.device) for _ in range(16)]
        marks = []
        for _ in range(10):
            for gradient in gradients:
                gradient.fill_(1.0)
            begin = job.clock.mark()
            flat = torch.cat(gradients)
            marks.append((begin, job.clock.mark()))
            del flat
        job.clock.settle()
        spread = Spread([job.clock.seconds(*pair) for pair in marks[2:]])
        results.append(('concatenate', 2 * size, spread))
    return results
