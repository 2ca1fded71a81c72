#!/usr/bin/env python3
"""How soon the page of `ddpsim explore` follows a slider.

On a machine on which nothing else runs:

    tests/experiments/explore_pace.py --ddpsim PROGRAM

From a move to the drawn timeline of gpt2-xl on 8 GPUs, in a headless Chromium: three times the
median of a hundred moves. Shared processors are slow for seconds at a time, so that one hundred
within 50 ms is good.

Exit code: 0; 1 if every median is longer; 77 if there is no browser or the machine is busy.
"""
import argparse
import pathlib
import shutil
import statistics
import sys
import time

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'tests/browser'))
import devtools  # of tests/browser
import explore_test

LONGEST = 50  # ms
LARGE = explore_test.SCENARIO.replace('gpt2', 'gpt2-xl')

# In the page itself, so that nothing of this script runs meanwhile.
MOVES = '''(async () => {
  const input = document.getElementById('bucket_cap'), times = [];
  for (let i = 0; i < 100; ++i) {
    input.value = i % 14 + 1;
    input.dispatchEvent(new Event('input'));
    while (ddpsimExplore.busy) await new Promise(later => setTimeout(later, 1));
    times.push(ddpsimExplore.milliseconds);
    await new Promise(drawn => requestAnimationFrame(() => requestAnimationFrame(drawn)));
  }
  return times;
})()'''


def busy():
    """The share of this machine's processors that are at work, within a second."""
    def times():
        return [int(each) for each in pathlib.Path('/proc/stat').read_text().split()[1:9]]
    before = times()
    time.sleep(1)
    passed = [after - each for each, after in zip(before, times())]
    return 1 - (passed[3] + passed[4]) / max(1, sum(passed))


def settled():
    """The same, once the browser has done what it does in the seconds after a page is there."""
    for _ in range(5):
        share = busy()
        if share <= 0.25:
            break
    return share


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--ddpsim', default=str(ROOT / 'build/release/tools/ddpsim'))
    flags = parser.parse_args()
    if devtools.program() is None:
        print('NOT RUN: there is no Chromium')
        return 77
    program = shutil.which(flags.ddpsim) or flags.ddpsim
    medians = []
    with explore_test.explored(program, LARGE) as (address, _), devtools.Browser() as browser:
        page = explore_test.opened(browser, address)
        page.wait_for('window.ddpsimTimelines?.length === 1')
        for _ in range(3):
            before = settled()
            times = sorted(page.value(MOVES))
            share = max(before, busy())
            if share > 0.25:
                print(f'NOT RUN: others use {100 * share:.0f} % of the processors')
                return 77
            medians.append(statistics.median(times))
            print(f'quickest {times[0]:.1f} ms, median {medians[-1]:.1f} ms, nine in ten '
                  f'{times[89]:.1f} ms')
    return 0 if min(medians) <= LONGEST else 1


if __name__ == '__main__':
    sys.exit(main())
