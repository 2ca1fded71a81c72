"""What the steps say together: lengths of the passes, when each gradient is ready."""
import collections
import statistics

from .messages import MIB, ProfileError, plural
from .parameters import buffers_of


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


def spread_doubts(spread):
    """What makes times of steps doubtful: neighbours that differ by more than an ordinary job's."""
    most = 0.2
    if spread is None or spread <= most:
        return []
    return [f'steps differ by {100 * spread:.0f} % from one to the next: other programs disturbed '
            'them, and predictions from this profile are of no use; measure again on a quiet '
            'machine (ddpsim doctor)']


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
                f'{plural(len(steps), "step")} after {profiler.warmup} of warm-up; at least 4 are '
                'needed')
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
        self.doubts = spread_doubts(self.spread)  # those that the file holds
        self.notes += self.doubts
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
            f'with gradient hooks a step takes {1e3 * self.watched_total:.3f} ms, without them '
            f'{1e3 * self.total:.3f} ms ({100 * self.own_cost:+.1f} %; medians of '
            f'{len(self.watched)} and {len(self.bare)} steps in turn)'
        )

    def summary(self):
        elements = sum(parameter.tensor.numel() for parameter in self.parameters)
        passes = [f'forward {1e3 * self.forward:.3f} ms', f'backward {1e3 * self.backward:.3f} ms']
        if self.optimizer is not None:
            passes.append(f'optimizer {1e3 * self.optimizer:.3f} ms')
        spread = ''
        if self.spread is not None:
            spread = f', steps differ by {100 * self.spread:.1f} % (standard deviation)'
        return [
            f'{self.name} on {self.device}: {plural(len(self.parameters), "parameter")}, '
            f'{elements / 1e6:.3f} M '
            f'elements, {self.size / MIB:.2f} MiB of gradients',
            f'{", ".join(passes)}; step {1e3 * self.total:.3f} ms{spread}',
            self.cost_text()
        ]
