"""A job profiled from within, while it trains: 20 steps are watched, the job's own process group is
measured, and rank 0 says which bucket sizes to deploy.

    with ddpsim.profile(model):               # or DistributedDataParallel(model)
        for batch in loader: ...              # the loop as it is, gradient accumulation too

All ranks have to do so. The rest of the loop runs without hooks; what goes wrong with the
measurement is a line on stderr, and the training goes on. ddpsim.lightning, ddpsim.transformers and
`python -m ddpsim.attach` do the same where there is no loop to write around.
"""
import json
import os

import torch

from .files import quoted, workload_text, write
from .job import Job
from .job_profile import JobProfile
from .link import calibration_text, link_doubts, link_text, measure_link
from .messages import MIB, ProfileError, RankError, first_line, note, plural
from .script import together
from .steal import Steal
from .watch import Watch

FORMAT = 'ddpsim.job/1'
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
        self._watch = Watch(model, steps, warmup, self._finish)

    def start(self):
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
    steal = Steal()
    job = Job(watch.parameters[0].tensor.device, TIMEOUT) if _ranks() > 1 else None
    texts, link = {}, None
    try:
        profile = _of_all_ranks(watch, job)
        if job:
            slowest = together(job, profile)
            link = measure_link(job, None, _largest(profile), wishes.seconds,
                                lambda what: job.alive(),
                                beside_one_another=profile.alone)
            link['slowest'] = slowest
            texts['link.yaml'] = link_text(job, link)
            texts['calibration.yaml'] = calibration_text(job, link, profile.name)
        profile.notes += Steal.doubts(job.most(steal.share()) if job else steal.share())
    finally:
        if job:
            job.leave()
    if _rank() != 0:
        return None
    texts['workload.yaml'] = workload_text(profile)
    texts['scenario.yaml'] = scenario_text(profile, watch, bool(job))
    return _written(texts, profile, link, wishes)


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


def scenario_text(profile, watch, has_link):
    """The job as it is: its passes, its link, and what its DistributedDataParallel was told."""
    training = []
    if profile.micro_batches > 1:
        training = [f'micro_batches: {profile.micro_batches}',
                    f'no_sync: {"true" if profile.alone else "false"}']
    wrapper = watch.wrapper
    if profile.unused or getattr(wrapper, 'find_unused_parameters', False):
        training.append('find_unused_parameters: true')
    for name in ('static_graph', 'gradient_as_bucket_view'):
        if getattr(wrapper, name, False):
            training.append(f'{name}: true')
    cap = getattr(wrapper, 'bucket_bytes_cap', None)
    if cap and cap != 25 * MIB:
        training.append(f'bucket_cap: {cap} B')
    lines = ['# Written by ddpsim.profile within a job: what was measured, tied together.',
             f'name: {quoted(profile.name + " on " + plural(profile.ranks, "rank"))}',
             'workload: {model: workload.yaml}']
    lines += ['cluster: {calibration: calibration.yaml}'] if has_link else []
    return '\n'.join([*lines, f'training: {{{", ".join(training)}}}']) + '\n'


def _written(texts, profile, link, wishes):
    folder = os.path.splitext(wishes.output)[0]
    paths = {name: os.path.join(folder, name) for name in texts}
    if link is None:
        del texts['scenario.yaml']  # it has no cluster
    for name, text in texts.items():
        write(paths[name], text)
    for line in [*profile.notes, *(line for line in (link_doubts(link) if link else ())
                                   if '--seconds' not in line)]:
        note(line)
    report = {'format': FORMAT, 'metrics': _measured(profile), 'params': _params(profile, link)}
    note(_summary(report, profile))
    _add_verdict(report, paths, link, wishes)
    write(wishes.output, json.dumps(report, indent=1) + '\n')
    note(f'wrote {wishes.output}, and the profile in {folder}')
    return report


def _measured(profile):
    ms = {'step_ms': profile.total, 'passes_and_update_ms': profile.step,
          'forward_ms': profile.forward, 'backward_ms': profile.backward,
          'optimizer_ms': profile.optimizer, 'exposed_ms': profile.waiting}
    return {**{name: round(1e3 * value, 6) for name, value in ms.items()},
            'steps': len(profile.bare) + len(profile.watched), 'ranks': profile.ranks,
            'micro_batches': profile.micro_batches, 'gradient_bytes': profile.size}


def _params(profile, link):
    return {'model': profile.name, 'device': str(profile.device),
            'backend': link['backend'] if link else 'none'}


def _summary(report, profile):
    found = report['metrics']
    each = f' x {profile.micro_batches}' if profile.micro_batches > 1 else ''
    waiting = (f', {found["exposed_ms"]:.3f} ms of waiting for all-reduces'
               if profile.ranks > 1 else '')
    return (f'{plural(found["steps"], "step")} of {profile.name} on '
            f'{plural(profile.ranks, "rank")}: forward {found["forward_ms"]:.3f} ms{each}, '
            f'backward {found["backward_ms"]:.3f} ms{each}{waiting}, optimizer '
            f'{found["optimizer_ms"]:.3f} ms; step {found["step_ms"]:.3f} ms')


def _add_verdict(report, paths, link, wishes):
    """The bucket sizes to deploy, said and put into the report."""
    if link is None and wishes.cluster is None:
        report['params']['verdict'] = 'one rank has no communication: name a cluster'
        note(f'one rank averages nothing; next: ddpsim tune {paths["workload.yaml"]} '
             '--cluster NAME --nodes N')
        return
    try:
        import ddpsim
        if wishes.cluster is not None:
            plan = ddpsim.tune(paths['workload.yaml'], cluster=wishes.cluster, nodes=wishes.nodes,
                               progress=False)
        else:
            plan = ddpsim.tune(paths['scenario.yaml'], progress=False)
    except ImportError:
        note(f'ddpsim is not installed whole; next: ddpsim tune {paths["scenario.yaml"]}')
        return
    record, found = plan.record, report['metrics']
    given = record.get('given', {}).get('step_ms')
    if given is not None and link is not None and wishes.cluster is None:
        found['predicted_step_ms'] = round(given, 6)
        note(_against_measured(given, found['passes_and_update_ms']))
    for name, value in (('default_step_ms', plan.default_step_ms),
                        ('tuned_step_ms', plan.step_ms), ('bound_ms', plan.bound_ms),
                        ('gain', plan.gain)):
        found[name] = round(value, 6)
    arguments = ', '.join(f'{name}={value!r}' for name, value in plan.ddp_kwargs.items())
    if 'bucket_cap_mb' in plan.ddp_kwargs:
        found['bucket_cap_mb'] = plan.ddp_kwargs['bucket_cap_mb']
    report['params'].update(ddp_arguments=arguments, verdict=_verdict(plan))
    note(report['params']['verdict'])
    note(f'to paste: DistributedDataParallel(model{", " if arguments else ""}{arguments})')


MOST_OFF = 0.2  # of a step: beyond it a verdict is doubtful


def _against_measured(predicted, measured):
    error = predicted / measured - 1
    text = (f'as the job runs its step is predicted as {predicted:.2f} ms and took {measured:.2f} '
            f'ms ({100 * error:+.1f} %), without what feeds it')
    return text + (': take the verdict with care' if abs(error) > MOST_OFF else '')


def _verdict(plan):
    if not plan.pays:
        return (f'DDP\'s default buckets are as good as any: {plan.default_step_ms:.2f} ms, and no '
                f'buckets come below {plan.bound_ms:.2f} ms')
    return (f'other buckets save {100 * plan.gain:.1f} % of the step ({plan.default_step_ms:.2f} '
            f'-> {plan.step_ms:.2f} ms); no buckets come below {plan.bound_ms:.2f} ms')
