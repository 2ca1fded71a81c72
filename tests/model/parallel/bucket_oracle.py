"""What PyTorch itself answers: bucket assignments of the cases in a file.

    python3 bucket_oracle.py IN OUT

IN holds five lines of words per case: size limits in bytes; elements, dtype and sparse flag (0 or
1) of every parameter; and the indices in the order the gradients arrive, or nothing for none.
OUT gets one line per bucket, its limit and then its indices, and an empty line after every case.
Tensors live on the meta device, which has sizes and no memory.
"""

import sys

import torch
from torch.distributed import _compute_bucket_assignment_by_size

DTYPES = {"fp32": torch.float32, "tf32": torch.float32,
          "bf16": torch.bfloat16, "fp16": torch.float16}


def assign(limits, elements, dtypes, sparse, indices):
    tensors = [torch.empty(int(count), dtype=DTYPES[name], device="meta")
               for count, name in zip(elements.split(), dtypes.split())]
    order = [int(index) for index in indices.split()]
    if order:
        tensors = [tensors[index] for index in order]
    return _compute_bucket_assignment_by_size(
        tensors, [int(limit) for limit in limits.split()], [flag == "1" for flag in sparse.split()],
        order)


def main(cases, answers):
    with open(cases) as source, open(answers, "w") as out:
        lines = source.read().split("\n")
        for case in zip(*[iter(lines)] * 5):
            for indices, limit in zip(*assign(*case)):
                print(limit, *indices, file=out)
            print(file=out)


if __name__ == "__main__":
    main(*sys.argv[1:])
