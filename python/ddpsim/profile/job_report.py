"""The report of a job that was profiled from within: its files, what is said of it, the verdict."""
import json
import os

from .files import quoted, write
from .link import link_doubts
from .messages import MIB, first_line, note, plural

FORMAT = 'ddpsim.job/1'


def scenario_text(profile, wrapper):
    """The job as it is: its passes, its link, and what its DistributedDataParallel (`wrapper`, or
    None) was told."""
    training = []
    if profile.micro_batches > 1:
        training = [f'micro_batches: {profile.micro_batches}',
                    f'no_sync: {"true" if profile.alone else "false"}']
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
             'workload: {model: workload.yaml}', 'cluster: {calibration: calibration.yaml}',
             f'training: {{{", ".join(training)}}}']
    return '\n'.join(lines) + '\n'


def written(texts, profile, link, wishes):
    """Writes the profile's files and the report, and says what is in it. Returns the report.
    `wishes`: a JobWatch."""
    folder = os.path.splitext(wishes.output)[0]
    paths = {name: os.path.join(folder, name) for name in texts}
    for name, text in texts.items():
        write(paths[name], text)
    of_link = list(link_doubts(link)) if link else []
    for line in [*profile.notes, *of_link]:
        note(line)
    report = {'format': FORMAT, 'metrics': _measured(profile),
              'params': _params(profile, link, of_link)}
    note(_summary(report, profile))
    try:
        _add_verdict(report, paths, link, wishes, bool(profile.doubts))
    except (ValueError, RuntimeError) as problem:  # a cluster that nobody knows, say
        report['params']['verdict'] = f'none: {first_line(problem)}'
        note(f'no verdict: {first_line(problem)}')
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


def _params(profile, link, of_link):
    """`doubts` is there only where something of the measurement is doubtful."""
    doubts = '; '.join([*profile.doubts, *of_link])
    return {'model': profile.name, 'device': str(profile.device),
            'backend': link['backend'] if link else 'none',
            **({'doubts': doubts} if doubts else {})}


def _summary(report, profile):
    found = report['metrics']
    each = f' x {profile.micro_batches}' if profile.micro_batches > 1 else ''
    waiting = (f', {found["exposed_ms"]:.3f} ms of waiting for all-reduces'
               if profile.ranks > 1 else '')
    return (f'{plural(found["steps"], "step")} of {profile.name} on '
            f'{plural(profile.ranks, "rank")}: forward {found["forward_ms"]:.3f} ms{each}, '
            f'backward {found["backward_ms"]:.3f} ms{each}{waiting}, optimizer '
            f'{found["optimizer_ms"]:.3f} ms; step {found["step_ms"]:.3f} ms')


def _add_verdict(report, paths, link, wishes, disturbed):
    """The bucket sizes to deploy, said and put into the report. `disturbed`: other programs
    disturbed what was measured."""
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
        note('the program ddpsim is not there to say more; next: ddpsim tune '
             f'{paths.get("scenario.yaml", paths["workload.yaml"])}')
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
    report['params'].update(ddp_arguments=arguments, verdict=_verdict(plan, disturbed))
    note(report['params']['verdict'])
    when = ', if a quiet measurement says the same' if disturbed else ''
    note(f'to paste{when}: DistributedDataParallel(model{", " if arguments else ""}{arguments})')


MOST_OFF = 0.2  # of a step: beyond it a verdict is doubtful


def _against_measured(predicted, measured):
    error = predicted / measured - 1
    text = (f'a step of the job as it is was predicted as {predicted:.2f} ms and took '
            f'{measured:.2f} ms ({100 * error:+.1f} %), not counting the loading of data')
    return text + (': take the verdict with care' if abs(error) > MOST_OFF else '')


def _verdict(plan, disturbed):
    if disturbed:
        return f'resting on a disturbed measurement: {_verdict(plan, False)}'
    if not plan.pays:
        return (f'keep DDP\'s default buckets: the step takes {plan.default_step_ms:.2f} ms, and '
                f'no buckets bring it below {plan.bound_ms:.2f} ms')
    return (f'other buckets save {100 * plan.gain:.1f} % of the step ({plan.default_step_ms:.2f} '
            f'-> {plan.step_ms:.2f} ms); no buckets bring it below {plan.bound_ms:.2f} ms')
