"""What a user's function returns is taken alike by describe and profile: one convention, and the
same words where it is not kept."""
import pathlib
import sys
import textwrap

import pytest
from describe_models import torch

from ddpsim._user_step import LOSS, loss_function
from ddpsim.describe import DescribeError
from ddpsim.describe.__main__ import DESCRIPTION
from ddpsim.describe.user_file import made_by

import ddpsim.profile
from ddpsim.profile import ProfileError
from ddpsim.profile.arguments import Wishes
from ddpsim.profile.command import measured_files
from ddpsim.profile.script import load

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODEL = '''\
import torch

def make():
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
    batch = torch.randn(4, 8), torch.randint(3, (4,))
    {made}
'''


def described(place):
    from ddpsim.describe import describe
    return describe(*made_by(place))


def profiled(place):
    wishes = Wishes(output='profile', warmup=1, steps=4, script=place)
    return measured_files(wishes, load(place))


BOTH = pytest.mark.parametrize('call, error', [(described, DescribeError),
                                               (profiled, ProfileError)])


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Writes my_model.py, whose make() ends with these lines."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, 'path', sys.path.copy())

    def write(made):
        monkeypatch.delitem(sys.modules, 'my_model', raising=False)
        text = MODEL.format(made=textwrap.indent(made, '    ').strip())
        (tmp_path / 'my_model.py').write_text(text)
        return 'my_model.py:make'
    yield write
    sys.modules.pop('my_model', None)


@pytest.mark.parametrize('call', [described, profiled])
@pytest.mark.parametrize('made', [
    'return model, batch, lambda model, batch: model(batch[0]).sum()',
    'return model, batch, torch.nn.CrossEntropyLoss()',
    'return model, batch, torch.nn.functional.cross_entropy, torch.optim.SGD(model.parameters())',
    'return model, batch[:1]',
])
def test_every_form_of_a_step_is_taken_by_both(place, call, made):
    assert call(place(made))


@BOTH
@pytest.mark.parametrize('made, said', [
    ('def loss(out, y):\n    return torch.nn.functional.cross_entropy(out, y)\n'
     'return model, batch, loss',
     "my_model.py:7: TypeError: cross_entropy_loss(): argument 'input' (position 1) must be "
     'Tensor, not Sequential; the loss is called as loss(model, batch)'),
    ('return model, batch, lambda out, y: (out.sum() - y.sum()) ** 2',
     "my_model.py:6: AttributeError: 'Sequential' object has no attribute 'sum'; the loss is "
     'called as loss(model, batch)'),
    ('return model, batch, lambda out: out', 'loss takes (out); the loss is called as'),
    ('return model, batch, lambda out, y, weight: out', 'loss takes (out, y, weight); the loss'),
    ('return model, batch, "mse"', 'loss is a str, not a function of (model, batch)'),
    ('return model, batch[0], torch.nn.MSELoss()', 'needs a batch (inputs, targets)'),
    ('return model', 'expected (model, batch), (model, batch, loss)'),
    ('optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n'
     'return model, batch[:1], None, torch.optim.lr_scheduler.StepLR(optimizer, 10)',
     'the optimizer is a StepLR, which has no param_groups: return the optimizer itself'),
    ('return torch.nn.parallel.DistributedDataParallel(model), batch',
     'return the bare model, not one in DistributedDataParallel'),
])
def test_what_is_not_a_step_is_one_line_that_says_what_is(place, call, error, made, said):
    with pytest.raises(error) as raised:
        call(place(made))
    assert said in str(raised.value) and '\n' not in str(raised.value)


@pytest.mark.parametrize('call', [made_by, load])
def test_a_model_that_is_wrapped_already_is_refused(place, call):
    with pytest.raises((DescribeError, ProfileError), match='return the bare model'):
        call(place('class DistributedDataParallel(torch.nn.Sequential):\n    pass\n'
                   'return DistributedDataParallel(model), batch'))


def test_an_error_after_the_model_has_run_is_the_losss_own():
    def loss(model, batch):
        return model(batch).nothing
    with pytest.raises(AttributeError):
        loss_function(loss, [], ProfileError)(torch.nn.Linear(2, 2), torch.zeros(1, 2))


@pytest.mark.parametrize('name', ['vit', 'dlrm', 'gru'])
def test_an_example_of_describe_can_be_profiled(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, 'path', sys.path.copy())
    monkeypatch.delitem(sys.modules, name, raising=False)
    assert profiled(f'{ROOT}/scenarios/examples/models/{name}.py:small').is_file()


def test_both_helps_say_the_convention():
    assert LOSS in DESCRIPTION and LOSS in ddpsim.profile.__doc__
