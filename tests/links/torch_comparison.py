#!/usr/bin/env python3
"""Our measured `bucketed` step against real DistributedDataParallel: same network, link and bucket caps.

On two hosts of tests/links/hosts (needs root, and a Python with torch, see --python), tests/links/torch_ddp.py and
`ddpsim validate` run alternately, --rounds times each:

    tests/links/torch_comparison.py --rate 5gbit

For each cap: the median over rounds of each side's median step, their ratio, and the all-reduces of a step, as many
and of what size, in the order they are launched.

Exit code: 0; 3 if the median ratio over caps is above 1 or any list of all-reduces differs; 77 where hosts cannot be
made; 1 if a run fails.
"""
import argparse
import json
import pathlib
import statistics
import sys
import tempfile

sys.dont_write_bytecode = True
import accuracy  # beside this file

WIDTHS = ','.join(['1024'] * 13)  # those of the scenario


def torch_round(arguments, file):
    """Per cap what torch measured and launched, and its step without DDP."""
    accuracy.on_hosts(arguments.rate, [arguments.python, accuracy.HERE / 'torch_ddp.py', '--widths', arguments.widths,
                                       '--batch', arguments.batch, '--caps', arguments.caps, '--steps', arguments.steps,
                                       '--no-all-reduce', '--json', file], arguments.limit)
    with open(file) as source:
        document = json.load(source)
    return {result['bucket_cap_mb']: result for result in document['results']}, document


def our_round(arguments, caps, file):
    """Per cap what we measured of bucketed."""
    results = accuracy.validate(arguments, arguments.rate, arguments.scenario, caps, file)
    return {result['bucket_cap_bytes'] / accuracy.MIB: result['measured']
            for result in results if result['strategy'] == 'bucketed' and result['bucket_cap_bytes']}


def mebibytes(sizes):
    """"3: 4.00 28.03 16.02" """
    return f'{len(sizes)}: ' + ' '.join(f'{size / accuracy.MIB:.2f}' for size in sizes)


def phases(result, names=('forward_ms', 'backward_ms', 'optimizer_ms')):
    return ' + '.join(f'{result[name]:.1f}' for name in names)


def compare(cap, theirs, ours):
    """A row of the table, the ratio, and whether the all-reduces are the same."""
    torch_step = statistics.median(result['step_ms']['median'] for result in theirs)
    our_step = statistics.median(result['step_ms'] for result in ours)
    by_round = [our['step_ms'] / their['step_ms']['median'] for our, their in zip(ours, theirs)]
    torch_buckets = [result['buckets_bytes'] for result in theirs]
    our_buckets = [[bucket['bytes'] for bucket in result['buckets']] for result in ours]
    same = all(buckets == torch_buckets[0] for buckets in torch_buckets + our_buckets)
    same = same and all(result['collectives'] == len(torch_buckets[0]) for result in ours)
    buckets = mebibytes(torch_buckets[0]) + ('' if same else f'; ours {mebibytes(our_buckets[0])}')
    row = (f'| {cap:g} MiB | {torch_step:.1f} ms | {our_step:.1f} ms | {our_step / torch_step:.3f} '
           f'({min(by_round):.3f}-{max(by_round):.3f}) | {buckets} | {"equal" if same else "DIFFER"} |')
    return row, our_step / torch_step, same


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    accuracy.common_arguments(parser)
    parser.add_argument('--rate', default='5gbit')
    parser.add_argument('--caps', default='1,4,10,25,60', help='bucket caps in MiB')
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--scenario', default=accuracy.ROOT / 'scenarios/examples/mlp-even.yaml')
    parser.add_argument('--widths', default=WIDTHS, help='of the same network, for torch')
    parser.add_argument('--batch', type=int, default=64, help='of the same network, for torch')
    parser.add_argument('--python', default='/usr/bin/python3', help='one that has torch')
    arguments = parser.parse_args()
    caps = [float(cap) for cap in arguments.caps.split(',')]
    header = accuracy.provenance(arguments.ddpsim, [arguments.rate])

    theirs, ours, document = [], [], None
    with tempfile.TemporaryDirectory(prefix='ddpsim-torch-') as scratch:
        for number in range(arguments.rounds):
            print(f'round {number + 1} of {arguments.rounds} at {arguments.rate}', file=sys.stderr)
            results, document = torch_round(arguments, pathlib.Path(scratch) / f'torch-{number}.json')
            theirs.append(results)
            ours.append(our_round(arguments, caps, pathlib.Path(scratch) / f'ours-{number}.json'))

    lines = [*(f'* {line}' for line in header),
             f'* torch {document["torch"]}, Gloo, {document["ranks"]} ranks at {arguments.rate}, widths {arguments.widths}, '
             f'batch {arguments.batch}; {arguments.steps} steps a cap, {arguments.rounds} rounds, torch and ours in turn', '',
             '| cap | torch | ours | ours / torch (rounds) | all-reduces: MiB in launch order | |', '|--:|--:|--:|--:|---|---|']
    ratios, all_same = [], True
    for cap in caps:
        row, ratio, same = compare(cap, [rank[cap] for rank in theirs], [rank[cap] for rank in ours])
        lines.append(row)
        ratios.append(ratio)
        all_same = all_same and same
    median = statistics.median(ratios)
    middle = caps[len(caps) // 2]
    lines += ['', f'* median ratio over caps {median:.3f} (target: at most 1): {"met" if median <= 1 else "MISSED"}',
              f'* number, order and size of the all-reduces: {"equal" if all_same else "DIFFERENT"}',
              f'* last round at {middle:g} MiB, forward + backward + optimizer in ms: torch {phases(theirs[-1][middle])}, '
              f'ours {phases(ours[-1][middle])} (our backward ends with its last kernel, torch\'s with its last all-reduce)',
              f'* torch without DDP: step {document["none_ms"]:.1f} ms = {phases(document["none"])}']
    text = '\n'.join(lines) + '\n'
    print(text, end='')
    if arguments.output:
        pathlib.Path(arguments.output).write_text(text)
    return 0 if median <= 1 and all_same else 3


if __name__ == '__main__':
    sys.exit(main())
