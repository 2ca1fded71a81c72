#!/usr/bin/env python3
"""The pages that --report writes, in a headless Chromium.

    pages_test.py --ddpsim PROGRAM [CASE]
    pages_test.py --list
    pages_test.py --ddpsim PROGRAM --screenshots FOLDER

The last form writes pictures of each page of docs/pages.md, light and dark, and the page as it is
printed, for a person to look at.
Exit code: 0; 1 if something is wrong; 77 if there is no browser.
"""
import argparse
import csv
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import devtools

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DOCUMENT = ROOT / 'docs/pages.md'
RUN = ('run', 'scenarios/examples/first.yaml')
LARGEST_PAGE = 2_000_000  # bytes

# Each text with its colour and what lies behind it; SVG's texts lie on the picture's paper.
TEXTS = '''(() => {
  const rgb = text => text.match(/[0-9.]+/g).map(Number);
  const behind = node => {
    for (let at = node; at; at = at.parentElement) {
      const paint = rgb(getComputedStyle(at).backgroundColor);
      if (paint.length === 3 || paint[3] > 0) return paint;
    }
    return [255, 255, 255];
  };
  const found = [];
  const walk = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const node = walk.currentNode.parentElement, text = walk.currentNode.textContent.trim();
    if (!text || node.closest('script,style,title,desc,.on,.only-heard,details:not([open]) > pre'))
      continue;
    const style = getComputedStyle(node), svg = node.closest('svg');
    found.push({text: text.slice(0, 40), ink: rgb(svg ? style.fill : style.color),
                paper: behind(svg ? svg.parentElement : node)});
  }
  return found;
})()'''


def check(true, *said):
    if not true:
        raise AssertionError(' '.join(map(str, said)))


def written(program, folder, *arguments):
    """The page of a command."""
    file = pathlib.Path(folder, 'page.html')
    done = subprocess.run([program, *arguments, '--quiet', '--report', str(file)], cwd=ROOT,
                          capture_output=True, text=True)
    check(done.returncode == 0, *arguments, done.stderr)
    return file


def documented_page(program, folder, name, arguments):
    """A page of several cases, written once. `validate` measures no longer than it must."""
    file = pathlib.Path(folder, f'{name}.html')
    if not file.exists():
        briefly = ('--within', '5s') if arguments[0] == 'validate' else ()
        written(program, folder, *arguments, *briefly).rename(file)
    return file


def opened(browser, file):
    return browser.open(file.resolve().as_uri())


def show_in(page, scheme):
    page.ask('Emulation.setEmulatedMedia',
             features=[{'name': 'prefers-color-scheme', 'value': scheme}])


def documented():
    """[(name, arguments)] of the pages that docs/pages.md shows how to write."""
    pages = []
    for line in DOCUMENT.read_text().replace('\\\n', '').splitlines():
        found = re.match(r'^ddpsim (.*) --report (\S+)\.html$', line)
        if found:
            pages.append((found[2], tuple(found[1].split())))
    return pages


def each_page_is_whole(program, browser, folder):
    pages = documented()
    check(len(pages) == 8, 'pages in the document:', len(pages))
    for name, arguments in pages:
        file = documented_page(program, folder, name, arguments)
        check(file.stat().st_size < LARGEST_PAGE, name, file.stat().st_size, 'bytes')
        page = opened(browser, file)
        check(page.problems == [], name, page.problems)
        check(page.requests == [file.resolve().as_uri()], name, page.requests)
        check(page.value('document.querySelectorAll("svg.ddpsim").length') > 0, name, 'no picture')
        check(page.value('document.querySelectorAll("table").length') > 0, name, 'no table')
        check(page.value('document.querySelector(".verdict").textContent.length') > 30, name)


def pages_of_large_models_stay_small(program, browser, folder):
    scenario, file = pathlib.Path(folder, 'model.yaml'), pathlib.Path(folder, 'page.html')
    models = json.loads(subprocess.run([program, 'list', 'models', '--json', '-'], check=True,
                                       capture_output=True, text=True).stdout)
    models.sort(key=lambda each: each['tensors'])
    for name in [each['model'] for each in models[-5:]]:
        subprocess.run([program, 'init', '--model', name, '--cluster', 'dgx-h100', '--nodes', '4',
                        '--force', str(scenario)], check=True, capture_output=True)
        written(program, folder, 'run', str(scenario))
        check(file.stat().st_size < LARGEST_PAGE, name, file.stat().st_size, 'bytes')


def figures(program, *arguments):
    done = subprocess.run([program, *arguments, '--json', '-'], cwd=ROOT, capture_output=True,
                          text=True, check=True)
    return json.loads(done.stdout)


def table_picture_and_json_agree(program, browser, folder):
    page = opened(browser, written(program, folder, *RUN))
    answer = figures(program, *RUN)
    rows = page.value('''[...document.querySelectorAll('table')].filter(table =>
      table.querySelector('th').textContent === 'strategy')[0].innerText.split('\\n')''')
    shown = page.value('''[...document.querySelectorAll(
        'figure.timeline svg > text[text-anchor=end]')].map(each => each.textContent)
      .filter(text => text.endsWith(' ms'))''')
    for result, drawn in zip(answer['results'], shown, strict=True):
        step = f"{result['step_ms']:.2f}"
        check(drawn == f'{step} ms', drawn, step)
        check(any(row.startswith(result['strategy']) and step in row.split() for row in rows),
              result['strategy'], step, rows)


def exposed_buckets_are_drawn_as_the_table_says(program, browser, folder):
    """Every bar of the picture is as long as JSON says, in parts that add up to it."""
    words = (*RUN, '--set', 'cluster.intra_node=pcie4')
    page = opened(browser, written(program, folder, *words))
    rows = page.value('''[...document.querySelectorAll('svg[aria-label^="What exposes"] g')]
      .map(bar => ({said: bar.querySelector('title').textContent,
                    wide: [...bar.querySelectorAll('rect')].map(each => each.width.baseVal.value)}))
      ''')
    wanted = {}  # what a bar says: how long it is
    for result in figures(program, *words, '--why')['results']:
        for bucket in result['why']['buckets']:
            wanted[f'{bucket["index"]} {result["strategy"]}'] = bucket
    shown = [row for row in rows if ' more, together' not in row['said']]
    check(len(shown) >= 4, rows)
    scale = None
    for row in shown:
        parts = {name: float(value) for name, value in
                 re.findall(r'(?:: |, )([a-z ]+) ([0-9.]+) ms', row['said'])}
        index = row['said'].split(' ')[0]
        same = [each for key, each in wanted.items() if key.split(' ')[0] == index
                and abs(each['exposed_ms'] - sum(parts.values())) < 0.003]
        check(same, row, 'is no bucket of the JSON')
        for name, value in parts.items():
            said = same[0]['exposed_by_ms'][name.replace(' ', '_')]
            check(abs(said - value) < 0.001, row, said)
        scale = scale or sum(row['wide']) / sum(parts.values())
        check(abs(sum(row['wide']) - scale * sum(parts.values())) < 0.5, row, scale)


def predicted_stands_above_measured(program, browser, folder):
    """The bars of each row are as long as its figures, by score and by run."""
    file = 'scenarios/measured/brandon-snider-2xh100.yaml'
    rows = figures(program, 'score', file)['rows']
    for command in ('score', 'run'):
        page = opened(browser, written(program, folder, command, file))
        pairs = page.value('''[...document.querySelectorAll('g.pair')].map(pair => ({
          said: pair.querySelector('title').textContent,
          wide: [...pair.querySelectorAll('rect')].map(each => each.width.baseVal.value)}))''')
        check(len(pairs) == len(rows), command, pairs)
        scale = pairs[0]['wide'][1] / rows[0]['measured_step_ms']
        for pair, row in zip(pairs, rows):
            wanted = [row['predicted_step_ms'] * scale, row['measured_step_ms'] * scale]
            check(all(abs(a - b) < 0.1 for a, b in zip(pair['wide'], wanted)), pair, row)
            said = f'{row["predicted_step_ms"]:.2f} | {row["measured_step_ms"]:.2f} ms'
            check(said in pair['said'] and pair['said'].endswith('fitted') == row['calibration'],
                  pair, row)
    settings = ('--set', 'workload.batch=4')  # of which nothing was measured
    page = opened(browser, written(program, folder, 'run', file, *settings))
    check(page.value('document.querySelectorAll("g.pair").length') == 0, 'rows of another batch')


def hatched_is_what_is_exposed(program, browser, folder):
    """The hatched pieces of a strategy are together as long as its buckets are exposed."""
    page = opened(browser, written(program, folder, *RUN))
    hatched = page.value('''[...document.querySelectorAll('path.exposed')].map(path =>
      path.getAttribute('d').match(/h[0-9]+/g).reduce((sum, each) => sum + Number(each.slice(1)),
                                                      0) * ddpsimTimelines[0].data.tick_ns / 1e6)
      ''')
    answer = figures(program, *RUN)
    for result, drawn in zip(answer['results'], hatched, strict=True):
        exposed = sum(bucket['exposed_ms'] for bucket in result['buckets'])
        check(abs(drawn - exposed) < 0.001 * len(result['buckets']), result['strategy'], drawn,
              exposed)


def tuning_shows_bound_default_and_advice(program, browser, folder):
    words = ('tune', 'scenarios/examples/two-workstations.yaml')
    page = opened(browser, written(program, folder, *words, '--uncertainty', '10%'))
    said = page.value('''[...document.querySelector('svg[aria-label^="Step against"]')
      .querySelectorAll('text.pointed')].map(each => each.textContent)''')
    for name in ('lower bound', 'default, 25 MiB', 'recommended, ', 'within 1 % of'):
        check(any(each.startswith(name) for each in said), name, said)
    answer = figures(program, *words, '--uncertainty', '10%')
    advice = answer['recommended_cap_bytes'] / 2 ** 20
    check(f'recommended, {advice:g} MiB' in said, said, advice)
    check(page.value('document.querySelectorAll("path.band").length') == 1, 'no band')
    plain = opened(browser, written(program, folder, *words))
    check(plain.value('document.querySelectorAll("path.band").length') == 0, 'a band of nothing')


def varied_keys_have_their_pictures(program, browser, folder):
    """run --vary and sweep: curves of one key, maps of two, and points that are refused."""
    for command in ('run', 'sweep'):
        one = (command, RUN[1], '--vary', 'training.bucket_cap=1MiB..16MiB*2')
        page = opened(browser, written(program, folder, *one))
        points = page.value('document.querySelectorAll("svg circle").length')
        check(points == 4 * 5, command, points, 'points of four strategies')
        ranks = (command, RUN[1], '--vary', 'cluster.ranks_per_node=1..8*2', '--best', 'mfu')
        page = opened(browser, written(program, folder, *ranks))
        titles = page.value('[...document.querySelectorAll("h3")].map(each => each.textContent)')
        check(titles == [f'{each} over cluster.ranks_per_node' for each in
                         ('Step', 'MFU', 'Tokens per second')], command, titles)
        two = (command, RUN[1], '--set', 'compare=[bucketed]', '--vary',
               'training.bucket_cap=1MiB,x', '--vary', 'training.first_bucket_cap=1MiB,2MiB')
        file = pathlib.Path(folder, 'page.html')
        done = subprocess.run([program, *two, '--quiet', '--report', str(file)], cwd=ROOT,
                              capture_output=True, text=True)
        check(done.returncode == 2, command, done)
        page = opened(browser, file)
        cells = page.value('''[...document.querySelectorAll('svg.ddpsim text')]
          .map(each => each.textContent).filter(text => /^([0-9]+\\.[0-9]+|-)$/.test(text))''')
        check(sorted(cells)[:2] == ['-', '-'] and len(cells) == 4, command, cells)


WIDTHS = (500, 900, 1400)
THREE_KEYS = ('sweep', RUN[1], '--vary', 'cluster.ranks_per_node=1..8*2', '--vary',
              'workload.batch=1..4*2', '--vary', 'training.bucket_cap=1MiB,25MiB,100MiB')


def no_label_is_cut(program, browser, folder):
    """Every text of every picture lies within it, and no page scrolls sideways."""
    scenario = pathlib.Path(folder, 'long.yaml')
    text = (ROOT / RUN[1]).read_text()
    long_name = 'a long name ' * 12
    scenario.write_text(re.sub(r'^name:.*$', f'name: {long_name}', text, flags=re.M))
    odd = (('long names', ('run', str(scenario), '--set', 'compare=[none,naive,bucketed]', '--set',
                           'cluster.intra_node=pcie3')),
           ('three keys', THREE_KEYS),
           ('long values', ('sweep', RUN[1], '--vary', 'cluster.intra_node='
                            '{base: nvlink3, bandwidth: 100 GB/s},{base: nvlink3, latency: 900 us}',
                            '--vary', 'training.comm_hook=none,quantization_perchannel')))
    for name, arguments in (*documented(), *odd):
        page = opened(browser, documented_page(program, folder, name, arguments))
        for width in WIDTHS:
            page.resize(width)
            for looked_for in (devtools.CUT_LABELS, devtools.SCROLLS):
                found = page.value(looked_for)
                check(found == [], name, width, found)
        page.value('document.querySelectorAll("details").forEach(each => { each.open = true; })')
        page.resize(WIDTHS[0])
        check(page.value(devtools.SCROLLS) == [], name, 'opened', page.value(devtools.SCROLLS))


def a_cut_label_is_found(program, browser, folder):
    """The check above sees a text that leaves its picture, and a page that is too wide."""
    page = opened(browser, written(program, folder, *RUN))
    page.value('document.querySelector("svg.ddpsim > text").setAttribute("x", -20)')
    check(len(page.value(devtools.CUT_LABELS)) == 1, page.value(devtools.CUT_LABELS))
    page.value('document.querySelector("h1").style.width = "3000px"')
    check('H1 ' in page.value(devtools.SCROLLS), page.value(devtools.SCROLLS))


def each_page_prints_on_two(program, browser, folder):
    for name, arguments in (*documented(), ('three keys', THREE_KEYS)):
        page = opened(browser, documented_page(program, folder, name, arguments))
        pages = page.print(pathlib.Path(folder, 'page.pdf'))
        check(1 <= pages <= 2, name, 'prints on', pages, 'pages')
    page = opened(browser, written(program, folder, *RUN))
    folded = page.print(pathlib.Path(folder, 'page.pdf'))
    page.value('document.querySelectorAll("details").forEach(each => { each.open = true; })')
    check(page.print(pathlib.Path(folder, 'page.pdf')) > folded, 'what was opened is not printed')


def pages_begin_with_rate_cost_and_memory(program, browser, folder):
    """Before the verdict, and as JSON has them; the cost in money where there is a price."""
    priced = (*RUN, '--set', 'cluster.price=2.5 USD/h')
    for arguments in (RUN, priced):
        page = opened(browser, written(program, folder, *arguments))
        result = next(each for each in figures(program, *arguments)['results']
                      if each['strategy'] == 'bucketed')
        first = page.value('[...document.querySelector("section").children].slice(0, 3)'
                           '.map(each => each.className || each.tagName)')
        check(first == ['H2', 'headline', 'verdict'], first)
        said = page.value('[...document.querySelectorAll(".headline dt")].map(e => e.textContent)')
        cost = (f'{result["cost_per_billion_tokens"]:.2f} USD' if arguments is priced else
                f'{result["device_hours_per_billion_tokens"]:.2f} GPU-hours')
        check(said == [f'{result["tokens_per_second"]:,.0f} tokens/s', cost, 'fits in memory'],
              said, cost)
    page = opened(browser, written(program, folder, *RUN, '--set', 'workload.batch=64'))
    said = page.value('document.querySelectorAll(".headline dt")[2].textContent')
    check(said == 'does not fit in memory', said)


def more_keys_have_selectors(program, browser, folder):
    """Of three keys, a map of the first two for each value of the third; figure and strategy are
    chosen, and values can be."""
    page = opened(browser, written(program, folder, *THREE_KEYS))
    shown = """[...document.querySelectorAll('figure[data-choices]')].filter(each => !each.hidden)
      .map(each => each.querySelector('h3').textContent)"""
    caps = ('1MiB', '25MiB', '100MiB')
    check(page.value(shown) == [f'Tokens per second under bucketed, training.bucket_cap={cap}'
                                for cap in caps], page.value(shown))
    selectors = page.value('[...document.querySelectorAll(".choose select")].map(each => '
                           '[...each.options].map(option => option.text))')
    check(selectors == [['Step', 'Tokens per second'], ['naive', 'flat', 'overlap', 'bucketed'],
                        ['all values', *caps]], selectors)
    for number, value in enumerate(('Step', 'flat', '25MiB')):
        page.value(f"""(() => {{
          const select = document.querySelectorAll('.choose select')[{number}];
          select.value = {json.dumps(value)};
          select.dispatchEvent(new Event('change'));
        }})()""")
    check(page.value(shown) == ['Step under flat, training.bucket_cap=25MiB'], page.value(shown))
    cells = page.value("""[...document.querySelector('figure[data-choices]:not([hidden]) svg')
      .querySelectorAll('text')].map(each => each.textContent)""")
    file = pathlib.Path(folder, 'points.csv')
    subprocess.run([program, *THREE_KEYS, '--quiet', '--csv', str(file)], cwd=ROOT, check=True)
    rows = [each for each in csv.DictReader(file.open())
            if each['strategy'] == 'flat' and each['training.bucket_cap'] == '25MiB']
    wanted = [f'{float(each["step_ms"]):.2f}' for each in rows]
    check(sorted(c for c in cells if '.' in c and c[0].isdigit()) == sorted(wanted), cells, wanted)


def middle_of(page, strategy, lane, number):
    """Where a task is drawn, in the window: of a lane whose strategy's name begins so."""
    return page.value(f'''(() => {{
      const timeline = ddpsimTimelines[0];
      const lane = timeline.lanes.find(each => each.step.startsWith({json.dumps(strategy)}) &&
                                               each.label === {json.dumps(lane)});
      timeline.box.scrollIntoView();
      const box = timeline.svg.getBoundingClientRect();
      const scale = box.width / timeline.svg.viewBox.baseVal.width;
      const i = {number};
      return {{x: box.left + timeline.xOf((lane.from[i] + lane.to[i]) / 2) * scale,
              y: box.top + (lane.top + lane.height / 2) * scale,
              name: timeline.data.names[lane.name[i]],
              from: timeline.ms(lane.from[i]), to: timeline.ms(lane.to[i])}};
    }})()''')


def hover_says_the_task(program, browser, folder):
    page = opened(browser, written(program, folder, *RUN))
    answer = figures(program, *RUN)
    bucketed = next(each for each in answer['results'] if each['strategy'] == 'bucketed')
    for number, bucket in enumerate(bucketed['buckets']):
        at = middle_of(page, 'bucketed', 'communication', number)
        page.ask('Input.dispatchMouseEvent', type='mouseMoved', x=at['x'], y=at['y'])
        page.wait_for('!document.querySelector(".tip").hidden')
        said = page.value('document.querySelector(".tip").innerText')
        check(at['name'] in said, said)
        check(abs(at['from'] - bucket['start_ms']) < 0.01, at, bucket['start_ms'])
        check(abs(at['to'] - bucket['end_ms']) < 0.01, at, bucket['end_ms'])
        size = next(line for line in said.splitlines() if 'all-reduce of' in line)
        check(re.search(r'[KMG]iB| B', size), size)
    kernel = middle_of(page, 'bucketed', 'compute', 3)
    page.ask('Input.dispatchMouseEvent', type='mouseMoved', x=kernel['x'], y=kernel['y'])
    said = page.value('document.querySelector(".tip").innerText')
    check(said.splitlines()[0] != '', said)


def zoom_and_keys_work(program, browser, folder):
    page = opened(browser, written(program, folder, *RUN))
    shown = '(() => [ddpsimTimelines[0].from, ddpsimTimelines[0].to])()'
    whole = page.value(shown)
    page.value('ddpsimTimelines[0].box.focus()')
    page.press('+', 187)
    closer = page.value(shown)
    check(abs((closer[1] - closer[0]) * 2 - whole[1]) < 2, whole, closer)
    page.press('ArrowRight', 39)
    check(page.value(shown)[0] > closer[0], 'arrow')
    drawn = float(page.value('ddpsimTimelines[0].bars.getAttribute("viewBox")').split()[0])
    check(abs(drawn - page.value(shown)[0]) < 1, 'drawn from', drawn)
    # What is drawn of a lane is as long as its tasks, wherever one looks.
    for lane in ('host', 'compute', 'communication'):
        lengths = page.value(f'''(() => {{
          const timeline = ddpsimTimelines[0];
          const lane = timeline.lanes.find(each => each.label === '{lane}');
          let tasks = 0, drawn = 0;
          lane.to.forEach((to, i) => {{
            if (to > timeline.from && lane.from[i] < timeline.to) tasks += to - lane.from[i];
          }});
          for (const path of timeline.bars.querySelectorAll('path:not(.hatched)')) {{
            const d = path.getAttribute('d');
            if (Number(d.match(/ ([0-9.]+)h/)[1]) !== lane.top + lane.height / 2) continue;
            for (const each of d.match(/h[0-9]+/g)) drawn += Number(each.slice(1));
          }}
          return [tasks, drawn];
        }})()''')
        check(abs(lengths[1] - lengths[0]) <= lengths[0] / 16, lane, lengths)
        check(lengths[0] > 0 or lane == 'host', lane, 'is empty')
    page.press('0', 48)
    check(page.value(shown) == whole, 'whole step')
    page.press(']', 221)
    said = page.value('document.querySelector(".said").textContent')
    check('compute' in said and 'long' in said, said)
    page.value('document.querySelector("button[aria-label=\\"zoom in\\"]").click()')
    check(page.value(shown) != whole, 'button')
    page.value('ddpsimTimelines[0].show(0, ddpsimTimelines[0].data.end)')
    at = middle_of(page, 'bucketed', 'compute', 0)
    page.ask('Input.dispatchMouseEvent', type='mouseMoved', x=at['x'] + 300, y=at['y'])
    page.ask('Input.dispatchMouseEvent', type='mouseWheel', x=at['x'] + 300, y=at['y'], deltaX=0,
             deltaY=-200)
    page.wait_for('ddpsimTimelines[0].to - ddpsimTimelines[0].from < ddpsimTimelines[0].data.end')


def luminance(colour):
    def part(value):
        value /= 255
        return value / 12.92 if value <= 0.03928 else ((value + 0.055) / 1.055) ** 2.4
    return sum(weight * part(value) for weight, value in zip((0.2126, 0.7152, 0.0722), colour))


def contrast(ink, paper):
    light, dark = sorted((luminance(ink), luminance(paper)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def texts_can_be_read(program, browser, folder):
    """WCAG 2's 4.5 to 1 for every text, light and dark."""
    for name, arguments in documented()[:3]:
        page = opened(browser, documented_page(program, folder, name, arguments))
        for scheme in ('light', 'dark'):
            show_in(page, scheme)
            texts = page.value(TEXTS)
            check(len(texts) > 50, name, len(texts))
            for each in texts:
                ratio = contrast(each['ink'][:3], each['paper'][:3])
                check(ratio >= 4.5, name, scheme, each, f'{ratio:.2f}')


def all_that_is_used_has_a_name(program, browser, folder):
    """By the browser's own tree for those who do not see the page."""
    roles = {'button', 'image', 'table', 'link', 'group', 'columnheader', 'heading'}
    for name, arguments in documented()[:3]:
        page = opened(browser, documented_page(program, folder, name, arguments))
        page.ask('Accessibility.enable')
        nodes = page.ask('Accessibility.getFullAXTree')['nodes']
        seen = set()
        for node in nodes:
            role = node.get('role', {}).get('value')
            if node.get('ignored') or role not in roles:
                continue
            seen.add(role)
            if role in ('table', 'group'):
                continue
            check(node.get('name', {}).get('value', '').strip(), name, role, 'has no name')
        check({'button', 'image', 'columnheader', 'heading'} <= seen, name, seen)


def names_cannot_leave_their_place(program, browser, folder):
    scenario = pathlib.Path(folder, 'odd.yaml')
    evil = '</script><script>window.broken=1</script><img src=x onerror=alert(1)>&\\"'
    scenario.write_text((ROOT / RUN[1]).read_text())
    text = re.sub(r'^name:.*$', lambda _: f'name: "{evil}"', scenario.read_text(), flags=re.M)
    scenario.write_text(text)
    page = opened(browser, written(program, folder, 'run', str(scenario)))
    check(page.value('window.broken') is None, 'a script ran')
    check(page.value('document.querySelectorAll("img").length') == 0, 'an image')
    check(page.problems == [], page.problems)
    check('<img src=x' in page.value('document.querySelector("h2").textContent'))


def the_picture_in_the_readme_is_the_programs(program, browser, folder):
    command = re.search(r'`ddpsim (run \S+) --svg (docs/\S+\.svg)`',
                        (ROOT / 'README.md').read_text())
    file = pathlib.Path(folder, 'picture.svg')
    subprocess.run([program, *command[1].split(), '--quiet', '--svg', str(file)], cwd=ROOT,
                   check=True)
    check(file.read_text() == (ROOT / command[2]).read_text(), command[2], 'is an older one')
    page = opened(browser, ROOT / command[2])
    check(page.value('document.documentElement.tagName') == 'svg', 'no picture')
    check(page.problems == [], page.problems)


CASES = {each.__name__.replace('_', ' '): each for each in (
    each_page_is_whole, pages_of_large_models_stay_small, table_picture_and_json_agree,
    exposed_buckets_are_drawn_as_the_table_says, predicted_stands_above_measured,
    hatched_is_what_is_exposed, tuning_shows_bound_default_and_advice,
    varied_keys_have_their_pictures, more_keys_have_selectors, no_label_is_cut,
    a_cut_label_is_found, each_page_prints_on_two, pages_begin_with_rate_cost_and_memory,
    hover_says_the_task, zoom_and_keys_work, texts_can_be_read,
    all_that_is_used_has_a_name, names_cannot_leave_their_place,
    the_picture_in_the_readme_is_the_programs)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--ddpsim', type=pathlib.Path)
    parser.add_argument('--list', action='store_true')
    parser.add_argument('--screenshots', type=pathlib.Path)
    parser.add_argument('case', nargs='?')
    given = parser.parse_args()
    if given.list:
        print('\n'.join(CASES))
        return 0
    if devtools.program() is None:
        print('NOT RUN: there is no Chromium')
        return 77
    program = str(given.ddpsim.resolve())
    scratch = tempfile.TemporaryDirectory(prefix='ddpsim-test-')
    with devtools.Browser() as browser, scratch as folder:
        if given.screenshots:
            given.screenshots.mkdir(parents=True, exist_ok=True)
            for name, arguments in documented():
                page = opened(browser, documented_page(program, folder, name, arguments))
                for scheme in ('light', 'dark'):
                    show_in(page, scheme)
                    page.screenshot(given.screenshots / f'{name}-{scheme}.png')
                page.print(given.screenshots / f'{name}.pdf')
            return 0
        for name in [given.case] if given.case else CASES:
            begin = time.monotonic()
            CASES[name](program, browser, folder)
            browser.close_pages()
            print(f'{name} holds: {time.monotonic() - begin:.1f} s')
    return 0


if __name__ == '__main__':
    sys.exit(main())
