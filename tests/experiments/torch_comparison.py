#!/usr/bin/env python3
"""Our measured `bucketed` step beside real DistributedDataParallel: same network, link and caps.

On two hosts of tests/links/hosts (needs root, and a Python with torch, see --python),
tests/experiments/torch_ddp.py and `ddpsim validate` run alternately, --rounds times each:

    tests/experiments/torch_comparison.py --steps 8 \\
        --json tests/experiments/results/torch_comparison.json

For each cap: the median over rounds of each side's median step, their ratio, and the all-reduces
of a step, as many and of what size, in the order they are launched.

Exit code: 0; 3 if the median ratio over caps is above 1 or any list of all-reduces differs; 77
where hosts cannot be made; 1 if a run fails.
"""
import argparse
import json
import pathlib
import statistics
import sys
import tempfile

sys.dont_write_bytecode = True
import experiment  # beside this file

WIDTHS = ','.join(['1024'] * 13)  # those of the scenario
KEY = ('cap_mib',)


def torch_round(arguments, file):
    """Per cap what torch measured and launched, and its step without DDP."""
    experiment.on_hosts(
        arguments.rate,
        [arguments.python, experiment.HERE / 'torch_ddp.py', '--widths', arguments.widths,
         '--batch', arguments.batch, '--caps', arguments.caps, '--steps', arguments.steps,
         '--no-all-reduce', '--json', file], arguments.limit)
    with open(file) as source:
        document = json.load(source)
    return {result['bucket_cap_mb']: result for result in document['results']}, document


def our_round(arguments, caps, file):
    """Per cap what we measured of bucketed."""
    results = experiment.validate(arguments, arguments.rate, arguments.scenario, caps, file)
    return {result['bucket_cap_bytes'] / experiment.MIB: result['measured'] for result in results
            if result['strategy'] == 'bucketed' and result['bucket_cap_bytes']}


class Case:
    """What the rounds of both sides say of one cap."""

    def __init__(self, cap, theirs, ours):
        self.cap = cap
        self.torch = statistics.median(result['step_ms']['median'] for result in theirs)
        self.ours = statistics.median(result['step_ms'] for result in ours)
        by_round = [our['step_ms'] / their['step_ms']['median'] for our, their in zip(ours, theirs)]
        self.ratio, self.least, self.most = self.ours / self.torch, min(by_round), max(by_round)
        torch_buckets = [result['buckets_bytes'] for result in theirs]
        our_buckets = [[bucket['bytes'] for bucket in result['buckets']] for result in ours]
        self.buckets, self.our_buckets = torch_buckets[0], our_buckets[0]
        self.same = all(buckets == self.buckets for buckets in torch_buckets + our_buckets) and all(
            result['collectives'] == len(self.buckets) for result in ours)

    def record(self):
        """As it is kept in the results."""
        return {'cap_mib': self.cap, 'torch_ms': self.torch, 'ours_ms': self.ours,
                'ratio': self.ratio, 'ratio_least': self.least, 'ratio_most': self.most,
                'all_reduces_mib': [round(size / experiment.MIB, 2) for size in self.buckets],
                'same_all_reduces': self.same}

    def row(self):
        mebibytes = lambda sizes: f'{len(sizes)}: ' + ' '.join(
            f'{size / experiment.MIB:.2f}' for size in sizes)
        ours = '' if self.same else f'; ours {mebibytes(self.our_buckets)}'
        return (f'| {self.cap:g} MiB | {self.torch:.1f} ms | {self.ours:.1f} ms '
                f'| {self.ratio:.3f} ({self.least:.3f}-{self.most:.3f}) '
                f'| {mebibytes(self.buckets)}{ours} | {"equal" if self.same else "DIFFER"} |')


def phases(result, names=('forward_ms', 'backward_ms', 'optimizer_ms')):
    return ' + '.join(f'{result[name]:.1f}' for name in names)


def measured_cases(arguments):
    """(a case for each cap, what torch and we said of the middle cap at last, torch's document)"""
    caps = [float(cap) for cap in arguments.caps.split(',')]
    theirs, ours, document = [], [], None
    with tempfile.TemporaryDirectory(prefix='ddpsim-torch-') as scratch:
        for number in range(arguments.rounds):
            print(f'round {number + 1} of {arguments.rounds} at {arguments.rate}', file=sys.stderr)
            folder = pathlib.Path(scratch)
            results, document = torch_round(arguments, folder / f'torch-{number}.json')
            theirs.append(results)
            ours.append(our_round(arguments, caps, folder / f'ours-{number}.json'))
    cases = [Case(cap, [rank[cap] for rank in theirs], [rank[cap] for rank in ours])
             for cap in caps]
    middle = caps[len(caps) // 2]
    return cases, (middle, theirs[-1][middle], ours[-1][middle]), document


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    experiment.common_arguments(parser)
    experiment.validate_arguments(parser)
    parser.add_argument('--rate', default='5gbit')
    parser.add_argument('--caps', default='1,4,10,25,60', help='bucket caps in MiB')
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--scenario',
                        default=experiment.ROOT / 'scenarios/examples/mlp-even.yaml')
    parser.add_argument('--widths', default=WIDTHS, help='of the same network, for torch')
    parser.add_argument('--batch', type=int, default=64, help='of the same network, for torch')
    parser.add_argument('--python', default='/usr/bin/python3', help='one that has torch')
    arguments = parser.parse_args()
    made = experiment.provenance(arguments.ddpsim, [arguments.rate])
    cases, (middle, torch, ours), document = measured_cases(arguments)

    summary = {'cases': len(cases), 'median_ratio': statistics.median(case.ratio for case in cases),
               'same_all_reduces': all(case.same for case in cases)}
    target = experiment.Targets()
    target(f'median ratio over caps {summary["median_ratio"]:.3f} (target: at most 1)',
           summary['median_ratio'] <= 1)
    target('number, order and size of the all-reduces are equal', summary['same_all_reduces'])
    target.note(f'last round at {middle:g} MiB, forward + backward + optimizer in ms: '
                f'torch {phases(torch)}, ours {phases(ours)} '
                f'(our backward ends with its last kernel, torch\'s with its last all-reduce)')
    target.note(f'torch without DDP: step {document["none_ms"]:.1f} ms = '
                f'{phases(document["none"])}')
    settings = {'torch': document['torch'], 'ranks': document['ranks'], 'rate': arguments.rate,
                'widths': arguments.widths, 'batch': arguments.batch, 'steps': arguments.steps,
                'rounds': arguments.rounds}
    what = ', '.join(f'{name} {value}' for name, value in settings.items())
    header = [*experiment.provenance_lines(made), what]
    print('\n'.join([*(f'* {line}' for line in header), '',
                     '| cap | torch | ours | ours / torch (rounds) | all-reduces in MiB | |',
                     '|--:|--:|--:|--:|---|---|', *(case.row() for case in cases), '',
                     *target.lines]))
    if arguments.json:
        run = {**made, 'settings': settings, 'summary': summary,
               'cases': [case.record() for case in cases]}
        experiment.add_run(arguments.json, __file__, run, KEY)
    return target.exit_code()


if __name__ == '__main__':
    sys.exit(main())
