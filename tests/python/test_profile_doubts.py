"""What a profile says of itself where it is of no use, and what describing leaves behind."""
import json
import sys

import pytest
from describe_models import torch

import ddpsim
from ddpsim.profile import in_job, job_profile, passes, profiler
from ddpsim.profile.passes import spread_doubts, step_spread


def test_steps_that_differ_are_doubted():
    assert spread_doubts(step_spread([1.0] * 20)) == []
    assert spread_doubts(None) == []
    found = spread_doubts(step_spread([1.0, 2.0] * 10))
    assert len(found) == 1 and 'of no use' in found[0]


@pytest.mark.parametrize('spread, stolen', [(0.0, 0.0), (0.5, 0.0), (0.0, 0.5)])
def test_a_verdict_on_a_disturbed_measurement_says_so_first(tmp_path, monkeypatch, capsys, spread,
                                                            stolen):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(job_profile, 'step_spread', lambda times: spread)
    monkeypatch.setattr(in_job.Steal, 'share', lambda self: stolen)
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with ddpsim.profile(model, steps=4, warmup=1, cluster='dgx-h100', nodes=2):
        for _ in range(6):
            model(torch.randn(4, 16)).sum().backward()
            optimizer.step()
    params = json.loads((tmp_path / 'ddpsim.json').read_text())['params']
    said = capsys.readouterr().err
    disturbed = spread + stolen > 0
    assert all(type(value) is str for value in params.values())
    assert params['verdict'].startswith('resting on a disturbed measurement: ') == disturbed
    assert params['verdict'] in said
    assert ('to paste, if a quiet measurement says the same: Dist' in said) == disturbed
    assert ('to paste: Dist' in said) != disturbed
    assert ('doubts' in params) == disturbed
    if spread:
        assert 'of no use' in params['doubts']
    if stolen:
        assert 'took 50 % of its processors' in params['doubts']
    # The file holds the doubts, and whoever predicts from it hears them.
    workload = tmp_path / 'ddpsim' / 'workload.yaml'
    assert ('\ndoubts: ["' in workload.read_text()) == disturbed
    plan = ddpsim.tune(str(workload), cluster='dgx-h100', nodes=2)
    assert any('is doubtful: ' in note for note in plan.notes) == disturbed


@pytest.mark.parametrize('stolen', [0.0, 0.5])
def test_a_profiler_in_a_loop_writes_its_doubts(tmp_path, monkeypatch, capsys, stolen):
    monkeypatch.setattr(profiler.Steal, 'share', lambda self: stolen)
    monkeypatch.setattr(passes, 'step_spread', lambda times: 0.0)
    model, output = torch.nn.Linear(16, 4), tmp_path / 'workload.yaml'
    profiling = profiler.Profiler(model, output=str(output), warmup=1, steps=4)
    for _ in range(6):
        with profiling.step():
            model(torch.randn(4, 16)).sum().backward()
    said = capsys.readouterr().err
    assert ('took 50 % of its processors' in said) == (stolen > 0)
    assert ('\ndoubts: ["the host of this virtual machine took 50 %' in output.read_text()) == (
        stolen > 0)


def test_describing_leaves_the_hook_of_exceptions():
    before = sys.excepthook
    ddpsim.describe(torch.nn.Linear(4, 4), torch.zeros(2, 4),
                    lambda model, batch: model(batch).sum())
    assert sys.excepthook is before
