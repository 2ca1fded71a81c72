#!/usr/bin/env python3
"""Writes results.md from what mutation_test.py found (build/mutation/results.json), from
equivalent.txt and from survivors.txt.

    tests/mutation/report.py

equivalent.txt says of survivors why no test can tell them from the product; survivors.txt says of
the others which test holds them since, or why none does: a line `PLACE CHANGE | WHY` each.
"""

import json
import os
import sys
import textwrap
from collections import Counter

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
RESULTS = f"{ROOT}/build/mutation/results.json"


def explanations(name):
    """{(place, change): why}"""
    found = {}
    with open(f"{HERE}/{name}.txt") as file:
        for line in filter(str.strip, file):
            mutant, why = line.strip().split(" | ")
            place, change = mutant.split(" ", 1)
            found[place, change] = why
    return found


def folder_of(mutant):
    return "/".join(mutant["place"].split("/")[:2])


def share(part, whole):
    return f"{100 * part / whole:.1f} %" if whole else ""


def table(judged, explained):
    counts = Counter()
    for mutant in judged:
        end = mutant["end"]
        if end == "survived" and (mutant["place"], mutant["change"]) in explained:
            end = "equivalent"
        for folder in (folder_of(mutant), "together"):
            counts[folder, end] += 1
            counts[folder, "drawn"] += 1
    folders = sorted({folder for folder, _ in counts} - {"together"}) + ["together"]
    yield "| folder | mutants | killed | equivalent | survived | killed of those not equivalent |"
    yield "|---|--:|--:|--:|--:|--:|"
    for folder in folders:
        drawn, killed, equivalent, survived = (
            counts[folder, end] for end in ("drawn", "killed", "equivalent", "survived")
        )
        of = share(killed, drawn - equivalent)
        yield f"| {folder} | {drawn} | {killed} | {equivalent} | {survived} | {of} |"


def page(results):
    mutants, explained = results["mutants"], explanations("equivalent")
    reasons = {**explanations("survivors"), **explained}
    judged = [m for m in mutants if m["end"] in ("killed", "survived")]
    survivors = [m for m in judged if m["end"] == "survived"]
    unreached = [m for m in mutants if m["end"] == "not reached"]
    broken = sum(m["end"] == "does not compile" for m in mutants)
    waiting = sum(m["end"] == "drawn" for m in mutants)
    yield "# Mutation test"
    yield ""
    yield "<!-- Written by tests/mutation/report.py. -->"
    yield ""
    found = f"{len(mutants)} mutants drawn from the sources (not the headers) of model/, sim/"
    first = results["runs"][0]
    yield from textwrap.wrap(
        f"Seed {results['seed']}. Of {found} and scenarios/, {broken} do not compile, "
        f"{len(unreached)} lie where none of the programs that were asked comes (others "
        f"may), and {len(judged)} were judged. Of each program the tests that reach a mutant were "
        f"run, those that ask torch and those that take more than {first['longest_s']} s of "
        f"processor time left out, quickest first. No other test "
        "of the suite was asked; those of tests/python and those that ask torch look at "
        "model/workload and model/kernel, those of tests/tools at scenarios/reader.",
        120,
    )
    if waiting:
        yield ""
        yield f"**Not finished: {waiting} more that were drawn have not been judged.**"
    yield ""
    for run in results["runs"]:
        about = "what had survived until then (as far as it got)" if run["again"] else "all mutants"
        asked = ", ".join(run["programs"] + [f"the script {name}" for name in run["scripts"]])
        yield (
            f"* On {run['date']}, at commit {run['commit']}, about {about}: {asked}; at most "
            f"{run['most_s']:g} s of tests a mutant."
        )
    yield ""
    killers = Counter(m["how"].split(" in ")[-1] for m in judged if m["end"] == "killed")
    noticed = ", ".join(f"{name} {count}" for name, count in sorted(killers.items()))
    yield from textwrap.wrap(f"Who noticed first, quickest test first: {noticed}.", 120)
    yield ""
    yield from table(judged, explained)
    yield ""
    yield "By kind of mutation:"
    yield ""
    yield "| kind | mutants | killed |"
    yield "|---|--:|--:|"
    kinds = Counter((m["kind"], m["end"]) for m in judged)
    for kind in sorted({kind for kind, _ in kinds}):
        killed = kinds[kind, "killed"]
        yield f"| {kind} | {killed + kinds[kind, 'survived']} | {killed} |"
    for title, wanted in (("Equivalent", True), ("Survived", False)):
        here = [m for m in survivors if ((m["place"], m["change"]) in explained) == wanted]
        yield from ["", f"## {title}", ""]
        for mutant in here:
            why = reasons.get((mutant["place"], mutant["change"]))
            yield f"* {mutant['place']}: {mutant['change']}" + (f": {why}" if why else "")
    yield from ["", "## Not reached", ""]
    for folder, count in sorted(Counter(map(folder_of, unreached)).items()):
        yield f"* {folder}: {count}"


def wrapped(line, width=120):
    """A line of text in several, of a list with the second and later lines indented."""
    if len(line) <= width or not line.startswith("* "):
        return [line]
    lines, words = [], line.split(" ")
    while words:
        at = "" if not lines else " "
        while words and (at.strip() == "" or len(at) + 1 + len(words[0]) <= width):
            at += (" " if at else "") + words.pop(0)
        lines.append(at)
    return lines


def main():
    with open(RESULTS) as file:
        results = json.load(file)
    text = "\n".join(line for each in page(results) for line in wrapped(each)) + "\n"
    with open(f"{HERE}/results.md", "w") as file:
        file.write(text)
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
