"""Trains small.py's perceptron (with dropout) for ten steps: a user's own loop.

    python3 training.py PACKAGE OUTPUT FAULT     profiled by PACKAGE/ddpsim/profile into OUTPUT; no
                                                 OUTPUT: not profiled

prints losses and parameters to the last bit. FAULT, if not empty: twice (two backward passes in a
step), raise (a step raises, is caught and repeated), nothing (no step at all).
"""
import contextlib
import sys

import torch
from torch import nn

package, output, fault = sys.argv[1:]
sys.dont_write_bytecode = True
sys.path.insert(0, package)
torch.manual_seed(3)
model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Dropout(0.5), nn.Linear(32, 8), nn.ReLU(),
                      nn.Linear(8, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 3)
batches = [torch.randn(4, 16) for _ in range(10)]
if output:
    import ddpsim.profile
    profiler = ddpsim.profile.Profiler(model, optimizer, output=output, warmup=2, steps=6)
step = profiler.step if output else contextlib.nullcontext
before = vars(optimizer).get('step'), torch.autograd.backward

for number, batch in enumerate(batches):
    if fault == 'nothing':
        break
    if fault == 'raise' and number == 4:
        with contextlib.suppress(ZeroDivisionError), step():
            model[0].weight / (1 // 0)
    with step():
        optimizer.zero_grad()
        loss = model(batch).square().mean()
        loss.backward(retain_graph=fault == 'twice')
        if fault == 'twice':
            loss.backward()
        optimizer.step()
        schedule.step()
    print(loss.item().hex())
for parameter in model.parameters():
    print([value.hex() for value in parameter.flatten().tolist()])
assert (vars(optimizer).get('step'), torch.autograd.backward) == before, 'something was left behind'
assert not model._forward_pre_hooks
