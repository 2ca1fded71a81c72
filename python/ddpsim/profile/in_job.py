"""A job profiled from within, while it trains: 20 steps are watched, the job's own process group is
measured, and rank 0 says which bucket sizes to deploy.

    with ddpsim.profile(model):               # or DistributedDataParallel(model)
        for batch in loader: ...              # the loop as it is, gradient accumulation too

All ranks have to do so. The rest of the loop runs without hooks; what goes wrong with the
measurement is a line on stderr, and the training goes on. ddpsim.lightning, ddpsim.transformers and
`python -m ddpsim.attach` do the same where there is no loop to write around.
"""
import os

import torch

from .files import workload_text
from .job import Job
from .job_profile import JobProfile
from .job_report import scenario_text, written
from .link import calibration_text, link_text, measure_link, table_doubts
from .messages import MIB, ProfileError, RankError, first_line, note
from .script import together
from .steal import Steal
from .watch import Watch

TIMEOUT = 120.0  # seconds for which a rank may let the others wait


class JobWatch:
    """`with` it around a training loop, or call start() and stop().

    `output` is the file of the report, a JSON of `metrics`, which are numbers, and `params`, as
    trackers of experiments take them; the profile's files lie in a folder beside it, of its name
    without the ending. `cluster` and `nodes`: for which the bucket sizes are meant instead of this
    job's own ranks. `seconds`: about how long the link is measured.
    """

    def __init__(self, model, *, steps=20, warmup=3, output='ddpsim.json', cluster=None, nodes=None,
                 seconds=10.0):
        self.output, self.cluster, self.nodes = os.fspath(output), cluster, nodes
        self.seconds, self.report = seconds, None
        self._watch, self.steal = Watch(model, steps, warmup, self._finish), None

    def start(self):
        self.steal = Steal()
        self._watch.start()
        return self

    @property
    def running(self):
        return self._watch.running

    @property
    def taken(self):
        """Steps that count, by now."""
        return len(self._watch.taken)

    def stop(self):
        """Ends early, with what was taken by then; does nothing where it has ended already."""
        if self._watch.running:
            self._watch.stop()
            self._finish()

    def abandon(self):
        """Ends without asking the other ranks for anything."""
        self._watch.stop()

    def __enter__(self):
        return self.start()

    def __exit__(self, kind, *_):
        if kind is None:
            self.stop()
        else:
            self.abandon()
        return False

    def _finish(self):
        device = self._watch.parameters[0].tensor.device
        try:
            with torch.random.fork_rng([] if device.type == 'cpu' else [device]):
                self.report = reported(self._watch, self)
        except Exception as problem:
            no_verdict(problem)


def started(model, settings):
    """A JobWatch of a job that goes on whatever goes wrong here: None then."""
    try:
        return JobWatch(model, **settings).start()
    except Exception as problem:
        no_verdict(problem)
        return None


def no_verdict(problem):
    """Says why there is none. ddpsim's own mistakes are told as such."""
    if _rank() == 0:
        own = not isinstance(problem, (ProfileError, RankError, OSError, RuntimeError, ValueError))
        note(f'no verdict: {f"{type(problem).__name__}: " if own else ""}{first_line(problem)}')


def _rank():
    import torch.distributed as dist
    here = dist.is_available() and dist.is_initialized()
    return dist.get_rank() if here else int(os.environ.get('RANK') or 0)


def _ranks():
    import torch.distributed as dist
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def reported(watch, wishes):
    """The report, of rank 0; None of others."""
    job = Job(watch.parameters[0].tensor.device, TIMEOUT) if _ranks() > 1 else None
    texts, link = {}, None
    try:
        profile = _of_all_ranks(watch, job)
        if job:
            slowest = together(job, profile)
            link = measure_link(job, None, _largest(profile), wishes.seconds,
                                lambda what: job.alive(), beside_one_another=profile.alone)
            link['slowest'] = slowest
        share = wishes.steal.share()
        stolen = Steal.doubts(job.most(share) if job else share)
        profile.notes += stolen
        profile.doubts += stolen
        if job:
            of_link = [*table_doubts(link), *stolen]
            texts['link.yaml'] = link_text(job, link, of_link)
            texts['calibration.yaml'] = calibration_text(job, link, profile.name, of_link)
            texts['scenario.yaml'] = scenario_text(profile, watch.wrapper)
    finally:
        if job:
            job.leave()
    if _rank() != 0:
        return None
    texts['workload.yaml'] = workload_text(profile)
    return written(texts, profile, link, wishes)


def _of_all_ranks(watch, job):
    """This rank's profile. Where one rank has none, no rank goes on."""
    profile, problem = None, ''
    try:
        profile = JobProfile(watch, job.ranks if job else 1)
    except ProfileError as found:
        problem = str(found)
    problems = [text for text in (job.texts(problem) if job else [problem]) if text]
    if problems:
        raise ProfileError(problems[0])
    if job:
        profile.waiting, profile.step = (job.mean(each) for each in (profile.waiting,
                                                                     profile.step))
    return profile


def _largest(profile):
    """Bytes of the largest all-reduce worth measuring: no bucket is larger than all gradients."""
    return min(64 * MIB, max(MIB, 2 * profile.size))
