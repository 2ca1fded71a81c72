"""A headless Chromium, driven by its DevTools protocol over a pipe: nothing but the browser and
Python is needed.

    with Browser() as browser:
        page = browser.open('http://127.0.0.1:8000/')
        page.value('document.title')
        page.problems          # errors of the console, exceptions, requests that failed
"""
import base64
import fcntl
import json
import os
import pathlib
import re
import select
import shutil
import subprocess
import tempfile
import time

# Parts of the page that reach beyond its window, so that the page scrolls sideways.
SCROLLS = '''(() => document.documentElement.scrollWidth <= innerWidth ? [] :
  [...document.querySelectorAll('body *')].filter(each => !each.closest('.drawn, .table') &&
    each.getBoundingClientRect().right > innerWidth + 1)
    .map(each => `${each.tagName} ${each.id || each.className}`).concat('the page'))()'''

# Texts of pictures that reach beyond the picture, by half a pixel at least.
CUT_LABELS = '''[...document.querySelectorAll('svg.ddpsim')]
  .filter(svg => svg.getBoundingClientRect().width > 0)
  .flatMap(svg => {
    const outer = svg.getBoundingClientRect();
    return [...svg.querySelectorAll('text')].filter(text => {
      const box = text.getBoundingClientRect();
      return text.textContent && (box.left < outer.left - .5 || box.right > outer.right + .5 ||
                                  box.top < outer.top - .5 || box.bottom > outer.bottom + .5);
    }).map(text => `${svg.getAttribute('aria-label').slice(0, 30)}: ${text.textContent}`);
  })'''

PROGRAMS = ('chromium', 'chromium-browser', 'google-chrome')


def program():
    """The browser of this machine; None if there is none."""
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


class Browser:
    def __init__(self, *flags):
        self.folder = tempfile.TemporaryDirectory(prefix='ddpsim-browser-')
        read_commands, self.commands = os.pipe()
        self.answers, write_answers = os.pipe()

        # Numbers above 4, so that neither end is overwritten on the way to its place.
        high_read = fcntl.fcntl(read_commands, fcntl.F_DUPFD, 20)
        high_write = fcntl.fcntl(write_answers, fcntl.F_DUPFD, 20)
        os.close(read_commands)
        os.close(write_answers)
        script = f'exec 3<&{high_read} 4>&{high_write} {high_read}<&- {high_write}>&-; exec "$@"'
        self.process = subprocess.Popen(
            ['bash', '-c', script, 'bash', program(), '--headless=new', '--no-sandbox',
             '--disable-gpu', '--disable-dev-shm-usage', '--no-first-run',
             '--disable-background-networking', '--remote-debugging-pipe',
             f'--user-data-dir={self.folder.name}', '--window-size=1400,1000', *flags,
             'about:blank'],
            pass_fds=(high_read, high_write), stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(high_read)
        os.close(high_write)
        self.buffer, self.next, self.events = b'', 0, []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.commands)
        os.close(self.answers)
        shutil.rmtree(self.folder.name, ignore_errors=True)

    def message(self, limit):
        """The next message of the browser; None if none comes within `limit` seconds."""
        end = time.monotonic() + limit
        while b'\0' not in self.buffer:
            ready, _, _ = select.select([self.answers], [], [], max(0, end - time.monotonic()))
            if not ready:
                return None
            some = os.read(self.answers, 1 << 20)
            if not some:
                raise RuntimeError('the browser has ended')
            self.buffer += some
        text, self.buffer = self.buffer.split(b'\0', 1)
        return json.loads(text)

    def ask(self, method, session=None, limit=60, **parameters):
        self.next += 1
        message = {'id': self.next, 'method': method, 'params': parameters}
        if session:
            message['sessionId'] = session
        data = json.dumps(message).encode() + b'\0'
        while data:
            data = data[os.write(self.commands, data):]
        end = time.monotonic() + limit
        while True:
            answer = self.message(end - time.monotonic())
            if answer is None:
                raise TimeoutError(f'{method}: no answer within {limit} s')
            if answer.get('id') == message['id']:
                if 'error' in answer:
                    raise RuntimeError(f'{method}: {answer["error"]["message"]}')
                return answer['result']
            if 'method' in answer:
                self.events.append(answer)

    def open(self, address):
        return Page(self, address)

    def close_pages(self):
        """What is open goes on to draw and to answer timers."""
        for target in self.ask('Target.getTargets')['targetInfos']:
            if target['type'] == 'page':
                self.ask('Target.closeTarget', targetId=target['targetId'])
        self.events.clear()


class Page:
    def __init__(self, browser, address):
        self.browser = browser
        target = browser.ask('Target.createTarget', url='about:blank')['targetId']
        self.session = browser.ask('Target.attachToTarget', targetId=target,
                                   flatten=True)['sessionId']
        for domain in ('Page', 'Runtime', 'Network', 'Log'):
            self.ask(f'{domain}.enable')
        self.ask('Page.navigate', url=address)
        self.wait_for('document.readyState === "complete"')

    def ask(self, method, **parameters):
        return self.browser.ask(method, self.session, **parameters)

    def value(self, expression):
        """What JavaScript makes of `expression`; promises are waited for."""
        answer = self.ask('Runtime.evaluate', expression=expression, returnByValue=True,
                          awaitPromise=True)
        if 'exceptionDetails' in answer:
            details = answer['exceptionDetails']
            raise RuntimeError(details.get('exception', {}).get('description', details['text']))
        return answer['result'].get('value')

    def wait_for(self, expression, limit=30):
        end = time.monotonic() + limit
        while not self.value(f'Boolean({expression})'):
            if time.monotonic() > end:
                raise TimeoutError(f'never true within {limit} s: {expression}')
            time.sleep(0.01)

    def press(self, key, code):
        """A key of the keyboard, such as ('ArrowRight', 39)."""
        for kind in ('rawKeyDown', 'keyUp'):
            self.ask('Input.dispatchKeyEvent', type=kind, key=key, code=key,
                     windowsVirtualKeyCode=code)

    def resize(self, width, height=1000):
        self.ask('Emulation.setDeviceMetricsOverride', width=width, height=height,
                 deviceScaleFactor=1, mobile=False)
        self.wait_for(f'innerWidth === {width}')
        # The page hears of it before the next frame, and draws its pictures anew then.
        self.value('new Promise(drawn => requestAnimationFrame(() => requestAnimationFrame(drawn)))'
                   '.then(() => 0)')

    def screenshot(self, file):
        picture = self.ask('Page.captureScreenshot', format='png', captureBeyondViewport=True)
        pathlib.Path(file).write_bytes(base64.b64decode(picture['data']))

    def print(self, file):
        """As a PDF on A4, without backgrounds, as browsers print. Returns the number of pages."""
        printed = self.ask('Page.printToPDF', paperWidth=8.27, paperHeight=11.69)
        data = base64.b64decode(printed['data'])
        pathlib.Path(file).write_bytes(data)
        return len(re.findall(rb'/Type */Page\b', data))

    def events(self, method):
        self.value('0')  # what has happened so far has come
        return [each['params'] for each in self.browser.events
                if each.get('sessionId') == self.session and each['method'] == method]

    @property
    def requests(self):
        """The addresses that the page has asked for."""
        return [each['request']['url'] for each in self.events('Network.requestWillBeSent')]

    @property
    def problems(self):
        """Errors of the console, exceptions, and requests that failed or were refused."""
        found = [each['exceptionDetails']['text'] for each in
                 self.events('Runtime.exceptionThrown')]
        found += [str(each['args']) for each in self.events('Runtime.consoleAPICalled')
                  if each['type'] in ('error', 'warning', 'assert')]
        found += [each['entry']['text'] for each in self.events('Log.entryAdded')
                  if each['entry']['level'] in ('error', 'warning')]
        found += [each['errorText'] for each in self.events('Network.loadingFailed')
                  if not each.get('canceled')]
        found += [f'{each["response"]["status"]} {each["response"]["url"]}'
                  for each in self.events('Network.responseReceived')
                  if each['response']['status'] >= 400]
        return found
