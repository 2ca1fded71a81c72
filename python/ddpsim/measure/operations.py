"""A table of single operations of this device (format: ddpsim.operations/1), which goes before the
laws of kernels: `device: {base: h200, operations: my-gpu.yaml}`.

The file is written anew after every second of measuring, whole each time. A second start reads it
and goes on with what is missing.
"""
import datetime
import json
import os
import time

import torch

from .._files import sealed
from .cases import cases
from .clocks import clock_of
from .errors import MeasureError, first_line
from .files import WRITTEN_BY, processor, quoted, read, top_level, write

FORMAT = 'ddpsim.operations/1'
ROW = '  - '
BETWEEN_WRITES = 1.0  # seconds


def device_of(name):
    try:
        device = torch.device(name)
    except RuntimeError:
        raise MeasureError(f'--device: expected cuda, cuda:1 or cpu, got "{name}"') from None
    if device.type == 'cpu':
        return device
    if device.type != 'cuda':
        raise MeasureError(f'--device: {name}: only CUDA devices and CPUs are measured')
    if not torch.cuda.is_available():
        raise MeasureError('no GPU is there that this PyTorch can use; --device cpu tries the '
                           'command without one')
    if (device.index or 0) >= torch.cuda.device_count():
        raise MeasureError(f'--device: {name}: there are {torch.cuda.device_count()} GPUs, '
                           'counted from 0')
    torch.cuda.set_device(device)
    return device


def device_name(device):
    return torch.cuda.get_device_name(device) if device.type == 'cuda' else processor()


def driver_of(device):
    """The driver's release, "" where nobody says."""
    if device.type != 'cuda':
        return ''
    try:
        with open('/sys/module/nvidia/version') as file:
            return file.read().strip()
    except OSError:
        return ''


def key_of(keys):
    return json.dumps(keys, sort_keys=True)


class Table:
    """What has been measured so far, and where it is kept."""

    def __init__(self, path, device):
        self.path = path
        self.rows = {}  # [key] the row's line
        self.seconds = 0.0
        self.head = {'device': device_name(device), 'torch': torch.__version__,
                     'driver': driver_of(device)}
        if os.path.exists(path):
            self._read()

    def _read(self):
        text = read(self.path, '--output')
        values = top_level(text)
        if values.get('format') != FORMAT or values.get('written_by') != WRITTEN_BY:
            raise MeasureError(f'--output: {self.path} is there and no table of this command: '
                               'take another name')
        for key, here in self.head.items():
            if here and values.get(key, here) != here:
                raise MeasureError(f'--output: {self.path} is of {key} {values[key]}, and this is '
                                   f'{here}: take another name')
        try:
            for line in text.splitlines():
                if line.startswith(ROW):
                    keys = json.loads(line[len(ROW):])
                    del keys['time']
                    self.rows[key_of(keys)] = line
            self.seconds = float(values.get('seconds', 0))
        except (KeyError, TypeError, ValueError):
            raise MeasureError(f'--output: {self.path} was changed by hand: take another name, or '
                               'take it away') from None

    def __contains__(self, case):
        return key_of(case.keys()) in self.rows

    def add(self, case, seconds):
        keys = case.keys()
        self.rows[key_of(keys)] = ROW + json.dumps(keys | {'time': f'{seconds * 1e6:.2f} us'})

    def save(self, seconds):
        """`seconds`: of this start."""
        lines = [f'format: {FORMAT}', f'written_by: {WRITTEN_BY}',
                 'source: python -m ddpsim.measure operations']
        lines += [f'{key}: {quoted(value)}' for key, value in self.head.items() if value]
        lines += [f'date: {quoted(datetime.date.today())}',
                  f'seconds: {self.seconds + seconds:.1f}', 'operations:', *self.rows.values(),
                  f'end: {FORMAT}']
        write(self.path, sealed('\n'.join(lines) + '\n'))


def set_tf32(on):
    torch.backends.cuda.matmul.allow_tf32 = on
    torch.backends.cudnn.allow_tf32 = on


def measure_case(clock, case, device):
    """Seconds; None where the device does not do it, or has no memory for it."""
    set_tf32(case.type == 'tf32')
    try:
        with torch.set_grad_enabled(case.kind == 'attention'):
            return clock.time(case.make(device))
    except (RuntimeError, MemoryError) as problem:
        if device.type == 'cuda':
            torch.cuda.empty_cache()
            if 'CUDA error' in str(problem):  # nothing works any more
                raise MeasureError(f'{case.kind} {json.dumps(case.shape)}: {first_line(problem)}'
                                   ) from None
        return None


def run(path, device_text, seconds, classes, say):
    """Measures for so long. Returns whether all is measured now."""
    device = device_of(device_text)
    table = Table(path, device)
    begin = time.monotonic()
    wanted = cases(device, classes)
    missing = [case for case in wanted if case not in table]
    say(f'{table.head["device"]}, torch {torch.__version__}: {len(missing)} operations to measure'
        + (f', {len(wanted) - len(missing)} are in {path}' if len(missing) < len(wanted) else ''))
    left_out, written, done = 0, begin, 0
    torch.manual_seed(0)
    clock = clock_of(device) if missing else None
    try:
        for case in missing:
            if done and time.monotonic() - begin > seconds:
                break
            done += 1
            found = measure_case(clock, case, device)
            if found is None:
                left_out += 1
                continue
            table.add(case, found)
            if time.monotonic() - written > BETWEEN_WRITES:
                written = time.monotonic()
                table.save(written - begin)
    finally:
        if done > left_out:
            table.save(time.monotonic() - begin)
    if left_out:
        say(f'{left_out} operations are not there on this device, or need more memory than it has')
    if done < len(missing):
        say(f'{len(missing) - done} are missing yet: the same command goes on with them')
    if not table.rows:
        raise MeasureError('no operation could be measured')
    say(f'{len(table.rows)} operations in {path}; in a scenario: device: {{base: NAME, operations: '
        f'{path}}}')
    return done == len(missing)
