"""The link between the ranks: all that is measured of it, and its files."""
import datetime
import os
import platform
import statistics
import time

import torch

from .._files import sealed
from .all_reduce import (GLOO_THREADS, LARGEST_STREAMED, all_reduce_time, issue_time, stream_time,
                         without_disturbance)
from .computation import Multiplications, Passes
from .copies import copy_times, flatten_times
from .files import device_name, doubts_line, milliseconds, quoted, source_text
from .interference import (beside_compute, compute_slowdown, computation_time, longest_beside)
from .messages import KIB, MIB, note, plural


def measure_link(job, compute, largest, seconds, progress, beside_one_another=True):
    """What link.yaml and calibration.yaml hold, as a dictionary; everyone's together.
    `beside_one_another`: what all-reduces and computation cost each other, too."""
    sizes = [4 * KIB << power for power in range(40) if 4 * KIB << power <= largest]
    measured = {}
    began = time.monotonic()
    for number, size in enumerate(sizes):
        progress(f'all-reduce of {size // KIB} KiB')
        measured[size] = all_reduce_time(job, size, 0.4 * seconds / len(sizes))
        if 2 <= number < len(sizes) - 1 and job.most(time.monotonic() - began) > 0.6 * seconds:
            if job.rank == 0:
                note(
                    f'all-reduces beyond {size // KIB} KiB are left out: {seconds:g} s are not '
                    'enough for them'
                )
            break

    def measure_again(size):
        progress(f'all-reduce of {size // KIB} KiB, again')
        return all_reduce_time(job, size, 0.4 * seconds / len(sizes))
    measured = without_disturbance(measured, measure_again)
    streamed = streams(job, measured, 0.15 * seconds, progress)
    progress('copies')
    copies = copy_times(job, min(largest, 64 * MIB))
    copies += flatten_times(job, min(largest, 64 * MIB))
    progress('issuing')
    issue = issue_time(job)
    found = {
        'ranks': job.ranks,
        'backend': job.backend,
        'all_reduce': measured,
        'streamed': streamed,
        'copies': copies,
        'issue': issue,
        'handover': 0.0,
        'slowest': 1.0,
        'interference': None,  # not asked for
        'beside': 'nothing: times of computation were taken beside communication',
        'machines': job.machines
    }
    if beside_one_another:
        found.update(interference(job, compute, measured, streamed, seconds, progress))
    return found


def interference(job, compute, measured, streamed, seconds, progress):
    """What all-reduces and computation cost each other."""
    beside = seconds / 8  # of the time, for each size
    if compute is None:
        compute = Multiplications(job.device, job.clock)
    alone, slowest = computation_time(job, compute)
    if alone > longest_beside(beside):
        compute = Multiplications(job.device, job.clock)
        alone, _ = computation_time(job, compute)
    points, handovers = [], []
    for size in (64 * KIB, 256 * KIB, MIB, 4 * MIB, 16 * MIB):
        if size not in measured:
            continue
        idle = streamed.get(size, measured[size].median)
        progress(f'all-reduces of {size // KIB} KiB beside computation')
        each, handover = beside_compute(job, size, seconds / 16, idle)
        progress(f'computation beside all-reduces of {size // KIB} KiB')
        longer = each / idle
        slowdown = compute_slowdown(job, compute, alone, size, measured[size].median * longer,
                                    beside)
        if slowdown is None:
            continue
        points.append(
            {'bytes': size, 'compute_slowdown': slowdown, 'communication_slowdown': longer})
        if size >= MIB:
            handovers.append(handover)
    return {
        'handover': statistics.median(handovers) if handovers and job.device.type == 'cpu' else 0.0,
        # Ranks on CPUs that share a core or a cache share it unevenly, multiplications more
        # than a model: its own steps say it (`together`), or nothing does.
        'slowest': slowest if job.device.type == 'cuda' else 1.0,
        'interference': points,
        'beside': ('forward and backward of the model' if isinstance(compute, Passes)
                   else 'matrix multiplications')
    }


def streams(job, measured, seconds, progress):
    """{size: seconds of each of a stream}, where several are under way at a time: under Gloo."""
    if job.backend != 'gloo':
        return {}
    sizes = [size for size in measured if size <= LARGEST_STREAMED]
    times = {}
    for size in sizes:
        progress(f'all-reduces of {size // KIB} KiB, several under way')
        times[size] = stream_time(job, size, measured[size].median, seconds / len(sizes))
    return times


def link_text(job, link, doubts=()):
    """`doubts`: why the table is of little use, a sentence each."""
    lines = [
        f'# Measured by ddpsim.profile: {link["ranks"]} ranks on '
        f'{plural(link["machines"], "machine")}, '
        f'{link["backend"]}; from the last arrival to the last end, medians of means over several '
        'in a row.',
        'format: ddpsim.link/1', 'written_by: ddpsim.profile',
        f'source: {quoted(source_text(job.device))}', f'ranks: {link["ranks"]}',
        *doubts_line(doubts), 'all_reduce:'
    ]
    lines += [
        f'  - {{bytes: {size}, time: {milliseconds(spread.median)}}}'
        for size, spread in link['all_reduce'].items()
    ]
    lines.append('end: ddpsim.link/1')
    return sealed('\n'.join(lines) + '\n')


def calibration_text(job, link, workload, doubts=()):
    now = datetime.datetime.now(datetime.timezone.utc)
    interface = (os.environ.get('GLOO_SOCKET_IFNAME') or os.environ.get('NCCL_SOCKET_IFNAME')
                 or 'default interface')
    lines = [
        f'# Measured by ddpsim.profile; interference beside {link["beside"]}.',
        'format: ddpsim.calibration/1', f'backend: {quoted("torch " + link["backend"])}',
        f'machine: {quoted(f"{platform.node()}, {platform.system()} {platform.release()}")}',
        f'cpu: {quoted(device_name(job.device))}',
        f'link: {quoted(f"{interface}, " + plural(link["machines"], "machine"))}',
        f'versions: {quoted("torch " + torch.__version__)}',
        f'date: {quoted(f"{now:%Y-%m-%dT%H:%M:%SZ}")}', f'workload: {quoted(workload)}',
        *doubts_line(doubts),
        f'ranks: {link["ranks"]}',
        f'synchronous: {"true" if job.device.type == "cpu" else "false"}',
        *([f'collectives_at_once: {GLOO_THREADS}'] if link['streamed'] else []),
        f'launch: {{collective: {milliseconds(link["issue"])}, handover: '
        f'{milliseconds(link["handover"])}}}',
        f'slowest_rank: {max(1.0, link["slowest"]):.4f}', 'tasks:'
    ]
    lines += [f'  - {{operation: {operation}, traffic: {traffic} B, {spread.text()}}}'
              for operation, traffic, spread in link['copies']]
    lines.append('all_reduce:')
    lines += [f'  - {{bytes: {size}, {spread.text()}{streamed_text(link, size)}}}'
              for size, spread in link['all_reduce'].items()]
    if link['interference']:
        lines.append('interference:')
        lines += [
            f'  - {{bytes: {point["bytes"]}, compute_slowdown: {point["compute_slowdown"]:.4f}, '
            f'communication_slowdown: {point["communication_slowdown"]:.4f}}}'
            for point in link['interference']
        ]
    lines.append('end: ddpsim.calibration/1')
    return sealed('\n'.join(lines) + '\n')


def streamed_text(link, size):
    return f', streamed: {milliseconds(link["streamed"][size])}' if size in link['streamed'] else ''


def link_summary(link):
    parts = [
        f'{size // KIB} KiB {1e3 * spread.median:.3f} ms'
        if size < MIB else f'{size // MIB} MiB {1e3 * spread.median:.2f} ms'
        for size, spread in link['all_reduce'].items() if size in (4 * KIB, MIB, 16 * MIB, 64 * MIB)
    ]
    text = f'all-reduce over {link["ranks"]} ranks ({link["backend"]}): ' + ', '.join(parts)
    if link['interference']:
        point = link['interference'][-1]
        text += ('; beside one another computation takes '
                 f'{point["compute_slowdown"]:.2f} times as long and all-reduces '
                 f'{point["communication_slowdown"]:.2f} times')
    return text


def table_doubts(link):
    """What makes the table of all-reduces doubtful: repeats far apart, or a size that takes less
    than a smaller one."""
    name = lambda size: f'{size // KIB} KiB' if size < MIB else f'{size // MIB} MiB'
    points = list(link['all_reduce'].items())
    wide = [
        name(size) for size, spread in points
        if size >= 64 * KIB and spread.high > 1.5 * spread.median
    ]
    falls = [
        name(size) for (_, before), (size, spread) in zip(points, points[1:])
        if spread.median < 0.9 * before.median
    ]
    if wide:
        yield (f'repeats of all-reduces of {", ".join(wide)} are more than 50 % apart: is the '
               'machine or the link busy?')
    if falls:
        yield (f'all-reduces of {", ".join(falls)} took less time than smaller ones: measure again '
               'when it is quiet')


def link_doubts(link):
    """The doubts about the table, and what is missing beside it."""
    yield from table_doubts(link)
    if link['ranks'] > 1 and link['interference'] == []:
        yield ('what all-reduces cost the computation beside them could not be measured in the '
               'time: give more with --seconds')
