"""What `python -m ddpsim.profile` does, and `ddpsim.profile()`."""
import os
import pathlib
import sys

import torch

from .._user_step import loss_function
from .arguments import rank_prefix
from .computation import Passes
from .files import check_folder, scenario_text, workload_text, write
from .job import Job
from .link import (calibration_text, link_doubts, link_summary, link_text, measure_link,
                   table_doubts)
from .messages import ProfileError, RankError, first_line, note, plural
from .parameters import parameters_of
from .script import load, profiled, together
from .steal import Steal


def device_of(wishes, made):
    """Where ranks compute: that of the model, or of --backend where there is none."""
    if made:
        device = parameters_of(made[0])[0].tensor.device
        if wishes.backend and (wishes.backend == 'nccl') != (device.type == 'cuda'):
            raise ProfileError(
                f'--backend {wishes.backend}: the model is on {device}; nccl goes with cuda, '
                'gloo with cpu'
            )
        return device
    if wishes.backend == 'nccl' and not torch.cuda.is_available():
        raise ProfileError('--backend nccl: torch sees no GPU')
    if wishes.backend == 'gloo' or not torch.cuda.is_available():
        return torch.device('cpu')
    return torch.device('cuda', torch.cuda.current_device())


def ranks_of_environment():
    size = os.environ.get('WORLD_SIZE', '1')
    if not size.isdigit() or int(size) < 1:
        raise ProfileError(f'WORLD_SIZE: expected a number of ranks, got "{size}"')
    return int(size)


class Found:
    """The files' texts, and what is said of them."""

    def __init__(self):
        self.files, self.summary, self.notes = {}, [], []
        self.unused = False


def measured(wishes, made, job, progress):
    found, profile, steal = Found(), None, Steal()
    if made:
        profile = profiled(wishes, made, job, progress)
        slowest = together(job, profile) if job else None
        found.summary += profile.summary()
        found.notes += profile.notes
        found.unused = bool(profile.unused)
    if job:
        link = measure_link(job, Passes(*made[:3]) if made else None, wishes.largest,
                            wishes.seconds, progress)
        if profile:
            link['slowest'] = slowest
        found.summary.append(link_summary(link))
        found.notes += link_doubts(link)
    stolen = Steal.doubts(job.most(steal.share()) if job else steal.share())
    found.notes += stolen
    if profile:
        profile.doubts += stolen
        found.files['workload.yaml'] = workload_text(profile)
    if job:
        of_link = [*table_doubts(link), *stolen]
        found.files['link.yaml'] = link_text(job, link, of_link)
        found.files['calibration.yaml'] = calibration_text(
            job, link, profile.name if profile else 'none', of_link)
        if profile:
            found.files['scenario.yaml'] = scenario_text(
                f'{profile.name} on {plural(job.ranks, "rank")}', profile.unused)
    return found


def measured_files(wishes, made, say=lambda line: None):
    """Writes the files of `wishes.output`, rank 0 alone, and says what they hold. Returns the path
    of the one to give to ddpsim."""
    many = ranks_of_environment() > 1
    # What is wrong with the model or the folder is said before anyone waits for this rank.
    if os.environ.get('RANK', '0') == '0':
        check_folder(wishes.output)
    of_loss = []
    if made:
        model, batch, loss, optimizer = made
        made = model, batch, loss_function(loss, of_loss, ProfileError), optimizer
    device = device_of(wishes, made)
    job = Job(device, wishes.timeout) if many else None
    speaks = job is None or job.rank == 0
    shown = sys.stderr.isatty() and speaks

    def progress(text):
        if job:
            job.alive()
        if shown:
            print(f'\r\x1b[K{text}', end='', file=sys.stderr, flush=True)
    found = measured(wishes, made, job, progress)
    if shown:
        print('\r\x1b[K', end='', file=sys.stderr)
    paths = {name: os.path.join(wishes.output, name) for name in found.files}
    if speaks:
        for line in of_loss + found.notes:
            note(line)
        for name, text in found.files.items():
            write(paths[name], text)
        say('\n'.join([
            *found.summary, 'wrote ' + ', '.join(paths.values()),
            'next: ' + next_command(wishes.output, found.files, device, found.unused)
        ]))
    if job:
        job.leave()
    return pathlib.Path(paths.get('scenario.yaml') or next(iter(paths.values())))


def run(wishes):
    many = ranks_of_environment() > 1
    if wishes.link_only and not many:
        raise ProfileError(
            '--link-only measures between ranks: start them with torchrun, or set RANK and '
            'WORLD_SIZE'
        )
    if many and torch.cuda.is_available():  # before the script says .cuda()
        torch.cuda.set_device(int(os.environ.get('LOCAL_RANK', '0')) % torch.cuda.device_count())
    measured_files(wishes, load(wishes.script) if wishes.script else None, print)
    return 0


def next_command(folder, files, device, unused):
    if 'scenario.yaml' in files:
        return f'ddpsim tune {os.path.join(folder, "scenario.yaml")}'
    workload = os.path.join(folder, 'workload.yaml') if 'workload.yaml' in files else 'WORKLOAD'
    link = os.path.join(folder, 'link.yaml') if 'link.yaml' in files else 'LINK'
    return (f'ddpsim tune {workload} --link {link} --ranks N '
            f'--device {"generic-cpu" if device.type == "cpu" else "DEVICE"}'
            f'{" --set training.find_unused_parameters=true" if unused else ""}')


def main(wishes):
    """The exit code."""
    rank = rank_prefix()
    try:
        return run(wishes)
    except ProfileError as problem:
        note(f'{rank}{problem}')
        return 2
    except OSError as problem:
        note(f'{rank}{problem}')
        return 2
    except KeyboardInterrupt:
        return 130
    except RankError as problem:
        note(f'{rank}{problem}')
        return 1
    except RuntimeError as problem:
        # It comes from a collective: errors of the user's own code were caught before.
        note(
            f'{rank}a collective failed; did another rank die or fall behind? '
            f'({first_line(problem)})'
        )
        return 1
