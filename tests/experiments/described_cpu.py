#!/usr/bin/env python3
"""Holds described models against real training steps on this machine's CPU.

    build/torch/bin/python tests/experiments/described_cpu.py [--models vit,gru] [--rounds 15]
                           [--json tests/experiments/results/described_cpu.json]

Ten small models of different kinds are described by `ddpsim.describe` for a CPU. Each distinct
operation of a description is measured, one at a time, on tensors of its own
(operation_times.py); `ddpsim run` predicts forward and backward from the
description with these times. Between rounds of operations the same models take real steps, whose
passes are timed. One thread; the allocator keeps its memory between steps (MALLOC_ENVIRONMENT), as
PyTorch does on a GPU and other allocators do on a CPU. Wall time and the thread's own processor
time are both kept: where they differ, something else ran.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

from experiment import (ROOT, Targets, add_run, common_arguments, error_summary, percentile,
                        provenance)

MODELS = ('mlp', 'resnext', 'unet', 'vit', 'gpt2', 't5', 'mixture', 'gru', 'recommender', 'llama')
# glibc: no memory is given back to the kernel, and none is mapped for a single tensor.
MALLOC_ENVIRONMENT = {'MALLOC_MMAP_MAX_': '0', 'MALLOC_TRIM_THRESHOLD_': str(1 << 40),
                      'MALLOC_TOP_PAD_': str(64 << 20)}
PASSES = ('forward', 'backward')
WITHIN, MEDIAN = 0.15, 0.07


# The models; torch is imported by the process that runs one of them.

def made(name):
    """(model, batch, loss) of a model of this kind that takes a tenth of a second or so a step."""
    import torch
    from torch import nn
    sys.path.insert(0, str(ROOT / 'scenarios/examples/models'))
    torch.manual_seed(1)

    def tokens(vocabulary, *shape):
        return torch.randint(vocabulary, shape)
    if name == 'mlp':
        widths = (512, 1024, 1024, 1024, 10)
        layers = [layer for a, b in zip(widths, widths[1:])
                  for layer in (nn.Linear(a, b), nn.GELU())]
        return (nn.Sequential(*layers[:-1]), (torch.randn(256, 512), tokens(10, 256)),
                nn.CrossEntropyLoss())
    if name == 'resnext':
        from resnext import ResNeXt
        return (ResNeXt(blocks=(1, 1, 2, 1), groups=8, width_per_group=8, classes=100),
                (torch.randn(8, 3, 96, 96), tokens(100, 8)), nn.CrossEntropyLoss())
    if name == 'unet':
        from unet import UNet
        return (UNet(channels=(16, 32, 64), classes=8),
                (torch.randn(4, 3, 96, 96), tokens(8, 4, 96, 96)), nn.CrossEntropyLoss())
    if name == 'vit':
        from vit import VisionTransformer
        return (VisionTransformer(image=96, patch=8, width=192, depth=4, heads=4, classes=100),
                (torch.randn(8, 3, 96, 96), tokens(100, 8)), nn.CrossEntropyLoss())
    if name == 'gpt2':
        import transformers
        config = transformers.GPT2Config(vocab_size=4000, n_embd=256, n_layer=4, n_head=4,
                                         n_positions=128, use_cache=False, bos_token_id=0,
                                         eos_token_id=0)
        return (transformers.GPT2LMHeadModel(config).train(),
                {'input_ids': tokens(4000, 4, 128), 'labels': tokens(4000, 4, 128)}, None)
    if name == 't5':
        import t5
        return t5.T5(vocabulary=4000, width=256, depth=2, heads=4), [
            tokens(4000, 4, 128) for _ in range(3)], t5.loss
    if name == 'mixture':
        import mixture
        return (mixture.Mixture(vocabulary=4000, width=256, depth=3, heads=4, experts=4),
                (tokens(4000, 4, 128), tokens(4000, 4, 128)), mixture.loss)
    if name == 'gru':
        import gru
        return (gru.Characters(characters=128, width=256, layers=2),
                (tokens(128, 64, 48), tokens(128, 64, 48)), gru.loss)
    if name == 'recommender':
        from sparse_embedding import Recommender
        model = Recommender(items=20_000, width=64, hidden=512)
        model.items.sparse = False
        return model, (tokens(20_000, 1024, 20), torch.rand(1024)), nn.BCEWithLogitsLoss()
    import llama3
    return (llama3.Llama(vocabulary=4000, width=256, hidden=704, depth=4, heads=4, groups=2),
            (tokens(4000, 4, 128), tokens(4000, 4, 128)), llama3.loss)


# One model: a process of its own.

class Steps:
    """Real steps of a model; each adds the (wall, processor) seconds of both passes."""

    def __init__(self, model, batch, loss):
        from ddpsim.describe.step import loss_function
        self._model, self._batch = model, batch
        self._loss = loss_function(loss, [])
        self.samples = {name: [] for name in PASSES}

    def step(self):
        times = [now()]
        value = self._loss(self._model, self._batch)
        times.append(now())
        value.backward()
        times.append(now())
        for parameter in self._model.parameters():
            parameter.grad = None
        return times

    def __call__(self, count):
        for _ in range(count):
            self.step()  # the step before is a step too, not measured operations
            times = self.step()
            for name, begin, end in zip(PASSES, times, times[1:]):
                self.samples[name].append([b - a for a, b in zip(begin, end)])


def now():
    return time.perf_counter(), time.thread_time()


def measure_model(name, rounds, file):
    """Writes the description with times to `file`; prints what the steps took."""
    sys.path.insert(0, str(ROOT / 'python'))
    import torch
    from ddpsim.describe import describe
    from operation_times import Bench
    torch.set_num_threads(1)
    model, batch, loss = made(name)
    steps, benches = Steps(model, batch, loss), []

    def measure(operations):
        bench = Bench(operations)
        benches.append(bench)
        steps.step()
        bench.round()
        bench.samples = [[] for _ in bench.samples]
        for _ in range(rounds):
            bench.round()
            steps(3)
        return bench.seconds(typical)
    workload = describe(model, batch, loss, device='cpu', measure=measure)
    workload.source = (f'torch {torch.__version__.split("+")[0]}, tests/experiments/'
                       f'described_cpu.py:{name}, times measured operation by operation')
    workload.save(file)
    if os.environ.get('DESCRIBED_CPU_DETAIL'):
        detail(benches[0])
    print(json.dumps({'operations': len(benches[0]), 'samples': steps.samples}))


def detail(bench):
    """What each distinct operation takes, for people."""
    count = [0] * len(bench)
    for number in bench._number:
        count[number] += 1
    rows = sorted(((typical(samples) * n, n, ready.operation)
                   for ready, samples, n in zip(bench._ready, bench.samples, count)),
                  key=lambda row: -row[0])
    for seconds, n, operation in rows[:25]:
        print(f'{1e3 * seconds:8.3f} ms {n:4} x {operation.func} '
              f'{[tuple(p.shape) for p in operation.args if hasattr(p, "shape")]} '
              f'{operation.warm}', file=sys.stderr)


def typical(values):
    """The mean, for means of operations add up to that of a step. Left out is what is further from
    the nearer quartile than three times their distance: a process that ran in between."""
    low, high = percentile(values, 0.25), percentile(values, 0.75)
    return statistics.fmean(value for value in values
                            if low - 3 * (high - low) <= value <= high + 3 * (high - low))


# All of them.

def run_model(flags, name, file):
    words = [sys.executable, __file__, '--one', name, '--rounds', str(flags.rounds),
             '--description', str(file)]
    environment = {**os.environ, **({} if flags.default_malloc else MALLOC_ENVIRONMENT)}
    done = subprocess.run(words, env=environment, stdout=subprocess.PIPE, text=True,
                          timeout=flags.limit)
    if done.returncode:
        sys.exit(f'{name}: exit {done.returncode}')
    return json.loads(done.stdout.splitlines()[-1])


def predicted(flags, file):
    done = subprocess.run(
        [flags.ddpsim, 'run', str(file), '--set', 'cluster.device=generic-cpu', '--set',
         'cluster.launch=sync', '--set', 'compare=[none]', '--json', '-', '--quiet'],
        check=True, stdout=subprocess.PIPE, text=True)
    result = json.loads(done.stdout)['results'][0]
    return {name: result[f'{name}_ms'] for name in PASSES}


def case_of(flags, name, folder):
    file = folder / f'{name}.yaml'
    measured = run_model(flags, name, file)
    case, said = {'model': name, 'operations': measured['operations']}, predicted(flags, file)
    for each in PASSES:
        wall, busy = zip(*measured['samples'][each])
        case[f'{each}_predicted_ms'] = said[each]
        case[f'{each}_measured_ms'] = 1e3 * typical(wall)
        case[f'{each}_quartile_ms'] = 1e3 * percentile(wall, 0.25)
        case[f'{each}_processor_ms'] = 1e3 * typical(busy)
        case[f'{each}_error'] = said[each] / case[f'{each}_measured_ms'] - 1
    return case


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    common_arguments(parser)
    parser.add_argument('--models', default=','.join(MODELS), help='some of them, by commas')
    parser.add_argument('--rounds', type=int, default=15,
                        help='times each operation is measured; three steps go with each')
    parser.add_argument('--default-malloc', action='store_true',
                        help='leave the allocator as the system has it')
    parser.add_argument('--one', help=argparse.SUPPRESS)
    parser.add_argument('--description', help=argparse.SUPPRESS)
    flags = parser.parse_args()
    if flags.one:
        measure_model(flags.one, flags.rounds, flags.description)
        return 0
    run = provenance(flags.ddpsim)
    cases = []
    with tempfile.TemporaryDirectory() as scratch:
        for name in flags.models.split(','):
            cases.append(case_of(flags, name, pathlib.Path(scratch)))
            case = cases[-1]
            print(f'{name:12} {case["operations"]:4} operations', *(
                f'{each} {case[f"{each}_predicted_ms"]:8.2f} predicted, '
                f'{case[f"{each}_measured_ms"]:8.2f} measured ms '
                f'({case[f"{each}_quartile_ms"]:.2f} quartile, '
                f'{case[f"{each}_processor_ms"]:.2f} processor) '
                f'{100 * case[f"{each}_error"]:+6.1f} %' for each in PASSES), sep='  ', flush=True)
    errors = [case[f'{each}_error'] for case in cases for each in PASSES]
    run['summary'] = error_summary(errors, WITHIN)
    run['settings'] = {'rounds': flags.rounds, 'default_malloc': flags.default_malloc}
    run['cases'] = cases
    targets = Targets()
    targets(f'median error {100 * run["summary"]["median_error"]:.1f} % '
            f'(at most {100 * MEDIAN:.0f} %)', run['summary']['median_error'] <= MEDIAN)
    targets(f'{run["summary"]["cases_within"]} of {len(errors)} within {100 * WITHIN:.0f} %',
            run['summary']['cases_within'] == len(errors))
    print('\n'.join(targets.lines))
    if flags.json:
        add_run(flags.json, __file__, run, ('model',))
    return targets.exit_code()


if __name__ == '__main__':
    sys.exit(main())
