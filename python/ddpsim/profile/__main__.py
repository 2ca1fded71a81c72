"""`python -m ddpsim.profile`, or this file by its path."""
import os
import sys

if not __package__:
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path = [path for path in sys.path if os.path.abspath(path) != here]
    sys.path.insert(0, os.path.dirname(os.path.dirname(here)))

from ddpsim.profile.arguments import parsed_or_said
from ddpsim.profile.messages import note

if __name__ == '__main__':
    arguments = parsed_or_said(sys.argv[1:])
    try:
        import torch as _
    except ImportError:
        note('this Python has no torch')
        sys.exit(2)
    from ddpsim.profile.command import main
    code = main(arguments)
    sys.stdout.flush()
    sys.stderr.flush()
    if code == 1:
        os._exit(1)  # threads of a broken process group need not be waited for
    sys.exit(code)
