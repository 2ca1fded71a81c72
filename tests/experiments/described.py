#!/usr/bin/env python3
"""Holds descriptions of PyTorch models (ddpsim describe) against the catalogue's architectures, and
against a profiler trace of a real step.

    tests/experiments/described.py [--ddpsim PROGRAM] [--trace TRACE.json.gz] [--keep FOLDER]

The first table has a row for each model that both know: how many matrix products are equal, with
their shapes, and by how much a described step's figures differ from the catalogue's, both by the
laws on one A100. The second has the kernels and the busy time of the device in each pass of the
step of ResNet-50 that the trace shows (github:facebookresearch/HolisticTraceAnalysis@f4d0062:
tests/data/nccl_parser_config/nccl_data.json.gz: DistributedDataParallel, batch 32, TF32, A100),
without what DDP does and NCCL's kernels. The third has the same of a step on a V100, of which the
figures that the tests of PyTorch's profiler keep of a trace stand below. --keep leaves the
descriptions in a folder: those of tests/data/descriptions were made so.

Needs torch 2 and transformers; docs/accuracy.md has the tables.
"""
import argparse
import collections
import gzip
import json
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]

# What the catalogue leaves out is left out here: dropout, masks of padding, caches.
MODELS = '''
import sys
import torch
import transformers
sys.path.insert(0, {models!r})


def trained(model, data, loss=None, optimizer=torch.optim.AdamW):
    return model, data, loss, optimizer(model.parameters())


def tokens(config, batch, length):
    return torch.randint(config.vocab_size, (batch, length))


def language_model(config, batch, length, dtype=torch.float32):
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=dtype)
    return trained(model, {{'input_ids': tokens(config, batch, length),
                            'labels': tokens(config, batch, length)}})


def gpt2():
    config = transformers.GPT2Config(resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, use_cache=False)
    return language_model(config, 8, 1024)


def llama2():
    return language_model(transformers.LlamaConfig(use_cache=False), 1, 4096, torch.bfloat16)


def bert():
    config = transformers.BertConfig(hidden_dropout_prob=0, attention_probs_dropout_prob=0)
    return trained(transformers.BertModel(config), {{'input_ids': tokens(config, 16, 512)}},
                   lambda model, batch: model(**batch).pooler_output.sum())


def resnet50():
    from resnext import resnet50
    return resnet50(batch=32)
'''

# As the catalogue is asked for the same.
CATALOGUE = {
    'gpt2': 'model=gpt2 batch=8 sequence=1024 optimizer=adamw',
    'bert': 'model=bert-base batch=16 sequence=512 optimizer=adamw',
    'resnet50': 'model=resnet50 batch=32 compute=tf32 optimizer=sgd',
    'llama2': 'model=llama2-7b batch=1 sequence=4096 dtype=bf16 optimizer=adamw',
}
DEVICE = 'a100-40'

# A trace of ResNet-50 on one V100 (batch 32, fp32, torch of 2021, SGD in a loop, gradients zeroed
# and added to), as the tests of PyTorch's profiler keep what is in it; the trace itself is in the
# same repository (tb_plugin/samples/resnet50_num_workers_0). Microseconds of the device are of six
# steps. github:pytorch/kineto@0ab7eadb59b4: tb_plugin/test/result_check_file.txt
V100_STEPS, V100_KERNELS, V100_KERNEL_US = 6, 8856, 6 * 100868
V100_TENSORS = 161
# By their names: convolutions and their helpers (53 + 43), norms and their counters (53 + 53), ReLU
# (49), branches that join (16), pool, mean, linear (3), softmax, loss. The table of names has part
# of a seventh backward pass besides, the number above has not.
V100_FORWARD_KERNELS = 53 + 43 + 53 + 53 + 49 + 16 + 1 + 1 + 3 + 1 + 1
V100_FORWARD_US = {'cudnn_convolution': 135735, 'cudnn_batch_norm': 33292, 'threshold_': 17759,
                   'max_pool2d_with_indices': 1341, 'add': 325, 'mean': 256, 'addmm': 201,
                   '_log_softmax': 60, 'nll_loss_forward': 20}
V100_BACKWARD_US = {'cudnn_convolution_backward_weight': 149670,
                    'cudnn_convolution_backward_input': 135844, 'cudnn_batch_norm_backward': 56884,
                    'threshold_backward': 26258, 'max_pool2d_with_indices_backward': 4098,
                    'zeros_like': 948, 'ones_like': 6, 'mm': 295, 'div': 162,
                    '_log_softmax_backward_data': 64, 'nll_loss_backward': 18}
V100_ADD_US, V100_ACCUMULATE_US = 23357, 2915  # aten::add_; of these in AccumulateGrad
V100_OTHER_US = {'fill_': 2414 - 948 - 6, 'mul_': 2380}  # zero_grad and the optimizer's
FIGURES = ('forward_ms', 'backward_ms', 'step_ms')


class Program:
    def __init__(self, path):
        self.path = path

    def __call__(self, *words):
        return subprocess.run([self.path, *words], check=True, stdout=subprocess.PIPE,
                              text=True).stdout

    def figures(self, file, settings=()):
        result = json.loads(self('run', file, *self.priced(settings), '--json', '-', '-q'))
        return {name: result['results'][0][name] for name in FIGURES}

    def kernels(self, file, settings=()):
        """(pass, text) of every kernel: "4096 x 768 x 768 fp32, 12 MiB, 2 launches"."""
        table = self('schedule', file, *self.priced(settings), '--set', 'training.strategy=none',
                     '--tasks', '--markdown', '-', '-q')
        cells = [line.split(' | ') for line in table.splitlines() if line.count(' | ') == 6]
        works = [row[-1].rstrip(' |') for row in cells]
        return [work.replace(',', '', 1).split(' ', 1) if work.split(' ')[0].endswith(',')
                else work.split(' ', 1) for work in works
                if work.split(',')[0].split(' ')[0] in ('forward', 'backward', 'optimizer')]

    @staticmethod
    def priced(settings):
        words = [f'cluster.device={DEVICE}', 'compare=[none]', *settings]
        return [word for setting in words for word in ('--set', setting)]


def products(kernels):
    """Shapes of products, counted. A product and its transposed one are the same."""
    found = collections.Counter()
    for phase, text in kernels:
        shape = re.match(r'(\d+) x (\d+) x (\d+)(?: \((\d+) times\))?', text)
        if shape:
            m, n, k = map(int, shape.group(1, 2, 3))
            found[phase, min(m, n), max(m, n), k, int(shape.group(4) or 1)] += 1
    return found


def launches(kernels, phase):
    return sum(int((re.search(r'(\d+) launches', text) or [0, 1])[1])
               for each, text in kernels if each == phase)


def described(program, folder):
    """Writes a description of every model. Returns their files by name."""
    script = folder / 'models.py'
    script.write_text(MODELS.format(models=str(ROOT / 'scenarios/examples/models')))
    files = {}
    for name in CATALOGUE:
        files[name] = folder / f'{name}.yaml'
        program('describe', f'{script}:{name}', '--quiet', '-o', str(files[name]))
        text = files[name].read_text().replace(str(script), 'tests/experiments/described.py')
        # A changed file's checksum holds no more.
        files[name].write_text(re.sub(r'(\nend: \S+) .*', r'\1', text))
    return files


def catalogue_file(folder, name):
    file = folder / f'{name}.catalogue.yaml'
    keys = ', '.join(word.replace('=', ': ') for word in CATALOGUE[name].split())
    file.write_text(f'workload: {{{keys}}}\ncluster: {{device: {DEVICE}}}\n')
    return file


def percent(value, reference):
    return f'{100 * (value / reference - 1):+.1f} %'


def against_catalogue(program, files, folder):
    print(f'| model | equal products | forward launches | backward launches | forward | backward '
          f'| step |')
    print('|---|--:|--:|--:|--:|--:|--:|')
    for name, file in files.items():
        catalogue = catalogue_file(folder, name)
        ours, theirs = program.kernels(str(file)), program.kernels(str(catalogue))
        equal = products(ours) & products(theirs)
        every = products(ours) | products(theirs)
        cells = [name, f'{sum(equal.values())} of {sum(every.values())}']
        for phase in ('forward', 'backward'):
            cells.append(f'{launches(ours, phase)} against {launches(theirs, phase)}')
        one, other = program.figures(str(file)), program.figures(str(catalogue))
        cells += [percent(one[figure], other[figure]) for figure in FIGURES]
        print('| ' + ' | '.join(cells) + ' |')
        for key, count in sorted((every - equal).items(), key=str):
            print(f'{name}: not in both: {count} x {key}', file=sys.stderr)


class Trace:
    """Kernels and busy time per pass of the second step of a Kineto trace of DDP's."""

    def __init__(self, file):
        events = json.load(gzip.open(file))['traceEvents']
        begin, end, backward, update = self.bounds(events)
        launched = {event['args']['correlation']: event['ts'] for event in events
                    if event.get('cat') == 'cuda_runtime'
                    and 'correlation' in event.get('args', {})}
        self.counts, self.busy_ms = collections.Counter(), collections.Counter()
        for event in events:
            if event.get('cat') != 'kernel' or self.is_ddp(event['name']):
                continue
            at = launched.get(event['args']['correlation'], 0)
            if not begin <= at < end:
                continue
            phase = 'forward' if at < backward else 'backward' if at < update else 'optimizer'
            self.counts[phase] += 1
            self.busy_ms[phase] += event['dur'] / 1e3

    @staticmethod
    def bounds(events):
        step = sorted((event for event in events if 'ProfilerStep' in event.get('name', '')),
                      key=lambda event: event['ts'])[1]
        begin, end = step['ts'], step['ts'] + step['dur']

        def first(name):
            return next(event['ts'] for event in events
                        if event.get('name') == name and begin <= event['ts'] < end)
        return begin, end, first('## backward ##'), first('Optimizer.step#SGD.step')

    @staticmethod
    def is_ddp(name):
        """All-reduces, buffers laid side by side, and gradients scaled into buckets."""
        return (name.startswith('nccl') or 'CatArrayBatchedCopy' in name
                or 'AUnaryFunctor<float, float, float, at::native::binary_internal::MulFunctor'
                in name)


def against_trace(program, file, trace):
    shown = Trace(trace)
    kernels = program.kernels(str(file))
    figures = program.figures(str(file), ['cluster.launch=1 ns'])
    print('\n| pass | kernels | in the trace | differ | device busy ms | in the trace | differ |')
    print('|---|--:|--:|--:|--:|--:|--:|')
    counts = {phase: launches(kernels, phase) for phase in ('forward', 'backward', 'optimizer')}
    for phase in ('forward', 'backward'):
        print(f'| {phase} | {counts[phase]} | {shown.counts[phase]} | '
              f'{percent(counts[phase], shown.counts[phase])} | {figures[phase + "_ms"]:.2f} | '
              f'{shown.busy_ms[phase]:.2f} | '
              f'{percent(figures[phase + "_ms"], shown.busy_ms[phase])} |')
    ours, theirs = sum(counts.values()), sum(shown.counts.values())
    print(f'| step | {ours} | {theirs} | {percent(ours, theirs)} | | | |')


def v100_busy_ms():
    """What both passes of a step took. Of the additions in place, all of parameters' sizes but the
    forward pass's, a third of the former are AccumulateGrad's and two thirds the optimizer's. What
    no operation has are the engine's sums of gradients where branches meet."""
    joined = V100_ADD_US - 3 * V100_ACCUMULATE_US
    known = sum(sum(each.values()) for each in (V100_FORWARD_US, V100_BACKWARD_US, V100_OTHER_US))
    sums = V100_KERNEL_US - known - V100_ADD_US
    forward = sum(V100_FORWARD_US.values()) + joined
    backward = sum(V100_BACKWARD_US.values()) + sums + V100_ACCUMULATE_US
    return {'forward': forward / V100_STEPS / 1e3, 'backward': backward / V100_STEPS / 1e3}


def against_v100(program, folder):
    file = folder / 'resnet50.v100.yaml'
    program('describe', f'{folder / "models.py"}:resnet50', '--later-micro-batch', '--quiet', '-o',
            str(file))
    settings = ['cluster.device=v100', 'cluster.launch=1 ns']
    kernels, figures = (ask(str(file), settings) for ask in (program.kernels, program.figures))
    # Both passes: all but the optimizer's products and two sums for each tensor, and zero_grad's.
    seen = V100_KERNELS // V100_STEPS - 4 * V100_TENSORS
    ours = sum(launches(kernels, phase) for phase in ('forward', 'backward'))
    print('\n| pass on a V100 | kernels | in the trace | differ | device busy ms | in the trace '
          '| differ |')
    print('|---|--:|--:|--:|--:|--:|--:|')
    seen_in = {'forward': V100_FORWARD_KERNELS, 'backward': seen - V100_FORWARD_KERNELS}
    for phase, busy in v100_busy_ms().items():
        figure, number = figures[phase + '_ms'], launches(kernels, phase)
        print(f'| {phase} | {number} | {seen_in[phase]} | {percent(number, seen_in[phase])} | '
              f'{figure:.2f} | {busy:.2f} | {percent(figure, busy)} |')
    print(f'| both | {ours} | {seen} | {percent(ours, seen)} | | | |')


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--ddpsim', default=str(ROOT / 'build/release/tools/ddpsim'))
    parser.add_argument('--trace', help='the trace of ResNet-50 named above')
    parser.add_argument('--keep', metavar='FOLDER', help='where descriptions stay')
    flags = parser.parse_args()
    program = Program(flags.ddpsim)
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        files = described(program, folder)
        against_catalogue(program, files, folder)
        if flags.trace:
            against_trace(program, files['resnet50'], flags.trace)
        against_v100(program, folder)
        if flags.keep:
            kept = pathlib.Path(flags.keep)
            kept.mkdir(parents=True, exist_ok=True)
            for name, file in files.items():
                (kept / f'{name}.yaml').write_text(file.read_text())


if __name__ == '__main__':
    main()
