"""Jobs that train, profiled from within: on this process alone, and on two ranks of Gloo under the
trainers that people use. Each job trains what it would have trained without."""
import contextlib
import importlib.util
import json
import os
import socket
import subprocess
import sys
import textwrap

import pytest
import yaml
from describe_models import torch
from torch import nn

import ddpsim
from ddpsim.profile import ProfileError
from ddpsim.profile.job_report import FORMAT

MODEL = '''\
import os
import sys
import torch

torch.manual_seed(1)
torch.set_num_threads(1)
sizes = [64, 128, 128, 10]
layers = [torch.nn.Sequential(torch.nn.Linear(a, b), torch.nn.ReLU())
          for a, b in zip(sizes, sizes[1:])]
net = torch.nn.Sequential(*layers)

def batches(count):
    for _ in range(count):
        yield torch.randn(8, 64), torch.randint(10, (8,))

def trained():
    return sum(p.double().sum().item() for p in net.parameters())
'''


def needed(name):
    """A library of the tests' environment: where DDPSIM_TORCH=required it has to be there."""
    if importlib.util.find_spec(name) is None:
        assert os.environ.get('DDPSIM_TORCH') != 'required', f'no {name}'
        pytest.skip(f'NOT RUN: no {name}')


def free_port():
    with socket.socket() as place:
        place.bind(('127.0.0.1', 0))
        return place.getsockname()[1]


def on_two_ranks(folder, *words):
    """stdout and stderr of a job of two ranks."""
    done = subprocess.run(
        [sys.executable, '-W', 'ignore', '-m', 'torch.distributed.run', '--nproc_per_node', '2',
         '--master_port', str(free_port()), *words], cwd=folder, capture_output=True, text=True,
        env={**os.environ, 'OMP_NUM_THREADS': '1', 'GLOO_SOCKET_IFNAME': 'lo',
             'HF_HUB_OFFLINE': '1'})
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout, done.stderr


# Python's end waits for no thread of torch's, and one that still needs Python aborts the process.
END = '''
sys.stdout.flush()
os._exit(0)
'''


def script(folder, text):
    (folder / 'train.py').write_text(MODEL + textwrap.dedent(text) + END)


def report_of(folder, said, ranks=2, micro_batches=2):
    """The report, held against what every report has."""
    report = json.loads((folder / 'ddpsim.json').read_text())
    metrics, params = report['metrics'], report['params']
    assert report['format'] == FORMAT
    assert all(type(value) in (int, float) for value in metrics.values())  # as trackers take them
    assert all(type(value) is str for value in params.values())
    assert (metrics['ranks'], metrics['micro_batches']) == (ranks, micro_batches)
    passes = micro_batches * (metrics['forward_ms'] + metrics['backward_ms'])
    assert 0 < passes and metrics['step_ms'] > 0
    assert params['verdict'] in said
    assert f'on {ranks} rank' in said
    return report


def tuned_again(folder, report):
    """The scenario that was written gives the same plan, and the arguments to paste."""
    plan = ddpsim.tune(folder / 'ddpsim' / 'scenario.yaml')
    assert report['metrics']['tuned_step_ms'] == pytest.approx(plan.step_ms, abs=1e-6)
    assert report['metrics']['bound_ms'] == pytest.approx(plan.bound_ms, abs=1e-6)
    arguments = ', '.join(f'{name}={value!r}' for name, value in plan.ddp_kwargs.items())
    assert report['params']['ddp_arguments'] == arguments
    return yaml.safe_load((folder / 'ddpsim' / 'scenario.yaml').read_text())['training']


# --- two ranks ---

OWN_LOOP = '''
    import contextlib
    import torch.distributed as dist

    dist.init_process_group('gloo')
    ddp = torch.nn.parallel.DistributedDataParallel(net, bucket_cap_mb=0.05)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.01)
    for number, (x, y) in enumerate(batches(24)):
        last = number % 2 == 1
        with contextlib.nullcontext() if last else ddp.no_sync():
            torch.nn.functional.cross_entropy(ddp(x), y).backward()
        if last:
            optimizer.step()
            optimizer.zero_grad()
    if dist.get_rank() == 0:
        print(sys.argv[1:], trained())
    dist.destroy_process_group()
'''


def test_attach_profiles_a_script_that_is_not_touched(tmp_path):
    script(tmp_path, OWN_LOOP)
    plain, _ = on_two_ranks(tmp_path, 'train.py', '--lr', '1')
    out, said = on_two_ranks(tmp_path, '-m', 'ddpsim.attach', '--steps', '6', '--seconds', '1',
                             'train.py', '--lr', '1')
    assert out == plain and "['--lr', '1']" in out  # to the last bit
    report = report_of(tmp_path, said)
    assert report['metrics']['steps'] == 6
    assert 'to paste: DistributedDataParallel(model' in said
    training = tuned_again(tmp_path, report)
    assert (training['micro_batches'], training['no_sync']) == (2, True)
    assert training['bucket_cap'] == f'{int(0.05 * 2**20)} B'


LIGHTNING = '''
    import lightning
    import ddpsim.lightning

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = net

        def training_step(self, batch, _):
            x, y = batch
            return torch.nn.functional.cross_entropy(self.net(x), y)

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.01)

    data = torch.utils.data.DataLoader(list((x, y) for x, y in batches(40)), batch_size=None)
    callback = ddpsim.lightning.Callback(steps=6, seconds=1)
    trainer = lightning.Trainer(
        accelerator='cpu', devices=DEVICES, strategy='ddp' if DEVICES > 1 else 'auto',
        max_epochs=2, accumulate_grad_batches=2, callbacks=[callback], logger=False,
        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(Module(), data)
    if trainer.global_rank == 0:
        print(callback.report['format'])
'''


def test_lightning_on_two_ranks(tmp_path):
    needed('lightning')
    script(tmp_path, LIGHTNING.replace('DEVICES', '2'))
    out, said = on_two_ranks(tmp_path, 'train.py')
    assert FORMAT in out
    report = report_of(tmp_path, said)
    assert tuned_again(tmp_path, report)['no_sync'] is True


def test_lightning_on_one_rank(tmp_path):
    needed('lightning')
    script(tmp_path, LIGHTNING.replace('DEVICES', '1'))
    done = subprocess.run([sys.executable, '-W', 'ignore', 'train.py'], cwd=tmp_path, text=True,
                          capture_output=True)
    assert done.returncode == 0, done.stderr[-3000:]
    assert FORMAT in done.stdout
    report_of(tmp_path, done.stderr.replace('one rank averages nothing',
                                            'one rank has no communication: name a cluster'),
              ranks=1)


TRAINER = '''
    import transformers
    import ddpsim.transformers

    class Classifier(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.net = net

        def forward(self, x, labels):
            output = self.net(x)
            return {'loss': torch.nn.functional.cross_entropy(output, labels), 'logits': output}

    data = [{'x': x, 'labels': y} for x, y in zip(torch.randn(400, 64),
                                                  torch.randint(10, (400,)))]
    callback = ddpsim.transformers.Callback(steps=6, seconds=1)
    arguments = transformers.TrainingArguments(
        'out', use_cpu=True, per_device_train_batch_size=8, gradient_accumulation_steps=2,
        num_train_epochs=1, report_to=[], save_strategy='no', disable_tqdm=True,
        ddp_backend='gloo', remove_unused_columns=False)
    trainer = transformers.Trainer(Classifier(), arguments, train_dataset=data,
                                   callbacks=[callback])
    trainer.train()
    if trainer.args.process_index == 0:
        print(callback.report['format'])
'''


def test_transformers_trainer_on_two_ranks(tmp_path):
    needed('transformers')
    needed('accelerate')
    script(tmp_path, TRAINER)
    out, said = on_two_ranks(tmp_path, 'train.py')
    assert FORMAT in out
    report = report_of(tmp_path, said)
    assert tuned_again(tmp_path, report)['no_sync'] is True


# --- one rank ---

def small():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))


def train(model, steps, micro_batches=1):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(steps):
        for _ in range(micro_batches):
            model(torch.randn(4, 16)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


def test_a_context_around_a_loop_of_one_rank(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    backward, model = torch.autograd.backward, small()
    with ddpsim.profile(model, steps=8, cluster='dgx-h100', nodes=2) as watch:
        train(model, 20, micro_batches=3)
        assert watch.report is not None  # it was done before the loop's end
    assert torch.autograd.backward is backward
    assert not model._forward_pre_hooks and not model[0]._forward_pre_hooks
    report = report_of(tmp_path, capsys.readouterr().err, ranks=1, micro_batches=3)
    assert report == watch.report and report['metrics']['steps'] == 8
    plan = ddpsim.tune(tmp_path / 'ddpsim' / 'workload.yaml', cluster='dgx-h100', nodes=2)
    assert report['metrics']['tuned_step_ms'] == pytest.approx(plan.step_ms, abs=1e-6)


@pytest.mark.parametrize('reentrant', [True, False])
def test_checkpoints_that_run_again_in_backward_are_no_forward_passes(tmp_path, monkeypatch,
                                                                      reentrant):
    monkeypatch.chdir(tmp_path)

    class Checkpointed(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(32, 32), nn.ReLU())
                                        for _ in range(3))

        def forward(self, x):
            x.requires_grad_()
            for block in self.blocks:
                x = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=reentrant)
            return x

    model = Checkpointed()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with ddpsim.profile(model, steps=6, warmup=1) as found:
        for _ in range(8):
            optimizer.zero_grad()
            model(torch.randn(4, 32)).sum().backward()
            optimizer.step()
    assert found.report['metrics']['steps'] == 6


def test_a_loop_that_ends_early_is_told_from_what_there_is(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for steps, written in ((3 + 6, True), (4, False)):
        (tmp_path / 'ddpsim.json').unlink(missing_ok=True)
        model = small()
        with ddpsim.profile(model) as watch:
            train(model, steps)
        assert (watch.report is not None) == (tmp_path / 'ddpsim.json').exists() == written
    said = capsys.readouterr().err
    assert 'no verdict: 1 whole step after 3 of warm-up; at least 4 are needed' in said


def test_a_cluster_that_nobody_knows_leaves_the_measurement(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    model = small()
    with ddpsim.profile(model, steps=4, cluster='dgx-h1000', nodes=2) as watch:
        train(model, 8)
    assert 'unknown name "dgx-h1000"' in watch.report['params']['verdict']
    assert 'no verdict: ' in capsys.readouterr().err
    assert (tmp_path / 'ddpsim.json').exists()


def test_an_error_in_the_loop_is_the_loops_and_leaves_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    backward, model = torch.autograd.backward, small()
    with contextlib.suppress(KeyError), ddpsim.profile(model):
        train(model, 6)
        raise KeyError('own')
    assert torch.autograd.backward is backward and not list(tmp_path.iterdir())


def test_what_cannot_be_watched_is_said_at_once():
    with pytest.raises(ProfileError, match='no parameter of the model requires a gradient'):
        ddpsim.profile(nn.ReLU())
    with pytest.raises(ProfileError, match='at least 1 step of warm-up and 4 more'):
        ddpsim.profile(small(), steps=2)


def test_a_step_whose_backward_runs_in_the_optimizers_closure(tmp_path, monkeypatch):
    """As Lightning has it: the update begins where backward has ended."""
    monkeypatch.chdir(tmp_path)
    model = small()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def closure():
        optimizer.zero_grad()
        value = sum(model(torch.randn(256, 16)).sum() for _ in range(20))
        value.backward()
        return value
    with ddpsim.profile(model, steps=8) as watch:
        for _ in range(11):
            optimizer.step(closure)
    metrics = watch.report['metrics']
    assert metrics['optimizer_ms'] < metrics['forward_ms'] < metrics['step_ms']
    assert metrics['micro_batches'] == 1


@pytest.mark.parametrize('words, said', [
    (['none.py'], 'none.py: no such file'), ([], 'SCRIPT'),
    (['--steps', '1', 'x.py'], 'expected a number of at least 4')])
def test_bad_input_of_attach_is_one_line(tmp_path, words, said):
    done = subprocess.run([sys.executable, '-m', 'ddpsim.attach', *words], cwd=tmp_path,
                          capture_output=True, text=True)
    assert done.returncode == 2 and said in done.stderr and len(done.stderr.splitlines()) == 1
