#!/usr/bin/env python3
"""How long will a step take, and what if the cluster were another? `pip install .` first.

Each part below is a cell of a notebook; there, the last line of a cell shows a table and a
timeline.
"""
# %% A scenario is a dict, or the path of a file.
import ddpsim

scenario = {
    'name': 'GPT-2 on eight A100',
    'workload': {'model': 'gpt2', 'batch': 8, 'sequence': 1024, 'dtype': 'fp32', 'compute': 'tf32',
                 'optimizer': 'adamw'},
    'cluster': {'device': 'a100-40', 'ranks_per_node': 8, 'intra_node': 'nvlink3'},
}
result = ddpsim.run(scenario)
print(result)

# %% Figures are fields with their units; all there is to know is in `record`.
bucketed = result['bucketed']
print(f'\n{bucketed.step_ms:.1f} ms, of which {bucketed.exposed_ms:.1f} ms are exposed '
      f'communication in {len(bucketed.buckets)} buckets')

# %% Rows are dicts: pandas.DataFrame(result.rows()).
for row in result.rows():
    print(row['strategy'], row['step_ms'], row['bound'])

# %% The same on other devices.
for device in ('a100-80', 'h100-sxm', 'b200'):
    elsewhere = ddpsim.run(scenario, set={'cluster.device': device, 'compare': ['bucketed']})
    print(f'{device:10} {elsewhere.best.step_ms:8.1f} ms')

# %% What exposes each bucket, and what would remove it.
why = ddpsim.run(scenario, set={'compare': ['bucketed']}, why=True)
print(why.report()[-600:])
