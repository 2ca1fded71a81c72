"""Descriptions against the kernels that an H200 ran, and against what their calls cost its host
(tests/data/h200, tests/experiments/described_kernels.py)."""
import csv
import gzip
import importlib.util

import pytest
from describe_models import ROOT, torch

from ddpsim.describe import DescribeError, describe, host


@pytest.fixture(scope='module')
def experiment():
    file = ROOT / 'tests/experiments/described_kernels.py'
    specification = importlib.util.spec_from_file_location('described_kernels', file)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.mark.parametrize('case', ['lm350-amp', 'lm350-fp32', 'resnet101-last', 'resnet101-tf32',
                                  'mobile-last', 'mobile-tf32'])
def test_kernels_of_both_passes_are_those_an_h200_ran(experiment, case):
    """Operations are equal in number, kind and shapes; kernels in number within 3 %."""
    workload, operations = experiment.described(case)
    totals, seen = experiment.real(case)
    for backward, kernels in ((False, workload.forward), (True, workload.backward)):
        ours = experiment.launches(kernels, case.split('-')[1])
        assert abs(ours - totals[backward]) < 0.03 * totals[backward]
        assert experiment.differing(operations[backward], seen[backward]) == []


def test_the_hosts_figures_are_the_measured_ones():
    measured = {}
    with gzip.open(ROOT / 'tests/data/h200/operations.csv.gz', 'rt') as file:
        for row in csv.DictReader(file):
            if row['kind'] == 'host':
                measured[row['what'], row['dtype']] = float(row['us'])
    for name, microseconds in host.BACKWARD.items():
        assert microseconds == measured[f'{name} backward', 'grad']
    for table, mode in ((host.PLAIN, 'plain'), (host.GRAD, 'grad'),
                        (host.AUTOCAST, 'grad+autocast')):
        for name, microseconds in table.items():
            assert microseconds == measured[name, mode]


@pytest.mark.parametrize('case, forward, backward', [
    ('lm350-amp', 17.4, 35.5), ('resnet101-last', 17.0, 24.4)])
def test_the_hosts_time_of_a_step_is_near_that_of_a_measured_one(experiment, case, forward,
                                                                 backward):
    """Passes that end with a synchronisation: there calls cost 1.65 times what they cost in a loop,
    which was found on these two networks and not from this table."""
    workload, _ = experiment.described(case)
    for kernels, milliseconds in ((workload.forward, forward), (workload.backward, backward)):
        ours = 1.65e-3 * sum(kernel.host for kernel in kernels)
        assert ours == pytest.approx(milliseconds, rel=0.08)


class Pair(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)

    def forward(self, x):
        return self.b(self.a(x).view(4, 2, 8).view(8, 8))


def test_views_and_modules_are_in_the_hosts_time_of_the_next_kernel():
    found = describe(Pair(), torch.randn(8, 8), lambda model, x: model(x).sum())
    first, second, _ = found.forward
    # The row of linear; before the first two modules, before the second one and two views.
    assert first.host == round(25.43 + 2 * 3, 1)
    assert second.host == round(25.43 + 3 + 2 * 1.94, 1)
    assert f'host: {first.host} us' in found.text()
    on_cpu = describe(Pair(), torch.randn(8, 8), lambda model, x: model(x).sum(), device='cpu')
    assert 'host:' not in on_cpu.text() and on_cpu.release is None


def test_a_linear_layers_backward_shares_the_hosts_time_of_its_row():
    found = describe(Pair(), torch.randn(8, 8), lambda model, x: model(x).relu().sum())
    products = [k.host for k in found.backward if k.gemm]
    sums = [k.host for k in found.backward if k.op == 'aten.sum']
    third = round(77.43 / 3, 1)
    assert products[:2] == 2 * [third] and sums[0] == third


def test_patterns_say_how_kernels_go_over_memory():
    def patterns(forward, *shapes, **settings):
        class Model(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.p = torch.nn.ParameterList(torch.nn.Parameter(torch.randn(s)) for s in shapes)

            def forward(self, x):
                return forward(*self.p)
        found = describe(Model(), torch.zeros(1), lambda m, x: m(x).sum(), **settings)
        return [tuple(k.pattern)[:5] if k.pattern else None for k in found.forward[:-1]]

    f = torch.nn.functional
    assert patterns(lambda x: x.relu(), (4, 6)) == [None]
    assert patterns(lambda x: f.gelu(x), (4, 6)) == [('gelu', 0, 0, False, False)]
    assert patterns(lambda x: x.t() + 1, (4, 6)) == [None]  # read and written as it lies
    assert patterns(lambda x, y: x.t() + y, (4, 6), (6, 4)) == [('strided', 0, 0, False, False)]
    assert patterns(lambda x: x.bfloat16().float(), (4, 6)) == [
        None, ('widening', 0, 0, False, False)]
    assert patterns(lambda x: x.bfloat16() + x, (4, 6)) == [
        None, ('mixed', 0, 0, False, False)]
    assert patterns(lambda x: x.softmax(-1), (4, 6)) == [('softmax', 4, 6, False, False)]
    assert patterns(lambda x: x.sum(0), (4, 6)) == [('sum_of_rows', 4, 6, False, False)]
    assert patterns(lambda x: x.sum(1), (4, 6)) == [('reduce', 4, 6, False, False)]
    assert patterns(lambda x: x.mean(), (4, 6)) == [('sum', 1, 24, False, False)]
    assert patterns(lambda x: f.layer_norm(x, (6,)), (4, 6)) == [
        ('layer_norm', 4, 6, False, False)]
    assert patterns(lambda x: f.max_pool2d(x, 3, 2), (2, 3, 9, 9)) == [
        ('max_pool', 2 * 3 * 16, 9, False, False)]
    assert patterns(lambda x: f.group_norm(x, 3), (2, 6, 4, 4)) == [
        ('group_norm', 6, 32, False, False)]


def test_batch_norms_in_bf16_are_kernels_of_pytorchs_own():
    def ops(last):
        norm = torch.nn.BatchNorm2d(48, dtype=torch.bfloat16)
        data = torch.randn(4, 48, 8, 8).bfloat16()
        data = data.to(memory_format=torch.channels_last) if last else data
        convolution = torch.nn.Conv2d(48, 48, 1).bfloat16()
        found = describe(torch.nn.Sequential(convolution, norm, torch.nn.ReLU()), data,
                         lambda m, x: (m(x) * m(x)).sum())
        return [[k.pattern.of for k in kernels if k.pattern
                 and k.pattern.of.startswith('batch_norm')][:2]
                for kernels in (found.forward, found.backward)]
    both = ['batch_norm_statistics', 'batch_norm_transform']
    assert ops(last=False) == [both, ['batch_norm_own'] * 2]
    assert ops(last=True) == [both, both]


def test_convolutions_say_what_they_are():
    def convs(model, *shape):
        found = describe(model, torch.randn(shape, requires_grad=True),
                         lambda m, x: m(x).relu().sum())
        return [tuple(k.conv) for k in found.forward + found.backward if k.conv]

    plain = (2, 8, 100, 6, 25, 9, 2, False)
    assert convs(torch.nn.Conv2d(8, 6, 3, 2, 1, groups=2), 2, 8, 10, 10) == [
        (which, *plain) for which in ('forward', 'input', 'weight')]
    # The one that a transposed convolution undoes goes from its result to its input.
    assert convs(torch.nn.ConvTranspose2d(6, 8, 4, 2, 1), 2, 6, 5, 5) == [
        (which, 2, 8, 100, 6, 25, 16, 1, False) for which in ('input', 'forward', 'weight')]


def test_launches_within_a_call_cost_bare_ones_beyond_its_figure():
    convolution = torch.nn.Conv2d(64, 64, 3, padding=1, bias=False)
    found = describe(convolution, torch.randn(2, 64, 8, 8).bfloat16(),
                     lambda m, x: m.to(torch.bfloat16)(x).sum())
    kernels = [k for k in found.forward if k.op.startswith(('cudnn', 'aten.conv'))]
    # layout, layout, helper, product, layout: the figure holds two launches, a memset is in it.
    assert [k.op for k in kernels] == ['cudnn.layout'] * 2 + [
        'cudnn.helper', 'aten.convolution', 'cudnn.layout']
    assert [k.host for k in kernels[1:]] == [0, 0, 5, 5]


def test_the_release_is_said_and_decides_rms_norm():
    norm = torch.nn.RMSNorm(8)
    made = {release: describe(norm, torch.randn(4, 8), lambda m, x: m(x).sum(), release=release)
            for release in ('2.6', '2.11')}
    assert made['2.11'].forward[0].op == 'aten._fused_rms_norm'
    assert 'aten._fused_rms_norm' not in [k.op for k in made['2.6'].forward]
    assert 'release: "2.6"' in made['2.6'].text()
    assert describe(norm, torch.randn(4, 8), lambda m, x: m(x).sum()).release == '2.13'
    with pytest.raises(DescribeError, match='unknown release of PyTorch "2.9"; known: 2.6'):
        describe(norm, torch.randn(4, 8), lambda m, x: m(x).sum(), release='2.9')


def test_a_batch_norm_says_how_many_pixels_a_picture_has():
    norm = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 1), torch.nn.BatchNorm2d(8))
    found = describe(norm, torch.randn(2, 3, 7, 5), lambda m, x: m(x).sum())
    [pattern] = [k.pattern for k in found.forward if k.pattern and 'norm' in k.pattern.of]
    assert (pattern.rows, pattern.columns, pattern.inner) == (8, 2 * 7 * 5, 7 * 5)
    assert 'inner: 35' in found.text()
