#!/usr/bin/env python3
"""What `ddpsim validate` takes beside other programs: alone, and beside as many busy loops as there
are processors.

On a machine on which nothing else runs:

    tests/experiments/beside_busy.py --ddpsim PROGRAM [--results FILE]

A busy loop never sleeps and runs at ordinary priority. Each run measures this machine and validates
scenarios/examples/mlp-2ranks.yaml on two ranks, with all defaults. It is good if it ends with exit
code 0 within a minute: a rank that waits for its processor is not one that does not answer. FILE
gets a table in Markdown.

Exit code: 0; 1 if a run beside loops is not good.
"""
import argparse
import datetime
import os
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
LONGEST = 60  # seconds
COMMAND = ['validate', 'scenarios/examples/mlp-2ranks.yaml', '--ranks', '2', '--quiet']


def run(ddpsim, loops):
    """Load before, seconds, exit code, last line of stderr."""
    load = os.getloadavg()[0]
    started = [subprocess.Popen(['sh', '-c', 'while :; do :; done']) for _ in range(loops)]
    begun = time.monotonic()
    try:
        done = subprocess.run([ddpsim, *COMMAND], cwd=ROOT, capture_output=True, text=True,
                              timeout=10 * LONGEST)
        code, said = done.returncode, done.stderr.strip().splitlines()[-1:]
    except subprocess.TimeoutExpired:
        code, said = 'none', ['did not end']
    finally:
        seconds = time.monotonic() - begun
        for each in started:
            each.kill()
            each.wait()
    return loops, load, seconds, code, ''.join(said)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--ddpsim', required=True)
    parser.add_argument('--runs', type=int, default=5)
    parser.add_argument('--results')
    wanted = parser.parse_args()
    ddpsim = str(pathlib.Path(wanted.ddpsim).resolve())
    lines = [f'`ddpsim {" ".join(COMMAND)}`; {datetime.date.today()}, {os.cpu_count()} processors.',
             '', '| busy loops | other load | s | exit code | last line |', '|--:|--:|--:|--:|---|']
    bad = 0
    for loops in [0, *[os.cpu_count()] * wanted.runs]:
        loops, load, seconds, code, said = run(ddpsim, loops)
        bad += loops > 0 and (code != 0 or seconds > LONGEST)
        lines.append(f'| {loops} | {load:.1f} | {seconds:.1f} | {code} | {said or "-"} |')
        print(lines[-1], flush=True)
    if wanted.results:
        pathlib.Path(wanted.results).write_text('\n'.join(lines) + '\n')
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
