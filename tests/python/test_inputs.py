"""What is given to a question: all that is wrong with it is an InputError that says what was
expected; what is right means what it says."""
import json
import pathlib

import pytest

import ddpsim

ERROR = ddpsim.InputError


class Described:
    """What ddpsim.describe returns, as far as questions know."""
    model = 'mine'

    def __init__(self, scenarios):
        self.file = scenarios / 'examples/profiles/torch-model.yaml'

    def text(self):
        return pathlib.Path(self.file).read_text()


def holding_itself(small):
    small['cluster']['more'] = [small]
    return small


@pytest.mark.parametrize('source, said', [
    (42, 'the path of a scenario or a workload, a dict of its keys, or what ddpsim.describe '
         'returns, got 42'),
    (None, 'got None'), (b'x.yaml', "got b'x.yaml'"), ([1], 'got a list'),
    ('x' * 5000, 'File name too long'), ('a\0b', 'null byte'),
    ({'name': b'x'}, "name: expected texts, numbers, lists and dicts, got b'x'"),
    ({'compare': {'naive'}}, 'compare: expected texts, numbers, lists and dicts, got a set'),
    ({'workload': {'batch': 1j}}, 'workload.batch: expected texts, numbers, lists and dicts, got'),
    ({'name': 'half \ud800'}, 'name: expected text that UTF-8 can write'),
    ({b'name': 'x'}, "expected keys that are texts, got b'name'"),
])
@pytest.mark.parametrize('ask', [ddpsim.run, ddpsim.tune, ddpsim.Study, ddpsim.validate,
                                 lambda source: ddpsim.sweep(source, {'cluster.nodes': [1]})])
def test_what_is_no_scenario_is_said(ask, source, said):
    with pytest.raises(ERROR) as raised:
        ask(source)
    assert said in str(raised.value) and '\n' not in str(raised.value)


def test_dicts_that_hold_themselves_and_deep_ones(small):
    with pytest.raises(ERROR, match='cluster.more: a dict contains itself'):
        ddpsim.run(holding_itself(small))
    deep = 1
    for _ in range(2000):
        deep = [deep]
    with pytest.raises(ERROR, match='within one another'):
        ddpsim.run({'workload': deep})


@pytest.mark.parametrize('arguments, said', [
    ({'jobs': -5}, 'jobs: expected a whole number from 1 to 1024, got -5'),
    ({'jobs': 10**6}, 'jobs: expected a whole number from 1 to 1024, got 1000000'),
    ({'jobs': 0}, 'jobs: expected'), ({'jobs': 1.5}, 'got 1.5'), ({'jobs': True}, 'got True'),
    ({'best': 3}, 'best: expected a text, got 3'),
    ({'set': ['cluster.nodes']}, "set: expected a dict such as {'cluster.nodes': 8}, got a list"),
    ({'set': {3: 4}}, 'set: expected keys that are texts, got 3'),
    ({'set': {'cluster.nodes': {1}}}, 'set cluster.nodes: expected texts'),
    ({'progress': 'loud'}, 'progress: expected a function'),
    ({'cluster': 42}, 'cluster=42: unknown'), ({'nodes': 1j}, 'nodes: expected'),
])
def test_arguments_are_checked_as_in_the_program(small, arguments, said):
    with pytest.raises(ERROR) as raised:
        ddpsim.sweep(small, {'workload.batch': [1, 2]}, **arguments)
    assert said in str(raised.value)


@pytest.mark.parametrize('vary, said', [
    (None, 'vary: expected a dict'), ({'cluster.nodes': 5}, 'vary cluster.nodes: expected a list'),
    ({'cluster.nodes': b'12'}, "got b'12'"), ({'cluster.nodes': [{1}]}, 'got a set'),
    ({'cluster.nodes': []}, 'expected KEY=VALUE')])
def test_what_is_no_grid_is_said(small, vary, said):
    for ask in (ddpsim.vary, ddpsim.sweep):
        with pytest.raises(ERROR) as raised:
            ask(small, vary)
        assert said in str(raised.value)


def test_steps_and_counts_that_are_no_whole_numbers(small):
    for steps in ('x', 1.5, 10**30):
        with pytest.raises(ERROR, match='steps: expected a whole number'):
            ddpsim.run(small, steps=steps)
    with pytest.raises(ERROR, match='--threads'):
        ddpsim.tune(small, threads=-1)
    with pytest.raises(ERROR, match='within: expected a text or a number'):
        ddpsim.tune(small, within=[1])


@pytest.mark.parametrize('ask', [ddpsim.vary, ddpsim.sweep])
def test_a_value_of_a_list_is_one_value(small, ask):
    names = ['a, b', '1..3', ' c', 'd {', 'plain', '[e]']
    rows = ask(small, {'name': names[:-1]}, set={'compare': ['naive']}).rows()
    assert [(row['name'], row['scenario']) for row in rows] == [(n, n) for n in names[:-1]]
    caps = [['1 MiB', '4 MiB'], '[2 MiB, 4 MiB]']  # a list, and one as YAML has it
    quiet = {'compare': ['bucketed'], 'training.broadcast_buffers': False}
    rows = ask(small, {'training.bucket_caps': caps}, set=quiet).rows()
    assert [row['collectives'] for row in rows] == [
        len(ddpsim.run(small, set={'training.bucket_caps': each, **quiet})['bucketed'].buckets)
        for each in caps]


@pytest.mark.parametrize('ask', [ddpsim.vary, ddpsim.sweep])
def test_rows_are_flat_and_numbers_are_numbers(small, ask):
    rows = ask(small, {'cluster.nodes': [1, 2, 'x'], 'workload.batch': '16..32*2'}).rows()
    assert list(rows[0])[:2] == ['cluster.nodes', 'workload.batch']
    points = [(row['cluster.nodes'], row['workload.batch']) for row in rows]
    assert list(dict.fromkeys(points)) == [(n, b) for n in (1, 2, 'x') for b in (16, 32)]
    assert not [value for row in rows for value in row.values() if isinstance(value, (dict, list))]


def test_a_sweep_does_not_show_where_its_texts_lie(small, scenarios):
    asked = {'cluster.nodes': [1, 2]}
    for source, name in ((small, 'scenario'), ({**small, 'name': 'mine'}, 'mine'),
                         (Described(scenarios), 'mine')):
        cluster = None if isinstance(source, dict) else 'dgx-h100'
        sweep = ddpsim.sweep(source, asked, cluster=cluster)
        assert sweep.record['scenario'] == name
        assert sweep.report().startswith(f'{name}: 2 of 2 points')
        assert '.ddpsim-object' not in json.dumps([sweep.record, sweep.rows(), sweep.report()])


def test_the_best_strategy_averages_gradients(small):
    ran = ddpsim.run({**small, 'compare': ['none', 'naive', 'bucketed']})
    assert ran.best.strategy == 'bucketed'
    assert ran['none'].step_ms < ran.best.step_ms
    assert ddpsim.run({**small, 'compare': ['none']}).best.strategy == 'none'


def test_validate_finds_the_files_a_loaded_scenario_names(scenarios, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    loaded = ddpsim.load(scenarios / 'examples/own-profile.yaml')
    with pytest.raises(ERROR, match='--backend pigeon: unknown'):  # it was read
        ddpsim.validate(loaded, backend='pigeon')
    loaded['cluster']['intra_node'] = 'profiles/missing.yaml'
    missing = scenarios / 'examples/profiles/missing.yaml'
    with pytest.raises(ERROR, match=f'cluster.intra_node: {missing}: no such file'):
        ddpsim.validate(loaded)


def test_validate_takes_a_workload_within_a_dict_and_any_name(scenarios):
    scenario = {'name': 'smile \U0001F600', 'workload': {'model': Described(scenarios)},
                'cluster': {'device': 'generic-cpu', 'ranks_per_node': 2,
                            'intra_node': {'latency': '5 us', 'bandwidth': '1 GB/s'}}}
    with pytest.raises(ERROR, match='--backend pigeon: unknown'):
        ddpsim.validate(scenario, backend='pigeon')
    assert ddpsim.run(scenario).scenario == 'smile \U0001F600'


@pytest.mark.parametrize('file', [3, b'rank0.json', [3], None])
def test_files_to_import_are_paths(file, tmp_path):
    with pytest.raises(ERROR, match='file: expected the path of a file'):
        ddpsim.import_profile('torch-trace', file, tmp_path / 'p.yaml')
    with pytest.raises(ERROR, match='missing0.json: no such file'):
        ddpsim.import_profile('torch-trace', ['missing0.json', 'missing1.json'],
                              tmp_path / 'p.yaml')
