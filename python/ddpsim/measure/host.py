"""What PyTorch's calls cost this machine's processor, next to another machine's.

Five operations on small CPU tensors, by one thread. A call that computes next to nothing takes as
long as Python and PyTorch's dispatcher do, which is what enqueueing a kernel takes as well. Single
operations move by a tenth from run to run; the mean of five by 3 to 8 per cent. What CUDA's calls
cost is another number, by operation, so that only the ratio of two hosts means something, and never
that of two operations.
"""
import datetime
import json
import math
import statistics
import time

from .._files import sealed
from .errors import MeasureError
from .files import WRITTEN_BY, processor, quoted, read, top_level

FORMAT = 'ddpsim.host/1'
CALLS = 200  # of an operation, one behind the other
OPERATIONS = ('add', 'view', 'linear', 'layer_norm', 'conv2d')


def calls(torch):
    """[name] A function that calls the operation once."""
    matrix = torch.randn(64, 64)
    picture = torch.randn(1, 8, 8, 8)
    linear = torch.nn.Linear(64, 64)
    norm = torch.nn.LayerNorm(64)
    convolution = torch.nn.Conv2d(8, 8, 3, padding=1)
    return {'add': lambda: matrix + matrix, 'view': lambda: matrix.view(4096),
            'linear': lambda: linear(matrix), 'layer_norm': lambda: norm(matrix),
            'conv2d': lambda: convolution(picture)}


def measured(seconds):
    """[name] Microseconds of a call: the median of rounds in which each operation has its turn. Of
    the thread's processor time, so that other processes do not count."""
    import torch
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        functions = calls(torch)
        rounds = {name: [] for name in OPERATIONS}
        end = time.perf_counter() + seconds
        while time.perf_counter() < end or not rounds['add']:
            for name in OPERATIONS:
                function = functions[name]
                for _ in range(10):
                    function()
                begin = time.thread_time()
                for _ in range(CALLS):
                    function()
                rounds[name].append((time.thread_time() - begin) / CALLS * 1e6)
    finally:
        torch.set_num_threads(threads)
    return {name: statistics.median(times) for name, times in rounds.items()}


def geometric_mean(values):
    values = list(values)
    return math.exp(sum(map(math.log, values)) / len(values))


def reference(path):
    """(microseconds by name, factor, name) of a file that another machine wrote."""
    values = top_level(read(path, '--reference'))
    if values.get('format') != FORMAT:
        raise MeasureError(f'--reference: {path}: expected a file of `python -m ddpsim.measure '
                           f'host` (format: {FORMAT})')
    try:
        times = {name: float(values['measured'][name].removesuffix(' us')) for name in OPERATIONS}
        factor = float(values.get('factor', 1))
        if min(*times.values(), factor) <= 0:
            raise ValueError
    except (KeyError, TypeError, ValueError, AttributeError):
        raise MeasureError(f'--reference: {path}: expected `measured` with a time in us of each of '
                           f'{", ".join(OPERATIONS)}') from None
    return times, factor, values.get('host', path)


def host_text(times, factor, source, torch_version, name):
    lines = [f'format: {FORMAT}', f'written_by: {WRITTEN_BY}', f'source: {quoted(source)}',
             f'host: {quoted(name)}', f'torch: {quoted(torch_version)}',
             f'date: {quoted(datetime.date.today())}',
             'measured: ' + json.dumps({key: f'{us:.4f} us' for key, us in times.items()})]
    if factor is not None:
        lines.append(f'factor: {factor:.3f}')
    return sealed('\n'.join([*lines, f'end: {FORMAT}']) + '\n')


def run(seconds, against=None):
    """(the file's text, what is said)"""
    import torch
    known = reference(against) if against else None
    times = measured(seconds)
    name = processor()
    said = [f'{key}: {us:.2f} us' for key, us in times.items()]
    said.append(f'geometric mean: {geometric_mean(times.values()):.2f} us a call')
    factor = None
    source = f'five operations on CPU tensors, one thread, {seconds:g} s'
    if known:
        other, of_other, other_name = known
        factor = of_other * geometric_mean(times[key] / other[key] for key in OPERATIONS)
        source += f'; factor over {other_name}'
        said.append(f'factor: {factor:.3f} (over {other_name})')
    else:
        said.append('no factor: --reference takes the file that this command wrote on another host')
    return host_text(times, factor, source, torch.__version__, name), said
