"""Objects are answered as files are, and as the program answers."""
import csv
import json
import subprocess

import pytest

import ddpsim


def printed(program, *arguments):
    done = subprocess.run([program, *map(str, arguments), '--json', '-'], capture_output=True,
                          text=True, check=True)
    return json.loads(done.stdout)


@pytest.mark.parametrize('file', ['examples/first.yaml', 'examples/own-profile.yaml',
                                  'seeds/cs336-xl-2xh100.yaml'])
def test_run_says_what_the_program_says(program, scenarios, file):
    result = ddpsim.run(scenarios / file)
    assert result.record == printed(program, 'run', scenarios / file)
    # A file's keys as an object, paths in it and all.
    assert ddpsim.run(ddpsim.load(scenarios / file)).record == result.record


def test_records_have_the_notes(program, scenarios):
    first, idle = scenarios / 'examples/first.yaml', {'cluster.inter_node': 'ib-hdr'}
    flag, said = ('--set', 'cluster.inter_node=ib-hdr'), 'inter_node has no effect'
    run = ddpsim.run(first, set=idle)
    assert run.record == printed(program, 'run', first, *flag)
    tuned = ddpsim.tune(first, set=idle)
    assert tuned.record == printed(program, 'tune', first, *flag)
    swept = ddpsim.sweep(first, {'workload.batch': [1, 2]}, set=idle)
    assert swept.record == printed(program, 'sweep', first, *flag, '--vary', 'workload.batch=1,2')
    for answer in (run, tuned, swept):
        assert answer.record['notes'] == list(answer.notes) and len(answer.notes) == 1
        assert answer.notes[0].startswith(said)
    varied = ddpsim.vary(first, {'workload.batch': [1, 2]}, set=idle)
    assert varied.record == printed(program, 'run', first, *flag, '--vary', 'workload.batch=1,2')
    for record in varied.record:
        assert len(record['notes']) == 1 and record['notes'][0].startswith(said)


def test_run_with_all_that_can_be_asked(program, scenarios):
    file = scenarios / 'seeds/cs336-xl-2xh100.yaml'
    result = ddpsim.run(file, set={'compare': ['bucketed'], 'training.bucket_cap': '50 MiB'},
                        steps=3, run_ahead=True, ddp_statistics=True, why=True)
    assert result.record == printed(program, 'run', file, '--set', 'compare=[bucketed]', '--set',
                                    'training.bucket_cap=50MiB', '--steps', 3, '--run-ahead',
                                    '--ddp-statistics', '--why')


def test_run_has_figures_as_fields(scenarios):
    result = ddpsim.run(scenarios / 'examples/first.yaml')
    assert result.ranks == 8 and len(result) == 4
    assert [each.strategy for each in result] == ['naive', 'flat', 'overlap', 'bucketed']
    bucketed = result['bucketed']
    assert bucketed.record['step_ms'] == bucketed.step_ms == result.rows()[3]['step_ms']
    assert bucketed.step_low_ms < bucketed.step_high_ms
    assert bucketed.step_high_ms == bucketed.record['step_high_ms']
    assert bucketed.known_from == 'laws'
    assert result.best.step_ms == min(each.step_ms for each in result)
    assert sum(bucket.bytes for bucket in bucketed.buckets) == 497759232  # 124439808 numbers
    assert bucketed.label == 'bucketed, 1+25 MiB'
    assert bucketed.record['mfu'] == result.rows()[3]['mfu'] > 0
    with pytest.raises(KeyError, match='"none"; there are: naive, flat, overlap, bucketed'):
        result['none']
    with pytest.raises(AttributeError):
        result.ranks = 1  # frozen


def test_run_prints_as_the_program_does(program, scenarios):
    result = ddpsim.run(scenarios / 'examples/first.yaml')
    lines = repr(result).splitlines()
    assert len(lines) <= 24 and any(line.startswith('bucketed, 1+25 MiB') for line in lines)
    text = subprocess.run([program, 'run', scenarios / 'examples/first.yaml'], capture_output=True,
                          text=True, check=True, env={'COLUMNS': '100'}).stdout
    assert result.report() == text


def test_a_notebook_gets_a_table_and_a_timeline(scenarios):
    result = ddpsim.run(scenarios / 'examples/first.yaml')
    page = result._repr_html_()
    assert page.count('<svg') == page.count('</svg>') == 1
    # A bar for each pass (forward, backward, optimizer) of four steps, one for each bucket, and
    # four of the legend.
    buckets = sum(len(each.buckets) for each in result)
    assert page.count('<rect') == 4 * 3 + buckets + 4
    assert f'{result["bucketed"].step_ms:.2f} ms' in page and 'bucketed, 1+25 MiB' in page
    named = ddpsim.run(scenarios / 'examples/first.yaml', set={'name': '<b>&'})
    assert '&lt;b&gt;&amp;' in named._repr_html_() and '<b>&<' not in named._repr_html_()


def test_trace_opens_as_chromes(scenarios):
    trace = json.loads(ddpsim.run(scenarios / 'examples/first.yaml', trace=True).trace)
    assert {event['ph'] for event in trace['traceEvents']} >= {'X', 'M'}
    assert ddpsim.run(scenarios / 'examples/first.yaml').trace is None


def test_schedule_sweep_score_and_vary_say_what_the_program_says(program, scenarios, tmp_path):
    first = scenarios / 'examples/first.yaml'
    assert ddpsim.schedule(first).record == printed(program, 'schedule', first)
    assert ddpsim.schedule(first, steps=3).record == printed(program, 'schedule', first, '--steps',
                                                             3)
    swept = ddpsim.sweep(first, {'training.bucket_cap': '1MiB..64MiB*8',
                                 'cluster.ranks_per_node': [2, 4]})
    assert swept.record == printed(program, 'sweep', first, '--vary',
                                   'training.bucket_cap=1MiB..64MiB*8', '--vary',
                                   'cluster.ranks_per_node=2,4')
    assert len(swept.rows()) == 3 * 2 * 4
    measured = sorted((scenarios / 'measured').glob('damek-*.yaml'))
    scored = ddpsim.score(measured, calibrate_on=['naive'])
    assert scored.record == printed(program, 'score', *measured, '--calibrate-on', 'naive')
    assert 0 < scored.median_error < scored.worst_error
    assert ddpsim.score(measured[0]).rows()[0]['file'] == str(measured[0])
    varied = ddpsim.vary(first, {'training.comm_hook': ['none', 'fp16_compress']})
    assert varied.record == printed(program, 'run', first, '--vary',
                                    'training.comm_hook=none,fp16_compress')


def test_a_refused_point_says_why(small):
    swept = ddpsim.sweep(small, {'cluster.nodes': [1, 2], 'training.micro_batches': [1, 2]},
                         set={'training.bucket_cap': '1 MiB', 'compare': ['bucketed']})
    assert [row['error'] for row in swept.rows()] == [None] * 4
    refused = ddpsim.sweep({**small, 'training': {'strategy': 'bucketed'}},
                           {'training.micro_batches': [1, 2],
                            'training.parameter_groups': [1, 1000]})
    assert len(refused.rows()) == 2 * 4 + 2  # there are fewer parameters than groups
    assert sum('some would be empty' in (row['error'] or '') for row in refused.rows()) == 2


def test_a_varied_run_keeps_the_points_that_are_not_refused(small):
    asked = {**small, 'training': {'strategy': 'bucketed'}, 'compare': ['bucketed']}
    axes = {'training.parameter_groups': [1, 2, 3, 1000]}
    varied = ddpsim.vary(asked, axes)
    errors = [row['error'] for row in varied.rows()]
    assert len(errors) == 4 and errors[:3] == [None] * 3 and 'some would be empty' in errors[3]
    assert '1 of 4 points are refused' in varied.notes[-1]
    with pytest.raises(ddpsim.InputError, match='some would be empty'):
        ddpsim.vary(asked, {'training.parameter_groups': [1000]})


def test_the_best_come_first(program, scenarios):
    first = scenarios / 'examples/first.yaml'
    axes = {'training.bucket_cap': ['1 MiB', '25 MiB', '200 MiB']}
    varied = ddpsim.vary(first, axes, best='exposed', set={'compare': ['bucketed']})
    exposed = [row['exposed_ms'] for row in varied.rows()]
    assert len(set(exposed)) == 3 and exposed == sorted(exposed)
    assert 'sorted by exposed' in varied.report()
    assert 'sorted by mfu, the highest first' in ddpsim.sweep(first, axes, best='mfu').report()
    with pytest.raises(ddpsim.InputError, match='fastest'):
        ddpsim.vary(first, axes, best='fastest')


def test_a_run_has_what_the_flags_of_the_command_write(program, scenarios, tmp_path):
    first = scenarios / 'examples/first.yaml'
    asked = {'set': {'compare': ['bucketed']}, 'cluster': 'dgx-h100'}
    result = ddpsim.run(first, scaling=16, hooks=True, page=True, **asked)
    log = tmp_path / 'hooks.json'
    record = printed(program, 'run', first, '--cluster', 'dgx-h100', '--set', 'compare=[bucketed]',
                     '--scaling', 16, '--hooks-log', log)
    assert result.record == record
    curve = result['bucketed'].record['scaling']
    assert [row['ranks'] for row in curve] == [1, 2, 4, 8, 16]
    assert list(result.hooks) == json.loads(log.read_text())['hooks']
    assert result.page.startswith('<!') and '<svg' in result.page
    assert ddpsim.run(first).hooks is None
    result.save(tmp_path / 'rows.csv')
    with open(tmp_path / 'rows.csv', encoding='utf-8', newline='') as file:
        rows = list(csv.DictReader(file))
    assert [float(row['step_ms']) for row in rows] == [result['bucketed'].step_ms]


def test_lists_are_those_of_the_program(program):
    for kind in ('models', 'devices', 'links', 'clusters', 'strategies', 'hooks', 'results'):
        listing = getattr(ddpsim, 'list_' + kind)()
        assert listing.rows() == printed(program, 'list', kind)
        assert len(listing) == len(listing.names()) > 0
    assert 'h100-sxm' in ddpsim.list_devices().names()
    assert [row['backend'] for row in ddpsim.list_backends()] == ['gloo', 'threads', 'nccl']


def test_keys_are_explained():
    assert ddpsim.explain('training.bucket_cap').startswith('training.bucket_cap\n')
    assert ddpsim.schema()['type'] == 'object' or '$ref' in ddpsim.schema()
