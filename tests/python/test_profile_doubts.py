"""What a profile says of itself where it is of no use, and what describing leaves behind."""
import sys

from describe_models import torch

import ddpsim
from ddpsim.profile.passes import spread_doubts, step_spread


def test_steps_that_differ_are_doubted():
    assert spread_doubts(step_spread([1.0] * 20)) == []
    assert spread_doubts(None) == []
    found = spread_doubts(step_spread([1.0, 2.0] * 10))
    assert len(found) == 1 and 'of no use' in found[0]


def test_describing_leaves_the_hook_of_exceptions():
    before = sys.excepthook
    ddpsim.describe(torch.nn.Linear(4, 4), torch.zeros(2, 4),
                    lambda model, batch: model(batch).sum())
    assert sys.excepthook is before
