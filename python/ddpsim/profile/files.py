"""The files. The YAML is written by hand: every text is quoted, every time has its unit."""
import contextlib
import datetime
import json
import os
import platform
import tempfile

import torch

from .._files import sealed
from .._files import write as write_whole
from .messages import plural


def quoted(text):
    """YAML's double quotes take JSON's escapes."""
    text = json.dumps(text.encode('utf-8', 'replace').decode(), ensure_ascii=False)
    return ''.join(letter if letter.isprintable() else f'\\U{ord(letter):08x}' for letter in text)


def milliseconds(seconds):
    return f'{max(seconds, 1e-9) * 1e3:.6f} ms'


def commented(text):
    return '# ' + ''.join(letter if letter.isprintable() else '?' for letter in text)


def check_folder(folder):
    """OSError if no file can be written into `folder`, which need not be there: so that nobody
    learns that after minutes of measuring. Leaves everything as it was."""
    missing, there = [], os.path.abspath(folder)
    while not os.path.isdir(there):
        missing.append(there)
        there = os.path.dirname(there)
    with contextlib.ExitStack() as made:
        for path in reversed(missing):
            os.mkdir(path)
            made.callback(os.rmdir, path)
        with tempfile.TemporaryFile(dir=folder):
            pass


def write(path, text):
    folder = os.path.dirname(path)
    if folder:
        os.makedirs(folder, exist_ok=True)
    write_whole(path, text)


def processor():
    try:
        with open('/proc/cpuinfo') as file:
            for line in file:
                if line.startswith('model name'):
                    return line.split(':', 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def device_name(device):
    if device.type == 'cuda':
        return torch.cuda.get_device_name(device)
    return f'{processor()}, {plural(torch.get_num_threads(), "thread")}'


def source_text(device):
    return f'torch {torch.__version__}, {device_name(device)}, {datetime.date.today()}'


def doubts_line(doubts):
    """The key `doubts` of a file, in a list; no line where there are none."""
    return [f'doubts: [{", ".join(quoted(text) for text in doubts)}]'] if doubts else []


def workload_text(profile):
    between = profile.total - profile.forward - profile.backward - (profile.optimizer or 0)
    lines = [
        commented(f'{profile.name}, profiled by ddpsim.profile. ' + profile.cost_text() + '.'),
        '# Times of the passes are of steps without hooks; `ready` is the share of backward '
        'measured with them.',
        commented(
            f'step {milliseconds(profile.total)}, of which between the passes '
            f'{milliseconds(between)}'
        )
    ]
    lines += [commented(text) for text in profile.notes]
    lines += [
        'format: ddpsim.workload/1', 'written_by: ddpsim.profile',
        f'source: {quoted(source_text(profile.device))}',
        f'forward: {milliseconds(profile.forward)}', f'backward: {milliseconds(profile.backward)}'
    ]
    if profile.optimizer is not None:
        lines.append(f'optimizer: {milliseconds(profile.optimizer)}')
    if profile.spread is not None:
        lines.append(
            f'step_spread: {profile.spread:.4f}  # from one step to the next: of several ranks, '
            'the slowest counts'
        )
    lines += doubts_line(profile.doubts)
    lines.append('parameters:')
    for index, (parameter, ready) in enumerate(zip(profile.parameters, profile.ready)):
        lines.append(
            f'  - {{name: {quoted(parameter.name)}, shape: {parameter.shape}, dtype: '
            f'{parameter.dtype}, '
            + ('sparse: true, ' if parameter.sparse else '') +
            (f'rows: {parameter.rows}, ' if parameter.sparse and parameter.rows else '') +
            ('unused: true, ' if index in profile.unused else '') +
            f'ready: {milliseconds(ready)}}}')
    if profile.buffers:
        lines.append('buffers:')
        lines += [
            f'  - {{tensors: {tensors}, bytes: {size}}}  # {dtype}'
            for dtype, tensors, size in profile.buffers
        ]
    lines += [f'arrival: {profile.arrival}', 'end: ddpsim.workload/1']
    return sealed('\n'.join(lines) + '\n')


def scenario_text(name, unused):
    training = '{find_unused_parameters: true}' if unused else '{}'
    return (
        f'# Written by ddpsim.profile: what was measured, tied together.\nname: {quoted(name)}\n'
        'workload: {model: workload.yaml}\ncluster: {calibration: calibration.yaml}\n'
        f'training: {training}\n')
