#!/usr/bin/env python3
"""Holds forward passes of described networks against public timings of several GPUs, and fits the
rate of convolutions in TF32 to them.

    tests/experiments/forward_passes.py [--ddpsim PROGRAM]

KernelBench times networks in eager PyTorch 2.5 (CUDA 12.4): 100 forward passes after 3 to warm up,
of fp32 numbers, convolutions in TF32 where a GPU has it, products of matrices not. The networks are
those of its level 3 that keep a GPU busier than their host: convolutions, attention, and recurrent
layers. Two are left out, the transition layer of DenseNet-121 and the fire module of SqueezeNet,
whose stored sizes are not those they were timed in, and what repeats another (VisionAttention,
bidirectional GRU). Sources: github:yoenoo/kernel_bench_stuff@47f78d7 (a copy of
ScalingIntelligence/KernelBench that has the files of every GPU):
results/timing/{A100_modal,A100-80GB_modal,L40S_modal,T4_modal}/baseline_time_torch.json, and
KernelBench/level3 for the networks.

The first table has predicted forward passes, by the laws alone, against these timings. The second
has the errors for other rates of convolutions in TF32 (ampere_tf32,
model/kernel/convolution_law.cpp):
the rate is fitted to the networks of `FITTED` on both A100, by least squares, to a twentieth. Its
last columns have what the step of ResNet-50 that described.py holds against a trace of an A100
(12.63 and 24.63 ms) takes by each rate; nothing of it enters the fit.

Needs torch 2; docs/accuracy.md has the tables.
"""
import argparse
import json
import math
import pathlib
import re
import tempfile

import described

ROOT = pathlib.Path(__file__).resolve().parents[2]
CATALOGUE = ROOT / 'scenarios/catalogue/devices'
TRACED = ROOT / 'tests/data/descriptions/resnet50.yaml'

NETWORKS = '''
import torch
from torch import nn


def forward_of(network, *shape):
    return network, torch.randn(*shape), lambda network, given: network(given).flatten()[0], None


def convolved(inputs, outputs, *more, **named):
    return [nn.Conv2d(inputs, outputs, *more, **named), nn.ReLU(inplace=True)]


def classifier(features, classes=1000):
    hidden = 4096
    return [nn.Flatten(), nn.Linear(features, hidden), nn.ReLU(inplace=True),
            nn.Linear(hidden, hidden), nn.ReLU(inplace=True), nn.Linear(hidden, classes)]


def vgg(stages):
    """Stages of (channels, convolutions)."""
    layers, inputs = [], 3
    for channels, count in stages:
        for _ in range(count):
            layers += convolved(inputs, channels, 3, padding=1)
            inputs = channels
        layers.append(nn.MaxPool2d(2, 2))
    return forward_of(nn.Sequential(*layers, *classifier(inputs * 7 * 7)), 10, 3, 224, 224)


def vgg16():
    return vgg([(64, 2), (128, 2), (256, 3), (512, 3), (512, 3)])


def vgg19():
    return vgg([(64, 2), (128, 2), (256, 4), (512, 4), (512, 4)])


def alexnet():
    return forward_of(nn.Sequential(
        *convolved(3, 96, 11, stride=4, padding=2), nn.MaxPool2d(3, 2),
        *convolved(96, 256, 5, padding=2), nn.MaxPool2d(3, 2),
        *convolved(256, 384, 3, padding=1), *convolved(384, 384, 3, padding=1),
        *convolved(384, 256, 3, padding=1), nn.MaxPool2d(3, 2), *classifier(256 * 6 * 6)),
        10, 3, 224, 224)


class Residual(nn.Module):
    def __init__(self, inputs, channels):
        super().__init__()
        self.branch = nn.Sequential(
            nn.Conv2d(inputs, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels),
            nn.ReLU(inplace=True), nn.Conv2d(channels, channels, 3, padding=1, bias=False),
            nn.BatchNorm2d(channels))
        self.shortcut = nn.Sequential(nn.Conv2d(inputs, channels, 1, bias=False),
                                      nn.BatchNorm2d(channels))
        self.relu = nn.ReLU(inplace=True)

    def forward(self, pictures):
        result = self.branch(pictures)
        result += self.shortcut(pictures)
        return self.relu(result)


def residual_block():
    return forward_of(Residual(3, 64), 10, 3, 224, 224)


class Dense(nn.Module):
    """Each layer reads what all layers before it wrote, side by side."""

    def __init__(self, layers, inputs, growth):
        super().__init__()
        self.layers = nn.ModuleList(
            nn.Sequential(nn.BatchNorm2d(channels), nn.ReLU(inplace=True),
                          nn.Conv2d(channels, growth, 3, padding=1, bias=False))
            for channels in range(inputs, inputs + layers * growth, growth))

    def forward(self, pictures):
        features = [pictures]
        for layer in self.layers:
            features.append(layer(pictures))
            pictures = torch.cat(features, 1)
        return pictures


def dense_block():
    return forward_of(Dense(6, 32, 32), 10, 32, 224, 224)


def plain_stages():
    layers, inputs = [], 3
    for channels in (64, 128, 256):
        for _ in range(2):
            layers += [nn.Conv2d(inputs, channels, 3, padding=1), nn.BatchNorm2d(channels),
                       nn.ReLU()]
            inputs = channels
        layers.append(nn.MaxPool2d(2, 2))
    return forward_of(nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                                    nn.Linear(inputs, 10)), 8, 3, 224, 224)


def twice(inputs, channels):
    return nn.Sequential(
        nn.Conv2d(inputs, channels, 3, padding=1), nn.BatchNorm2d(channels), nn.Softmax(-1),
        nn.Conv2d(channels, channels, 3, padding=1), nn.BatchNorm2d(channels), nn.Softmax(-1))


class UNet(nn.Module):
    def __init__(self, inputs, outputs, features):
        super().__init__()
        sizes = [features * 2 ** level for level in range(5)]
        self.down = nn.ModuleList(map(twice, [inputs, *sizes[:-2]], sizes[:-1]))
        self.pool, self.bottom = nn.MaxPool2d(2, 2), twice(sizes[3], sizes[4])
        self.widen = nn.ModuleList(nn.ConvTranspose2d(2 * size, size, 2, 2)
                                   for size in reversed(sizes[:-1]))
        self.up = nn.ModuleList(twice(2 * size, size) for size in reversed(sizes[:-1]))
        self.out = nn.Conv2d(features, outputs, 1)

    def forward(self, pictures):
        kept = []
        for level in self.down:
            kept.append(level(pictures))
            pictures = self.pool(kept[-1])
        pictures = self.bottom(pictures)
        for widen, level in zip(self.widen, self.up):
            pictures = level(torch.cat((widen(pictures), kept.pop()), 1))
        return self.out(pictures)


def unet():
    return forward_of(UNet(8, 4, 64), 8, 8, 64, 512)


class Inception(nn.Module):
    """GoogLeNet's module, without activations."""

    def __init__(self, inputs):
        super().__init__()
        self.branches = nn.ModuleList([
            nn.Conv2d(inputs, 192, 1),
            nn.Sequential(nn.Conv2d(inputs, 96, 1), nn.Conv2d(96, 208, 3, padding=1)),
            nn.Sequential(nn.Conv2d(inputs, 16, 1), nn.Conv2d(16, 48, 5, padding=2)),
            nn.Sequential(nn.MaxPool2d(3, 1, 1), nn.Conv2d(inputs, 64, 1))])

    def forward(self, pictures):
        return torch.cat([branch(pictures) for branch in self.branches], 1)


def inception_module():
    return forward_of(Inception(480), 10, 480, 224, 224)


def normed(inputs, outputs, *more, **named):
    return [nn.Conv2d(inputs, outputs, *more, bias=False, **named), nn.BatchNorm2d(outputs)]


def mobile_block():
    """EfficientNet's: wider, every channel by itself, narrower."""
    wide = 6 * 112
    return forward_of(nn.Sequential(
        *normed(112, wide, 1), nn.ReLU6(inplace=True),
        *normed(wide, wide, 5, stride=2, padding=2, groups=wide), nn.ReLU6(inplace=True),
        *normed(wide, 192, 1)), 10, 112, 224, 224)


class Shuffle(nn.Module):
    def __init__(self, inputs, outputs, groups):
        super().__init__()
        narrow = outputs // 4
        self.narrow = nn.Sequential(*normed(inputs, narrow, 1, groups=groups), nn.ReLU())
        self.alone = nn.Sequential(*normed(narrow, narrow, 3, padding=1, groups=narrow),
                                   nn.ChannelShuffle(groups))
        self.widen = nn.Sequential(*normed(narrow, outputs, 1, groups=groups), nn.ReLU())
        self.shortcut = nn.Sequential(*normed(inputs, outputs, 1))

    def forward(self, pictures):
        result = self.widen(self.alone(self.narrow(pictures)))
        result += self.shortcut(pictures)
        return result


def shuffle_unit():
    return forward_of(Shuffle(240, 480, 3), 10, 240, 224, 224)


class CausalAttention(nn.Module):
    def __init__(self, width, heads, softmax=True, projected=True):
        super().__init__()
        self.heads, self.weigh = heads, nn.Softmax(-1) if softmax else nn.ReLU()
        self.inputs = nn.Linear(width, 3 * width)
        self.output = nn.Linear(width, width) if projected else None
        self.register_buffer('seen', torch.ones(1024, 1024).tril())

    def forward(self, tokens):
        batch, length, width = tokens.shape
        queries, keys, values = (part.unflatten(2, (self.heads, -1)).transpose(1, 2)
                                 for part in self.inputs(tokens).split(width, 2))
        scores = queries @ keys.transpose(2, 3) * queries.shape[-1] ** -0.5
        scores = scores.masked_fill(self.seen[:length, :length] == 0, float('-inf'))
        result = (self.weigh(scores) @ values).transpose(1, 2).contiguous().flatten(2)
        return result if self.output is None else self.output(result)


class ManyKernelsOfGelu(nn.Module):
    def forward(self, x):
        return 0.5 * x * (1.0 + torch.tanh(0.7978845608 * (x + 0.044715 * torch.pow(x, 3.0))))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.attention = nn.Sequential(nn.LayerNorm(width), CausalAttention(width, heads))
        self.mlp = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width),
                                 ManyKernelsOfGelu(), nn.Linear(4 * width, width))

    def forward(self, tokens):
        tokens = tokens + self.attention(tokens)
        return tokens + self.mlp(tokens)


def causal_attention():
    return forward_of(CausalAttention(768, 8), 128, 512, 768)


def relu_attention():
    return forward_of(CausalAttention(768, 12, softmax=False, projected=False), 16, 1024, 768)


def transformer_block():
    return forward_of(Block(768, 8), 128, 512, 768)


class Recurrent(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.layers = layers

    def forward(self, tokens):
        return self.layers(tokens)[0]


def lstm():
    return forward_of(Recurrent(nn.LSTM(128, 256, 6, batch_first=True)), 10, 512, 128)


def lstm_both_ways():
    return forward_of(Recurrent(nn.LSTM(128, 256, 6, batch_first=True, bidirectional=True)),
                      10, 512, 128)


def gru():
    return forward_of(Recurrent(nn.GRU(128, 256, 6)), 512, 10, 128)
'''

DEVICES = ('a100-40', 'a100-80', 'l40s', 't4')
# Milliseconds, by device; what the files call each network stands beside it.
TIMED = {
    'vgg16': (6.6, 6.13, 6.73, 54.1),             # 11_VGG16
    'vgg19': (7.65, 7.34, 7.51, 65.0),            # 12_VGG19
    'residual_block': (3.57, 3.18, 4.18, 16.3),   # 8_ResNetBasicBlock
    'dense_block': (14.7, 13.1, 21.0, 75.8),      # 14_DenseNet121DenseBlock
    'plain_stages': (4.66, 4.13, 4.3, 30.5),      # 27_RegNet
    'unet': (9.95, 9.4, 8.4, 79.9),               # 45_UNetSoftmax
    'alexnet': (1.32, 1.36, 1.05, 6.17),          # 5_AlexNet
    'inception_module': (17.5, 16.1, 22.4, 135.0),   # 6_GoogleNetInceptionModule
    'mobile_block': (11.0, 9.58, 19.5, 74.2),        # 21_EfficientNetMBConv
    'shuffle_unit': (16.7, 14.3, 27.8, 338.0),       # 25_ShuffleNetUnit
    'transformer_block': (75.4, 71.7, 69.2, 339.0),  # 44_MiniGPTBlock
    'causal_attention': (30.9, 29.6, 28.1, 137.0),   # 43_MinGPTCausalAttention
    'relu_attention': (12.7, 12.0, 14.8, 52.7),      # 50_ReLUSelfAttention
    'lstm': (28.3, 32.4, 19.2, 32.3),                # 35_LTSM
    'lstm_both_ways': (58.4, 50.8, 38.7, 71.8),      # 38_LTSMBidirectional
    # 39_GRU; what stands for the first device was timed on the second, as 36.7 ms.
    'gru': (None, 25.7, 19.6, 28.1),
}
# Those whose time is mostly that of convolutions with windows: AlexNet's passes are so short that
# launches and its first convolution, in fp32, decide; the module's are mostly a pool that does not
# stride.
FITTED = ('vgg16', 'vgg19', 'residual_block', 'dense_block', 'plain_stages', 'unet')
FITTED_ON = ('a100-40', 'a100-80')
LAW = (ROOT / 'model/kernel/convolution_law.cpp').read_text()
FITTED_RATE = float(re.search(r'ampere_tf32 = ([0-9.]+);', LAW)[1])
RATES = (0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0)


class Program(described.Program):
    def passes_ms(self, file, device, *settings):
        words = [f'cluster.device={device}', 'compare=[none]', *settings]
        words = [word for setting in words for word in ('--set', setting)]
        result = json.loads(self('run', str(file), *words, '--json', '-', '-q'))['results'][0]
        return result['forward_ms'], result['backward_ms']

    def forward_ms(self, file, device):
        return self.passes_ms(file, device)[0]


def describe(program, folder):
    """Writes a description of every network. Returns their files by name."""
    script = folder / 'networks.py'
    script.write_text(NETWORKS)
    files = {}
    for name in TIMED:
        files[name] = folder / f'{name}.yaml'
        program('describe', f'{script}:{name}', '--tf32', 'conv', '--quiet', '-o', str(files[name]))
    return files


def with_rate(device, rate):
    """The catalogue's device whose convolutions in TF32 have another rate. Nothing else of these
    networks multiplies in TF32, so that the device's efficiency stands for it."""
    of_format = re.compile(r'gemm_efficiency: .*?tf32: ([0-9.]+)')
    efficiency = float(of_format.search((CATALOGUE / f'{device}.yaml').read_text())[1])
    reached = {'tf32': efficiency * rate / FITTED_RATE}
    return json.dumps({'base': device, 'gemm_efficiency': reached})


def percent(error):
    return f'{100 * error:+.1f} %'


def against_timings(program, files):
    print('| forward pass of | on | predicted ms | timed ms | differ |')
    print('|---|---|--:|--:|--:|')
    for name, times in TIMED.items():
        for device, timed in zip(DEVICES, times):
            if timed is not None:
                predicted = program.forward_ms(files[name], device)
                print(f'| {name.replace("_", " ")} | {device} | {predicted:.2f} | {timed:g} | '
                      f'{percent(predicted / timed - 1)} |')


def by_rate(program, files):
    print('\n| rate of convolutions in TF32 | root of the mean square | mean error | '
          'ResNet-50, forward ms | backward ms |')
    print('|--:|--:|--:|--:|--:|')
    for rate in RATES:
        errors = []
        for device in FITTED_ON:
            changed = with_rate(device, rate)
            for name in FITTED:
                timed = TIMED[name][DEVICES.index(device)]
                errors.append(program.forward_ms(files[name], changed) / timed - 1)
        square = math.sqrt(sum(error ** 2 for error in errors) / len(errors))
        forward, backward = program.passes_ms(TRACED, with_rate('a100-40', rate),
                                              'workload.compute=tf32', 'cluster.launch=1 ns')
        print(f'| {rate:g} | {100 * square:.1f} % | {percent(sum(errors) / len(errors))} | '
              f'{forward:.2f} | {backward:.2f} |')


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--ddpsim', default=str(ROOT / 'build/release/tools/ddpsim'))
    program = Program(parser.parse_args().ddpsim)
    with tempfile.TemporaryDirectory() as scratch:
        files = describe(program, pathlib.Path(scratch))
        against_timings(program, files)
        by_rate(program, files)


if __name__ == '__main__':
    main()
