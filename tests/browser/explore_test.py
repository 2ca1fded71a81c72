#!/usr/bin/env python3
"""The page of `ddpsim explore` in a headless Chromium, whose sliders are moved.

    explore_test.py --ddpsim PROGRAM [CASE]
    explore_test.py --list

Exit code: 0; 1 if something is wrong; 77 if there is no browser.
"""
import argparse
import contextlib
import json
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import devtools

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SCENARIO = '''name: explored
workload: {model: gpt2, batch: 2, sequence: 256, dtype: bf16, optimizer: adamw-fused}
cluster: {device: h100-sxm, nodes: 2, ranks_per_node: 4, intra_node: nvlink4, inter_node: ib-ndr}
'''
SLIDERS = ('bucket_cap', 'first_bucket_cap', 'batch', 'nodes', 'ranks_per_node', 'intra_bandwidth',
           'intra_latency', 'inter_bandwidth', 'inter_latency', 'skew')


def check(true, *said):
    if not true:
        raise AssertionError(' '.join(map(str, said)))


@contextlib.contextmanager
def explored(program, text=SCENARIO, *flags):
    """The address of a served page, and the folder of its scenario."""
    with tempfile.TemporaryDirectory(prefix='ddpsim-test-') as folder:
        file = pathlib.Path(folder, 'mine.yaml')
        file.write_text(text)
        process = subprocess.Popen([program, 'explore', str(file), *flags], text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        try:
            yield process.stdout.readline().strip(), file
        finally:
            process.send_signal(signal.SIGINT)
            code = process.wait(10)
            process.stdout.close()
        check(code == 0, 'explore ended with', code)


def opened(browser, address):
    page = browser.open(address)
    page.wait_for('window.ddpsimExplore?.answer && !ddpsimExplore.busy')
    return page


def settle(page, answers):
    page.wait_for(f'!ddpsimExplore.busy && ddpsimExplore.answers > {answers}')


def move(page, control, value):
    """Sets a slider to one of its positions, or a choice to a value, as its user would."""
    answers = page.value('ddpsimExplore.answers')
    page.value(f'''(() => {{
      const input = document.getElementById({json.dumps(control)});
      input.value = {json.dumps(value)};
      input.dispatchEvent(new Event(input.tagName === 'SELECT' ? 'change' : 'input'));
    }})()''')
    settle(page, answers)


def predicted(program, command):
    """What the command that the page shows says, as JSON, without its buckets."""
    words = shlex.split(command)
    check(words[0] == 'ddpsim', command)
    out = subprocess.run([program, *words[1:], '--quiet', '--json', '-'], check=True, text=True,
                         capture_output=True).stdout
    record = json.loads(out)
    for result in record['results']:
        del result['buckets']
    return record


def check_state(program, page):
    """The figures on the page are those of the command on the page."""
    record = predicted(program, page.value('document.getElementById("command").textContent'))
    answer = page.value('ddpsimExplore.answer.record')
    # What would fit where no step does takes too long for a move.
    said, notes = answer.pop('notes'), record.pop('notes')
    check(said == notes[:len(said)] and len(notes) <= len(said) + 1, 'other notes than run --json')
    check(record == answer, 'another record than run --json')
    for result in record['results']:
        cell = page.value(f'''document.querySelector('td[data-strategy="{result["strategy"]}"]'''
                          f'''[data-key="step_ms"] span').textContent''')
        check(cell == f'{result["step_ms"]:.2f}', cell, 'for', result['step_ms'])
    heads = page.value('[...document.querySelectorAll("#drawn svg text")].map(e => e.textContent)')
    chief = next(each for each in record['results'] if each['strategy'] == 'bucketed')
    check(f'{chief["step_ms"]:.2f} ms' in heads, 'the picture shows', heads[:12])


def each_slider(program):
    """Every slider to both its ends and back: the figures are those of run."""
    with explored(program) as (address, _), devtools.Browser() as browser:
        page = opened(browser, address)
        check_state(program, page)
        given = page.value('ddpsimExplore.answer.record')
        for slider in SLIDERS:
            last = page.value(f'Number(document.getElementById("{slider}").max)')
            for position in (0, last):
                move(page, slider, str(position))
                check(page.value('document.getElementById("refusal").hidden'), slider, 'refused')
                said = page.value(f'document.querySelector("output[for={slider}]").textContent')
                heard = page.value(
                    f'document.getElementById("{slider}").getAttribute("aria-valuetext")')
                check(said == heard and said, slider, 'shows', said, 'and tells', heard)
                check(len(page.value('ddpsimExplore.answer.settings')) >= 1, slider)
                check_state(program, page)
            answers = page.value('ddpsimExplore.answers')
            page.value(f'document.getElementById("{slider}").closest(".control")'
                       '.querySelector("button").click()')
            settle(page, answers)
            check(page.value('ddpsimExplore.answer.record') == given, slider, 'did not go back')
        check(page.problems == [], page.problems)
        check(all(each.startswith((address, 'data:')) for each in page.requests), page.requests)


def each_choice(program):
    """Comm hooks, ready systems and links."""
    with explored(program) as (address, _), devtools.Browser() as browser:
        page = opened(browser, address)
        for control in ('comm_hook', 'system', 'intra_link', 'inter_link'):
            values = page.value(f'[...document.getElementById("{control}").options]'
                                '.map(each => each.value)')
            check(values[0] == '' and len(values) > 5, control, values)
            for value in values[1:4] + values[-1:]:
                move(page, control, value)
                check_state(program, page)
            move(page, control, '')
        check(page.value('ddpsimExplore.answer.settings') == [], 'something is left')
        check(page.problems == [], page.problems)


def ready_systems(program):
    """A ready system takes the place of the whole cluster but for the number of nodes, and what is
    moved besides is moved of the system."""
    first = 'document.getElementById("{}").options[0].textContent'
    with explored(program) as (address, _), devtools.Browser() as browser:
        page = opened(browser, address)
        check(page.value(first.format('system')) == 'as given (h100-sxm)')
        check(page.value(first.format('intra_link')) == 'as given (nvlink4)')
        move(page, 'system', 'dgx-a100')
        check_state(program, page)
        cluster = page.value('ddpsimExplore.answer.record.cluster')
        check([cluster[key] for key in ('device', 'nodes', 'ranks_per_node', 'intra_node')] ==
              ['a100-80', 2, 8, 'nvlink3'], cluster)
        check(page.value('ddpsimExplore.answer.settings') == [['cluster', 'dgx-a100']])
        check(page.value('document.querySelector("output[for=ranks_per_node]").textContent') == '8')
        check(page.value(first.format('intra_link')) == "the system's (nvlink3)")
        given = page.value('document.querySelector("output[for=intra_latency]").textContent')
        move(page, 'intra_bandwidth', '0')
        check_state(program, page)
        cluster = page.value('ddpsimExplore.answer.record.cluster')
        check(cluster['device'] == 'a100-80' and cluster['ranks_per_node'] == 8, cluster)
        check(page.value('document.querySelector("output[for=intra_bandwidth]").textContent') ==
              '1 GB/s')
        latency = page.value('document.querySelector("output[for=intra_latency]").textContent')
        check(latency == given, latency, 'was', given)
        move(page, 'nodes', '0')
        check_state(program, page)
        check(page.value('ddpsimExplore.answer.record.ranks') == 8)
        link = page.value('document.getElementById("link").textContent')
        record = page.value('ddpsimExplore.answer.record')
        other = opened(browser, link)
        check(other.value('ddpsimExplore.answer.record') == record, 'the link opens another state')
        answers = page.value('ddpsimExplore.answers')
        page.value('document.getElementById("reset").click()')
        settle(page, answers)
        check(page.value(first.format('intra_link')) == 'as given (nvlink4)')
        check(page.problems == [] and other.problems == [], page.problems, other.problems)


def keyboard(program):
    """A slider with the focus follows the arrow keys."""
    with explored(program) as (address, _), devtools.Browser() as browser:
        page = opened(browser, address)
        page.value('document.getElementById("bucket_cap").focus()')
        before = page.value('document.querySelector("output[for=bucket_cap]").textContent')
        answers = page.value('ddpsimExplore.answers')
        page.press('ArrowRight', 39)
        settle(page, answers)
        after = page.value('document.querySelector("output[for=bucket_cap]").textContent')
        check((before, after) == ('25 MiB', '32 MiB'), before, after)
        check_state(program, page)
        names = page.value('''[...document.querySelectorAll('input, select, button')].map(each =>
          (each.labels?.[0]?.textContent || each.getAttribute('aria-label') ||
           each.textContent).trim())''')
        check(all(names) and len(names) > 20, 'something has no name:', names)
        check(page.problems == [], page.problems)


def links(program):
    """A link to a state opens that state; Back in the address field works too."""
    with explored(program) as (address, _), devtools.Browser() as browser:
        page = opened(browser, address)
        move(page, 'bucket_cap', '0')
        move(page, 'inter_link', 'ethernet-100g')
        link = page.value('document.getElementById("link").textContent')
        check(link.startswith(address + '#'), link)
        record = page.value('ddpsimExplore.answer.record')
        other = opened(browser, link)
        check(other.value('ddpsimExplore.answer.record') == record, 'the link opens another state')
        check(other.value('document.getElementById("inter_link").value') == 'ethernet-100g')
        answers = other.value('ddpsimExplore.answers')
        other.value('location.hash = "bucket_cap=37+MiB"')
        settle(other, answers)
        check_state(program, other)
        check(other.value('document.querySelector("output[for=bucket_cap]").textContent') ==
              '37 MiB')
        answers = other.value('ddpsimExplore.answers')
        other.value('location.hash = "bucket_cap=<script>alert(1)</script>&nosuch=1"')
        settle(other, answers)
        said = other.value('document.getElementById("ignored").textContent')
        check('"bucket_cap"' in said and '"nosuch"' in said, said)
        check(other.value('document.getElementById("refusal").hidden'), 'it is not ignored')
        check_state(program, other)
        check(page.problems == [] and other.problems == [], page.problems, other.problems)


def odd_addresses(program):
    """What no control takes of an address is told in a line and left out; the rest holds."""
    with explored(program) as (address, _), devtools.Browser() as browser:
        given = opened(browser, address).value('ddpsimExplore.answer.record')
        for fragment, moved in (
                ('garbage', {}), ('%E0%A4%A', {}), ('bucket_cap=nonsense', {}),
                ('v2:cap=3&skew=3+%25', {'skew'}), ('skew=3+%25&nodes=-1', {'skew'}),
                (f'skew={"9" * 500000}', {}), ('&'.join(f'x{i}={i}' for i in range(20000)), {})):
            page = opened(browser, f'{address}#{fragment}')
            short = fragment[:30]
            said = page.value('document.getElementById("ignored").textContent')
            check(said.startswith("Ignored in this page's address: "), short, said)
            check(len(said) < 300, short, said)
            check(page.value('document.getElementById("refusal").hidden'), short)
            check(page.value('document.querySelectorAll("#table td").length') > 20, short)
            left = page.value('[...new URLSearchParams(location.hash.slice(1)).keys()]')
            check(set(left) == set(moved), short, left)
            if moved:
                check_state(program, page)
            else:
                check(page.value('ddpsimExplore.answer.record') == given, short, 'another state')
            check(page.problems == [], short, page.problems)


def narrow_pages(program):
    """At 500, 900 and 1400 pixels nothing is cut or overlaps, and nothing scrolls sideways."""
    with explored(program) as (address, _), devtools.Browser() as browser:
        page = opened(browser, address)
        for box in ('naive', 'flat', 'overlap'):
            page.value(f'document.getElementById("show-{box}").click()')
        move(page, 'skew', '5')
        page.wait_for('window.ddpsimTimelines?.length === 1')
        for width in (500, 900, 1400):
            page.resize(width)
            page.wait_for('!ddpsimExplore.busy')
            check(page.value(devtools.SCROLLS) == [], width, page.value(devtools.SCROLLS))
            check(page.value(devtools.CUT_LABELS) == [], width, page.value(devtools.CUT_LABELS))
            check(page.value(f"""(() => {{
              return ['table', 'drawn'].map(id => document.getElementById(id))
                .every(each => each.scrollWidth <= each.clientWidth);
            }})()"""), width, 'a part of the page has to be scrolled')
            overlaps = page.value("""(() => {
              const boxes = [...document.querySelectorAll(
                  '.headline > div, #finding, fieldset, #table, figure.timeline, pre')]
                .map(each => ({each, box: each.getBoundingClientRect()}));
              return boxes.flatMap(({each, box}, i) => boxes.slice(i + 1)
                .filter(other => !each.contains(other.each) && !other.each.contains(each) &&
                  box.left < other.box.right - 1 && other.box.left < box.right - 1 &&
                  box.top < other.box.bottom - 1 && other.box.top < box.bottom - 1)
                .map(other => [each, other.each].map(of => of.id || of.className).join(' and ')));
            })()""")
            check(overlaps == [], width, overlaps)
        check(page.problems == [], page.problems)


def save(program):
    """Saved scenarios say what the page says, and lie beside the one given, which stays."""
    with explored(program) as (address, file), devtools.Browser() as browser:
        page = opened(browser, address)
        move(page, 'bucket_cap', '0')
        move(page, 'nodes', '3')
        record = page.value('ddpsimExplore.answer.record')
        for name in ('mine-explored.yaml', 'mine-explored-2.yaml'):
            page.value('document.getElementById("saved").textContent = ""')
            page.value('document.getElementById("save").click()')
            page.wait_for('document.getElementById("saved").textContent')
            saved = file.with_name(name)
            check(page.value('document.getElementById("saved").textContent') ==
                  f'written: {saved}', name)
            check(predicted(program, f'ddpsim run {saved}') == record, 'another scenario')
        check(file.read_text() == SCENARIO, 'the scenario that was given has changed')
        check(sorted(each.name for each in file.parent.iterdir()) ==
              ['mine-explored-2.yaml', 'mine-explored.yaml', 'mine.yaml'], 'something is left')


def timeline(program):
    """The picture has the strategies that are ticked, its zoom stays, and a pointer finds tasks."""
    with explored(program) as (address, _), devtools.Browser() as browser:
        page = opened(browser, address)
        page.wait_for('window.ddpsimTimelines?.length === 1')
        lanes = 'ddpsimTimelines[0].lanes.map(each => each.step)'
        check(set(page.value(lanes)) == {'bucketed, 1+25 MiB'}, page.value(lanes))
        answers = page.value('ddpsimExplore.answers')
        page.value('document.getElementById("show-naive").click()')
        settle(page, answers)
        check(set(page.value(lanes)) == {'naive', 'bucketed, 1+25 MiB'}, page.value(lanes))
        page.value('ddpsimTimelines[0].zoom(0.25)')
        before = page.value('ddpsimTimelines[0].to - ddpsimTimelines[0].from')
        move(page, 'skew', '5')
        after = page.value('ddpsimTimelines[0].to - ddpsimTimelines[0].from')
        check(abs(after - before) <= 2, 'the zoom went from', before, 'to', after)
        end = page.value('ddpsimTimelines[0].data.end * ddpsimTimelines[0].data.tick_ns / 1e6')
        longest = page.value('Math.max(...ddpsimExplore.answer.record.results'
                             '.filter(each => ["naive", "bucketed"].includes(each.strategy))'
                             '.map(each => each.step_ms))')
        check(abs(end - longest) < 1e-4 * longest, 'the picture ends at', end, 'not', longest)
        check(page.problems == [], page.problems)


def gone(program):
    """When the program has ended the page says so."""
    with devtools.Browser() as browser:
        with explored(program) as (address, _):
            page = opened(browser, address)
        answers = page.value('ddpsimExplore.answers')
        page.value('document.getElementById("skew").dispatchEvent(new Event("input"))')
        settle(page, answers)
        said = page.value('document.getElementById("refusal").textContent')
        check(re.search('is it still running', said), said)


CASES = {'each slider': each_slider, 'each choice': each_choice,
         'ready systems': ready_systems, 'keyboard': keyboard,
         'links': links, 'odd addresses': odd_addresses, 'narrow pages': narrow_pages, 'save': save,
         'timeline': timeline, 'gone': gone}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--ddpsim', default=str(ROOT / 'build/release/tools/ddpsim'))
    parser.add_argument('--list', action='store_true')
    parser.add_argument('case', nargs='?', choices=CASES)
    flags = parser.parse_args()
    if flags.list:
        print('\n'.join(CASES))
        return 0
    if devtools.program() is None:
        print('NOT RUN: there is no Chromium')
        return 77
    for name in [flags.case] if flags.case else CASES:
        begin = time.monotonic()
        CASES[name](shutil.which(flags.ddpsim) or flags.ddpsim)
        print(f'{name}: {time.monotonic() - begin:.1f} s')
    return 0


if __name__ == '__main__':
    sys.exit(main())
