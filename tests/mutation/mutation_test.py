#!/usr/bin/env python3
"""Changes the product in small ways, one at a time, and looks whether a test notices.

    python3 -m venv build/mutation-python
    build/mutation-python/bin/pip install tree-sitter tree-sitter-cpp
    build/mutation-python/bin/python tests/mutation/mutation_test.py --count 500 --seed 1

draws mutants of the sources of model/, sim/ and scenarios/ (mutants.py), builds them all into the
test programs of PROGRAMS (schemata.py; the release build must have them up to date), records which
tests reach which mutant, and then runs, for each mutant, the tests that reach it, quickest first,
until one fails or the next would take the mutant beyond --most seconds. Tests that take more than
five times their processor time and two seconds fail. Tests that take more than LONGEST_S are left
out, and those that ask torch. With --scripts, the scripts that compare what the program prints with
what the documents say are asked about what is left; the release build must then have PRINTING too.
Results go to build/mutation/results.json: what was asked when, and one entry a mutant; report.py
writes results.md from it.
"""

import argparse
import datetime
import json
import os
import random
import re
import resource
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from glob import glob

from mutants import Mutant, mutants_of
from schemata import ROOT, Schemata

PROGRAMS = ["tests/test_model", "tests/test_sim", "tests/test_scenarios", "tests/test_golden"]
PRINTING = ["tools/ddpsim", "tests/fit_ports", "tests/fit_interference"]
SCRIPTS = {
    "documents": ["tests/docs/check_documents.py", "--commands"],
    "accuracy": ["tools/accuracy", "--check", "--fits", "build/mutation/programs/tests"],
}  # that check what the program prints
FOLDERS = ["model/*", "sim/*", "scenarios/reader/*"]
os.environ["DDPSIM_GOLDEN"] = "all"  # for whatever program is started: every line is asked
LONGEST_S = 1.5  # slower tests are left out
PORTIONS_S = [0.05, 0.3, 1.5, 6, float("inf")]  # tests are tried in portions that take so long


def draw(count, seed, only):
    """The first `count` of all mutants in a random order, none of which overlaps an earlier one."""
    paths = sorted(path for folder in FOLDERS for path in glob(f"{ROOT}/{folder}/*.cpp"))
    everything = [m for p in paths for m in mutants_of(p, os.path.relpath(p, ROOT))]
    random.Random(seed).shuffle(everything)
    print(f"seed {seed}: {count} of {len(everything)} mutants in {len(paths)} files", flush=True)
    drawn, taken = {}, {}
    for mutant in everything:
        if only and not mutant.file.startswith(only):
            continue
        places = taken.setdefault(mutant.file, [])
        if all(mutant.end <= start or mutant.start >= end for start, end in places):
            places.append((mutant.start, mutant.end))
            drawn[len(drawn)] = mutant
        if len(drawn) == count:
            break
    return drawn


def run(program, names, mutant, seconds, trace=None):
    """Runs the tests `names` of a program. Returns "", "failed" or "time"."""
    environment = dict(os.environ, DDPSIM_MUTANT=str(mutant))
    if trace:
        environment["DDPSIM_MUTATION_TRACE"] = trace
    listed = f"{program}.{mutant}.names"
    with open(listed, "w") as file:
        file.writelines(re.sub(r"([\\\"\[,])", r"\\\1", name) + "\n" for name in names)
    words = [program, "--abort", "--durations", "no", "--input-file", listed]

    def limits():
        limit = int(2 + 5 * seconds)
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))
        resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    try:
        done = subprocess.run(
            words,
            env=environment,
            capture_output=True,
            preexec_fn=limits,
            timeout=1800,
            start_new_session=True,
            cwd=os.path.dirname(program),
        )
    except subprocess.TimeoutExpired:
        return "time"
    said = done.stdout.decode(errors="replace")
    if "No test" in said or "Invalid Filter" in said:
        raise RuntimeError(f"{program} knows no test of {names}")
    if done.returncode in (-24, -9):
        return "time"
    return "failed" if done.returncode else ""


def test_names(program):
    words = [program, "--list-test-names-only"]
    said = subprocess.run(words, capture_output=True, text=True, check=False).stdout
    return [line.strip() for line in said.splitlines() if line.strip()]


def traced(program, test, number):
    """A test by itself, without a mutant: (seconds, mutants reached), or none of a slow one. In a
    process of its own, because what is made once, such as a table of keys, counts for every test
    that needs it."""
    trace = f"{program}.{number}.trace"
    end = run(program, [test], -1 - number, LONGEST_S / 5, trace)
    if end == "failed":
        sys.exit(f"{program} fails without a mutant: {test}")
    if end:
        return None
    with open(trace) as file:
        lines = [line.rstrip("\n").split("\t") for line in file]
    os.remove(trace)
    seconds = float(lines[-1][0])
    return None if seconds > LONGEST_S else (seconds, [*lines[0][2:], *lines[-1][2:]])


def reached_by_tests(programs, work, build, keep, jobs):
    """{mutant: [(seconds, program, test)]}, quickest first. With `keep` a program's tests are not
    traced again that the release build has not made anew since."""
    reached = {}
    for name, program in programs.items():
        kept = os.path.join(work, name + ".traces.json")
        made = os.path.getmtime(os.path.join(build, "tests", name))
        if keep and os.path.exists(kept) and os.path.getmtime(kept) > made:
            with open(kept) as file:
                found = json.load(file)
        else:
            names = test_names(program)
            with ThreadPoolExecutor(jobs) as pool:
                each = pool.map(traced, [program] * len(names), names, range(len(names)))
                found = list(zip(names, each))
            with open(kept, "w") as file:
                json.dump(found, file)
        tests = [(test, *trace) for test, trace in found if trace]
        total = sum(seconds for _, seconds, _ in tests)
        slow = len(found) - len(tests)
        print(f"{name}: {len(tests)} tests, {total:.1f} s; {slow} slow ones left out", flush=True)
        for test, seconds, mutants in tests:
            for mutant in set(mutants):
                reached.setdefault(int(mutant), []).append((seconds, name, test))
    for tests in reached.values():
        tests.sort()
    return reached


def portions(tests, most_s):
    """The tests of a mutant, the quickest first, as [(program, names, seconds)]."""
    groups, total = [{} for _ in PORTIONS_S], 0.0
    for seconds, program, name in tests:
        total += seconds
        if total > most_s:
            break
        group = next(g for g, most in zip(groups, PORTIONS_S) if total <= most)
        names, sum_s = group.get(program, ([], 0.0))
        group[program] = ([*names, name], sum_s + seconds)
    for group in groups:
        for program, (names, seconds) in group.items():
            yield program, names, seconds


def run_script(words, program, mutant):
    """Runs a script against the mutated program. Returns "", "failed" or "time"."""
    environment = dict(os.environ, DDPSIM_MUTANT=str(mutant))
    words = [sys.executable, f"{ROOT}/{words[0]}", *words[1:], "--ddpsim", program]
    try:
        done = subprocess.run(
            words,
            check=False,
            env=environment,
            cwd=ROOT,
            capture_output=True,
            timeout=900,
            start_new_session=True,
        )
    except subprocess.TimeoutExpired:
        return "time"
    return "failed" if done.returncode else ""


def judge(mutant, tests, most_s, programs, scripts):
    for program, names, seconds in portions(tests, most_s):
        end = run(programs[program], names, mutant, seconds)
        if end:
            return "killed", f"{end} in {program}"
    for name in scripts:
        end = run_script(SCRIPTS[name], programs["ddpsim"], mutant)
        if end:
            return "killed", f"{end} in {name}"
    return "survived", ""


def this_run(flags, scripts):
    """What a run asks of which state of the project, for the report."""
    words = ["git", "-C", ROOT, "log", "-1", "--format=%h"]
    commit = subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
        "commit": commit,
        "programs": [os.path.basename(program) for program in flags.programs],
        "scripts": list(scripts),
        "again": flags.again,
        "longest_s": LONGEST_S,
        "most_s": flags.most,
    }


def main():
    flags = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    flags.add_argument("--count", type=int, default=500, help="mutants that tests reach (500)")
    flags.add_argument("--seed", type=int, default=1, help="of the draw (1)")
    flags.add_argument("--only", default="", help="a folder or file, such as model/parallel")
    flags.add_argument("--build", default=f"{ROOT}/build/release", help="the release build")
    flags.add_argument("--jobs", type=int, default=1, help="mutants judged at the same time (1)")
    flags.add_argument("--keep", action="store_true", help="go on with the draw of the last run")
    flags.add_argument(
        "--again",
        action="store_true",
        help="with --keep: what survived, with tests as they are now",
    )
    flags.add_argument("--programs", nargs="+", default=PROGRAMS, help="those that are asked")
    flags.add_argument("--most", type=float, default=60, help="seconds of tests a mutant (60)")
    flags.add_argument("--scripts", action="store_true", help="ask the documents' scripts too")
    flags = flags.parse_args()
    scripts = list(SCRIPTS) if flags.scripts else []
    work = f"{ROOT}/build/mutation"
    os.makedirs(work, exist_ok=True)
    results = f"{work}/results.json"
    before, runs = {}, []
    if flags.keep and os.path.exists(results):
        with open(results) as file:
            earlier = json.load(file)
        before, runs = {m["number"]: m for m in earlier["mutants"]}, earlier["runs"]
    if not runs or flags.again:
        runs.append(this_run(flags, scripts))

    if flags.keep and os.path.exists(f"{work}/drawn.json"):
        with open(f"{work}/drawn.json") as file:
            drawn = {number: Mutant(**each) for number, each in enumerate(json.load(file))}
    else:
        drawn = draw(int(flags.count * 1.6) + 10, flags.seed, flags.only)
        with open(f"{work}/drawn.json", "w") as file:
            json.dump([vars(mutant) for mutant in drawn.values()], file)
    schemata = Schemata(flags.build, work, drawn)
    programs = schemata.programs([*flags.programs, *(PRINTING if scripts else [])], flags.keep)
    tested = {name: path for name, path in programs.items() if name.startswith("test_")}
    for name in scripts:
        if run_script(SCRIPTS[name], programs["ddpsim"], -1):
            sys.exit(f"{name} fails without a mutant")
    reached = reached_by_tests(tested, work, flags.build, flags.keep, flags.jobs)

    entries = {}
    for number, mutant in drawn.items():
        end = "does not compile" if number in schemata.dropped else "drawn"
        end = "not reached" if end == "drawn" and number not in reached else end
        place = f"{mutant.file}:{mutant.line}"
        entries[number] = {
            "number": number,
            "place": place,
            "kind": mutant.kind,
            "change": mutant.change,
        }
        entries[number].update(end=end, how="")
    judged = [number for number, entry in entries.items() if entry["end"] == "drawn"][: flags.count]
    entries = {number: entry for number, entry in entries.items() if number <= judged[-1]}
    for number in judged:
        old = before.get(number, {"end": "drawn"})
        if old["end"] in ("killed", "survived"):  # it counts as that until it is asked again
            entries[number].update(end=old["end"], how=old["how"])
    asked = ("drawn", "survived") if flags.again else ("drawn",)

    def settle(number):
        entry = entries[number]
        entry["end"], entry["how"] = judge(
            number, reached[number], flags.most, programs, scripts
        )
        print(
            f"{number:4} {entry['end']:8} {entry['place']}: {entry['change']} {entry['how']}",
            flush=True,
        )
        with lock, open(results, "w") as file:
            found = {"seed": flags.seed, "runs": runs, "mutants": list(entries.values())}
            json.dump(found, file, indent=1)

    lock = threading.Lock()
    with ThreadPoolExecutor(flags.jobs) as pool:
        list(pool.map(settle, [n for n in judged if entries[n]["end"] in asked]))


if __name__ == "__main__":
    main()
