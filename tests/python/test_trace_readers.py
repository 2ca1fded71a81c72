"""The traces that --trace writes, read by what others read PyTorch's own traces with."""
import gzip
import json
import pathlib
import subprocess

import pytest

SEED = 'seeds/cs336-xl-2xh100.yaml'
STRATEGIES = {'naive': 'naive', 'flat': 'flat', 'overlap': 'overlap',
              'bucketed': 'bucketed-1+25-MiB', 'fsdp': 'fsdp'}
pytest.importorskip('hta', reason='HolisticTraceAnalysis is not installed')


@pytest.fixture(scope='session')
def traces(program, scenarios, tmp_path_factory):
    """Of every strategy of the seed scenario, a folder with a file for each rank."""
    folder = tmp_path_factory.mktemp('traces')
    subprocess.run([program, 'run', scenarios / SEED, '--quiet', '--trace', f'{folder}/',
                    '--set', f'compare=[{", ".join(STRATEGIES)}]'], check=True)
    return folder


def said(file: pathlib.Path):
    """What ddpsim says itself of the rank that a file shows."""
    ranks = json.loads(gzip.decompress(file.read_bytes()))['ddpsim']['ranks']
    assert len(ranks) == 1
    return ranks[0]


@pytest.mark.one_in(2)
@pytest.mark.parametrize('strategy', STRATEGIES)
@pytest.mark.parametrize('rounding', ['rounded to microseconds', 'not rounded'])
def test_holistic_trace_analysis_finds_our_overlap(traces, strategy, rounding, monkeypatch):
    from hta.trace_analysis import TraceAnalysis
    monkeypatch.setenv('HTA_DISABLE_NS_ROUNDING', '01'[rounding == 'not rounded'])
    folder = traces / STRATEGIES[strategy]
    found = TraceAnalysis(trace_dir=str(folder)).get_comm_comp_overlap(visualize=False)
    assert list(found['rank']) == [0, 1]
    for rank, percentage in zip(found['rank'], found['comp_comm_overlap_pctg']):
        ours = 100 * said(folder / f'rank{rank}.json.gz')['busy_overlap']
        assert percentage == pytest.approx(ours, abs=0.5)
        # The strategies that overlap do so, and the others do not.
        if strategy == 'fsdp':  # the root is gathered before all else, and scattered behind it
            assert 60 < ours < 100
        else:
            assert ours > 90 if strategy in ('overlap', 'bucketed') else ours == 0


def test_holistic_trace_analysis_finds_steps_and_launches(traces):
    from hta.trace_analysis import TraceAnalysis
    folder = traces / STRATEGIES['bucketed']
    analysis = TraceAnalysis(trace_dir=str(folder))
    trace = analysis.t
    names = trace.symbol_table.get_sym_table()
    for rank in trace.get_ranks():
        events = trace.get_trace(rank)
        kernels = events[events['stream'] > 0]
        # Every kernel was launched in the one step there is.
        assert (kernels['index_correlation'] > 0).all()
        assert set(kernels['iteration']) == {2}
        steps = [names[name] for name in events['name'] if names[name].startswith('ProfilerStep')]
        assert steps == ['ProfilerStep#2']
    # Where the time goes: it says what we say of the slowest rank, whose step is the job's.
    parts = analysis.get_temporal_breakdown(visualize=False).set_index('rank').loc[1]
    step_us = 1e3 * said(folder / 'rank1.json.gz')['step_ms']
    assert float(parts['kernel_time(us)']) == pytest.approx(step_us, rel=0.005)


def test_holistic_trace_analysis_finds_gathers_and_reduce_scatters(traces):
    """On streams of their own, of which none runs two kernels at a time."""
    from hta.trace_analysis import TraceAnalysis
    analysis = TraceAnalysis(trace_dir=str(traces / STRATEGIES['fsdp']))
    kernels = analysis.get_gpu_kernel_breakdown(visualize=False)[1]
    sent = kernels[kernels['kernel_type'] == 'COMMUNICATION']['name']
    assert {name.split('_')[1] for name in sent} == {'AllGather', 'ReduceScatter'}
    names = analysis.t.symbol_table.get_sym_table()
    streams = {}
    for rank in analysis.t.get_ranks():
        events = analysis.t.get_trace(rank)
        for stream, mine in events[events['stream'] > 0].groupby('stream'):
            mine = mine[[names[name].startswith(('nccl', 'at::')) for name in mine['name']]]
            for name in mine['name']:
                if names[name].startswith('ncclDevKernel'):
                    streams.setdefault(names[name].split('_')[1], set()).add(stream)
            mine = mine.sort_values('ts')
            ends = (mine['ts'] + mine['dur']).shift()
            assert not (mine['ts'] < ends - 1).any()  # rounded to microseconds
    assert len(streams['AllGather']) == len(streams['ReduceScatter']) == 1
    assert streams['AllGather'] != streams['ReduceScatter']
