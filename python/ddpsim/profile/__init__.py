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

Within a job that trains, of one rank or many, `with ddpsim.profile(model):` around the loop watches
20 of its steps, says which bucket sizes to deploy and writes ddpsim.json. ddpsim.lightning.Callback
and ddpsim.transformers.Callback are that for trainers; a script that is not to be touched runs so:

    torchrun --nproc_per_node 2 -m ddpsim.attach train.py ARGUMENTS

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


def measured(model, batch=None, loss=None, optimizer=None, *, output=None, warmup=3, steps=20,
             largest=64 << 20, seconds=None, timeout=60.0, cluster=None, nodes=None):
    """Profiles training steps, and under torchrun the link between the ranks too. Writes the files
    into the folder `output` ('profile'), rank 0 alone, and returns the path of the one that ddpsim
    takes: workload.yaml of one process, scenario.yaml of several. Raises ProfileError, RankError.

    Without a batch nothing is run here: the answer is a context for a training loop, whose own
    steps are watched, of one rank or many, with gradient accumulation too. It prints a verdict and
    the arguments for DistributedDataParallel, and writes the report `output` ('ddpsim.json'):

        with ddpsim.profile(model):
            for batch in loader: ...

    `cluster` and `nodes` of it are those to tune for instead of this job's own ranks.
    """
    if batch is None and loss is None:
        from .in_job import JobWatch
        return JobWatch(model, steps=steps, warmup=warmup, output=output or 'ddpsim.json',
                        cluster=cluster, nodes=nodes, seconds=10.0 if seconds is None else seconds)
    from .arguments import Wishes
    from .command import measured_files
    wishes = Wishes(output=str(output or 'profile'), warmup=warmup, steps=steps, largest=largest,
                    seconds=60.0 if seconds is None else seconds, timeout=timeout)
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
    if name == 'JobWatch':
        from .in_job import JobWatch
        return JobWatch
    if name in ('ProfileError', 'RankError'):
        from . import messages
        return getattr(messages, name)
    raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
