#!/usr/bin/env python3
"""What the rules R1 to R50 (tests/README.md) say of torch's DistributedDataParallel, looked at on
torch 2.13 itself. equality.py holds ddpsim's steps against torch's; here stand the rules, or parts
of rules, that steps do not show: values, counts of kernels, who waits for whom.

    python rules.py [CASE ...]       with a Python that has torch; --list names the cases

Most cases have one process: its process group (class Group) has as many ranks as it says, writes
down each collective, and ends it at once or when the case says. Exit code 0; 3 if torch does
something else, with what; 77 without torch, or with one before 2.13 (1 with
DDPSIM_TORCH=required).
"""
import argparse
import contextlib
import importlib.util
import os
import sys
import tempfile
import threading
import time
import traceback

sys.dont_write_bytecode = True
os.environ.setdefault('OMP_NUM_THREADS', '1')
MIB = 1 << 20
LONG = 0.3  # seconds that a case makes somebody wait
CASES = {}


def case(name):
    def put(function):
        CASES[name] = function
        return function
    return put


def check(true, what):
    if not true:
        raise AssertionError(what)


def equal(found, expected, what):
    check(found == expected, f'{what}: found {found}, expected {expected}')


# A process group of one process.

def completed(value):
    import torch
    future = torch.futures.Future()
    future.set_result(value)
    return future


def work_of(future):
    from torch._C._distributed_c10d import _create_work_from_future
    return _create_work_from_future(future)


class Call:
    def __init__(self, operation, tensor, at):
        self.operation, self.at = operation, at
        self.bytes = tensor.numel() * tensor.element_size()
        self.type, self.values = tensor.dtype, tensor.detach().clone()


@contextlib.contextmanager
def group_of(ranks, ending=lambda call: None):
    """The default process group, rank 0 of `ranks`, for a while. `ending(call)` says after how many
    seconds a collective ends, by a thread; None: at once."""
    import torch
    import torch.distributed as dist

    class Group(dist.ProcessGroup):
        def __init__(self):
            super().__init__(0, ranks)
            self.calls = []

        def done(self, operation, tensor, result):
            call = Call(operation, tensor, time.perf_counter())
            self.calls.append(call)
            wait = ending(call)
            if wait is None:
                return work_of(completed(result))
            future = torch.futures.Future()
            threading.Timer(wait, lambda: future.set_result(result)).start()
            return work_of(future)

        def taken(self, operation=None):
            calls, self.calls = self.calls, []
            return [call for call in calls if operation in (None, call.operation)]

        def allreduce(self, tensors, options=None):
            return self.done('all_reduce', tensors[0], tensors)

        def broadcast(self, tensors, options=None):
            return self.done('broadcast', tensors[0], tensors)

        def allgather(self, outputs, inputs, options=None):
            for output in outputs[0]:
                output.copy_(inputs[0])
            # NCCL's future has all outputs in one tensor.
            return self.done('all_gather', inputs[0], [torch.stack(outputs[0])])

        def barrier(self, options=None):
            return work_of(completed([]))

        def getBackendName(self):
            return 'noted'
    group = Group()
    if not hasattr(dist.Backend, 'NOTED'):
        dist.Backend.register_backend('noted', lambda *_: group_of.now, devices=['cpu'])
    group_of.now = group
    with tempfile.TemporaryDirectory() as folder:
        store = dist.FileStore(folder + '/store', 1)
        dist.init_process_group('noted', store=store, rank=0, world_size=ranks)
        try:
            yield dist.distributed_c10d._get_default_group()
        finally:
            dist.destroy_process_group()


def wrapped(model, group, **settings):
    from torch.nn.parallel import DistributedDataParallel
    ddp = DistributedDataParallel(model, **settings)
    group.taken()
    return ddp


def step(ddp, batch, loss=lambda out: out.sum()):
    for parameter in ddp.parameters():
        parameter.grad = None
    loss(ddp(batch)).backward()


def linears(*widths):
    import torch
    return torch.nn.Sequential(*(torch.nn.Linear(taken, given)
                                 for taken, given in zip(widths, widths[1:])))


def log_of(ddp):
    ddp.logger.set_runtime_stats_and_log()
    return ddp._get_ddp_logging_data()


def counted(run):
    """{name: how many} of torch's events while `run()`."""
    from collections import Counter
    from torch.profiler import ProfilerActivity, profile
    with profile(activities=[ProfilerActivity.CPU]) as found:
        run()
    return Counter(event.name for event in found.events())


COPY_IN = 'torch::distributed::reducer::mul_out'
PLAIN_COPY_IN = 'torch::distributed::reducer::copy_'
COPY_OUT = 'torch.distributed.ddp.reducer::copy_bucket_to_grad'


# Buckets.

@case('R1, R11, R15: a bucket closes at its limit, caps are whole bytes, nothing is padded')
def buckets_close():
    import torch
    with group_of(2) as group:
        class Sums(torch.nn.Module):
            def __init__(self):
                super().__init__()
                for index, count in enumerate((13, MIB // 4, 262, 7, MIB // 4)):
                    self.register_parameter(f'p{index}', torch.nn.Parameter(torch.ones(count)))

            def forward(self, x):
                return sum(parameter.sum() for parameter in self.parameters()) * x
        for cap, sizes in ((1, [MIB, 4 * (7 + 262) + MIB, 52]),
                           (0.001, [MIB, 28 + 1048, MIB, 52])):
            model, order = Sums(), []
            parameters = list(model.parameters())
            ddp = wrapped(model, group, bucket_cap_mb=cap)
            for index, parameter in enumerate(parameters):
                parameter.register_post_accumulate_grad_hook(
                    lambda _, index=index: order.append(index))
            for _ in range(2):
                step(ddp, torch.ones(1))
            log = log_of(ddp)
            equal(log['bucket_cap_bytes'], int(cap * MIB), 'the cap')
            arrival = order[:len(parameters)]
            # By hand, from the order in which they came.
            limit, expected, size = int(cap * MIB), [], 0
            for index in arrival:
                size += 4 * parameters[index].numel()
                if size >= limit:
                    expected, size = [*expected, size], 0
            expected += [size] if size else []
            found = [int(each) for each in log['rebuilt_bucket_sizes'].split(',')]
            equal(found, expected, f'buckets under {cap} MiB, arrival {arrival}')
            if arrival == [4, 3, 2, 1, 0]:
                equal(found, sizes, 'the same, written down')
            check(MIB in found, 'a gradient as large as the cap of 1 MiB is a bucket')


@case('R16: buckets are launched by their index, and a late one holds back the others')
def launch_order():
    import torch
    from torch import nn

    class Turned(nn.Module):
        """Two branches, of which the one computed last has its gradients first."""

        def __init__(self):
            super().__init__()
            self.left, self.right = linears(300, 1000), linears(300, 1000)
            self.turned = False

        def forward(self, x):
            if self.turned:
                right = self.right(x)
                return self.left(x) + right
            left = self.left(x)
            return left + self.right(x)
    with group_of(2) as group:
        model = Turned()
        ddp = wrapped(model, group, bucket_cap_mb=1)
        fired, launched = [], []
        for name, parameter in model.named_parameters():
            parameter.register_post_accumulate_grad_hook(lambda _, name=name: fired.append(name))

        def hook(state, bucket):
            launched.append((bucket.index(), len(fired)))
            return completed(bucket.buffer())
        ddp.register_comm_hook(None, hook)
        x = torch.ones(2, 300)
        for turned in (False, False, True):
            model.turned = turned
            fired.clear()
            launched.clear()
            step(ddp, x)
        check(fired[0].startswith('left'), f'the other branch is first now: {fired}')
        equal([index for index, _ in launched], [0, 1], 'the order of launches')
        # Bucket 1 was full after two gradients, and waits for bucket 0: both go at the last hook.
        equal(len({after for _, after in launched}), 1, 'launches back to back')
        check(launched[0][1] >= 3, f'nothing is launched before its turn: {launched}')


# Copies, divisions, views.

@case('R22, R23, R48: one rank still scales and reduces, views save the copies out alone')
def views_and_copies():
    import torch
    x = torch.ones(2, 40)
    for view, kept, batched, ins, outs, divided in (
            (False, False, False, 6, 6, 0), (True, False, False, 6, 0, 0),
            (True, True, False, 0, 0, 6)):
        with group_of(1) as group:
            ddp = wrapped(linears(40, 50, 60, 7), group, gradient_as_bucket_view=view)

            def train(none=True):
                ddp.zero_grad(set_to_none=none)
                ddp(x).sum().backward()
            train()
            train()
            group.taken()
            counts = counted(lambda: train(none=not kept))
            what = f'gradient_as_bucket_view={view}, zero_grad(set_to_none={not kept})'
            equal(counts[COPY_IN], ins, f'{what}: copies in')
            equal(counts[COPY_OUT], outs, f'{what}: copies out')
            equal(counts['aten::div_'], divided, f'{what}: divisions in place')
            equal(len(group.taken('all_reduce')), 1, f'{what}: all-reduces')


@case('R25: batched copies are one copy and one division a bucket, copies out are as before')
def batched_copies():
    import torch
    x = torch.ones(2, 40)
    with group_of(2) as group:
        ddp = wrapped(linears(40, 50, 60, 7), group, batched_grad_copy=True)
        for _ in range(2):
            step(ddp, x)
        counts = counted(lambda: step(ddp, x))
        equal(counts[COPY_IN], 0, 'copies in, one by one')
        equal(counts['aten::_foreach_copy_'], 1, 'copies in, together')
        equal(counts['aten::div_'], 1, 'divisions')
        equal(counts[COPY_OUT], 6, 'copies out')


@case('R24: a bucket holds shares of the mean before it is summed, with a hook, the hook divides')
def division():
    import torch
    for ranks in (1, 3, 4):
        for hooked in (False, True):
            with group_of(ranks) as group:
                ddp = wrapped(linears(8, 4), group)
                seen = []
                if hooked:
                    def hook(state, bucket):
                        seen.append(bucket.buffer().clone())
                        return completed(bucket.buffer())
                    ddp.register_comm_hook(None, hook)
                step(ddp, torch.ones(1, 8))
                if not hooked:
                    seen = [call.values for call in group.taken('all_reduce')]
                share = 1.0 if hooked else torch.tensor(1.0) * (1 / ranks)
                check(seen and all(torch.equal(each, torch.full_like(each, share))
                                   for each in seen),
                      f'{ranks} ranks, hook {hooked}: {seen}')


@case('R21: a bucket is copied out while the next one is still reduced')
def pipelined_tail():
    import torch
    from torch.profiler import ProfilerActivity, profile
    # The second bucket ends LONG later than the first.
    ends = iter([None] * 100)
    with group_of(2, lambda call: next(ends) if call.operation == 'all_reduce' else None) as group:
        ddp = wrapped(linears(300, 1000, 300), group, bucket_cap_mb=1)
        x = torch.ones(2, 300)
        for _ in range(2):
            step(ddp, x)
        group.taken()
        ends = iter([0.01, 2 * LONG])
        with profile(activities=[ProfilerActivity.CPU]) as found:
            step(ddp, x)
        equal(len(group.taken('all_reduce')), 2, 'buckets')
        copies = sorted(event.time_range.start for event in found.events()
                        if event.name == COPY_OUT)
        equal(len(copies), 4, 'copies out')
        apart = 1e-6 * (copies[2] - copies[1])
        check(apart > LONG, f'bucket 1 is copied {apart:.3f} s after bucket 0')


# no_sync and buffers.

@case('R26, R27: within no_sync nothing is copied or sent, and its sum is reduced once behind it')
def silent_steps():
    import torch
    x = torch.ones(1, 8)
    with group_of(2) as group:
        ddp = wrapped(linears(8, 4), group)
        for _ in range(2):
            step(ddp, x)
        group.taken()
        before = log_of(ddp)['iteration']
        ddp.zero_grad()

        def silent():
            with ddp.no_sync():
                for _ in range(3):
                    ddp(x).sum().backward()
        counts = counted(silent)
        equal(group.taken(), [], 'collectives')
        equal(counts[COPY_IN] + counts[COPY_OUT], 0, 'copies')
        equal(log_of(ddp)['iteration'], before, 'iterations counted')
        ddp(x).sum().backward()
        reduced = group.taken('all_reduce')
        equal(len(reduced), 1, 'all-reduces')
        check(torch.equal(reduced[0].values, torch.full((36,), 4 / 2.0)), 'the sum of four, halved')


@case('R28, R29: who broadcasts buffers, by type, 250 MiB at a time, two of them under way')
def buffers():
    import torch
    slow = [None]
    with group_of(2, lambda call: slow[0] if call.operation == 'broadcast' else None) as group:
        model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4))
        ddp = wrapped(model, group)
        x = torch.ones(3, 4)
        equal(ddp.broadcast_bucket_size, 250 * MIB, 'bytes together')
        for _ in range(2):
            step(ddp, x)
        group.taken()
        broadcasts = lambda: len(group.taken('broadcast'))
        ddp(x).sum().backward()
        equal(broadcasts(), 2, 'of a synchronised forward: statistics and counter')
        with ddp.no_sync():
            ddp(x).sum().backward()
        equal(broadcasts(), 2, 'of the first forward in no_sync')
        ddp(x).sum().backward()
        equal(broadcasts(), 0, 'of the forward behind no_sync')
        ddp(x).sum().backward()
        equal(broadcasts(), 2, 'of the next')
        with torch.no_grad():
            ddp(x)
        broadcasts()
        ddp(x).sum().backward()
        equal(broadcasts(), 0, 'of the forward behind one without gradients')
        # Four groups: the third is sent once the first has ended.
        for index in range(4):
            model.register_buffer(f'more{index}', torch.zeros(1000))
        del model[1]
        ddp = wrapped(model, group)
        step(ddp, torch.ones(3, 4))
        ddp.broadcast_bucket_size = 4000
        group.taken()
        slow[0] = LONG
        step(ddp, torch.ones(3, 4))
        slow[0] = None
        sent = [call.at for call in group.taken('broadcast') if call.bytes == 4000]
        equal(len(sent), 4, 'broadcasts')
        check(sent[1] - sent[0] < LONG / 2 < LONG * 0.9 < sent[2] - sent[1],
              f'sent after {[each - sent[0] for each in sent]} s')


# Unused parameters.

def partly(idle_first=False):
    import torch

    class Partly(torch.nn.Module):
        def __init__(self):
            super().__init__()
            for name in sorted(('used', 'idle'), reverse=not idle_first):
                self.register_module(name, torch.nn.Linear(8, 4))

        def forward(self, x):
            return self.used(x)
    return Partly()


@case('R30, R31: unused parameters are ready at the first hook, zeros on the wire, then a used map')
def unused():
    import torch
    with group_of(2) as group:
        model = partly()
        ddp = wrapped(model, group, find_unused_parameters=True)
        step(ddp, torch.ones(1, 8))
        bucket, used = group.taken('all_reduce')
        equal(bucket.bytes, 4 * 72, 'bytes of the bucket')
        # In a construction-time bucket contents ascend: the used layer, then the idle one.
        check(bool((bucket.values[:36] == 0.5).all()), 'the used ones')
        check(bool((bucket.values[36:] == 0).all()), 'zeros of the idle ones')
        equal((used.bytes, used.type), (4 * 4, torch.int32), 'the used map')
        equal(used.values.tolist(), [1, 1, 0, 0], 'the used map')


@case('R32: the host waits for the used map: before an unused parameter\'s copy, else behind all')
def used_map_waited():
    import torch
    from torch.profiler import ProfilerActivity, profile
    for idle in (True, False):
        late = lambda call: LONG if call.type == torch.int32 and call.bytes == 16 else None
        with group_of(2, late) as group:
            model = partly(idle_first=True) if idle else linears(8, 4, 2)
            ddp = wrapped(model, group, find_unused_parameters=True)
            begin = time.perf_counter()
            with profile(activities=[ProfilerActivity.CPU]) as found:
                step(ddp, torch.ones(1, 8))
                took = time.perf_counter() - begin
            copied = [1e-6 * event.time_range.start for event in found.events()
                      if event.name == COPY_OUT]
            forward = min(1e-6 * event.time_range.start for event in found.events()
                          if event.name == 'DistributedDataParallel.forward')
            check(took > 0.9 * LONG, f'idle {idle}: {took:.3f} s')
            check((max(copied) - forward > 0.9 * LONG) == idle,
                  f'idle {idle}: copies at {[at - forward for at in copied]}')


@case('R33: a bucket of unused parameters alone is skipped if asked')
def skipped():
    import torch
    for skip in (False, True):
        with group_of(2) as group:
            ddp = wrapped(partly(), group, find_unused_parameters=True, bucket_cap_mb=144 / MIB,
                          skip_all_reduce_unused_params=skip)
            step(ddp, torch.ones(1, 8))
            reduced = [call.bytes for call in group.taken('all_reduce')]
            equal(reduced[-1], 16, 'the used map is last')
            equal(sum(reduced[:-1]), 4 * 36 * (1 if skip else 2), f'skip {skip}: bytes')


@case('R34: a static graph communicates behind its first backward, the map first')
def static_graph():
    import torch
    with group_of(2) as group:
        model = linears(300, 1000, 300)
        ddp = wrapped(model, group, static_graph=True, bucket_cap_mb=1)
        hooks = []
        for parameter in model.parameters():
            parameter.register_post_accumulate_grad_hook(
                lambda _: hooks.append(time.perf_counter()))
        step(ddp, torch.ones(2, 300))
        reduced = group.taken('all_reduce')
        equal(reduced[0].type, torch.int32, 'the used map')
        check(all(call.at > hooks[-1] for call in reduced), 'all behind the last hook')
        hooks.clear()
        for _ in range(2):
            step(ddp, torch.ones(2, 300))
        check(group.taken('all_reduce')[-2].at < hooks[-1], 'the third overlaps')


@case('R35: a gradient that does not come is an error in the next forward')
def missing():
    import torch
    with group_of(2) as group:
        ddp = wrapped(partly(), group)
        step(ddp, torch.ones(1, 8))
        try:
            ddp(torch.ones(1, 8))
        except RuntimeError as problem:
            check('Expected to have finished reduction' in str(problem), str(problem))
        else:
            check(False, 'the next forward raises')


# The logger.

@case('R20, R46: four averages of five marks, waits are no compute')
def averages():
    import torch
    late = [None]
    with group_of(2, lambda call: late[0] if call.operation == 'all_reduce' else None) as group:
        ddp = wrapped(linears(100, 200, 100), group, bucket_cap_mb=0.01)
        x, sums = torch.ones(4, 100), {}
        late[0] = LONG / 3
        step(ddp, x)
        for number in range(1, 8):
            step(ddp, x)  # its forward reads what the step before took
            log = ddp._get_ddp_logging_data()
            names = ('forward_compute_time', 'backward_compute_time', 'backward_comm_time',
                     'backward_compute_comm_overlap_time')
            for name in names:
                sums[name] = (log[name] + sums.get(name, 0) * (number - 1)) // number
                equal(log[f'avg_{name}'], sums[name], f'iteration {number}: running mean of {name}')
            begin = lambda mark: log[f'{mark}_start']
            end = lambda mark: log[f'{mark}_end']
            compute, comm = 'backward_compute_time', 'backward_comm_time'
            equal(log[names[0]], begin(compute) - begin(names[0]), 'forward')
            equal(log[compute], end(compute) - begin(compute), 'backward compute')
            equal(log[comm], end(comm) - begin(comm), 'communication')
            equal(log[names[3]], end(compute) - begin(comm), 'overlap: a window')
            check(log[compute] < 0.5e9 * late[0] < 0.9e9 * late[0] < log[comm],
                  f'{log[compute]} ns of compute, {log[comm]} ns of communication')


@case('R47: iterations 1 to 10 are sampled, then every hundredth, and read in the next forward')
def sampling():
    import torch
    with group_of(2) as group:
        ddp = wrapped(linears(4, 4), group)
        x, sampled, last = torch.ones(1, 4), [], None
        for number in range(1, 203):
            step(ddp, x)
            log = ddp._get_ddp_logging_data()  # as it is, without reading the timers
            marks = log.get('backward_comm_time_end')
            if marks != last:
                sampled.append((log['iteration'], number))
            last = marks
        equal(sampled, [(each, each + 1) for each in (*range(1, 11), 100, 200)],
              'iterations, and the forwards that read them')


# Comm hooks.

@case('R42: each of PowerSGD\'s all-reduces is issued once the one before it has ended')
def powersgd():
    import torch
    from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as hooks
    late = [None]
    with group_of(2, lambda call: late[0] if call.operation == 'all_reduce' else None) as group:
        ddp = wrapped(linears(64, 64, 4), group)
        state = hooks.PowerSGDState(None, start_powerSGD_iter=2)
        ddp.register_comm_hook(state, hooks.powerSGD_hook)
        x = torch.ones(2, 64)
        for _ in range(3):
            step(ddp, x)
        group.taken()
        late[0] = LONG / 2
        step(ddp, x)
        sent = [call.at for call in group.taken('all_reduce')]
        equal(len(sent), 3, 'all-reduces')
        check(all(after - before > 0.9 * late[0] for before, after in zip(sent, sent[1:])),
              f'{sent}')


@case('R43: quantisation gathers scales, then a byte for each element, one after the other')
def quantised():
    import torch
    from torch.distributed.algorithms.ddp_comm_hooks import quantization_hooks as hooks
    late = [None]
    for hook in (hooks.quantization_pertensor_hook, hooks.quantization_perchannel_hook):
        with group_of(4, lambda call: late[0] if call.operation == 'all_gather' else None) as group:
            late[0] = None
            ddp = wrapped(linears(64, 20), group)
            ddp.register_comm_hook(None, hook)
            x = torch.linspace(0, 1, 2 * 64).reshape(2, 64)
            step(ddp, x)
            late[0] = LONG / 2
            step(ddp, x)
            calls = group.taken('all_gather')[-2:]
            elements = 64 * 20 + 20
            # A scale and a zero point of four bytes each, for the bucket or for each 512 elements;
            # per channel the last of these is filled up.
            whole = hook is hooks.quantization_pertensor_hook
            channels = 1 if whole else elements // 512 + 1
            sent = elements if whole else 512 * channels
            equal([call.bytes for call in calls], [8 * channels, sent], hook.__name__)
            check(calls[1].at - calls[0].at > 0.9 * late[0], 'the second waits for the first')
            # All ranks send what this one does: the mean is its gradient, rounded to 255 steps.
            expected, found = x.sum(0).expand(20, 64), ddp.module[0].weight.grad
            check((found - expected).abs().max() <= 2.0 / 255, f'{found} for {expected}')


@case('R50: nobody waits for the delayed all-reduce')
def delayed():
    import torch
    late = lambda call: 5 * LONG if call.operation == 'all_reduce' and call.bytes == 320 else None
    with group_of(2, late) as group:
        model = linears(8, 9, 8)
        named = dict(model.named_parameters())
        begin = time.perf_counter()
        ddp = wrapped(model, group, param_to_hook_all_reduce=named['0.weight'],
                      delay_all_reduce_named_params=[(name, named[name])
                                                     for name in ('1.weight', '1.bias')])
        begin = time.perf_counter()
        step(ddp, torch.ones(1, 8))
        took = time.perf_counter() - begin
        equal(sorted(call.bytes for call in group.taken('all_reduce')), [320, 324], 'all-reduces')
        check(took < 4 * LONG, f'{took:.3f} s')


# Two real ranks.

def on_ranks(run):
    """run(rank) on two processes over Gloo; what rank 0 returned."""
    import torch.multiprocessing as processes
    with tempfile.TemporaryDirectory() as folder:
        context = processes.get_context('fork')
        pipe, far = context.Pipe()

        def body(rank):
            import torch
            import torch.distributed as dist
            torch.set_num_threads(1)
            os.environ['GLOO_SOCKET_IFNAME'] = 'lo'
            dist.init_process_group('gloo', init_method=f'file://{folder}/meeting', rank=rank,
                                    world_size=2)
            found = run(rank)
            dist.barrier()
            if rank == 0:
                far.send(found)
            dist.destroy_process_group()
            os._exit(0)
        ranks = [context.Process(target=body, args=(rank,)) for rank in range(2)]
        for rank in ranks:
            rank.start()
        try:
            check(pipe.poll(120), 'the ranks do not end')
            return pipe.recv()
        finally:
            for rank in ranks:
                rank.join(10)
                rank.kill()


@case('R17: collectives of another group do not wait for those of the first')
def two_groups():
    def run(rank):
        import torch
        import torch.distributed as dist
        other = dist.new_group()
        if rank == 0:
            first = [dist.all_reduce(torch.ones(4), async_op=True) for _ in range(4)]
        begin = time.perf_counter()
        dist.all_reduce(torch.ones(4), group=other)
        second = time.perf_counter()
        if rank == 1:
            time.sleep(LONG)
            first = [dist.all_reduce(torch.ones(4), async_op=True) for _ in range(4)]
        for each in first:
            each.wait()
        return second - begin, time.perf_counter() - begin
    second, first = on_ranks(run)
    check(second < 0.9 * LONG < first, f'{second:.3f} s, {first:.3f} s')


@case('R18: all ranks end with the slowest')
def slowest_rank():
    def run(rank):
        import torch
        from torch.nn.parallel import DistributedDataParallel
        ddp = DistributedDataParallel(linears(8, 4))
        loss = ddp(torch.ones(1, 8)).sum()
        if rank == 1:
            time.sleep(LONG)
        begin = time.perf_counter()
        loss.backward()
        return time.perf_counter() - begin
    took = on_ranks(run)
    check(took > 0.8 * LONG, f'{took:.3f} s')


@case('R36: who has no inputs sends zeros, the mean is over all, or over those that have some')
def uneven():
    for initial, expected in ((True, 0.5), (False, 1.0)):
        def run(rank):
            import torch
            from torch.nn.parallel import DistributedDataParallel
            ddp = DistributedDataParallel(linears(8, 4))
            found = []
            with ddp.join(divide_by_initial_world_size=initial):
                for _ in range(2 - rank):
                    step(ddp, torch.ones(1, 8))
                    found.append(next(ddp.parameters()).grad.flatten()[0].item())
            return found
        equal(on_ranks(run), [1.0, expected], f'divide_by_initial_world_size={initial}')


@case('R37: Gloo carries out two collectives at a time, and begins them in order')
def two_at_a_time():
    def run(rank):
        import torch
        from torch.nn.parallel import DistributedDataParallel
        from torch.profiler import ProfilerActivity, profile
        ddp = DistributedDataParallel(linears(*[500] * 7), bucket_cap_mb=0.9)
        x = torch.ones(1, 500)
        for _ in range(3):
            step(ddp, x)
        if rank == 1:
            time.sleep(LONG)
        with profile(activities=[ProfilerActivity.CPU]) as found:
            step(ddp, x)
        return [(event.time_range.start, event.time_range.end) for event in found.events()
                if event.name == 'gloo:all_reduce']
    spans = on_ranks(run)
    check(len(spans) >= 6, f'{len(spans)} all-reduces')
    # Rank 1 comes late, so that all of them are queued.
    starts = sorted(start for start, _ in spans)
    most = max(sum(begin <= start < end for begin, end in spans) for start in starts)
    equal(most, 2, 'at a time')


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--list', action='store_true')
    parser.add_argument('cases', metavar='CASE', nargs='*', help='default: all')
    arguments = parser.parse_args()
    if arguments.list:
        print('\n'.join(CASES))
        return 0
    unknown = [name for name in arguments.cases if name not in CASES]
    if unknown:
        parser.error(f'no case {unknown[0]}')
    required = os.environ.get('DDPSIM_TORCH') == 'required'
    if importlib.util.find_spec('torch') is None:
        print('rules: this Python has no torch', file=sys.stderr)
        return 1 if required else 77
    import torch
    if tuple(int(part) for part in torch.__version__.split('.')[:2]) < (2, 13):
        print(f'rules: this Python has torch {torch.__version__}', file=sys.stderr)
        return 1 if required else 77
    torch.set_num_threads(1)
    wrong = False
    for name in arguments.cases or CASES:
        try:
            CASES[name]()
            print(f'{name}: so it is')
        except AssertionError as problem:
            wrong = True
            print(f'{name}: {problem}')
        except Exception:
            wrong = True
            print(name)
            traceback.print_exc()
    return 3 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
