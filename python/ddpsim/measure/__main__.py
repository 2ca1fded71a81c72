"""The command line: python -m ddpsim.measure operations|host"""
import argparse
import sys

from .._text import one_line
from .errors import MeasureError

DESCRIPTION = """\
Measures single operations of your GPU, or what PyTorch's calls cost your processor.

    python -m ddpsim.measure operations -o my-gpu.yaml
    python -m ddpsim.measure host -o my-host.yaml --reference other-host.yaml

A scenario takes them as `device: {base: h200, operations: my-gpu.yaml}` and `host: my-host.yaml`
(both in `cluster`). docs/devices.md tells how good predictions are with and without them.
"""
CLASSES = ('gemm', 'conv', 'attention', 'pattern')


class Parser(argparse.ArgumentParser):
    """What is wrong with the words is one line."""

    def error(self, message):
        raise MeasureError(f'{message}; --help tells the flags')


def seconds(text):
    try:
        value = float(text)
    except ValueError:
        value = 0
    if not 0 < value <= 86400:
        raise argparse.ArgumentTypeError(f'expected seconds, above zero, got "{text}"')
    return value


def classes(text):
    names = text.split(',')
    for name in names:
        if name not in CLASSES:
            raise argparse.ArgumentTypeError(
                f'expected some of {",".join(CLASSES)}, got "{name}"')
    return names


def parser():
    made = Parser(prog='python -m ddpsim.measure', description=DESCRIPTION, allow_abbrev=False,
                  formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = made.add_subparsers(dest='command', metavar='operations|host', required=True)
    operations = commands.add_parser('operations', allow_abbrev=False,
                                     help='single operations of a GPU, by class and size')
    operations.add_argument('-o', '--output', metavar='FILE', required=True,
                            help='where the table goes; one that is there is gone on with')
    operations.add_argument('--seconds', type=seconds, default=120, metavar='S',
                            help='measure for about so long; default: 120')
    operations.add_argument('--device', default='cuda', metavar='DEVICE',
                            help='cuda, cuda:1, or cpu to try the command; default: cuda')
    operations.add_argument('--classes', type=classes, default=CLASSES, metavar='NAMES',
                            help='some of gemm,conv,attention,pattern; default: all')
    host = commands.add_parser('host', allow_abbrev=False,
                               help="five small operations of this machine's processor")
    host.add_argument('-o', '--output', metavar='FILE', default='-',
                      help='where the file goes; default: standard output')
    host.add_argument('--seconds', type=seconds, default=10, metavar='S',
                      help='measure for so long; default: 10')
    host.add_argument('--reference', metavar='FILE',
                      help='what this command wrote on another host: the factor is over that one')
    return made


def check_torch():
    try:
        import torch as _  # noqa: F401
    except ImportError:
        raise MeasureError('this Python has no torch: pip install torch') from None


def say(text):
    print(f'measure: {one_line(text)}', file=sys.stderr)


def main(words=None):
    arguments = parser().parse_args(words)
    check_torch()
    if arguments.command == 'operations':
        from . import operations
        operations.run(arguments.output, arguments.device, arguments.seconds, arguments.classes,
                       say)
        return
    from . import files, host
    text, said = host.run(arguments.seconds, arguments.reference)
    if arguments.output == '-':
        sys.stdout.write(text)
    else:
        files.write(arguments.output, text)
    for line in said:
        say(line)


if __name__ == '__main__':
    try:
        main()
    except MeasureError as problem:
        say(problem)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
