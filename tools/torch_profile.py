#!/usr/bin/env python3
"""What ddpsim has to know of your own PyTorch model, and of the link between your ranks.

Without a cluster, one process writes a workload profile, profile/workload.yaml:

    python torch_profile.py --script my_model.py:make

where make() says what a training step is. It returns (model, batch, loss) or (model, batch, loss,
optimizer):

    import torch
    def make():
        first, last = torch.nn.Linear(256, 256), torch.nn.Linear(256, 10)
        model = torch.nn.Sequential(first, torch.nn.ReLU(), last)
        batch = torch.randn(64, 256), torch.randint(10, (64,))
        def loss(model, batch):                     # one number to call backward() on
            return torch.nn.functional.cross_entropy(model(batch[0]), batch[1])
        return model, batch, loss, torch.optim.SGD(model.parameters(), lr=0.01)

(without an optimizer the profile has none). Or three lines in a training loop of your own; nothing
else changes:

    profiler = torch_profile.Profiler(model, optimizer, output='workload.yaml')
    for batch in loader:
        with profiler.step():         # one forward, one backward, one optimizer.step()
            ...

Under torchrun, srun or anything that sets RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, the same
command also measures the job's own process group: link.yaml, calibration.yaml, and scenario.yaml
that ties all together; --link-only leaves the model out:

    torchrun --nproc_per_node 2 torch_profile.py --script my_model.py:make
    ddpsim run profile/scenario.yaml

Gradients are dropped (set to None) before each step of --script, untimed. Exit code: 0; 2 for bad
input; 1 if a rank fails or is not heard of for --timeout seconds.
"""
import argparse
import atexit
import collections
import datetime
import functools
import importlib.util
import json
import os
import platform
import statistics
import sys
import threading
import time

try:
    import torch
except ImportError:
    print('torch_profile: this Python has no torch', file=sys.stderr)
    sys.exit(2)

KIB, MIB = 1 << 10, 1 << 20
DTYPES = {torch.float32: 'fp32', torch.bfloat16: 'bf16', torch.float16: 'fp16'}


class ProfileError(Exception):
    """Bad input, in one line."""


class RankError(Exception):
    """The other ranks cannot be reached."""


def first_line(problem):
    said = str(problem).strip().splitlines()
    return said[0][:200] if said else type(problem).__name__


def note(text):
    print(f'torch_profile: {text}', file=sys.stderr)


def plural(count, what):
    return f'{count} {what}' if count == 1 else f'{count} {what}s'


# Clocks. A mark is a moment of the device that computes: a time on a CPU, an event on a GPU, which
# nobody waits for until all marks are read.

class HostClock:
    mark = staticmethod(time.perf_counter_ns)

    @staticmethod
    def seconds(begin, end):
        return 1e-9 * (end - begin)

    def settle(self):
        """Waits until everything issued has been computed."""


class CudaClock:
    def __init__(self, device):
        self.device = device

    def mark(self):
        event = torch.cuda.Event(enable_timing=True)
        event.record(torch.cuda.current_stream(self.device))
        return event

    @staticmethod
    def seconds(begin, end):
        return 1e-3 * begin.elapsed_time(end)

    def settle(self):
        torch.cuda.synchronize(self.device)


def clock_of(device):
    return CudaClock(device) if device.type == 'cuda' else HostClock()


def used_seconds():
    """Of all processors since the machine started: what they worked, and what the host of a virtual
    machine gave to others of the time they would have (proc_stat(5)); zeros where the system does
    not say."""
    try:
        with open('/proc/stat') as file:
            user, nice, system, _, _, irq, softirq, stolen = map(int, file.readline().split()[1:9])
    except (OSError, ValueError):
        return 0.0, 0.0
    ticks = os.sysconf('SC_CLK_TCK')
    return (user + nice + system + irq + softirq) / ticks, stolen / ticks


class Steal:
    """From when it is made."""
    MOST = 0.05  # share

    def __init__(self):
        self.before, self.begin = used_seconds(), time.perf_counter()

    def share(self):
        """Of the time in which processors had work, but of at least one processor's time."""
        worked, stolen = (max(0.0, after - before)
                          for after, before in zip(used_seconds(), self.before))
        return stolen / max(time.perf_counter() - self.begin, worked + stolen)

    @classmethod
    def doubts(cls, share):
        return [
            f'the host of this virtual machine took {100 * share:.0f} % of its processors\' time '
            'meanwhile: measure '
            'again when it takes less'
        ] if share > cls.MOST else []


# The model: which of its parameters take part, as DistributedDataParallel sees them.

class Parameter:
    def __init__(self, name, tensor):
        self.name, self.tensor = name, tensor
        self.shape, self.dtype = list(tensor.shape), DTYPES[tensor.dtype]
        self.sparse, self.rows = False, 0


def parameters_of(model):
    """In registration order, a tied one once, under its first name; frozen ones are left out."""
    if not isinstance(model, torch.nn.Module):
        raise ProfileError(f'expected a torch.nn.Module as model, got {type(model).__name__}')
    if isinstance(model, (torch.nn.parallel.DistributedDataParallel, torch.nn.DataParallel)):
        raise ProfileError(
            f'the model is wrapped in {type(model).__name__}, so its passes hold communication: '
            'profile the model inside (model.module)')
    found = []
    for name, tensor in model.named_parameters():
        if not tensor.requires_grad:
            continue
        if tensor.dtype not in DTYPES:
            raise ProfileError(
                f'parameter {name} is {str(tensor.dtype).replace("torch.", "")}; '
                f'known are {", ".join(str(known).replace("torch.", "") for known in DTYPES)}')
        if tensor.numel() == 0:
            note(f'parameter {name} is empty: left out')
            continue
        found.append(Parameter(name, tensor))
    if not found:
        raise ProfileError('no parameter of the model requires a gradient')
    devices = sorted({str(parameter.tensor.device) for parameter in found})
    if len(devices) > 1:
        raise ProfileError(f'parameters lie on {", ".join(devices)}: a rank has one device')
    if found[0].tensor.device.type not in ('cpu', 'cuda'):
        raise ProfileError(f'the model is on {devices[0]}; cpu and cuda can be profiled')
    return found


def buffers_of(model):
    """[(type, tensors, bytes)] of what is not trained but kept alike, a batch norm's statistics:
    rank 0's are broadcast before a forward pass, those of one type together, types in the order
    they first appear."""
    groups = {}
    for _, buffer in model.named_buffers():
        tensors, size = groups.get(buffer.dtype, (0, 0))
        groups[buffer.dtype] = tensors + 1, size + buffer.numel() * buffer.element_size()
    return [(str(dtype).replace('torch.', ''), *group) for dtype, group in groups.items()
            if group[1] > 0]


def accumulator_of(tensor):
    """The autograd node that puts the gradient in place; DistributedDataParallel's hook sits behind
    it too."""
    with torch.enable_grad():
        return tensor.view_as(tensor).grad_fn.next_functions[0][0]


# One step.

class Step:
    """The marks of one step: begin, forward, backward, backward_end, optimizer, optimizer_end,
    end."""

    def __init__(self, watched):
        self.watched = watched  # gradient hooks are on
        self.at = {}
        self.gradients = []     # (index of the parameter, mark), in the order their hooks fired
        self.backwards = self.optimizers = 0


class StepContext:
    """`with profiler.step():`: marks on, marks off. All it touches is put back on leaving."""

    def __init__(self, profiler, step):
        self.profiler, self.step = profiler, step
        self.undo = []

    def __enter__(self):
        step, profiler = self.step, self.profiler
        if step is None:
            return self
        mark = profiler.clock.mark
        at = step.at

        def forward_begins(*_):
            at.setdefault('forward', mark())
        hook = profiler.model.register_forward_pre_hook(forward_begins)
        self.undo.append(hook.remove)

        backward = torch.autograd.backward  # loss.backward() calls it by this name
        depth = 0

        @functools.wraps(backward)
        def timed_backward(*arguments, **keywords):
            nonlocal depth
            depth += 1  # checkpoints call it again inside
            try:
                if depth > 1:
                    return backward(*arguments, **keywords)
                step.backwards += 1
                at['backward'] = mark()
                result = backward(*arguments, **keywords)
                at['backward_end'] = mark()
                return result
            finally:
                depth -= 1
        torch.autograd.backward = timed_backward
        self.undo.append(lambda: setattr(torch.autograd, 'backward', backward))

        if profiler.optimizer is not None:
            self.wrap_optimizer(profiler.optimizer, mark)
        if step.watched:
            for index, accumulator in enumerate(profiler.accumulators):
                self.undo.append(accumulator.register_hook(self.gradient_hook(index, mark)).remove)
        at['begin'] = mark()
        return self

    def wrap_optimizer(self, optimizer, mark):
        step, original, own = self.step, optimizer.step, vars(optimizer).get('step')

        @functools.wraps(original)
        def timed_step(*arguments, **keywords):
            step.optimizers += 1
            step.at['optimizer'] = mark()
            result = original(*arguments, **keywords)
            step.at['optimizer_end'] = mark()
            return result
        optimizer.step = timed_step

        def put_back():
            if own is None:
                del optimizer.step
            else:
                optimizer.step = own
        self.undo.append(put_back)

    def gradient_hook(self, index, mark):
        gradients = self.step.gradients
        parameter = self.profiler.parameters[index]

        def hook(*_):
            gradients.append((index, mark()))
            gradient = parameter.tensor.grad
            if not parameter.sparse and gradient is not None and gradient.is_sparse:
                # Gloo sends a row once, however often it was used; counted once, in warm-up.
                parameter.sparse, parameter.rows = True, gradient.coalesce()._nnz()
        return hook

    def __exit__(self, kind, *_):
        if self.step is None:
            return False
        self.step.at['end'] = self.profiler.clock.mark()
        for undo in reversed(self.undo):
            undo()
        self.profiler.finished(self.step if kind is None else None)
        return False


class Profiler:
    """Profiles steps of a training loop; see the top of this file.

    After `warmup` steps it takes `steps`: one half with gradient hooks, the other without, in turn,
    so that it knows what the hooks cost. Then it writes `output` (None: nothing is written), lets
    go of the model, and `step()` does nothing any more. A loop that ends early is written at exit.
    """

    def __init__(self, model, optimizer=None, output='workload.yaml', warmup=3, steps=20):
        if warmup < 1 or steps < 4:
            raise ProfileError(
                f'it takes at least 1 step of warm-up and 4 more, got {warmup} and {steps}')
        self.model, self.optimizer, self.output = model, optimizer, output
        self.parameters = parameters_of(model)
        self.accumulators = [accumulator_of(parameter.tensor) for parameter in self.parameters]
        self.clock = clock_of(self.parameters[0].tensor.device)
        self.warmup, self.wanted = warmup, steps
        self.begun, self.taken = 0, []
        self.steal, self.done = Steal(), False
        atexit.register(self.close)

    def step(self):
        if self.done:
            return StepContext(self, None)
        self.begun += 1
        # hooks, none, none, hooks: what has a period of two in the loop hits both alike. Warm-up
        # has them too, in turn, so that both ways are warm.
        return StepContext(self, Step(watched=self.begun % 4 in (0, 1)))

    def finished(self, step):
        """A step has ended; None if it raised."""
        if step is None or self.begun <= self.warmup:
            return
        self.taken.append(step)
        if len(self.taken) >= self.wanted:
            self.close()

    def close(self):
        """Writes what there is. Problems are a line on standard error: the training goes on."""
        if self.done:
            return
        self.done = True
        atexit.unregister(self.close)
        if self.output is None:
            return
        try:
            profile = self.profile()
            write(self.output, workload_text(profile))
            for line in [
                    *profile.notes, *Steal.doubts(self.steal.share()), *profile.summary(),
                    f'wrote {self.output}'
            ]:
                note(line)
        except (ProfileError, OSError) as problem:
            note(f'no profile: {problem}')
        self.accumulators = []

    def profile(self):
        return Profile(self)


# What the steps say together.

def step_spread(times):
    """Standard deviation of a step over its length, from differences of neighbours: drift that
    ranks of one machine share delays none of them. Neither do slow spells of several steps count,
    which may be one rank's alone. By medians, so that rare interruptions do not count; None if
    there are fewer than ten steps."""
    if len(times) < 10:
        return None
    apart = statistics.median(abs(after - before) for before, after in zip(times, times[1:]))
    # Half of all normal differences are below 0.67449 of their own deviation.
    deviation = apart / (2 ** 0.5 * 0.67449)
    return min(1.0, deviation / statistics.median(times))


class Profile:
    def __init__(self, profiler):
        clock, steps = profiler.clock, profiler.taken
        clock.settle()
        self.name = type(profiler.model).__name__
        self.parameters, self.notes = profiler.parameters, []
        self.buffers = buffers_of(profiler.model)
        self.device = profiler.parameters[0].tensor.device
        self.watched = [step for step in steps if step.watched]
        self.bare = [step for step in steps if not step.watched]
        if min(len(self.watched), len(self.bare)) < 2:
            raise ProfileError(
                f'{plural(len(steps), "step")} after {profiler.warmup} of warm-up; it takes 4')
        for step in steps:
            if step.backwards != 1:
                raise ProfileError(
                    f'a step called backward {step.backwards} times: put one forward and one '
                    'backward '
                    'into profiler.step()')
        with_optimizer = profiler.optimizer is not None
        if with_optimizer and any(step.optimizers > 1 for step in steps):
            raise ProfileError('a step called optimizer.step more than once')
        if with_optimizer and any(step.optimizers == 0 for step in self.bare):
            self.notes.append(
                'optimizer.step was not called in every step: the profile has no optimizer')
            with_optimizer = False

        def spans(begin, end, chosen):
            return [
                clock.seconds(step.at.get(begin, step.at['begin']), step.at[end]) for step in chosen
            ]
        self.forwards = spans('forward', 'backward', self.bare)
        self.backwards = spans('backward', 'backward_end', self.bare)
        self.optimizers = spans('optimizer', 'optimizer_end', self.bare) if with_optimizer else []
        self.totals = spans('begin', 'end', self.bare)
        self.forward = statistics.median(self.forwards)
        self.backward = statistics.median(self.backwards)
        self.optimizer = statistics.median(self.optimizers) if with_optimizer else None
        self.total = statistics.median(self.totals)
        self.spread = step_spread(self.totals)
        self.watched_total = statistics.median(spans('begin', 'end', self.watched))
        self.gradients(clock)

    def gradients(self, clock):
        """When each is ready, as a share of backward, and the order of arrival."""
        shares = [[] for _ in self.parameters]
        orders = collections.Counter()
        for step in self.watched:
            begin = step.at['backward']
            whole = clock.seconds(begin, step.at['backward_end'])
            last = {}  # a gradient that arrives in pieces is complete with the last
            for index, moment in step.gradients:
                last.pop(index, None)
                last[index] = moment
            for index, moment in last.items():
                shares[index].append(min(1.0, max(0.0, clock.seconds(begin, moment) / whole)))
            orders[tuple(last)] += 1
        order, self.same_order = orders.most_common(1)[0]
        self.watched_steps = len(self.watched)
        seen = set(order)
        late = [index for index, share in enumerate(shares) if share and index not in seen]
        self.unused = [index for index, share in enumerate(shares) if not share]
        rest = sorted([*late, *self.unused], reverse=True)
        self.arrival = [*order, *rest]
        self.ready, latest = [self.backward] * len(shares), 0.0
        for index in order:  # medians of each need not be in order
            latest = max(latest, statistics.median(shares[index]))
            self.ready[index] = latest * self.backward
        if self.same_order < self.watched_steps:
            self.notes.append(
                'gradients did not always arrive in the same order: the most frequent one was '
                'seen in '
                f'{self.same_order} of {self.watched_steps} steps')
        if self.unused:
            self.notes.append('no gradient reached ' + ', '.join(self.parameters[index].name
                                                                 for index in self.unused) +
                              ': DistributedDataParallel needs find_unused_parameters=True; here ' +
                              ('it is' if len(self.unused) == 1 else 'they are') + ' marked unused')

    @property
    def size(self):
        return sum(parameter.tensor.numel() * parameter.tensor.element_size()
                   for parameter in self.parameters)

    @property
    def own_cost(self):
        return self.watched_total / self.total - 1

    def cost_text(self):
        return (
            f'gradient hooks make a step {100 * self.own_cost:+.1f} % longer '
            f'({1e3 * self.watched_total:.3f} ms with, '
            f'{1e3 * self.total:.3f} ms without, medians of {len(self.watched)} and '
            f'{len(self.bare)} steps in turn)'
        )

    def summary(self):
        elements = sum(parameter.tensor.numel() for parameter in self.parameters)
        passes = [f'forward {1e3 * self.forward:.3f} ms', f'backward {1e3 * self.backward:.3f} ms']
        if self.optimizer is not None:
            passes.append(f'optimizer {1e3 * self.optimizer:.3f} ms')
        spread = ''
        if self.spread is not None:
            spread = f', from one to the next +-{100 * self.spread:.1f} %'
        return [
            f'{self.name} on {self.device}: {plural(len(self.parameters), "parameter")}, '
            f'{elements / 1e6:.3f} M '
            f'elements, {self.size / MIB:.2f} MiB of gradients',
            f'{", ".join(passes)}; step {1e3 * self.total:.3f} ms{spread}',
            self.cost_text()
        ]


# Files. The YAML is written by hand: every text is quoted, every time has its unit.

def quoted(text):
    """YAML's double quotes take JSON's escapes."""
    text = json.dumps(text.encode('utf-8', 'replace').decode(), ensure_ascii=False)
    return ''.join(letter if letter.isprintable() else f'\\U{ord(letter):08x}' for letter in text)


def milliseconds(seconds):
    return f'{max(seconds, 1e-9) * 1e3:.6f} ms'


def commented(text):
    return '# ' + ''.join(letter if letter.isprintable() else '?' for letter in text)


def write(path, text):
    """Whole, then renamed."""
    folder = os.path.dirname(path)
    if folder:
        os.makedirs(folder, exist_ok=True)
    part = f'{path}.part-{os.getpid()}'
    try:
        with open(part, 'w', encoding='utf-8') as file:
            file.write(text)
        os.replace(part, path)
    except OSError:
        if os.path.exists(part):
            os.remove(part)
        raise


def processor():
    try:
        with open('/proc/cpuinfo') as file:
            for line in file:
                if line.startswith('model name'):
                    return line.split(':', 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def device_name(device):
    if device.type == 'cuda':
        return torch.cuda.get_device_name(device)
    return f'{processor()}, {plural(torch.get_num_threads(), "thread")}'


def source_text(device):
    return f'torch {torch.__version__}, {device_name(device)}, {datetime.date.today()}'


def workload_text(profile):
    between = profile.total - profile.forward - profile.backward - (profile.optimizer or 0)
    lines = [
        commented(f'{profile.name}, profiled by torch_profile.py. ' + profile.cost_text() + '.'),
        '# Times of the passes are of steps without hooks; `ready` is the share of backward '
        'measured with them.',
        commented(
            f'step {milliseconds(profile.total)}, of which between the passes '
            f'{milliseconds(between)}'
        )
    ]
    lines += [commented(text) for text in profile.notes]
    lines += [
        'format: ddpsim.workload/1', 'written_by: torch_profile.py',
        f'source: {quoted(source_text(profile.device))}',
        f'forward: {milliseconds(profile.forward)}', f'backward: {milliseconds(profile.backward)}'
    ]
    if profile.optimizer is not None:
        lines.append(f'optimizer: {milliseconds(profile.optimizer)}')
    if profile.spread is not None:
        lines.append(
            f'step_spread: {profile.spread:.4f}  # from one step to the next: of several ranks, '
            'the slowest counts'
        )
    lines.append('parameters:')
    for index, (parameter, ready) in enumerate(zip(profile.parameters, profile.ready)):
        lines.append(
            f'  - {{name: {quoted(parameter.name)}, shape: {parameter.shape}, dtype: '
            f'{parameter.dtype}, '
            + ('sparse: true, ' if parameter.sparse else '') +
            (f'rows: {parameter.rows}, ' if parameter.sparse and parameter.rows else '') +
            ('unused: true, ' if index in profile.unused else '') +
            f'ready: {milliseconds(ready)}}}')
    if profile.buffers:
        lines.append('buffers:')
        lines += [
            f'  - {{tensors: {tensors}, bytes: {size}}}  # {dtype}'
            for dtype, tensors, size in profile.buffers
        ]
    lines += [f'arrival: {profile.arrival}', 'end: ddpsim.workload/1']
    return '\n'.join(lines) + '\n'


# The job: ranks that were started together, and their process group.

class Job:
    """This rank's place in the process group; collectives that fail or last too long end it in one
    line."""

    def __init__(self, device, timeout):
        import torch.distributed as dist
        self.dist, self.timeout, self.device, self.clock = dist, timeout, device, clock_of(device)
        if not dist.is_available():
            raise ProfileError('this torch was built without torch.distributed')
        self.watch()
        if not dist.is_initialized():
            for name in ('RANK', 'MASTER_ADDR', 'MASTER_PORT'):
                if not os.environ.get(name):
                    raise ProfileError(
                        f'WORLD_SIZE is set and {name} is not: start the ranks with torchrun, or '
                        'set both'
                    )
                if name != 'MASTER_ADDR' and not os.environ[name].isdigit():
                    raise ProfileError(f'{name}: expected a number, got "{os.environ[name]}"')
            if int(os.environ['RANK']) >= int(os.environ['WORLD_SIZE']):
                raise ProfileError(
                    f'RANK {os.environ["RANK"]} of WORLD_SIZE {os.environ["WORLD_SIZE"]}: ranks '
                    'count from 0'
                )
            try:
                dist.init_process_group('nccl' if device.type == 'cuda' else 'gloo',
                                        timeout=datetime.timedelta(seconds=timeout))
            except (RuntimeError, OSError) as problem:
                at = f'{os.environ["MASTER_ADDR"]}:{os.environ["MASTER_PORT"]}'
                raise RankError(f'the ranks did not find each other at {at} ({first_line(problem)})'
                                ) from problem
        self.backend = dist.get_backend()
        self.rank, self.ranks = dist.get_rank(), dist.get_world_size()
        if self.ranks < 2:
            raise ProfileError('the process group has one rank: there is no link to measure')
        self.machines = len(set(self.texts(boot_id())))

    def watch(self):
        """Collectives have time-outs of their own; this is for whatever has none."""
        self.alive()

        def patrol():
            while time.monotonic() < self.deadline:
                time.sleep(0.2)
            note(
                f'nothing heard of the other ranks for {self.timeout * 1.5:g} s: did one die or '
                'fall behind?'
            )
            os._exit(1)
        threading.Thread(target=patrol, daemon=True).start()

    def alive(self):
        self.deadline = time.monotonic() + 1.5 * self.timeout + 2

    def barrier(self):
        self.alive()
        self.clock.settle()
        self.dist.all_reduce(torch.zeros(1, device=self.device))
        self.clock.settle()

    def numbers(self, values):
        """[rank][index] of everyone's, as many from each."""
        self.alive()
        mine = torch.tensor([float(value) for value in values], dtype=torch.float64,
                            device=self.device)
        everyone = [torch.empty_like(mine) for _ in range(self.ranks)]
        self.dist.all_gather(everyone, mine)
        return [theirs.tolist() for theirs in everyone]

    def texts(self, text):
        self.alive()
        everyone = [None] * self.ranks
        self.dist.all_gather_object(everyone, text)
        return everyone

    def most(self, value):
        return max(theirs[0] for theirs in self.numbers([value]))

    def mean(self, value):
        return statistics.fmean(theirs[0] for theirs in self.numbers([value]))


def boot_id():
    """The same for ranks that share a machine, and so its clock."""
    try:
        with open('/proc/sys/kernel/random/boot_id') as file:
            return file.read().strip()
    except OSError:
        return platform.node()


class Spread:
    def __init__(self, samples):
        ordered = sorted(samples)
        at = lambda share: ordered[round(share * (len(ordered) - 1))]
        self.median, self.repeats = statistics.median(ordered), len(ordered)
        self.low, self.high = at(0.1), at(0.9)

    def text(self):
        return (
            f'time: {milliseconds(self.median)}, low: {milliseconds(self.low)}, high: '
            f'{milliseconds(self.high)}, '
            f'repeats: {self.repeats}')


def all_reduce_time(job, size, patience):
    """Seconds from the last rank's arrival to the last rank's end, nothing beside it.

    With a clock of their own each, ranks compare no times of day: the shortest span of a rank is
    that of the one that arrived last. A sample is the mean of several in a row, for a step is a sum
    of calls: Gloo's, that wake threads, take a fraction of a millisecond or several, and what they
    take on average counts. The median of such samples leaves out what befell the machine once.
    """
    data = torch.zeros(size // 4, device=job.device)
    job.dist.all_reduce(data)
    samples, spent = [], 0.0
    row = 8 if job.backend != 'gloo' or size <= MIB else 2
    while len(samples) < 5 or (len(samples) < 40 and spent < patience):
        job.barrier()
        if job.device.type == 'cuda':
            job.dist.all_reduce(data)  # whoever comes last has come
        start = job.clock.mark()
        for _ in range(row):
            job.dist.all_reduce(data)
        end = job.clock.mark()
        job.clock.settle()
        if job.machines == 1 and job.device.type == 'cpu':
            everyone = job.numbers([start, end])
            last_begin = max(theirs[0] for theirs in everyone)
            sample = 1e-9 * (max(theirs[1] for theirs in everyone) - last_begin) / row
        else:
            sample = min(theirs[0] for theirs in job.numbers([job.clock.seconds(start, end)])) / row
        samples.append(sample)
        spent += row * sample
    return Spread(samples)


# What the all-reduces run beside.

class Passes:
    """Forward and backward of the user's model. Each gradient in its place is a place for an
    all-reduce."""

    def __init__(self, model, batch, loss):
        self.model, self.batch, self.loss = model, batch, loss
        self.at_place, self.place = None, 0
        self.accumulators = []  # they live as long as somebody holds them
        for parameter in parameters_of(model):
            if parameter.tensor.requires_grad:
                accumulator = accumulator_of(parameter.tensor)
                accumulator.register_hook(self.gradient_is_ready)
                self.accumulators.append(accumulator)

    def gradient_is_ready(self, *_):
        if self.at_place:
            self.at_place(self.place)
            self.place += 1

    def __call__(self, at_place=None):
        self.at_place, self.place = at_place, 0
        for parameter in self.model.parameters():
            parameter.grad = None
        self.loss(self.model, self.batch).backward()


class Multiplications:
    """Matrix multiplications of some 20 ms, where there is no model. Before each is a place for an
    all-reduce."""

    def __init__(self, device, clock):
        extent = 512 if device.type == 'cpu' else 4096
        self.left, self.right = (torch.randn(extent, extent, device=device) for _ in range(2))
        self.out = torch.empty_like(self.left)
        self.count = 1
        self()
        for _ in range(3):
            begin = clock.mark()
            self()
            end = clock.mark()
            clock.settle()
            self.count = max(1, round(0.02 * self.count / max(1e-6, clock.seconds(begin, end))))

    def __call__(self, at_place=None):
        for place in range(self.count):
            if at_place:
                at_place(place)
            torch.mm(self.left, self.right, out=self.out)


def computation_time(job, compute):
    """Seconds of one computation, nothing beside it, and how much longer the slowest rank takes
    than the mean: in the median of samples as long as a step, for what evens out within a step
    delays nobody."""
    def sample(count):
        job.barrier()
        begin = job.clock.mark()
        for _ in range(count):
            compute()
        end = job.clock.mark()
        job.clock.settle()
        return [theirs[0] / count for theirs in job.numbers([job.clock.seconds(begin, end)])]
    sample(1)
    count = max(1, round(0.4 / statistics.fmean(sample(1))))
    everyone = [sample(count) for _ in range(5)]
    means = [statistics.fmean(times) for times in everyone]
    return statistics.median(means), statistics.median(
        max(times) / mean for times, mean in zip(everyone, means))


def moments_of_places(job, compute):
    """Seconds from the computation's begin to each of its places, as rank 0 has them: for everyone,
    so that all issue at the same places."""
    marks = []
    begin = job.clock.mark()
    compute(lambda _: marks.append(job.clock.mark()))
    job.clock.settle()
    count = -int(job.most(-len(marks)))
    return job.numbers([job.clock.seconds(begin, mark) for mark in marks[:count]])[0]


def spread_places(moments, alone, each, least, most):
    """[computation][place] where to issue all-reduces that take `each`, so that none comes before
    the last has ended with some time to spare: in as many computations in a row as hold `least` of
    them, but no more than `most`."""
    chosen, free, count = [], 0.0, 0
    while count < least and len(chosen) < most:
        row = set()
        for place, moment in enumerate(moments):
            moment += len(chosen) * alone
            if moment >= free:
                row.add(place)
                free = moment + 1.5 * each
                count += 1
        chosen.append(row)
    # The last one too has computation beside it.
    return chosen + [set()] * int(1 + 1.5 * each / alone)


ROUNDS, MOST_ROUNDS = 9, 45  # of computation with all-reduces beside it and without


def longest_beside(budget, rounds=ROUNDS):
    """Seconds a computation may take at most for `budget` to hold so many rounds of it twice, once
    with all-reduces beside it."""
    return budget / (2.2 * rounds)


def compute_slowdown(job, compute, alone, size, each, budget):
    """How much longer computation takes while an all-reduce, which takes `each`, runs beside it;
    None if the budget does not suffice to say: longest_beside(budget) bounds `alone`.

    They are issued from within the computation, one by one, as hooks of DistributedDataParallel do:
    beside a stream of them each costs less, for its threads are awake. Ranks wait for the slowest,
    so the slowest counts. Compared is with the computations before and behind, so that a steady
    drift of the machine costs nothing.
    """
    places = spread_places(moments_of_places(job, compute), alone, each, 24,
                           int(longest_beside(budget) / alone))
    count = sum(len(row) for row in places)
    if count == 0 or len(places) * alone > 2 * longest_beside(budget):
        return None
    buffers = [torch.zeros(size // 4, device=job.device) for _ in range(min(count, 8))]

    def computed(issued):
        works = []

        def at(row):
            def issue(place):
                if place in row:
                    works.append(
                        job.dist.all_reduce(buffers[len(works) % len(buffers)], async_op=True))
            return issue
        job.barrier()
        begin = job.clock.mark()
        for row in places:
            compute(at(row if issued else ()))
        end = job.clock.mark()
        for work in works:
            work.wait()
        job.clock.settle()
        return job.most(job.clock.seconds(begin, end))
    once = len(places) * alone
    rounds = max(ROUNDS, min(MOST_ROUNDS, int(longest_beside(budget, 1) / once)))
    losses, before = [], computed(False)
    for _ in range(rounds):
        slow, behind = computed(True), computed(False)
        losses.append((slow - (before + behind) / 2) / count)
        before = behind
    return 1.0 / (1.0 - min(0.99, max(0.0, statistics.median(losses) / each)))


def busy_time(job, size, count):
    """Seconds from issuing `count` all-reduces at once to the end of the last, while this rank
    computes."""
    data = [torch.zeros(size // 4, device=job.device) for _ in range(min(count, 8))]
    extent = 160 if job.device.type == 'cpu' else 4096
    matrix = torch.randn(extent, extent, device=job.device)
    out = torch.empty(extent, extent, device=job.device)
    samples = []
    for _ in range(7):
        job.barrier()
        # Multiplications of a tenth of a millisecond, and a look after each.
        if job.device.type == 'cpu':
            begin = time.perf_counter()
            while time.perf_counter() - begin < 0.01:
                torch.mm(matrix, matrix, out=out)
            begin = time.perf_counter()
            works = [
                job.dist.all_reduce(data[index % len(data)], async_op=True)
                for index in range(count)
            ]
            while not works[-1].is_completed():
                torch.mm(matrix, matrix, out=out)
            passed = time.perf_counter() - begin
        else:  # kernels for long enough, and a stream of its own that waits for the all-reduces
            for _ in range(2000):
                torch.mm(matrix, matrix, out=out)
            begin = job.clock.mark()
            works = [
                job.dist.all_reduce(data[index % len(data)], async_op=True)
                for index in range(count)
            ]
            aside = torch.cuda.Stream(job.device)
            with torch.cuda.stream(aside):
                for work in works:
                    work.wait()
                end = job.clock.mark()
            job.clock.settle()
            passed = job.clock.seconds(begin, end)
        for work in works:
            work.wait()
        job.clock.settle()
        samples.append(job.mean(passed))
    return statistics.median(samples)


def beside_compute(job, size, budget, idle):
    """(seconds of each all-reduce of a stream beside computation, seconds until the stream's first
    is taken up).

    What several take beyond one is theirs alone; what is left of the first is the way to the thread
    that runs it: on a CPU it has to be woken while others compute.
    """
    count = max(2, min(8, int(budget / 7 / idle) - 1))
    one, several = busy_time(job, size, 1), busy_time(job, size, count)
    each = (several - one) / (count - 1)
    return max(each, idle), max(0.0, one - max(each, idle))


def without_disturbance(measured, measure):
    """The same {size: Spread}, but sizes that take over a tenth longer than a larger one are
    measured again, twice at most, and the quicker counts: a link does not do that, a machine that
    was busy meanwhile does."""
    measured = dict(measured)
    for _ in range(2):
        for size in sorted(measured, reverse=True):
            larger = [spread.median for other, spread in measured.items() if other > size]
            if larger and min(larger) < 0.9 * measured[size].median:
                measured[size] = min(measured[size], measure(size),
                                     key=lambda spread: spread.median)
    return measured


def issue_time(job):
    """Seconds the host spends on issuing an all-reduce."""
    data = [torch.zeros(16 * KIB, device=job.device) for _ in range(8)]
    samples = []
    for _ in range(4):
        job.barrier()
        works = []
        for each in data:
            begin = time.perf_counter()
            works.append(job.dist.all_reduce(each, async_op=True))
            samples.append(time.perf_counter() - begin)
        for work in works:
            work.wait()
        job.clock.settle()
    return job.mean(statistics.median(samples))


# Copies as DistributedDataParallel makes them.

def copy_times(job, largest):
    """[(operation, bytes moved, Spread)] of gradients of 4 KiB and up. As in a step, the gradient
    was written just before it goes into its bucket, and the bucket not for long: sets of tensors
    larger than a cache take turns."""
    cache, clock = 64 * MIB, job.clock
    results = []
    size = 4 * KIB
    while size <= largest:
        job.alive()
        count = size // 4
        sets = max(2, min(64, cache // size))
        gradients = [torch.ones(count, device=job.device) for _ in range(sets)]
        views = [torch.ones(count, device=job.device) for _ in range(sets)]

        def copy_in(index):
            torch.mul(gradients[index], 1 / job.ranks, out=views[index])

        def copy_out(index):
            gradients[index].copy_(views[index])

        def accumulate(index):
            gradients[index].add_(views[index])

        def divide(index):
            gradients[index].div_(job.ranks)
        for operation, action, traffic in (('copy in', copy_in, 2), ('copy out', copy_out, 2),
                                           ('accumulate', accumulate, 3), ('divide', divide, 2)):
            marks = []
            for repeat in range(max(10, min(sets, 40))):
                index = repeat % sets
                if operation == 'copy in':
                    gradients[index].fill_(1.0)
                begin = clock.mark()
                action(index)
                marks.append((begin, clock.mark()))
            clock.settle()
            results.append(
                (operation, traffic * size, Spread([clock.seconds(*pair) for pair in marks[2:]])))
        size *= 4
    return results


def flatten_times(job, largest):
    """The same of gradients put into a flat tensor that each step takes anew. What the C library
    asks the system for each time (above 32 MiB: mallopt(3), M_MMAP_THRESHOLD) has pages to which
    nobody has written, and the first write to each costs more than the copy: hence the sizes on
    either side."""
    sizes = [size for size in (64 * KIB, MIB, 4 * MIB, 16 * MIB, 30 * MIB, 34 * MIB, 64 * MIB)
             if size <= largest]
    results = []
    for size in sizes:
        job.alive()
        gradients = [torch.ones(size // 64, device=job.device) for _ in range(16)]
        marks = []
        for _ in range(10):
            for gradient in gradients:
                gradient.fill_(1.0)
            begin = job.clock.mark()
            flat = torch.cat(gradients)
            marks.append((begin, job.clock.mark()))
            del flat
        job.clock.settle()
        spread = Spread([job.clock.seconds(*pair) for pair in marks[2:]])
        results.append(('concatenate', 2 * size, spread))
    return results


# All of it.

def measure_link(job, compute, largest, seconds, progress):
    """What link.yaml and calibration.yaml hold, as a dictionary; everyone's together."""
    sizes = [4 * KIB << power for power in range(40) if 4 * KIB << power <= largest]
    measured = {}
    began = time.monotonic()
    for number, size in enumerate(sizes):
        progress(f'all-reduce of {size // KIB} KiB')
        measured[size] = all_reduce_time(job, size, 0.5 * seconds / len(sizes))
        if 2 <= number < len(sizes) - 1 and job.most(time.monotonic() - began) > 0.6 * seconds:
            if job.rank == 0:
                note(
                    f'all-reduces beyond {size // KIB} KiB are left out: {seconds:g} s are not '
                    'enough for them'
                )
            break

    def measure_again(size):
        progress(f'all-reduce of {size // KIB} KiB, again')
        return all_reduce_time(job, size, 0.5 * seconds / len(sizes))
    measured = without_disturbance(measured, measure_again)
    progress('copies')
    copies = copy_times(job, min(largest, 64 * MIB))
    copies += flatten_times(job, min(largest, 64 * MIB))
    progress('issuing')
    issue = issue_time(job)
    beside = seconds / 8  # of the time, for each size
    if compute is None:
        compute = Multiplications(job.device, job.clock)
    alone, slowest = computation_time(job, compute)
    if alone > longest_beside(beside):
        compute = Multiplications(job.device, job.clock)
        alone, _ = computation_time(job, compute)
    points, handovers = [], []
    for size in (64 * KIB, 256 * KIB, MIB, 4 * MIB, 16 * MIB):
        if size not in measured:
            continue
        idle = measured[size].median
        progress(f'all-reduces of {size // KIB} KiB beside computation')
        each, handover = beside_compute(job, size, seconds / 16, idle)
        progress(f'computation beside all-reduces of {size // KIB} KiB')
        slowdown = compute_slowdown(job, compute, alone, size, each, beside)
        if slowdown is None:
            continue
        points.append(
            {'bytes': size, 'compute_slowdown': slowdown, 'communication_slowdown': each / idle})
        if size >= MIB:
            handovers.append(handover)
    return {
        'ranks': job.ranks,
        'backend': job.backend,
        'all_reduce': measured,
        'copies': copies,
        'issue': issue,
        'handover': statistics.median(handovers) if handovers and job.device.type == 'cpu' else 0.0,
        # Ranks on CPUs that share a core or a cache share it unevenly, multiplications more
        # than a model: its own steps say it (`together`), or nothing does.
        'slowest': slowest if job.device.type == 'cuda' else 1.0,
        'interference': points,
        'beside': ('forward and backward of the model' if isinstance(compute, Passes)
                   else 'matrix multiplications'),
        'machines': job.machines
    }


def link_text(job, link):
    lines = [
        f'# Measured by torch_profile.py: {link["ranks"]} ranks on '
        f'{plural(link["machines"], "machine")}, '
        f'{link["backend"]}; from the last arrival to the last end, medians of means over several '
        'in a row.',
        'format: ddpsim.link/1', 'written_by: torch_profile.py',
        f'source: {quoted(source_text(job.device))}', f'ranks: {link["ranks"]}', 'all_reduce:'
    ]
    lines += [
        f'  - {{bytes: {size}, time: {milliseconds(spread.median)}}}'
        for size, spread in link['all_reduce'].items()
    ]
    lines.append('end: ddpsim.link/1')
    return '\n'.join(lines) + '\n'


def calibration_text(job, link, workload):
    now = datetime.datetime.now(datetime.timezone.utc)
    interface = (os.environ.get('GLOO_SOCKET_IFNAME') or os.environ.get('NCCL_SOCKET_IFNAME')
                 or 'default interface')
    lines = [
        f'# Measured by torch_profile.py; interference beside {link["beside"]}.',
        'format: ddpsim.calibration/1', f'backend: {quoted("torch " + link["backend"])}',
        f'machine: {quoted(f"{platform.node()}, {platform.system()} {platform.release()}")}',
        f'cpu: {quoted(device_name(job.device))}',
        f'link: {quoted(f"{interface}, " + plural(link["machines"], "machine"))}',
        f'versions: {quoted("torch " + torch.__version__)}',
        f'date: {quoted(f"{now:%Y-%m-%dT%H:%M:%SZ}")}', f'workload: {quoted(workload)}',
        f'ranks: {link["ranks"]}',
        f'synchronous: {"true" if job.device.type == "cpu" else "false"}',
        f'launch: {{collective: {milliseconds(link["issue"])}, handover: '
        f'{milliseconds(link["handover"])}}}',
        f'slowest_rank: {max(1.0, link["slowest"]):.4f}', 'tasks:'
    ]
    lines += [f'  - {{operation: {operation}, traffic: {traffic} B, {spread.text()}}}'
              for operation, traffic, spread in link['copies']]
    lines.append('all_reduce:')
    lines += [
        f'  - {{bytes: {size}, {spread.text()}}}' for size, spread in link['all_reduce'].items()
    ]
    if link['interference']:
        lines.append('interference:')
        lines += [
            f'  - {{bytes: {point["bytes"]}, compute_slowdown: {point["compute_slowdown"]:.4f}, '
            f'communication_slowdown: {point["communication_slowdown"]:.4f}}}'
            for point in link['interference']
        ]
    lines.append('end: ddpsim.calibration/1')
    return '\n'.join(lines) + '\n'


def scenario_text(name, unused):
    training = '{find_unused_parameters: true}' if unused else '{}'
    return (
        f'# Written by torch_profile.py: what was measured, tied together.\nname: {quoted(name)}\n'
        'workload: {model: workload.yaml}\ncluster: {calibration: calibration.yaml}\n'
        f'training: {training}\n')


# The command line.

def load(script):
    """What the user's function returns, checked: (model, batch, loss, optimizer or None)."""
    file, colon, function = script.rpartition(':')
    if not colon:
        file, function = script, 'make'
    if not os.path.isfile(file):
        raise ProfileError(
            f'--script: {file}: no such file; expected FILE:FUNCTION such as my_model.py:make')
    folder, name = os.path.split(os.path.abspath(file))
    sys.path.insert(0, folder)
    specification = importlib.util.spec_from_file_location(os.path.splitext(name)[0], file)
    if specification is None or specification.loader is None:
        raise ProfileError(f'--script: {file}: expected a Python file, one whose name ends in .py')
    module = importlib.util.module_from_spec(specification)
    sys.modules.setdefault(specification.name, module)
    said_by_user(file, lambda: specification.loader.exec_module(module))
    make = getattr(module, function, None)
    if not callable(make):
        raise ProfileError(f'--script: {file} has no function {function}')
    made = said_by_user(f'{file}:{function}()', make)
    expected = 'expected (model, batch, loss) or (model, batch, loss, optimizer)'
    if not isinstance(made, (tuple, list)) or len(made) not in (3, 4):
        got = f'{len(made)} values' if isinstance(made, (tuple, list)) else type(made).__name__
        raise ProfileError(f'{script}: {expected}, got {got}')
    model, batch, loss, optimizer = (*made, None)[:4]
    if not isinstance(model, torch.nn.Module):
        raise ProfileError(
            f'{script}: {expected}; the model is a {type(model).__name__}, not a torch.nn.Module')
    if not callable(loss):
        raise ProfileError(
            f'{script}: {expected}; loss is a {type(loss).__name__}, not a function of (model, '
            'batch)'
        )
    if optimizer is not None and not callable(getattr(optimizer, 'step', None)):
        raise ProfileError(
            f'{script}: {expected}; the optimizer is a {type(optimizer).__name__} without step()')
    return model, batch, loss, optimizer


def said_by_user(where, action):
    """Errors in the user's code are the user's, in one line."""
    try:
        return action()
    except (ProfileError, KeyboardInterrupt):
        raise
    except SystemExit as problem:
        raise ProfileError(f'{where} called sys.exit({problem.code})') from None
    except BaseException as problem:
        raise ProfileError(
            f'{where} raised {type(problem).__name__}: {first_line(problem)}') from problem


def profiled(arguments, made, job, progress):
    """The Profile of steps made here."""
    model, batch, loss, optimizer = made
    profiler = Profiler(model, optimizer, None, arguments.warmup, arguments.steps)
    where = arguments.script

    def value_of():
        value = loss(model, batch)
        if not isinstance(value, torch.Tensor) or value.numel() != 1:
            got = type(value).__name__
            if isinstance(value, torch.Tensor):
                got = f'a tensor of shape {list(value.shape)}'
            raise ProfileError(
                f'{where}: loss(model, batch) has to return one number, a tensor to call '
                f'backward() on; got {got}'
            )
        if not value.requires_grad:
            raise ProfileError(f'{where}: the loss does not depend on any parameter')
        return value

    def step():
        value_of().backward()
        if optimizer is not None:
            optimizer.step()
    while not profiler.done:
        progress(f'step {profiler.begun + 1} of {arguments.warmup + arguments.steps}')
        for parameter in profiler.parameters:
            parameter.tensor.grad = None
        profiler.clock.settle()
        if job:
            job.barrier()
        with profiler.step():
            said_by_user(f'{where}: a training step', step)
    return profiler.profile()


def together(job, profile):
    """The same profile on all ranks: passes are means over ranks of their medians. Returns how much
    longer the slowest rank computes than the mean, in the median step."""
    scale = [profile.forward, profile.backward, profile.optimizer or 0.0, profile.total]
    means = [statistics.fmean(column) for column in zip(*job.numbers(scale))]
    profile.spread = None  # it is known
    profile.ready = [min(ready * means[1] / profile.backward, means[1]) for ready in profile.ready]
    profile.forward, profile.backward = means[0], means[1]
    if profile.optimizer is not None:
        profile.optimizer = means[2]
    return statistics.median(
        max(column) / statistics.fmean(column) for column in zip(*job.numbers(profile.totals)))


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
    parser = Parser(prog='torch_profile.py', description=__doc__,
                    formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--script', metavar='FILE:FUNCTION',
                        help='whose function says what a step is; default function: make')
    parser.add_argument('--output', metavar='DIR', default='profile',
                        help='folder for what is written (default: profile)')
    parser.add_argument('--warmup', type=number_above(1), default=3,
                        help='steps that do not count (default: 3)')
    parser.add_argument('--steps', type=number_above(4), default=20,
                        help='steps that count (default: 20)')
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
    return arguments


def device_of(arguments, made):
    """Where ranks compute: that of the model, or of --backend where there is none."""
    if made:
        device = parameters_of(made[0])[0].tensor.device
        if arguments.backend and (arguments.backend == 'nccl') != (device.type == 'cuda'):
            raise ProfileError(
                f'--backend {arguments.backend}: the model is on {device}; nccl goes with cuda, '
                'gloo with cpu'
            )
        return device
    if arguments.backend == 'nccl' and not torch.cuda.is_available():
        raise ProfileError('--backend nccl: torch sees no GPU')
    if arguments.backend == 'gloo' or not torch.cuda.is_available():
        return torch.device('cpu')
    return torch.device('cuda', torch.cuda.current_device())


def run(arguments):
    size = os.environ.get('WORLD_SIZE', '1')
    if not size.isdigit() or int(size) < 1:
        raise ProfileError(f'WORLD_SIZE: expected a number of ranks, got "{size}"')
    many = int(size) > 1
    if arguments.link_only and not many:
        raise ProfileError(
            '--link-only measures between ranks: start them with torchrun, or set RANK and '
            'WORLD_SIZE'
        )
    if many and torch.cuda.is_available():  # before the script says .cuda()
        torch.cuda.set_device(int(os.environ.get('LOCAL_RANK', '0')) % torch.cuda.device_count())
    made = load(arguments.script) if arguments.script else None
    # What is wrong with the model is said before anyone waits for this rank.
    device = device_of(arguments, made)
    job = Job(device, arguments.timeout) if many else None
    speaks = job is None or job.rank == 0
    shown = sys.stderr.isatty() and speaks

    def progress(text):
        if job:
            job.alive()
        if shown:
            print(f'\r\x1b[K{text}', end='', file=sys.stderr, flush=True)

    files, summary, profile, link = {}, [], None, None
    steal = Steal()
    if made:
        profile = profiled(arguments, made, job, progress)
        slowest = together(job, profile) if job else None
        files['workload.yaml'] = workload_text(profile)
        summary += profile.summary()
    if job:
        link = measure_link(job,
                            Passes(*made[:3]) if made else None, arguments.largest,
                            arguments.seconds, progress)
        if profile:
            link['slowest'] = slowest
        files['link.yaml'] = link_text(job, link)
        files['calibration.yaml'] = calibration_text(job, link, profile.name if profile else 'none')
        if profile:
            files['scenario.yaml'] = scenario_text(f'{profile.name} on {plural(job.ranks, "rank")}',
                                                   profile.unused)
        summary.append(link_summary(link))
    stolen = job.most(steal.share()) if job else steal.share()
    if shown:
        print('\r\x1b[K', end='', file=sys.stderr)
    if speaks:
        for line in profile.notes if profile else []:
            note(line)
        for line in [*(link_doubts(link) if link else []), *Steal.doubts(stolen)]:
            note(line)
        for name, text in files.items():
            write(os.path.join(arguments.output, name), text)
        print('\n'.join([
            *summary, 'wrote ' + ', '.join(os.path.join(arguments.output, name) for name in files),
            'next: ' + next_command(arguments.output, files, device,
                                    profile is not None and bool(profile.unused))
        ]))
    if job:
        job.dist.destroy_process_group()
    return 0


def link_summary(link):
    parts = [
        f'{size // KIB} KiB {1e3 * spread.median:.3f} ms'
        if size < MIB else f'{size // MIB} MiB {1e3 * spread.median:.2f} ms'
        for size, spread in link['all_reduce'].items() if size in (4 * KIB, MIB, 16 * MIB, 64 * MIB)
    ]
    text = f'all-reduce over {link["ranks"]} ranks ({link["backend"]}): ' + ', '.join(parts)
    if link['interference']:
        point = link['interference'][-1]
        text += (f'; beside one another: compute x {point["compute_slowdown"]:.2f}, '
                 f'communication x {point["communication_slowdown"]:.2f}')
    return text


def link_doubts(link):
    """What makes the table of all-reduces doubtful: repeats far apart, or a size that takes less
    than a smaller one."""
    name = lambda size: f'{size // KIB} KiB' if size < MIB else f'{size // MIB} MiB'
    points = list(link['all_reduce'].items())
    wide = [
        name(size) for size, spread in points
        if size >= 64 * KIB and spread.high > 1.5 * spread.median
    ]
    falls = [
        name(size) for (_, before), (size, spread) in zip(points, points[1:])
        if spread.median < 0.9 * before.median
    ]
    if wide:
        yield (f'repeats of all-reduces of {", ".join(wide)} are more than 50 % apart: is the '
               'machine or the link busy?')
    if falls:
        yield (f'all-reduces of {", ".join(falls)} took less time than smaller ones: measure again '
               'when it is quiet')
    if link['ranks'] > 1 and not link['interference']:
        yield ('what all-reduces cost the computation beside them could not be measured in the '
               'time: give more with --seconds')


def next_command(folder, files, device, unused):
    if 'scenario.yaml' in files:
        return f'ddpsim tune {os.path.join(folder, "scenario.yaml")}'
    workload = os.path.join(folder, 'workload.yaml') if 'workload.yaml' in files else 'WORKLOAD'
    link = os.path.join(folder, 'link.yaml') if 'link.yaml' in files else 'LINK'
    return (f'ddpsim tune {workload} --link {link} --ranks N '
            f'--device {"generic-cpu" if device.type == "cpu" else "DEVICE"}'
            f'{" --set training.find_unused_parameters=true" if unused else ""}')


def main(words):
    of_several = os.environ.get('WORLD_SIZE', '1') != '1' and os.environ.get('RANK')
    rank = f'rank {os.environ["RANK"]}: ' if of_several else ''
    try:
        return run(parsed(words))
    except ProfileError as problem:
        note(f'{rank}{problem}')
        return 2
    except OSError as problem:
        note(f'{rank}{problem}')
        return 2
    except KeyboardInterrupt:
        return 130
    except RankError as problem:
        note(f'{rank}{problem}')
        return 1
    except RuntimeError as problem:
        # Of a collective: what the user's code raises was caught before.
        note(
            f'{rank}a collective failed; did another rank die or fall behind? '
            f'({first_line(problem)})'
        )
        return 1


if __name__ == '__main__':
    code = main(sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    if code == 1:
        os._exit(1)  # threads of a broken process group need not be waited for
    sys.exit(code)
