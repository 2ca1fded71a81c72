"""The command line's flags. Nothing here needs torch."""
import argparse
import dataclasses
import os

import ddpsim.profile

from .messages import KIB, MIB, ProfileError, note


@dataclasses.dataclass(frozen=True)
class Wishes:
    """What is to be measured, for how long, and where the files go."""
    output: str = 'profile'      # a folder
    warmup: int = 3              # steps
    steps: int = 20
    largest: int = 64 * MIB      # of the all-reduces
    seconds: float = 60.0        # for the link
    timeout: float = 60.0        # seconds for which a rank may let the others wait
    script: str | None = None    # FILE:FUNCTION
    link_only: bool = False
    backend: str | None = None   # gloo, nccl; None: what goes with the device
    memory: str = 'as-is'        # of gradients: kept, as-is


def bytes_of(text):
    for unit, size in (('KiB', KIB), ('MiB', MIB), ('GiB', MIB * KIB)):
        if (text.endswith(unit) and text[:-3].strip().isdigit()
                and 8 * KIB <= int(text[:-3]) * size <= 16 * MIB * KIB):
            return int(text[:-3]) * size
    raise argparse.ArgumentTypeError(
        f'expected a size from 8 KiB to 16 GiB such as "64 MiB", got "{text}"')


def number_above(least, kind=int):
    def parse(text):
        try:
            value = kind(text)
        except ValueError:
            value = least - 1
        if not least <= value < 1e6:
            raise argparse.ArgumentTypeError(f'expected a number of at least {least}, got "{text}"')
        return value
    return parse


class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise ProfileError(f'{message}; --help says more')


def parsed(words):
    parser = Parser(prog='python -m ddpsim.profile', description=ddpsim.profile.__doc__,
                    formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--script', metavar='FILE:FUNCTION',
                        help='whose function says what a step is; default function: make')
    parser.add_argument('--output', metavar='DIR', default='profile',
                        help='folder for what is written (default: profile)')
    parser.add_argument('--warmup', type=number_above(1), default=3,
                        help='steps that do not count (default: 3)')
    parser.add_argument('--steps', type=number_above(4), default=20,
                        help='steps that count (default: 20)')
    parser.add_argument('--memory', choices=('kept', 'as-is'), default='kept',
                        help='whether the C library keeps gradients\' memory from step to step, or '
                        'does what it does (default: kept)')
    parser.add_argument('--link-only', action='store_true', help='measure the link without a model')
    parser.add_argument(
        '--backend', choices=('gloo', 'nccl'),
        help='default: what goes with the device of the model, or, without one, of the machine')
    parser.add_argument('--largest', type=bytes_of, default=64 * MIB, metavar='SIZE',
                        help='largest all-reduce (default: "64 MiB")')
    parser.add_argument('--seconds', type=number_above(1, float), default=60,
                        help='about how long the link may take (default: 60)')
    parser.add_argument('--timeout', type=number_above(1, float), default=60, metavar='SECONDS',
                        help='how long a rank may let the others wait (default: 60)')
    arguments = parser.parse_args(words)
    if bool(arguments.script) == arguments.link_only:
        parser.error('give --script FILE:FUNCTION, or --link-only' if not arguments.script else
                     '--script and --link-only exclude each other')
    return Wishes(**vars(arguments))


def rank_prefix():
    """How a line begins that one of several ranks says."""
    of_several = os.environ.get('WORLD_SIZE', '1') != '1' and os.environ.get('RANK')
    return f'rank {os.environ["RANK"]}: ' if of_several else ''


def parsed_or_said(words):
    """What the words wish; what is wrong with them is said, and ends the process."""
    try:
        return parsed(words)
    except ProfileError as problem:
        note(f'{rank_prefix()}{problem}')
        raise SystemExit(2) from None
