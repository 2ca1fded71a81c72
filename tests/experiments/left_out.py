#!/usr/bin/env python3
"""Predicts steps of each network of tests/data/h200 with constants that are computed without it.

    tests/experiments/left_out.py [--tests FOLDER] [--descriptions FOLDER] [--network NAME ...]
                                  [--json FILE] [--constants]

Every constant that steps or kernels of these networks decide is computed by one procedure from the
networks that are left: constants of kernels by fit_kernels on their rows (kernel_rows.py), those of
the host and of optimizers as the functions below say. Where no network is left that knows a class,
single operations decide (batch norms, gradients of layer norms), or the constant of the nearest
other class (NEAREST). Helper kernels that one network alone shows are not described for it.

The table of measured operations is of single operations; its factor of a step is computed anew, and
its rows of the shapes that the network multiplies are left out, whatever their number of samples:
the network is predicted as one of whose shapes nobody measured any.

--constants prints what the procedure yields of all networks: the constants that ddpsim has.

Needs what h200_steps.py needs.
"""
import argparse
import functools
import json
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

import yaml

import kernel_rows
import operations_table
import single_operations as single
from experiment import add_run, computed_now, rounded
from h200_steps import COMPUTE, DATA, FLAGS, PASSES, profiled, run, show

STEPS = json.loads((DATA / 'steps.json').read_text())['cases']
NETWORKS = list(dict.fromkeys(case.rsplit('-', 1)[0] for case in STEPS))

# What stands for constants of whose class no other network has a kernel.
NEAREST = {
    'layout_start_us': 1.3, 'layout_rate': 3.0,  # copies between tensors that lie differently
    'attention_sums_rate': 3.9,           # sums of rows
    'attention_copy_rate': 4.23,          # elementwise kernels
    'attention_backward_start_us': 13.3,  # attention itself
    'max_pool_backward': 63.8,            # the pool itself
    'max_pool_backward_last': 52}
# Constants of python/ddpsim/describe/host.py: of the profile of ResNet-101 (a launch within a call;
# else a launch of any kernel) and of its steps (what modules and gradients of parameters cost; else
# the cheapest call that was measured, a view).
OF_RESNET = {'LAUNCH': 5.0, 'MODULE': 3.0, 'ACCUMULATE': 3.0}
WITHOUT_RESNET = {'LAUNCH': 6.0, 'MODULE': 1.94, 'ACCUMULATE': 1.94}
KERNEL_GAP = 1.3e-3  # ms, model/kernel/kernel_law.hpp
LISTED = ('lm350', 'resnet101', 'mobile')  # whose kernels were listed


def network_of(case):
    return case.rsplit('-', 1)[0]


# --- descriptions ---

DESCRIBE = ('from ddpsim.describe import __main__, host; vars(host).update({}); __main__.main()')


@functools.lru_cache(maxsize=None)
def described_file(case, host, folder):
    """The case's description, a file. `host`: constants of host.py, as items."""
    name, mode = case.rsplit('-', 1)
    function = f'{name}_last' if mode == 'last' else name
    key = '-'.join(f'{value:g}' for _, value in host)
    file = pathlib.Path(folder, f'{case}-{key}.yaml')
    if not file.exists():
        run([sys.executable, '-W', 'ignore', '-c', DESCRIBE.format(dict(host)),
             DATA / f'networks.py:{function}', *FLAGS[mode], '--release', '2.11', '-q', '-o', file])
    return file


@functools.lru_cache(maxsize=None)
def document_of(file):
    return yaml.load(pathlib.Path(file).read_text(), yaml.CSafeLoader)


NOWHERE = 'multiprocessors: 10000'  # a kernel of devices with so many


def without_helpers(text, network):
    """Without the kernels that this network alone shows: memsets before sums and products; the
    helpers of convolutions in fp32; the sums of parts of recurrent layers in 16 bits."""
    if network == 'lm350':
        return re.sub(r'(\{op: (?:cublas\.)?memset,)(?! multiprocessors)',
                      rf'\1 {NOWHERE},', re.sub(r'(op: cublas\.memset.*?), capability: [\d.]+',
                                                r'\1', text))
    if network == 'resnet101':
        return re.sub(r', launches_in_fp32: \d+', '', text)
    if network == 'lstm':
        summed = r'(\{op: aten\.lstm_backward, kind: memory, type: bf16, read: (\d+), written: \2,)'
        return re.sub(summed, rf'\1 {NOWHERE},', text)
    return text


# --- what is known without a network ---

class Known:
    """Constants computed from all networks but one (None: from all)."""

    def __init__(self, network, rows, arguments):
        self.network, self.arguments = network, arguments
        self.constants = dict(NEAREST)
        self.constants |= held_by_block(network)
        self.constants |= around_attention(network)
        self.constants |= self.of_kernels(kernel_rows.rows_without(rows, network))
        if not any(row.group == 'layout_narrow' and row.network != network for row in rows):
            self.constants['layout_narrow_rate'] = self.constants['layout_rate']
        self.products = in_a_step(network)
        self.constants['product_of_a_step'] = self.products['all']
        self.host = dict(WITHOUT_RESNET if network == 'resnet101' else OF_RESNET)
        self.host['LIBRARY_LAUNCH'] = self.host['LAUNCH']
        self.constants['host_of_a_step'] = self.host_of_a_step()
        self.host |= self.library_launch()
        self.constants |= self.optimizers()

    def everything(self):
        return self.constants | self.host | {f'{name} in a step': value for name, value
                                             in self.products.items() if name != 'all'}

    def cases(self, *names):
        return [case for case in STEPS if network_of(case) in (names or NETWORKS)
                and network_of(case) != self.network]

    def of_kernels(self, rows):
        """By fit_kernels."""
        with tempfile.TemporaryDirectory() as folder:
            description = pathlib.Path(folder, 'rows.yaml')
            description.write_text(single.description([(None, None, row.kernels) for row in rows]))
            measured = pathlib.Path(folder, 'rows.csv')
            measured.write_text('layer,group,us,single\n' + ''.join(
                f'r{n},{row.group},{row.us},{int(row.single)}\n' for n, row in enumerate(rows)))
            device = pathlib.Path(folder, 'device.yaml')
            device.write_text('base: h200\noperations: none\n')
            said = run([pathlib.Path(self.arguments.tests, 'fit_kernels'), description, measured,
                        device])
        values = {name: float(value) for name, value in
                  (line.split('=') for line in said.splitlines())}
        return {name: value if value >= 0.01 else 0.0 for name, value in values.items()}

    def priced(self, case, file, device='h200', **more):
        """{pass: [us busy, launches, us of the host, in a step]}"""
        mode = case.rsplit('-', 1)[1]
        constants = {**self.constants, **more}
        text = run([pathlib.Path(self.arguments.tests, 'price_description'), file, device,
                    *COMPUTE.get(mode, []),
                    *(f'{name}={value:.9g}' for name, value in constants.items())])
        found = {}
        for line in text.splitlines()[1:]:
            cells = line.split(',')
            each = found.setdefault(cells[-10], [0.0, 0, 0.0])
            each[0] += float(cells[-3])
            each[1] += int(cells[-4])
            each[2] += float(cells[-2])
        return found

    def host_of_a_step(self):
        """A step less its optimizer, over what its calls take in a loop, is the factor where the
        device does not bound the step, and no less than the factor elsewhere. Of the networks whose
        kernels were listed: the least of the former; if there is none, the middle (of logarithms)
        between a loop's 1 and the least of the latter."""
        factors, bounds = [], []
        for case in self.cases(*LISTED):
            passes = STEPS[case]['step'] - STEPS[case]['optimizer']
            device = STEPS[case]['busy'] + KERNEL_GAP * STEPS[case]['kernels']
            (factors if device < passes / 1.05 else bounds).append(
                1e3 * passes / self.warm_host(case))
        return float(f'{min(factors) if factors else min(bounds) ** 0.5:.2g}')

    def warm_host(self, case):
        """Microseconds of all calls of forward and backward in a loop."""
        priced = self.priced(case, self.described(case), host_of_a_step=1)
        return sum(priced[each][2] for each in PASSES)

    def described(self, case):
        return described_file(case, tuple(self.host.items()), self.arguments.descriptions)

    def library_launch(self):
        """What a launch of sorts and of recurrent layers in 16 bits, which libraries make in a row,
        takes in a loop: of the steps of dlrm and lstm-amp, which are made of these, their time by
        kernel; the networks' mean."""
        found = {}
        for case in self.cases('dlrm', 'lstm'):
            passes = STEPS[case]['step'] - STEPS[case]['optimizer']
            if case != 'lstm-fp32':
                found.setdefault(network_of(case), []).append(1e3 * passes / STEPS[case]['kernels'])
        launch = statistics.mean(map(min, found.values())) / self.constants['host_of_a_step']
        return {'LIBRARY_LAUNCH': round(launch, 1)}

    def optimizers(self):
        """The rate that the device's optimizers reach; the host's time for a tensor."""
        shares = {'optimizer_rate': {}, 'optimizer_few_rate': {}}
        tensors_us = {}
        for case in self.cases():
            file = described_file(case, tuple(OF_RESNET.items()), self.arguments.descriptions)
            document = document_of(file)
            tensors = len(document['parameters'])
            busy, _, host = self.priced(case, file, optimizer_rate=1,
                                        optimizer_few_rate=1, optimizer_tensor_us=0)['optimizer']
            us = 1e3 * STEPS[case]['optimizer']
            if document['optimizer'] == 'sgd':  # with momentum: the host's
                tensors_us.setdefault(network_of(case), []).append((us - host) / tensors)
            else:
                name = 'optimizer_rate' if tensors >= 100 else 'optimizer_few_rate'
                shares[name].setdefault(network_of(case), []).append(busy / us)
        # The networks' medians, so that none counts by its modes.
        middle = lambda found: statistics.median(map(statistics.median, found.values()))
        return {**{name: float(f'{middle(found):.2g}') for name, found in shares.items() if found},
                'optimizer_tensor_us': float(f'{middle(tensors_us):.2g}')}


def held_by_block(network):
    """Bytes of a channel up to which cuDNN's batch norms read it once."""
    most, least = 0, float('inf')
    for each in kernel_rows.profiled():
        row = kernel_rows.norm_row(each)
        if row is None or row.network == network or not row.kernels[0]['op'] == 'batch_norm':
            continue
        size = row.kernels[0]['pattern']['columns'] * (8 if 'backward' in row.group else 4)
        if row.group.endswith('once'):
            most = max(most, size)
        else:
            least = min(least, size)
    return {'batch_norm_held_bytes': float(f'{(most * least) ** 0.5:.3g}')}


def around_attention(network):
    """Rates of the two kernels around cuDNN's gradient of attention."""
    if network == 'lm350':
        return {}
    found = {}
    for each in kernel_rows.profiled():
        for part, name, size in (('compute_dot_do_o', 'attention_sums_rate', 4),
                                 ('convert_dq', 'attention_copy_rate', 6)):
            if part in each['kernel']:
                bytes_moved = size * kernel_rows.elements(each['shapes'][0])
                found[name] = float(f'{bytes_moved / each["us"] / 1e6:.3g}')
    return found


def in_a_step(network):
    """What products take in a step over what they take in a loop of their own: {format: factor};
    the median over products of lm350, and over convolutions of resnet101 with channels last, of the
    shapes that were measured alone."""
    alone = {}
    for _, row, _ in single.measured_rows():
        us = float(row['us']) - single.EVENTS
        if row['kind'] == 'gemm':
            m, n, k = map(int, row['shape'].split('x'))
            sides = {'forward NT': (m, n, k), 'input NN': (m, k, n), 'weight TN': (n, k, m)}
            alone[row['dtype'], *sides[row['what']]] = us
        elif row['kind'] == 'conv nhwc' and row['what'] == 'forward':
            n, channels, side, outputs, window, stride, groups = map(int, row['shape'].split('x'))
            if (stride, groups) == (1, 1):
                alone[row['dtype'], channels, side, outputs, window] = us / n
    found = {'bf16': [], 'tf32': [], 'conv': []}
    for each in kernel_rows.profiled():
        dtype = 'bf16' if each['mode'] in ('amp', 'last') else each['mode']
        if each['network'] == network or 'Memset' in each['kernel'] or dtype == 'fp32':
            continue
        if each['op'] in ('mm', 'addmm') and each['network'] == 'lm350':
            (m, k), (_, n) = each['shapes'][-2:]
            if us := alone.get((dtype, m, n, k)):
                found[dtype].append(each['us'] / us)
        elif each['op'] == 'cudnn_convolution' and each['mode'] == 'last':
            (n, channels, side, _), (outputs, _, window, _) = each['shapes'][:2]
            if us := alone.get((dtype, channels, side, outputs, window)):
                found['conv'].append(each['us'] / us / n)
    medians = {name: statistics.median(some) for name, some in found.items() if some}
    all = float(f'{statistics.median(medians.values()):.2g}')
    return {name: float(f'{medians.get(name, all):.3g}') for name in found} | {'all': all}


# --- one network left out ---

def shape_of(kernel):
    """What the table's classes hold fixed of a product or a convolution, samples left out."""
    if kernel.get('conv'):
        conv = kernel['conv']
        return ('conv', *(conv[key] for key in ('channels', 'pixels', 'outputs', 'places',
                                                'window')), conv.get('groups', 1))
    if kernel.get('gemm') and 'conv' not in kernel:
        gemm, along = kernel['gemm'], kernel.get('along_k', kernel['gemm'].get('along_k', 2))
        return 'gemm', along, gemm['m'] if along == 0 else gemm['k'], gemm['n']
    return None


def table_without(network, known, descriptions, folder):
    """The device with its table, less the rows of shapes that the network multiplies."""
    own = {shape_of(kernel) for file in descriptions for kernel in document_of(file)['kernels']}
    factors = {name: known.products[name] for name in ('bf16', 'tf32')} | {'fp32': 1}
    rows = [row for row in operations_table.table_rows(factors=factors,
                                                       convolutions=known.products['conv'])
            if shape_of(row[0]) not in own]
    pathlib.Path(folder, 'table.yaml').write_text(operations_table.text_of(rows))
    device = pathlib.Path(folder, 'h200.yaml')
    device.write_text('base: h200\noperations: table.yaml\n')
    return device, len(rows)


def predicted(case, known, file, device, kernels):
    """As a case of h200_steps.py."""
    measured, found = STEPS[case], known.priced(case, file, device)
    ms = {name: busy / 1e3 for name, (busy, _, _) in found.items()}
    row = {'case': case, 'step_ms': ms['step'], 'measured_step_ms': measured['step'],
           'error': ms['step'] / measured['step'] - 1,
           'optimizer_ms': max(found['optimizer'][0], found['optimizer'][2]) / 1e3,
           'measured_optimizer_ms': measured['optimizer']}
    for each in PASSES:
        row[f'{each}_ms'], row[f'measured_{each}_ms'] = ms[f'step {each}'], measured[each]
        if (case, each) in kernels:
            row[f'{each}_busy_ms'], row[f'{each}_kernels'] = ms[each], found[each][1]
            row[f'measured_{each}_busy_ms'], row[f'measured_{each}_kernels'] = kernels[case, each]
    return row


def without(network, rows, arguments, folder):
    """The network's cases, predicted without it: with the table of other shapes, and with all."""
    known = Known(network, rows, arguments)
    cases = [case for case in STEPS if network_of(case) == network]
    files = {}
    for case in cases:
        files[case] = pathlib.Path(folder, f'{case}.yaml')
        changed = without_helpers(known.described(case).read_text(), network)
        # The checksum of the file as it was written holds no more.
        files[case].write_text(re.sub(r'(\nend: \S+) .*', r'\1', changed))
    device, count = table_without(network, known, [known.described(case) for case in cases], folder)
    kernels = profiled()
    found = []
    for case in cases:
        row = predicted(case, known, files[case], device, kernels)
        row['error_with_its_shapes'] = predicted(case, known, files[case], 'h200',
                                                 kernels)['error']
        found.append(row)
    return found, known.everything() | {'rows of operations': count}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--ddpsim', default=single.ROOT / 'build/release/tools/ddpsim')
    parser.add_argument('--tests', default=single.ROOT / 'build/release/tests')
    parser.add_argument('--descriptions', help='where descriptions are kept; default: nowhere')
    parser.add_argument('--network', nargs='*', default=NETWORKS)
    parser.add_argument('--constants', action='store_true')
    parser.add_argument('--json')
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        arguments.descriptions = arguments.descriptions or folder
        rows = kernel_rows.all_rows()
        constants = {'all': Known(None, rows, arguments).everything()}
        if arguments.constants:
            for name, value in constants['all'].items():
                print(f'{name} = {value:g}')
            return
        cases = []
        for network in arguments.network:
            found, constants[network] = without(network, rows, arguments, folder)
            cases += found
            print(f'{network} done', file=sys.stderr)
    show(cases)
    print('with its shapes:', *(f'{row["case"]} {100 * row["error_with_its_shapes"]:+.1f} %'
                                for row in cases))
    if arguments.json:
        add_run(arguments.json, __file__,
                rounded({**computed_now(arguments.ddpsim), 'cases': cases,
                         'constants': constants}), ('case',))


if __name__ == '__main__':
    main()
