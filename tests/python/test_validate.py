"""What runs real ranks: needs two free processors, and takes long on a busy machine."""
import ddpsim


def test_validate_runs_real_ranks(tmp_path):
    scenario = {'workload': {'model': {'family': 'mlp', 'widths': [64, 64, 64]}, 'batch': 4,
                             'optimizer': 'sgd'},
                'cluster': {'device': 'generic-cpu', 'ranks_per_node': 2, 'launch': 'sync',
                            'intra_node': {'latency': '25 us', 'bandwidth': '2 GB/s'}},
                'compare': ['bucketed']}
    held = ddpsim.validate(scenario, backend='threads', ranks=2, steps=3, warm_up=1, repeats=1)
    assert held.record['format'] == 'ddpsim.validate/1'
    (row,) = [row for row in held.rows() if row['strategy'] == 'bucketed']
    (result,) = [each for each in held.record['results'] if each['strategy'] == 'bucketed']
    assert row['measured_step_ms'] > 0
    assert row['error'] == result['error']['step_ms']
