"""The command line: python -m ddpsim.describe my_model.py:make -o my_model.yaml"""
import argparse
import sys

from .._text import one_line
from .._user_step import LOSS
from . import check_torch
from .errors import DescribeError, OwnFault, own_fault

DESCRIPTION = """\
Describes one training step of your PyTorch model for ddpsim, on no device: nothing is computed and
no memory is taken, so that a model of any size is described in seconds.

FILE.py:FUNCTION is a function of yours that returns (model, batch, loss) or (model, batch, loss,
optimizer). This is a whole my_model.py:

    import torch

    def make(batch=64):
        model = torch.nn.Sequential(torch.nn.Linear(256, 1024), torch.nn.GELU(),
                                    torch.nn.Linear(1024, 10))
        data = torch.randn(batch, 256), torch.randint(10, (batch,))
        return model, data, torch.nn.CrossEntropyLoss(), torch.optim.AdamW(model.parameters())

    python -m ddpsim.describe my_model.py:make -o my_model.yaml
    ddpsim run my_model.yaml --vary cluster.device=a100-80,h100-sxm,b200

""" + LOSS + """

The optimizer is only named. Whatever device the code names, everything is made on the meta device.
"""


class Parser(argparse.ArgumentParser):
    """What is wrong with the words is one line."""

    def error(self, message):
        raise DescribeError(f'{message}; --help tells the flags')


class NoMicroBatches(argparse.Action):
    """A description is of one micro-batch: how many a step has, the scenario says."""

    def __call__(self, parser, namespace, values, option_string=None):
        parser.error(f'--micro-batches: a description is of one micro-batch: leave the flag out, '
                     f'and say `ddpsim run ... --set training.micro_batches={values}` for a step '
                     f'of {values}; a later micro-batch by itself, which adds gradients, is '
                     '--later-micro-batch')


def parser():
    made = Parser(
        prog='ddpsim describe', description=DESCRIPTION, allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument('model', metavar='FILE.py:FUNCTION', help='default FUNCTION: make')
    made.add_argument('-o', '--output', metavar='FILE', default='-',
                      help='where the description goes; default: standard output')
    made.add_argument('--batch', type=positive, metavar='N',
                      help="handed to a FUNCTION that takes `batch`")
    made.add_argument('--autocast', choices=('bf16', 'fp16'),
                      help='run the step under torch.autocast')
    made.add_argument('--tf32', choices=('conv', 'all'),
                      help='multiply fp32 numbers in TF32: convolutions, as PyTorch does on '
                           'GPUs since the A100, or all products')
    made.add_argument('--attention', choices=('flash', 'efficient', 'math'),
                      help="default: what CUDA chooses, by mask, format and size of heads")
    made.add_argument('--device', choices=('cuda', 'cpu'), default='cuda',
                      help='whose kernels are described; default: cuda')
    made.add_argument('--release', default='2.13', metavar='RELEASE',
                      help="of PyTorch whose choices are meant: 2.6, 2.11 or 2.13; default: 2.13. "
                           'From 2.11 on attention in 16 bits is cuDNN\'s on H100, H200 and B200')
    made.add_argument('--optimizer', metavar='NAME',
                      help='instead of the one FUNCTION returns: adamw, adamw-fused, lion, ...')
    made.add_argument('--clip-gradients', action='store_true',
                      help='the step clips gradients by the norm of all of them')
    made.add_argument('--later-micro-batch', action='store_true',
                      help='not the first micro-batch of a step but a later one, which adds its '
                           'gradients to those that are there')
    made.add_argument('--micro-batches', action=NoMicroBatches, help=argparse.SUPPRESS)
    made.add_argument('--ranks', type=positive, default=2, metavar='N',
                      help='of how many ranks the model sees itself as one, where it asks '
                           'torch.distributed; default: 2')
    made.add_argument('--allow-unknown', action='store_true',
                      help='price operations without a rule by their bytes, and list them')
    made.add_argument('--fused', action='store_true',
                      help='bound of a compiler: chains of memory-bound kernels count their ends')
    made.add_argument('-q', '--quiet', action='store_true', help='no notes on standard error')
    return made


def positive(text):
    if not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f'expected a whole number above zero, got "{text}"')
    return int(text)


def main(words=None):
    arguments = parser().parse_args(words)
    check_torch()
    import torch
    from .optimizers import name_of
    from .step import describe
    from .user_file import made_by
    if arguments.optimizer:
        name_of(arguments.optimizer, [])
    model, batch, loss, optimizer = made_by(arguments.model, arguments.batch)
    version = torch.__version__.split('+')[0]
    workload = describe(
        model, batch, loss, arguments.optimizer or optimizer,
        autocast=arguments.autocast,
        attention=arguments.attention, device=arguments.device, tf32=arguments.tf32,
        later_micro_batch=arguments.later_micro_batch, clip_gradients=arguments.clip_gradients,
        allow_unknown=arguments.allow_unknown, fused=arguments.fused, release=arguments.release,
        ranks=arguments.ranks)
    workload.source = (f'torch {version}, meta device, {arguments.model}, batch {workload.batch}')
    if arguments.output == '-':
        sys.stdout.write(workload.text())
    else:
        try:
            workload.save(arguments.output)
        except OSError as problem:
            raise DescribeError(f'--output: {arguments.output}: {problem.strerror}') from None
    if not arguments.quiet:
        say(workload, arguments.output, arguments.device)


def tell(text):
    print(f'describe: {one_line(text)}', file=sys.stderr)


def cluster_for(workload, device):
    """Flags of `ddpsim run` for a device whose kernels are described. The catalogue's CPU
    multiplies fp32 numbers alone."""
    if device == 'cuda':
        return '--cluster dgx-h100'
    numbers = workload.compute or workload.dtype
    named = ('--device generic-cpu' if numbers == 'fp32'
             else f'--device FILE (of a CPU that multiplies {numbers})')
    return f'--link ethernet-10g --ranks 4 {named}'


def say(workload, output, device):
    tell(repr(workload))
    for note in workload.notes:
        tell(note)
    for line in workload.partial:
        tell(f'partial: {line}, priced by its bytes alone')
    if output != '-':
        tell(f'wrote {output}; next: ddpsim run {output} {cluster_for(workload, device)}')


if __name__ == '__main__':
    try:
        main()
    except DescribeError as problem:
        tell(problem)
        sys.exit(1 if isinstance(problem, OwnFault) else 2)
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as problem:
        tell(own_fault(problem, 'a model that it captured'))
        sys.exit(1)
