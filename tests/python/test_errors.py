"""What is wrong is told with the place where it stands."""
import fcntl

import pytest

import ddpsim
from ddpsim import _program


def test_a_file_is_named_with_line_and_column(tmp_path):
    file = tmp_path / 'wrong.yaml'
    file.write_text('workload: {model: gpt2, batch: 4, sequence: 64}\n'
                    'cluster:\n  device: a100-40\n'
                    '  intra_node: {latency: 5 us, bandwidth: "450"}\n')
    with pytest.raises(ddpsim.InputError) as caught:
        ddpsim.run(file)
    assert (caught.value.file, caught.value.line) == (str(file), 4)
    assert caught.value.column == file.read_text().splitlines()[3].index('"450"') + 1
    assert str(caught.value).startswith(f'{file}:4:')
    assert isinstance(caught.value, ValueError)


def test_a_file_that_is_missing(tmp_path):
    with pytest.raises(ddpsim.InputError, match='no such file') as caught:
        ddpsim.run(tmp_path / 'missing.yaml')
    assert caught.value.file == str(tmp_path / 'missing.yaml') and caught.value.line is None


@pytest.mark.parametrize('wrong, expected', [
    ({'workload': {'model': 'gpt3'}, 'cluster': {'device': 'a100-40'}}, 'workload.model: unknown'),
    ({'workload': {'model': 'gpt2', 'batch': 'x'}, 'cluster': {'device': 'a100-40'}},
     'workload.batch: expected a whole number'),
    ({'cluster': {'device': 'a100-40'}}, 'missing key "workload"'),
    ({}, 'missing key')])
def test_an_object_is_in_no_file(wrong, expected):
    with pytest.raises(ddpsim.InputError) as caught:
        ddpsim.run(wrong)
    assert str(caught.value).startswith(expected)
    assert '.ddpsim-object' not in str(caught.value)
    assert (caught.value.file, caught.value.line, caught.value.column) == (None, None, None)


def test_settings_and_values(small):
    with pytest.raises(ddpsim.InputError, match='cluster.nodez=3: unknown key'):
        ddpsim.run(small, set={'cluster.nodez': 3})
    with pytest.raises(ddpsim.InputError, match='--objective'):
        ddpsim.tune(small, objective='speed')
    with pytest.raises(ddpsim.InputError, match='unknown format'):
        ddpsim.schema('nonsense')
    with pytest.raises(ddpsim.InputError):
        ddpsim.explain('nonsense_of_a_key')
    with pytest.raises(ddpsim.InputError, match='-- *steps'):
        ddpsim.run(small, steps=0)


def test_an_argument_and_a_setting_that_differ(small):
    with pytest.raises(ddpsim.InputError, match=r'^nodes=2 and set=.*cluster.nodes.*two values'):
        ddpsim.run(small, nodes=2, set={'cluster.nodes': 4})
    with pytest.raises(ddpsim.InputError, match='cluster=dgx-h100 and set='):
        ddpsim.tune(small, 'dgx-h100', set={'cluster': 'dgx-a100'})
    with pytest.raises(ddpsim.InputError, match='workload.batch is given by --set workload.batch'):
        ddpsim.vary(small, {'workload.batch': [1, 2]}, set={'workload.batch': 2})
    with pytest.raises(ddpsim.InputError, match=r'^nodes=2 and set=.*cluster.nodes.*two values'):
        ddpsim.tune(small, nodes=2, set={'cluster': {'system': 'dgx-h100', 'nodes': 4}})
    with pytest.raises(ddpsim.InputError, match='cluster.nodes is given by --set cluster.nodes=2'):
        ddpsim.vary(small, {'cluster': [{'system': 'dgx-h100', 'nodes': 4}]},
                    set={'cluster.nodes': 2})
    assert ddpsim.run(small, nodes=1, set={'cluster.nodes': 1})


def test_what_the_program_refuses_is_an_input_error(scenarios):
    with pytest.raises(ddpsim.InputError, match='carrier-pigeon: unknown'):
        ddpsim.validate(scenarios / 'examples/mlp-2ranks.yaml', backend='carrier-pigeon')


def test_files_that_an_object_names_are_found_from_its_folder(scenarios, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    loaded = ddpsim.load(scenarios / 'examples/own-profile.yaml')
    by_folder = ddpsim.run(loaded)['bucketed'].step_ms
    monkeypatch.chdir(scenarios / 'examples')
    assert ddpsim.run(dict(loaded))['bucketed'].step_ms == by_folder  # from here
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ddpsim.InputError, match='no such file'):
        ddpsim.run(dict(loaded))


def test_what_the_machine_fails_at_is_a_device_error(small, tmp_path, scenarios):
    with pytest.raises(ddpsim.DeviceError, match='/dev/full: cannot be written: No space left'):
        _program.call('run', str(scenarios / 'examples/first.yaml'), '-q', '--json', '/dev/full')
    rows = tmp_path / 'rows.csv'
    with open(f'{rows}.lock', 'w') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(ddpsim.DeviceError, match='another process of ddpsim') as caught:
            ddpsim.sweep(small, {'training.bucket_cap': ['1 MiB', '4 MiB']}, csv=rows)
    assert isinstance(caught.value, ddpsim.ProgramError)
