"""The pages that ddpsim writes and serves, held by axe-core, a checker that others wrote: names and
roles of all that is used, contrast of texts, order of headings, tables, landmarks."""
import contextlib
import importlib.util
import pathlib
import re
import shlex
import signal
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'tests/browser'))
import devtools  # of tests/browser

HOLDER = importlib.util.find_spec('axe_playwright_python')  # not imported: the script alone is used
if HOLDER is None:
    pytest.skip('axe-playwright-python is not installed', allow_module_level=True)
if devtools.program() is None:
    pytest.skip('there is no Chromium', allow_module_level=True)
SCRIPT = pathlib.Path(HOLDER.submodule_search_locations[0], 'axe.min.js')
RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'best-practice']
PAGES = re.findall(r'^ddpsim (.*) --report (\S+)\.html$',
                   (ROOT / 'docs/pages.md').read_text().replace('\\\n', ''), re.M)


@pytest.fixture(scope='module')
def browser():
    with devtools.Browser() as opened:
        yield opened


def violations(page):
    """What the checker finds, a line each, and how many checks passed: by every rule in the light
    scheme, and by the one that colours decide in the dark one."""
    page.value(SCRIPT.read_text() + '; 0')
    light, passed = violations_of(page, 'light', RULES)
    dark, passed_dark = violations_of(page, 'dark', ['color-contrast'])
    return light + dark, passed + passed_dark


def violations_of(page, scheme, rules):
    page.ask('Emulation.setEmulatedMedia',
             features=[{'name': 'prefers-color-scheme', 'value': scheme}])
    found = page.value(f'axe.run(document, {{runOnly: {rules}}}).then(found => ({{'
                       'passed: found.passes.length, violations: found.violations.map(each =>'
                       '`${each.id}: ${each.help}: ${each.nodes.slice(0, 3).map('
                       'node => node.html.slice(0, 200)).join(" | ")}`)}))')
    return found['violations'], found['passed']


@pytest.mark.parametrize('arguments, name', PAGES, ids=[name for _, name in PAGES])
def test_a_page_passes(program, browser, tmp_path, arguments, name):
    file = tmp_path / f'{name}.html'
    words = shlex.split(arguments)
    briefly = ['--within', '5s'] if words[0] == 'validate' else []
    subprocess.run([program, *words, *briefly, '--quiet', '--report', file], cwd=ROOT,
                   check=True)
    found, passed = violations(browser.open(file.as_uri()))
    assert found == []
    assert passed > 10


def test_the_checker_sees_what_is_wrong(browser, tmp_path):
    file = tmp_path / 'bad.html'
    file.write_text('<!doctype html><html><body><img src="data:,"><button></button></body></html>')
    found, _ = violations(browser.open(file.as_uri()))
    assert {each.split(':')[0] for each in found} >= {'image-alt', 'button-name', 'html-has-lang'}


@contextlib.contextmanager
def explored(program):
    process = subprocess.Popen([program, 'explore', ROOT / 'scenarios/examples/first.yaml'],
                               text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        yield process.stdout.readline().strip()
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(10)
        process.stdout.close()


def test_the_page_of_explore_passes(program, browser):
    with explored(program) as address:
        page = browser.open(address)
        page.wait_for('window.ddpsimExplore?.answer && !ddpsimExplore.busy')
        found, passed = violations(page)
    assert found == []
    assert passed > 10
