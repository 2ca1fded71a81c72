#!/usr/bin/env python3
"""The server of `ddpsim explore`, over real sockets: what it answers, and whom it refuses.

    server_test.py --ddpsim PROGRAM [CASE]
    server_test.py --list

Exit code: 0; 1 if something is wrong.
"""
import argparse
import concurrent.futures
import contextlib
import json
import pathlib
import re
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SCENARIO = '''# A comment.
workload: {model: gpt2, batch: 2, sequence: 256, dtype: bf16, optimizer: adamw-fused}
cluster: {device: h100-sxm, nodes: 2, ranks_per_node: 4, intra_node: nvlink4, inter_node: ib-ndr}
'''


def check(true, *said):
    if not true:
        raise AssertionError(' '.join(map(str, said)))


class Served:
    """A page that is served, and requests to it."""

    def __init__(self, program, scenario, *flags):
        self.process = subprocess.Popen([program, 'explore', str(scenario), *flags], text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.address = self.process.stdout.readline().strip()
        match = re.fullmatch(r'http://(127\.0\.0\.1:(\d+))/([0-9a-f]{32})/', self.address)
        check(match, 'no address:', self.address)
        self.host, self.port, self.token = match[1], int(match[2]), match[3]

    def connect(self, limit=20):
        return socket.create_connection(('127.0.0.1', self.port), timeout=limit)

    def raw(self, data, limit=20):
        """What the server sends to `data`, until it closes: (status, headers, body)."""
        with self.connect(limit) as client:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                client.sendall(data)
            return parsed(everything(client))

    def ask(self, name='', method='GET', body=b'', path=None, **headers):
        lines = {'Host': self.host, 'Connection': 'close'}
        if method == 'POST':
            lines |= {'Origin': f'http://{self.host}', 'Content-Type': 'application/json'}
        if body or method == 'POST':
            lines['Content-Length'] = str(len(body))
        lines |= {key.replace('_', '-'): value for key, value in headers.items()}
        target = f'/{self.token}/{name}' if path is None else path
        head = f'{method} {target} HTTP/1.1\r\n' + ''.join(
            f'{key}: {value}\r\n' for key, value in lines.items() if value is not None)
        return self.raw(head.encode() + b'\r\n' + body)

    def answer(self, content, name='answer'):
        status, _, body = self.ask(name, 'POST', json.dumps(content).encode())
        check(status == 200, status, body[:200])
        return json.loads(body)

    def end(self, how=signal.SIGINT):
        """The exit code, and how long the end took."""
        begin = time.monotonic()
        self.process.send_signal(how)
        code = self.process.wait(20)
        for stream in (self.process.stdout, self.process.stderr):
            stream.close()
        return code, time.monotonic() - begin


def everything(client):
    data = b''
    with contextlib.suppress(ConnectionResetError):
        while some := client.recv(1 << 20):
            data += some
    return data


def parsed(data):
    head, _, body = data.partition(b'\r\n\r\n')
    lines = head.decode().split('\r\n')
    if not lines[0]:
        return 0, {}, b''
    headers = {key.lower(): value for key, _, value in (line.partition(': ') for line in lines[1:])}
    return int(lines[0].split()[1]), headers, body


@contextlib.contextmanager
def served(program, text=SCENARIO, *flags):
    with tempfile.TemporaryDirectory(prefix='ddpsim-test-') as folder:
        file = pathlib.Path(folder, 'mine.yaml')
        file.write_text(text)
        site = Served(program, file, *flags)
        site.file = file
        try:
            yield site
        finally:
            if site.process.poll() is None:
                code, took = site.end()
                check(code == 0 and took < 1, 'ended with', code, 'after', took)


def run(program, *arguments):
    out = subprocess.run([program, 'run', *map(str, arguments), '--quiet', '--json', '-'],
                         check=True, text=True, capture_output=True).stdout
    record = json.loads(out)
    for result in record['results']:
        del result['buckets']
    return record


def pages(program):
    """The page and its parts, with headers that keep them to this server."""
    with served(program) as site:
        for name, kind in (('', 'text/html'), ('explore.css', 'text/css'),
                           ('explore.js', 'text/javascript'), ('page.js', 'text/javascript'),
                           ('controls', 'application/json')):
            status, headers, body = site.ask(name)
            check(status == 200 and body and headers['content-type'].startswith(kind), name, status)
            check("default-src 'none'" in headers['content-security-policy'], headers)
            check(headers['cache-control'] == 'no-store', headers)
            check(headers['referrer-policy'] == 'no-referrer', headers)
            check(headers['x-content-type-options'] == 'nosniff', headers)
            check('access-control-allow-origin' not in headers, headers)
        site.host = f'localhost:{site.port}'
        check(site.ask()[0] == 200, 'localhost is refused')


def answers(program):
    """The record is that of `ddpsim run --json` with the settings, to the bit."""
    moves = [{}, {'bucket_cap': '50 MiB'}, {'first_bucket_cap': '256 KiB'}, {'nodes': '8'},
             {'ranks_per_node': '1', 'nodes': '1'}, {'batch': '16'}, {'skew': '0 %'},
             {'inter_bandwidth': '7 GB/s', 'inter_latency': '50 us'}, {'intra_link': 'pcie4'},
             {'inter_link': 'ethernet-100g', 'inter_latency': '0 us'},
             {'comm_hook': '{powersgd: {rank: 2}}', 'bucket_cap': '12345 B'}]
    with served(program, SCENARIO, '--set', 'training.micro_batches=2') as site:
        for moved in moves + moves[:1]:  # whose first tasks are forgotten by then
            question = {'moved': moved, 'shown': ['bucketed']}
            tasks = site.answer(question, 'tasks')
            answer = site.answer(question)
            check('error' not in answer, moved, answer.get('error'))
            settings = [['training.micro_batches', '2'], *answer['settings']]
            flags = [word for key, value in settings for word in ('--set', f'{key}={value}')]
            check(run(program, site.file, *flags) == answer['record'], moved)
            words = shlex.split(answer['command'])
            check(words[:3] == ['ddpsim', 'run', str(site.file)] and words[3:] == flags, words)
            check(answer['picture'].startswith('<svg'), answer['picture'][:40])
            check(answer['frame'].items() <= tasks.items(), answer['frame'])
            check(site.answer(question, 'tasks') == tasks, moved, 'has other tasks')
            step = next(each['step_ms'] for each in answer['record']['results']
                        if each['strategy'] == 'bucketed')
            check(abs(tasks['end'] * tasks['tick_ns'] / 1e6 - step) < 1e-3, tasks['end'], step)
            lanes = {lane['label'] for lane in tasks['lanes']}
            check({'host', 'compute'} <= lanes, lanes)
            check(('communication' in lanes) == (answer['record']['ranks'] > 1), moved, lanes)
        check(site.answer({'moved': {}, 'shown': []})['record'] ==
              site.answer({'moved': {}})['record'], 'the record depends on what is drawn')


CHANGED_SYSTEM = ('system: dgx-h100\nintra_node: {latency: 9 us}\n'
                  'inter_node: {kind: ethernet, bandwidth: 100 Gbit/s}\n')


def links(program):
    """Links that the file writes out, and those that a ready cluster brings, can be moved too."""
    with tempfile.TemporaryDirectory(prefix='ddpsim-test-') as folder:
        system = pathlib.Path(folder, 'site.yaml')
        system.write_text(CHANGED_SYSTEM)
        links_with(program, system)


def links_with(program, system):
    for cluster in (f'{{system: {system}, nodes: 2}}',
                    '{device: a100-40, nodes: 2, ranks_per_node: 2, '
                    'intra_node: {latency: 5 us, bandwidth: 100 GB/s}, '
                    'inter_node: {base: ib-hdr, nics: 1}}',
                    '{system: dgx-h100, nodes: 2}', 'dgx-h100'):
        text = re.sub(r'cluster: .*', f'cluster: {cluster}', SCENARIO)
        with served(program, text) as site:
            given = site.answer({'moved': {}})['positions']
            for moved in ({'intra_bandwidth': '20 GB/s'}, {'inter_latency': '30 us', 'nodes': '4'},
                          {'intra_latency': '20 us', 'inter_bandwidth': '3 GB/s', 'nodes': '2'}):
                answer = site.answer({'moved': moved})
                check('error' not in answer, cluster, moved, answer.get('error'))
                flags = [word for key, value in answer['settings']
                         for word in ('--set', f'{key}={value}')]
                check(run(program, site.file, *flags) == answer['record'], cluster, moved)
                for control, value in moved.items():
                    check(answer['positions'][control]['text'] == value, control, answer)
                for control in {'intra_bandwidth', 'intra_latency',
                                'inter_bandwidth', 'inter_latency'} - moved.keys():
                    check(answer['positions'][control]['text'] == given[control]['text'],
                          control, cluster, moved, answer['positions'][control])


def unequal_nodes(program):
    """Nodes that differ stay as they are, unless a ready system, whose nodes do not, is chosen."""
    text = re.sub(r'nodes: 2, ranks_per_node: 4', 'ranks_per_node: [4, 2]', SCENARIO)
    with served(program, text) as site:
        given = site.answer({'moved': {}})
        for control in ('nodes', 'ranks_per_node'):
            check('the nodes differ' in given['positions'][control]['unavailable'], given)
            check('the nodes differ' in site.answer({'moved': {control: '2'}})['error'], control)
        chosen = site.answer({'moved': {'system': 'dgx-h100'}})
        check(chosen['positions']['nodes']['unavailable'] == '', chosen['positions'])
        moved = site.answer({'moved': {'system': 'dgx-h100', 'nodes': '4', 'ranks_per_node': '2'}})
        check('error' not in moved, moved.get('error'))
        check(moved['record']['cluster']['nodes'] == 4, moved['record']['cluster'])
        check(moved['record']['cluster']['ranks_per_node'] == 2, moved['record']['cluster'])


def bad_values(program):
    """Each is refused with one line, and nothing of it becomes a setting."""
    with served(program) as site:
        for content, said in (
                ({'moved': {'bucket_cap': '50'}}, 'bucket cap: expected a size'),
                ({'moved': {'bucket_cap': '-1 MiB'}}, 'bucket cap: expected a size'),
                ({'moved': {'bucket_cap': '9999999 GiB'}}, 'bucket cap: expected a size'),
                ({'moved': {'bucket_cap': '1 MiB, strategy: flat'}}, 'bucket cap: expected a size'),
                ({'moved': {'nodes': '0'}}, 'nodes: expected a whole number'),
                ({'moved': {'nodes': '1e9'}}, 'nodes: expected a whole number'),
                ({'moved': {'skew': '101 %'}}, 'skew of ranks: expected a share'),
                ({'moved': {'inter_link': '/etc/passwd'}}, 'expected one of its choices'),
                ({'moved': {'comm_hook': '{plugin: x}'}}, 'expected one of its choices'),
                ({'moved': {'workload.model': '/etc/passwd'}}, 'there is no such control'),
                ({'moved': {'batch': 4}}, 'expected {"moved"'),
                ({'moved': []}, 'expected {"moved"'),
                ({'moved': {}, 'more': 1}, 'expected {"moved"'), ([], 'expected {"moved"'),
                ({'moved': {}, 'shown': ['nosuch']}, 'expected {"moved"'),
                ({'moved': {}, 'shown': 'bucketed'}, 'expected {"moved"')):
            for name in ('answer', 'tasks', 'save'):
                answer = site.answer(content, name)
                check(list(answer) == ['error'] and said in answer['error'] and
                      '\n' not in answer['error'], content, answer)
        for body in (b'', b'{', b'\xff\xfe', b'[' * 10000, b'{"moved":' * 1000, b'null'):
            status, _, text = site.ask('answer', 'POST', body)
            check(status == 200 and 'error' in json.loads(text), body[:20], status)
        check([each.name for each in site.file.parent.iterdir()] == ['mine.yaml'], 'it was saved')
        check('error' not in site.answer({'moved': {}}), 'it answers no more')


def strangers(program):
    """Wrong hosts, origins, tokens, methods and types; none learns anything."""
    with served(program) as site:
        port = site.port
        for host in ('evil.example', f'evil.example:{port}', '127.0.0.1', f'127.0.0.1:{port + 1}',
                     f'[::1]:{port}', None):
            check(site.ask(Host=host)[0] == 403, 'Host', host)
            check(site.ask('answer', 'POST', b'{"moved": {}}', Host=host)[0] == 403, host)
        twice = f'GET /{site.token}/ HTTP/1.1\r\nHost: {site.host}\r\nHost: {site.host}\r\n' \
                'Connection: close\r\n\r\n'
        check(site.raw(twice.encode())[0] in (400, 403), 'two hosts')
        for origin in ('http://evil.example', 'null', f'https://{site.host}',
                       f'http://127.0.0.1:{port + 1}', f'http://localhost:{port}'):
            check(site.ask(Origin=origin)[0] == 403, 'Origin', origin)
            check(site.ask('save', 'POST', b'{"moved": {}}', Origin=origin)[0] == 403, origin)
        check(site.ask('save', 'POST', b'{"moved": {}}', Origin=None)[0] == 403, 'no origin')
        token = site.token
        other = ('0' if token[0] != '0' else '1') + token[1:]
        for path in ('/', '/favicon.ico', f'/{other}/', f'/{token[:-1]}/', f'/{token}0/',
                     f'//{token}/', f'/{token}', f'/?{token}/', f'http://{site.host}/{token}/'):
            status, _, body = site.ask(path=path)
            check(status == 403 and token.encode() not in body, path, status)
        for path in ('..', '../', '../../etc/passwd', '%2e%2e/%2e%2e/etc/passwd', 'mine.yaml',
                     'explore.js/', './explore.js', '/etc/passwd', 'explore.js?x', '\\..\\x',
                     'controls%00'):
            status, _, body = site.ask(path)
            check(status == 404 and b'root:' not in body, path, status)
        for method in ('POST', 'PUT', 'DELETE', 'OPTIONS', 'HEAD', 'TRACE'):
            check(site.ask('', method)[0] == 405, method)
        for method in ('GET', 'PUT', 'OPTIONS'):
            check(site.ask('save', method)[0] == 405, method)
        for kind in ('text/plain', 'application/x-www-form-urlencoded', None):
            check(site.ask('save', 'POST', b'{"moved": {}}', Content_Type=kind)[0] == 415, kind)
        check([each.name for each in site.file.parent.iterdir()] == ['mine.yaml'], 'it was saved')
        for place in local_addresses():
            with socket.socket() as client:
                client.settimeout(2)
                check(client.connect_ex((place, port)) != 0, place, 'is served too')


def local_addresses():
    """Of this machine, but for 127.0.0.1."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.connect(('192.0.2.1', 9))  # sends nothing
        if not client.getsockname()[0].startswith('127.'):
            yield client.getsockname()[0]
    yield '127.0.0.2'


def too_large(program):
    """Bodies, headers and request lines have bounds; the server goes on."""
    with served(program) as site:
        check(site.ask('answer', 'POST', b' ' * 20000)[0] == 413, 'a large body')
        head = f'POST /{site.token}/answer HTTP/1.1\r\nHost: {site.host}\r\n'
        check(site.raw(f'{head}Content-Length: 999999999999\r\n\r\n'.encode())[0] == 413, 'said so')
        chunks = b''.join(b'1000\r\n' + b'x' * 4096 + b'\r\n' for _ in range(8)) + b'0\r\n\r\n'
        check(site.raw(f'{head}Transfer-Encoding: chunked\r\n\r\n'.encode() + chunks)[0] == 413,
              'chunks')
        check(site.ask(Cookie='x' * 20000)[0] == 431, 'a large header')
        many = ''.join(f'X-{i}: y\r\n' for i in range(2000))
        check(site.raw(f'{head}{many}\r\n'.encode())[0] == 431, 'many headers')
        check(site.ask(path='/' + 'x' * 20000)[0] in (400, 431), 'a long target')
        for rubbish in (b'\x16\x03\x01\x02\x00\x01\x00\r\n\r\n', b'GET\r\n\r\n', b'\r\n' * 3000,
                        b'GET / HTTP/9.9\r\n\r\n', b'\0' * 100):
            check(site.raw(rubbish)[0] in (0, 400, 431), rubbish[:20])
        check(site.ask()[0] == 200, 'it answers no more')


def slow_clients(program):
    """Who dribbles its request is cut off in time, and others are answered meanwhile."""
    with served(program) as site:
        begin = time.monotonic()
        with site.connect(30) as slow:
            slow.settimeout(0.5)
            slow.sendall(f'GET /{site.token}/ HTTP/1.1\r\n'.encode())
            ended = False
            while not ended and time.monotonic() - begin < 20:
                try:
                    slow.sendall(b'X')
                    ended = slow.recv(100) == b''
                except TimeoutError:
                    check(site.ask()[0] == 200, 'others wait')
                except OSError:
                    ended = True
            took = time.monotonic() - begin
        check(ended and 8 < took < 15, 'a slow client was there for', took)


def many_connections(program):
    """A crowd of idle connections does not lock others out, nor make the server grow."""
    with served(program) as site:
        crowd = [site.connect() for _ in range(300)]
        begin = time.monotonic()
        check(site.ask()[0] == 200, 'nobody else is answered')
        check(time.monotonic() - begin < 5, 'others waited')
        files = list(pathlib.Path(f'/proc/{site.process.pid}/fd').iterdir())
        check(len(files) < 60, len(files), 'files are open')
        for client in crowd:
            client.close()
        body = json.dumps({'moved': {}, 'shown': []}).encode()
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            states = list(pool.map(lambda _: site.ask('answer', 'POST', body)[0], range(64)))
        check(states == [200] * 64, states)
        threads = list(pathlib.Path(f'/proc/{site.process.pid}/task').iterdir())
        check(len(threads) < 8, len(threads), 'threads')


def keeps_connections(program):
    """Several requests on one connection, one behind the other."""
    with served(program) as site, site.connect() as client:
        get = f'GET /{site.token}/explore.css HTTP/1.1\r\nHost: {site.host}\r\n'
        client.sendall(f'{get}\r\n{get}\r\n{get}Connection: close\r\n\r\n'.encode())
        check(everything(client).count(b'HTTP/1.1 200') == 3, 'not three answers')


def saving(program):
    """Shipped scenarios, saved: the file says what the page says. Nothing is written over."""
    for name in ('examples/first.yaml', 'seeds/cs336-xl-2xh100.yaml', 'seeds/hooks-demo-4.yaml'):
        text = (ROOT / 'scenarios' / name).read_text()
        if not re.search('^name:', text, re.M):
            text = f'name: mine\n{text}'
        with served(program, text) as site:
            # A link of that name would lead elsewhere.
            outside = site.file.with_name('outside')
            site.file.with_name('mine-explored.yaml').symlink_to(outside)
            moved = {'bucket_cap': '10 MiB'}
            if 'measured:' in text:
                refused = site.answer({'moved': moved | {'skew': '5 %'}}, 'save')
                check('measured rows' in refused.get('error', ''), refused)
            else:
                moved['skew'] = '5 %'
            saved = site.answer({'moved': moved}, 'save')
            check(saved.get('file') == str(site.file.with_name('mine-explored-2.yaml')), saved)
            check(run(program, saved['file']) == site.answer({'moved': moved})['record'], name)
            check(not outside.exists() and site.file.read_text().endswith(text), name)


def ends(program):
    """Ctrl-C and SIGTERM end it within a second with exit code 0, whatever is under way; so does
    --for. A port that is taken, and bad input, are told in one line."""
    for how in (signal.SIGINT, signal.SIGTERM):
        with served(program) as site:
            clients = [site.connect() for _ in range(20)]
            clients[0].sendall(b'GET ')
            body = json.dumps({'moved': {'nodes': '64'}}).encode()
            for client in clients[1:]:
                client.sendall(f'POST /{site.token}/answer HTTP/1.1\r\nHost: {site.host}\r\n'
                               f'Origin: http://{site.host}\r\nContent-Type: application/json\r\n'
                               f'Content-Length: {len(body)}\r\n\r\n'.encode() + body)
            code, took = site.end(how)
            check(code == 0 and took < 1, how, code, took)
            for client in clients:
                client.close()
    with served(program, SCENARIO, '--for', '500ms') as site:
        check(site.process.wait(5) == 0, 'another code')
    with served(program) as site:
        for flags, said, code in (
                (['--port', str(site.port)], 'Address already in use', 4),
                (['--port', '99999'], 'expected a whole number', 2),
                (['--for', 'soon'], 'expected a time', 2),
                (['--set', 'nosuch=1'], 'nosuch', 2), ([str(site.file)], 'one scenario', 2)):
            out = subprocess.run([program, 'explore', str(site.file), *flags], text=True,
                                 capture_output=True, timeout=20)
            check(out.returncode == code and said in out.stderr and out.stderr.count('\n') == 1 and
                  not out.stdout, flags, out)


CASES = {'pages': pages, 'answers': answers, 'links': links, 'unequal nodes': unequal_nodes,
         'bad values': bad_values,
         'strangers': strangers, 'too large': too_large, 'slow clients': slow_clients,
         'many connections': many_connections, 'keeps connections': keeps_connections,
         'saving': saving, 'ends': ends}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--ddpsim', default=str(ROOT / 'build/release/tools/ddpsim'))
    parser.add_argument('--list', action='store_true')
    parser.add_argument('case', nargs='?', choices=CASES)
    flags = parser.parse_args()
    if flags.list:
        print('\n'.join(CASES))
        return 0
    for name in [flags.case] if flags.case else CASES:
        begin = time.monotonic()
        CASES[name](flags.ddpsim)
        print(f'{name}: {time.monotonic() - begin:.1f} s')
    return 0


if __name__ == '__main__':
    sys.exit(main())
