#!/usr/bin/python3
"""One rank of a real DistributedDataParallel training, which our measured steps are held against.

Trains a multilayer perceptron (Linear with bias, ReLU between, mean-squared error, SGD with
momentum and weight decay), or what a script for ddpsim.profile makes, over Gloo: one copy
of it for each bucket cap and one without DDP ("none"). Their steps take turns, each turn beginning
with another copy, so that drift hits all alike. Ranks find each other as torchrun or
tests/links/hosts tells them (RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT, GLOO_SOCKET_IFNAME):

    tests/links/hosts 2 5gbit tests/experiments/torch_ddp.py --caps 1,4,10,25,60 --json torch.json
    tests/links/hosts 2 1gbit tests/experiments/torch_ddp.py \
        --script tests/data/torch_models/convnet.py

With --loops copies are trained without DDP, by loops and hooks as people write them: `naive`,
`flat` and `overlap` as ddpsim's strategies of these names, and `flattened`, buckets of 4 MiB around
torch's _flatten_dense_tensors (ddpsim's training.flattened_buckets).

A step is forward, backward and optimizer; before it gradients are dropped and the ranks meet at a
barrier, both untimed. Its time is that of the slower rank. Each phase is the slower rank's too, so
the phases of a step need not add up to it. Compute has one thread. A step that the host of this
virtual machine took more than 5 % of the processors' time from is made again, once, whatever it
took.

After the timed steps, one more step of each copy is profiled; the all-reduces seen there must be
those DDP says it does. Then all-reduces alone, idle before each, are timed from the last rank's
arrival to the last rank's end (the ranks must share a clock, so a machine).
"""
import os

# Before torch loads its BLAS.
os.environ['OMP_NUM_THREADS'] = os.environ['OPENBLAS_NUM_THREADS'] = '1'

import argparse
import json
import pathlib
import runpy
import statistics
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'links'))
import steal  # of tests/links
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / 'python'))
from ddpsim.profile import memory

LOOPS = ('naive', 'flat', 'overlap', 'flattened')
FLATTENED_CAP = 4 << 20
PHASES = ('step', 'forward', 'backward', 'optimizer')


def perceptron(widths):
    torch.manual_seed(0)
    layers = []
    for inputs, outputs in zip(widths, widths[1:]):
        layers += [torch.nn.Linear(inputs, outputs), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers[:-1])


def perceptron_step(widths, rows):
    """(model, batch, loss, optimizer), as scripts for ddpsim.profile make them."""
    network = perceptron(widths)
    generator = torch.Generator().manual_seed(1 + dist.get_rank())
    batch = tuple(torch.randn(rows, width, generator=generator)
                  for width in (widths[0], widths[-1]))
    loss = lambda model, batch: torch.nn.functional.mse_loss(model(batch[0]), batch[1])
    optimizer = torch.optim.SGD(network.parameters(), lr=1e-4, momentum=0.9, weight_decay=1e-4)
    return network, batch, loss, optimizer


class Trainee:
    """A copy of the network, with DDP at a cap, as it is by default for a cap of 0, or, for None,
    without."""

    def __init__(self, made, cap):
        network, self.batch, self.loss, self.optimizer = made
        self.cap = cap
        settings = {'bucket_cap_mb': cap} if cap else {}
        self.model = network if cap is None else DistributedDataParallel(network, **settings)
        self.times = {phase: [] for phase in PHASES}
        self.made_again = 0

    def step(self):
        """Returns the seconds of each phase on this rank."""
        self.optimizer.zero_grad(set_to_none=True)
        dist.barrier()
        start = time.perf_counter()
        loss = self.loss(self.model, self.batch)
        forward = time.perf_counter()
        loss.backward()
        self.after_backward()
        backward = time.perf_counter()
        self.optimizer.step()
        end = time.perf_counter()
        return end - start, forward - start, backward - forward, end - backward

    def after_backward(self):
        """What is left to do for the mean of the gradients: DDP has done it all."""

    def timed_step(self):
        for again in (True, False):
            during = steal.Steal()
            # The same on all ranks, so all make it again or none.
            *seconds, stolen = max_over_ranks((*self.step(), during.share()))
            if stolen <= steal.MOST_STOLEN or not again:
                break
            self.made_again += 1
        for phase, spent in zip(PHASES, seconds):
            self.times[phase].append(1e3 * spent)

    def buckets(self):
        """Bytes of the all-reduces of a step, in the order they are launched."""
        # Bytes of each bucket by index, which is launch order: those of the rebuilt buckets of
        # every step but the first.
        logged = self.model._get_ddp_logging_data()['rebuilt_bucket_sizes']
        said = [int(size) for size in logged.split(',')]
        activities = [torch.profiler.ProfilerActivity.CPU]
        with torch.profiler.profile(activities=activities, record_shapes=True) as profile:
            self.step()
            # Gloo's threads write their records once they are done, and must find the profiler.
            time.sleep(0.2)
        events = sorted((event for event in profile.events() if event.name == 'gloo:all_reduce'),
                        key=lambda event: event.time_range.start)
        seen = [4 * event.input_shapes[0][0] for event in events]
        if said != seen:
            raise SystemExit(f'rank {dist.get_rank()}: cap {self.cap:g} MiB: DDP speaks of buckets '
                             f'{said}, the profiler saw all-reduces {seen}')
        return seen

    def report(self):
        steps = self.times['step']
        ordered = statistics.quantiles(steps, n=10, method='inclusive')
        return {'step_ms': {'median': statistics.median(steps), 'p10': ordered[0],
                            'p90': ordered[-1], 'all': steps, 'made_again': self.made_again},
                **{f'{phase}_ms': statistics.median(self.times[phase]) for phase in PHASES[1:]}}


class OwnLoop(Trainee):
    """A copy of the network whose gradients a loop of one's own averages."""

    def __init__(self, made, loop, cap=FLATTENED_CAP):
        super().__init__(made, None)
        self.loop, self.sent = loop, []
        self.parameters = [*self.model.parameters()]
        if loop == 'overlap':
            for parameter in self.parameters:
                parameter.register_post_accumulate_grad_hook(self.send)
        if loop == 'flattened':
            self.fill_buckets(cap)

    def send(self, parameter):
        self.sent.append((dist.all_reduce(parameter.grad, async_op=True), parameter.grad, ()))

    def fill_buckets(self, cap):
        bucket = []
        for parameter in reversed(self.parameters):
            bucket.append(parameter)
            if sum(each.nbytes for each in bucket) >= cap or parameter is self.parameters[0]:
                self.watch(bucket)
                bucket = []

    def watch(self, bucket):
        missing = set()

        def ready(parameter):
            missing.discard(parameter)
            if missing:
                return
            missing.update(bucket)
            gradients = [each.grad for each in bucket]
            flat = torch._utils._flatten_dense_tensors(gradients)
            self.sent.append((dist.all_reduce(flat, async_op=True), flat, gradients))

        missing.update(bucket)
        for parameter in bucket:
            parameter.register_post_accumulate_grad_hook(ready)

    def average(self):
        ranks = dist.get_world_size()
        if self.loop == 'naive':
            for parameter in self.parameters:
                dist.all_reduce(parameter.grad)
                parameter.grad /= ranks
        if self.loop == 'flat':
            gradients = [parameter.grad for parameter in self.parameters]
            flat = torch._utils._flatten_dense_tensors(gradients)
            dist.all_reduce(flat)
            flat /= ranks
            self.copy_back(flat, gradients)
        for work, flat, gradients in self.sent:
            work.wait()
            flat /= ranks
            self.copy_back(flat, gradients)
        self.sent.clear()

    @staticmethod
    def copy_back(flat, gradients):
        if gradients:
            means = torch._utils._unflatten_dense_tensors(flat, gradients)
            for gradient, mean in zip(gradients, means):
                gradient.copy_(mean)

    def after_backward(self):
        self.average()


def max_over_ranks(values):
    everyone = [torch.empty(len(values), dtype=torch.float64) for _ in range(dist.get_world_size())]
    dist.all_gather(everyone, torch.tensor(values, dtype=torch.float64))
    return torch.stack(everyone).max(dim=0).values.tolist()


def time_all_reduce(size, patience=1.5):
    """Median over repeats, in ms: 5 to 30 of them, no more once `patience` seconds have passed."""
    data = torch.zeros(size // 4)
    times = []
    dist.all_reduce(data)
    while len(times) < 30 and (len(times) < 5 or sum(times) < patience):
        dist.barrier()
        start = time.perf_counter()
        dist.all_reduce(data)
        end = time.perf_counter()
        last_arrival, last_end = max_over_ranks((start, end))
        times.append(last_end - last_arrival)  # the same on all ranks, so all make the same number
    return 1e3 * statistics.median(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--widths', default=','.join(['1024'] * 13),
                        help='features in, between the layers, and out')
    parser.add_argument('--batch', type=int, default=64, help='rows per rank')
    parser.add_argument('--script', help='train what make() of this file returns: '
                                         '(model, batch, loss, optimizer)')
    parser.add_argument('--caps', default='1,4,10,25,60',
                        help='bucket_cap_mb of each copy, in MiB; 0: the default')
    parser.add_argument('--loops', default='', help=f'some of {",".join(LOOPS)}')
    parser.add_argument('--steps', type=int, default=20, help='timed steps of each copy')
    parser.add_argument('--warmup', type=int, default=5,
                        help='steps before them; DDP needs 2 to settle its buckets')
    parser.add_argument('--no-all-reduce', action='store_true',
                        help='leave out the all-reduces alone')
    parser.add_argument('--json', help='written by rank 0; default: standard output')
    arguments = parser.parse_args()
    widths = [int(width) for width in arguments.widths.split(',')]
    caps = [float(cap) for cap in arguments.caps.split(',')]
    if arguments.warmup < 2 or arguments.steps < 2:
        parser.error('it takes at least 2 steps of warm-up and 2 timed ones')

    torch.set_num_threads(1)
    memory.keep()  # as in the profile: several copies in one process would keep it anyhow
    dist.init_process_group('gloo')
    make = (runpy.run_path(arguments.script)['make'] if arguments.script
            else lambda: perceptron_step(widths, arguments.batch))
    none = Trainee(make(), None)
    trainees = [Trainee(make(), cap) for cap in caps]
    loops = [OwnLoop(make(), loop) for loop in arguments.loops.split(',') if loop]
    for _ in range(arguments.warmup):
        for trainee in [none, *trainees, *loops]:
            trainee.step()
    order = [none, *trainees, *loops]
    for turn in range(arguments.steps):
        first = turn % len(order)
        for trainee in order[first:] + order[:first]:
            trainee.timed_step()

    result = {
        'torch': torch.__version__, 'ranks': dist.get_world_size(),
        **({'script': arguments.script} if arguments.script
           else {'widths': widths, 'batch': arguments.batch}),
        'results': [{'bucket_cap_mb': trainee.cap, **trainee.report(),
                     'buckets_bytes': trainee.buckets()} for trainee in trainees],
        'loops': [{'loop': trainee.loop, **trainee.report()} for trainee in loops],
        'none_ms': statistics.median(none.times['step']), 'none': none.report()}
    if not arguments.no_all_reduce:
        result['all_reduce'] = [{'bytes': size, 'median_ms': time_all_reduce(size)}
                                for size in (4096 << power for power in range(15))]
    if dist.get_rank() == 0:
        text = json.dumps(result, indent=1) + '\n'
        if arguments.json:
            with open(arguments.json, 'w') as file:
                file.write(text)
        else:
            print(text, end='')
    dist.barrier()
    dist.destroy_process_group()


if __name__ == '__main__':
    main()
