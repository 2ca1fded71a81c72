"""Questions about random scenarios: two ways of asking one question give one answer, to the bit.

DDPSIM_RELATIONS=1000 asks that many of each in place of a few; DDPSIM_SEED=7 begins there, not at
1.
"""
import json
import os
import random
import subprocess

import ddpsim

FIRST = int(os.environ.get('DDPSIM_SEED', 1))
STRATEGIES = ['none', 'naive', 'flat', 'overlap', 'bucketed']


def seeds(few):
    return range(FIRST, FIRST + int(os.environ.get('DDPSIM_RELATIONS', few)))


def random_scenario(dice):
    widths = [dice.randint(1, 3000) for _ in range(dice.randint(2, 8))]
    cluster = {'device': dice.choice(['h100-sxm', 'a100-40', 't4', 'rtx3090']),
               'nodes': dice.randint(1, 4), 'ranks_per_node': dice.randint(2, 8),
               'intra_node': dice.choice(['nvlink3', 'pcie4', {
                   'kind': 'plain', 'latency': f'{dice.randint(1, 90)} us',
                   'bandwidth': f'{dice.randint(1, 300)} GB/s'}]),
               'inter_node': dice.choice(['ib-hdr', 'ethernet-10g', 'ethernet-100g'])}
    training = {'bucket_cap': f'{dice.randint(1, 30_000_000)} B'}
    if dice.random() < 0.5:
        training['first_bucket_cap'] = f'{dice.randint(1, 2_000_000)} B'
    if dice.random() < 0.3:
        training.update(micro_batches=dice.randint(2, 3), no_sync=dice.random() < 0.5)
    if dice.random() < 0.3:
        training['gradient_as_bucket_view'] = True
    model = {'family': 'mlp', 'widths': widths}
    return {'workload': {'model': model, 'batch': dice.randint(1, 256),
                         'optimizer': dice.choice(['sgd', 'adamw'])},
            'cluster': cluster, 'training': training, 'compare': STRATEGIES}


def link_of(scenario):
    """The key of the link that counts, and the link."""
    key = 'inter_node' if scenario['cluster']['nodes'] > 1 else 'intra_node'
    return key, scenario['cluster'][key]


def test_a_study_answers_what_a_run_of_the_changed_scenario_does():
    for seed in seeds(60):
        dice = random.Random(seed)
        scenario = random_scenario(dice)
        study = ddpsim.Study(scenario)
        for _ in range(3):
            cap, strategy = dice.randint(1, 30_000_000), dice.choice(STRATEGIES)
            latency, rate = dice.randint(0, 100_000), dice.randint(1, 400)
            asked = study.step_ms(bucket_cap=f'{cap} B', strategy=strategy,
                                  latency=f'{latency} ns', bandwidth=f'{rate} GB/s')
            key, link = link_of(scenario)
            own = {'base': link} if isinstance(link, str) else dict(link)
            own.update(latency=f'{latency} ns', bandwidth=f'{rate} GB/s')
            ran = ddpsim.run(scenario, set={f'cluster.{key}': own, 'compare': [strategy],
                                            'training.bucket_cap': f'{cap} B'})
            assert asked == ran.results[0].step_ms, f'DDPSIM_SEED={seed} {scenario}'


def test_a_sweep_holds_what_a_run_of_each_point_says():
    for seed in seeds(8):
        dice = random.Random(seed)
        scenario = random_scenario(dice)
        vary = {'training.bucket_cap': [f'{dice.randint(1, 30_000_000)} B' for _ in range(3)],
                'workload.batch': sorted(dice.sample(range(1, 200), 2))}
        rows = ddpsim.sweep(scenario, vary=vary).rows()
        assert len(rows) == 6 * len(STRATEGIES)
        for row in rows:
            point = {key: row[key] for key in vary}
            ran = ddpsim.run(scenario, set=point)
            expected, = (each for each in ran.rows() if each['strategy'] == row['strategy'])
            for figure in ('step_ms', 'communication_ms', 'exposed_ms', 'wire_bytes'):
                assert row[figure] == expected[figure], f'DDPSIM_SEED={seed} {scenario} {point}'


def test_the_program_says_what_the_package_says(program, tmp_path):
    for seed in seeds(10):
        dice = random.Random(seed)
        scenario = random_scenario(dice)
        file = tmp_path / 's.yaml'
        file.write_text(json.dumps({'name': 'drawn', **scenario}))  # JSON is YAML
        done = subprocess.run([program, 'run', file, '--json', '-'], capture_output=True,
                              text=True, check=True)
        ran = ddpsim.run({'name': 'drawn', **scenario}).record
        printed = json.loads(done.stdout)
        assert printed['results'] == ran['results'], f'DDPSIM_SEED={seed} {scenario}'


def test_more_bandwidth_never_makes_a_step_longer_where_nothing_slows_anything():
    for seed in seeds(30):
        dice = random.Random(seed)
        scenario = random_scenario(dice)
        nothing = {'compute_slowdown': 1, 'communication_slowdown': 1}
        scenario['cluster'].update(interference=nothing, collectives='alpha-beta')
        study = ddpsim.Study(scenario)
        for strategy in STRATEGIES:
            steps = [study.step_ms(strategy=strategy, bandwidth=f'{rate} GB/s', latency='5 us')
                     for rate in (1, 2, 5, 20, 100, 400)]
            assert steps == sorted(steps, reverse=True), f'DDPSIM_SEED={seed} {strategy}'


def test_no_caps_beat_the_best_that_tune_found():
    for seed in seeds(8):
        dice = random.Random(seed)
        scenario = random_scenario(dice)
        scenario['training'] = {}
        plan = ddpsim.tune(scenario).record
        study = ddpsim.Study(scenario)
        for _ in range(40):
            cap, first = (f'{dice.randint(1, 60_000_000)} B' for _ in range(2))
            alike = study.step_ms(bucket_cap=cap, first_bucket_cap=cap)
            two = study.step_ms(bucket_cap=cap, first_bucket_cap=first)
            said = f'DDPSIM_SEED={seed} {scenario} {cap} {first}'
            assert alike >= plan['best_even_cap']['step_ms'] >= plan['lower_bound_ms'], said
            assert two >= plan['best_pair']['step_ms'] >= plan['lower_bound_ms'], said
