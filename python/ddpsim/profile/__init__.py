"""What ddpsim has to know of your own PyTorch model, and of the link between your ranks.

Without a cluster, one process writes a workload profile, profile/workload.yaml:

    python -m ddpsim.profile --script my_model.py:make

where make() says what a training step is, as `ddpsim describe` takes it too. It returns (model,
batch, loss) or (model, batch, loss, optimizer):

    import torch
    def make():
        first, last = torch.nn.Linear(256, 256), torch.nn.Linear(256, 10)
        model = torch.nn.Sequential(first, torch.nn.ReLU(), last)
        batch = torch.randn(64, 256), torch.randint(10, (64,))
        def loss(model, batch):                     # one number to call backward() on
            return torch.nn.functional.cross_entropy(model(batch[0]), batch[1])
        return model, batch, loss, torch.optim.SGD(model.parameters(), lr=0.01)

LOSS_IS

Without an optimizer the profile has none. Or three lines in a training loop of your own; nothing
else changes:

    profiler = ddpsim.profile.Profiler(model, optimizer, output='workload.yaml')
    for batch in loader:
        with profiler.step():         # one forward, one backward, one optimizer.step()
            ...

Under torchrun, srun or anything that sets RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, the same
command also measures the job's own process group: link.yaml, calibration.yaml, and scenario.yaml
that ties all together; --link-only leaves the model out:

    torchrun --nproc_per_node 2 -m ddpsim.profile --script my_model.py:make
    ddpsim run profile/scenario.yaml

From Python, `ddpsim.profile(model, batch, loss, optimizer)` does what the command does and returns
the path of what to give to ddpsim. Where the package is not installed, PYTHONPATH is its folder.

Gradients are dropped (set to None) before each step of --script, untimed. Exit code: 0; 2 for bad
input; 1 if a rank fails or is not heard of for --timeout seconds.
"""
import sys
import types

from .._user_step import LOSS

__doc__ = __doc__.replace('LOSS_IS', LOSS)


def measured(model, batch, loss=None, optimizer=None, *, output='profile', warmup=3, steps=20,
             largest=64 << 20, seconds=60.0, timeout=60.0):
    """Profiles training steps, and under torchrun the link between the ranks too. Writes the files
    into the folder `output`, rank 0 alone, and returns the path of the one that ddpsim takes:
    workload.yaml of one process, scenario.yaml of several. Raises ProfileError, RankError."""
    from .arguments import Wishes
    from .command import measured_files
    wishes = Wishes(output=str(output), warmup=warmup, steps=steps, largest=largest,
                    seconds=seconds, timeout=timeout)
    return measured_files(wishes, (model, batch, loss, optimizer))


class Callable(types.ModuleType):
    """`ddpsim.profile` is a package that runs, and a function."""

    def __call__(self, *arguments, **keywords):
        return measured(*arguments, **keywords)


sys.modules[__name__].__class__ = Callable


def __getattr__(name):
    if name == 'Profiler':  # which imports torch
        from .profiler import Profiler
        return Profiler
    if name in ('ProfileError', 'RankError'):
        from . import messages
        return getattr(messages, name)
    raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
