#!/usr/bin/env python3
"""A grid of scenarios as rows, and predictions held against measured runs. `pip install .` first.
"""
# %%
import pathlib

import ddpsim

scenario = {'workload': {'model': 'bert-large', 'batch': 8, 'sequence': 128},
            'cluster': {'device': 'v100', 'nodes': 1, 'ranks_per_node': 8,
                        'intra_node': 'nvlink2', 'inter_node': 'ethernet-100g'},
            'compare': ['bucketed']}
grid = ddpsim.sweep(scenario, {'cluster.nodes': [1, 2, 4, 8],
                               'training.bucket_cap': ['5 MiB', '25 MiB', '100 MiB']})
for row in grid.rows():                                 # pandas.DataFrame(grid.rows())
    print(row['cluster.nodes'], row['training.bucket_cap'], row['step_ms'])

# %% Files with a `measured` part are scored.
measured = sorted((pathlib.Path(__file__).parents[2] / 'measured').glob('*.yaml'))
if measured:                                            # in the source tree
    score = ddpsim.score(measured)
    print(f'{len(score.rows())} rows, median error {100 * score.median_error:.1f} %')
