"""Plans: what to give to DistributedDataParallel, and that it makes the buckets that were
predicted."""
import json
import subprocess

import pytest

import ddpsim


def test_a_plan_says_what_the_program_says(program, scenarios):
    file = scenarios / 'examples/two-workstations.yaml'
    plan = ddpsim.tune(file)
    done = subprocess.run([program, 'tune', file, '--json', '-'], capture_output=True, text=True,
                          check=True)
    assert plan.record == json.loads(done.stdout)
    assert plan.bound_ms <= plan.step_ms <= plan.default_step_ms
    assert plan.bound_ms == plan.record['lower_bound_ms']
    assert 'to paste:' in plan.report() and 'bucket_cap_mb=' in repr(plan)
    assert plan.gain == pytest.approx(1 - plan.step_ms / plan.default_step_ms)
    assert len(plan.rows()) == len(plan.record['caps'])


def test_the_step_of_the_arguments_is_that_of_a_scenario_with_them(scenarios):
    plan = ddpsim.tune(scenarios / 'examples/two-workstations.yaml')
    scenario = ddpsim.load(scenarios / 'examples/two-workstations.yaml')
    scenario['training'] = {'strategy': 'bucketed', 'pytorch': '2.13', **settings(plan.ddp_kwargs)}
    scenario['compare'] = ['bucketed']
    assert ddpsim.run(scenario)['bucketed'].step_ms == pytest.approx(plan.step_ms, rel=1e-9)


def settings(arguments):
    """DistributedDataParallel's arguments as a scenario has them."""
    if 'bucket_cap_mb_list' in arguments:
        caps = [f'{int(cap * 1024 * 1024)} B' for cap in arguments['bucket_cap_mb_list']]
        return {'bucket_caps': caps}
    if 'bucket_cap_mb' in arguments:
        return {'bucket_cap': f'{int(arguments["bucket_cap_mb"] * 1024 * 1024)} B'}
    return {}


# Links from so slow that one bucket is best to so fast that the caps matter little.
@pytest.mark.parametrize('bandwidth', ['0.5 GB/s', '2 GB/s', '10 GB/s', '40 GB/s'])
@pytest.mark.parametrize('latency', ['1 us', '200 us', '5 ms'])
def test_arguments_hold_at_any_link(bandwidth, latency):
    scenario = {'workload': {'model': 'bert-base', 'batch': 8, 'sequence': 128},
                'cluster': {'device': 'v100', 'nodes': 4,
                            'inter_node': {'latency': latency, 'bandwidth': bandwidth}}}
    plan = ddpsim.tune(scenario)
    assert plan.bound_ms <= plan.step_ms <= plan.default_step_ms * 1.001
    trained = {**scenario, 'compare': ['bucketed'],
               'training': {'pytorch': '2.13', **settings(plan.ddp_kwargs)}}
    assert ddpsim.run(trained)['bucketed'].step_ms == pytest.approx(plan.step_ms, rel=1e-9)


def test_flags_of_the_training_come_along(small):
    plan = ddpsim.tune({**small, 'training': {'gradient_as_bucket_view': True,
                                              'static_graph': True}})
    assert plan.ddp_kwargs['gradient_as_bucket_view'] and plan.ddp_kwargs['static_graph']


def test_a_cluster_by_its_name(program, scenarios):
    workload = {'workload': {'model': 'gpt2-xl', 'batch': 4, 'sequence': 1024, 'dtype': 'bf16'}}
    plan = ddpsim.tune(workload, cluster='dgx-h100', nodes=4)
    assert plan.record['cluster']['nodes'] == 4
    assert plan.record['cluster']['ranks_per_node'] == 8
    profile = scenarios / 'examples/profiles/profile.yaml'
    tuned = ddpsim.tune(profile, cluster='dgx-h100', nodes=2)
    done = subprocess.run([program, 'tune', profile, '--cluster', 'dgx-h100', '--nodes', '2',
                           '--json', '-'], capture_output=True, text=True, check=True)
    assert tuned.record == json.loads(done.stdout)


class Described:
    """A workload that knows its own text, as what ddpsim.describe returns does."""
    model = 'my network'

    def __init__(self, file):
        self.file = file

    def text(self):
        return self.file.read_text(encoding='utf-8')


def test_a_workload_is_an_object_too(scenarios):
    profile = scenarios / 'examples/profiles/profile.yaml'
    by_object = ddpsim.tune(Described(profile), 'dgx-h100', 2)
    by_file = ddpsim.tune(profile, 'dgx-h100', 2)
    assert by_object.step_ms == by_file.step_ms and by_object.ddp_kwargs == by_file.ddp_kwargs
    assert by_object.scenario == 'my network'
    inside = {'workload': {'model': Described(profile)}, 'cluster': 'dgx-h100'}
    assert ddpsim.run(inside)['bucketed'].step_ms > 0


def test_torch_makes_the_buckets_that_were_predicted(scenarios):
    torch = pytest.importorskip('torch', reason='NOT RUN: no torch')
    distributed = pytest.importorskip('torch.distributed')
    made = pytest.importorskip('torch.nn.parallel.distributed')
    if not hasattr(made, '_BucketCapacityConfig'):
        pytest.skip('NOT RUN: another release of torch')
    plan = ddpsim.tune(scenarios / 'examples/two-workstations.yaml')
    shown = ddpsim.load(scenarios / 'examples/two-workstations.yaml')
    shown['training'] = {'pytorch': '2.13', **settings(plan.ddp_kwargs)}
    shown['compare'] = ['bucketed']
    predicted = [bucket.bytes for bucket in ddpsim.run(shown)['bucketed'].buckets]
    caps = made._BucketCapacityConfig.create(
        bucket_cap_mb=plan.ddp_kwargs.get('bucket_cap_mb'),
        bucket_cap_mb_list=plan.ddp_kwargs.get('bucket_cap_mb_list'), use_python_reducer=False)
    limits, _ = caps.compute_bucket_size_limits(static_graph=False, find_unused_parameters=True)
    # Gradients as they arrive, a bucket for each; in halves as in the scenario.
    apart = {**shown, 'training': {'pytorch': '2.13', 'bucket_cap': '1 B'}}
    tensors = [torch.empty(bucket.bytes // 2, dtype=torch.bfloat16, device='meta')
               for bucket in ddpsim.run(apart)['bucketed'].buckets]
    buckets, _ = distributed._compute_bucket_assignment_by_size(tensors, limits)
    assert [sum(tensors[i].nbytes for i in bucket) for bucket in buckets] == predicted


@pytest.mark.parametrize('hook', [
    'allreduce', 'bf16_compress', 'fp16_compress', 'noop', 'quantization_pertensor',
    'quantization_perchannel', 'batched_powersgd', {'powersgd': {'rank': 4}},
    {'bf16_compress_wrapper': {'powersgd': {'rank': 2}}}])
def test_the_lines_that_register_a_comm_hook_run(scenarios, hook):
    pytest.importorskip('torch')
    scenario = ddpsim.load(scenarios / 'examples/two-workstations.yaml')
    scenario['training'] = {'comm_hook': hook}
    report = ddpsim.tune(scenario).report()
    lines = [line.strip() for line in report.splitlines() if 'comm_hook' in line]
    registered = []

    class Model:
        def register_comm_hook(self, state, function):
            registered.append(function)

    exec('\n'.join(line for line in lines if not line.startswith('#')), {'model': Model()})
    assert registered and all(map(callable, registered))
    # Other frameworks have no such hook, and would not have the step that stands there.
    if hook != 'allreduce':
        assert 'HOROVOD' not in report and 'reduce_bucket_size' not in report
