"""Files with one fault each, by what is wrong: (format, text)."""

SCENARIO = """\
name: a small one
workload:
  model: resnet18
  batch: 8
  dtype: fp32
cluster:
  device: h100-sxm
  ranks_per_node: 2
  intra_node: nvlink4
training:
  bucket_cap: 25 MiB
  hooks:
    - clip: {layer: "*", norm: 1.0}
compare: [naive, flat]
"""
PROFILE = """\
format: ddpsim.workload/1
source: a test
forward: 6 ms
backward: 10 ms
parameters:
  - {name: 0.weight, shape: [64, 32], ready: 9 ms}
  - {name: 0.bias, shape: [64], dtype: bf16, ready: 4 ms}
"""
LINK = """\
format: ddpsim.link/1
kind: pcie
ranks: 2
all_reduce:
  - {bytes: 4096, time: 600 us}
  - {bytes: 1 MiB, time: 2 ms}
"""
DEVICE = """\
source: a test
multiprocessors: 132
memory_bandwidth: 3350 GB/s
peak: {fp32: 66.9 TFLOP/s}
"""
MODEL = """\
family: gpt2
layers: 2
d_model: 64
d_ff: 256
heads: 4
vocabulary: 100
positions: 32
"""


CALIBRATION = """\
format: ddpsim.calibration/1
cpu: a CPU, 2 cores
complete: true
ranks: 2
synchronous: true
launch: {kernel: 0 us, collective: 9 us}
slowest_rank: 1.05
tasks:
  - {operation: forward, gemm: [64, 256, 128, 1], traffic: 786432 B, type: fp32, time: 830 us,
    repeats: 40}
  - {operation: copy in, traffic: 2 MB, time: 200 us}
all_reduce:
  - {bytes: 4 KiB, time: 60 us}
interference:
  - {bytes: 4 MiB, compute_slowdown: 1.1, communication_slowdown: 0.95}
end: ddpsim.calibration/1
"""
DESCRIPTION = '''\
format: ddpsim.workload/2
source: by hand
batch: 8
kernels:
  - {op: mm, kind: gemm, gemm: {m: 8, n: 64, k: 32}, read: 9216, written: 2048}
  - {op: add, kind: memory, read: 2304, written: 2048, launches: 2}
layers:
  - {name: a, forward: [[0, 2], 1], backward: [0, 1], kept: 4096}
parameters:
  - {name: a.weight, shape: [64, 32], layer: 0, after: 0}
'''
HOST = '''\
format: ddpsim.host/1
source: measured
measured: {add: 1.5 us, view: 1 us, linear: 4 us, layer_norm: 5 us, conv2d: 9 us}
factor: 1.2
'''
OPERATIONS = '''\
format: ddpsim.operations/1
device: a card
operations:
  - {gemm: {m: 8, n: 64, k: 32}, type: fp32, read: 9216, written: 2048, time: 4 us}
  - {pattern: {of: softmax, rows: 8, columns: 64}, read: 2048, written: 2048, time: 3 us}
'''
CLUSTER = '''\
device: h100-sxm
ranks_per_node: 2
intra_node: nvlink4
'''
WHOLE = {'scenario': SCENARIO, 'workload': PROFILE, 'description': DESCRIPTION, 'link': LINK,
         'device': DEVICE, 'model': MODEL, 'calibration': CALIBRATION, 'cluster': CLUSTER,
         'host': HOST, 'operations': OPERATIONS}


def scenario(line, instead):
    return 'scenario', SCENARIO.replace(line, instead)


def training(line):
    return scenario('  bucket_cap: 25 MiB\n', f'  {line}\n')


def profile(line, instead):
    return 'workload', PROFILE.replace(line, instead)


def description(line, instead):
    assert line in DESCRIPTION
    return 'description', DESCRIPTION.replace(line, instead)


def link(line, instead):
    return 'link', LINK.replace(line, instead)


def device(line, instead):
    return 'device', DEVICE.replace(line, instead)


def cluster(line, instead):
    return 'cluster', CLUSTER.replace(line, instead)


def model(line, instead):
    return 'model', MODEL.replace(line, instead)


def calibration(line, instead):
    return 'calibration', CALIBRATION.replace(line, instead)


CASES = {
    # Keys.
    'an unknown key': scenario('  dtype: fp32', '  dytpe: fp32'),
    'an unknown key at the root': scenario('name: a small one', 'title: a small one'),
    'an unknown key in flow style': scenario(
        'compare:', 'measured: {rows: [{strategy: naive, step: 5 ms, tme: 1}]}\ncompare:'),
    "another program's key": training('gradient_accumulation_steps: 4'),
    'a missing key': scenario('  batch: 8\n', ''),
    'a missing key of a row': scenario('compare:',
                                       'measured: {rows: [{strategy: naive}]}\ncompare:'),
    'no cluster': ('scenario', 'workload: {model: resnet18, batch: 8}\n'),
    'ranks without a link': scenario('  intra_node: nvlink4\n', ''),
    'nodes without a link': scenario('  ranks_per_node: 2', '  nodes: 2'),
    'no device': scenario('  device: h100-sxm\n', ''),
    'a hook of nothing': scenario('{layer: "*", norm: 1.0}', '{norm: 1.0}'),
    'buckets and bucket_caps': training('bucket_caps: [1 MiB]\n  buckets: [[a]]'),
    'iteration and phase': training('phase: first\n  iteration: 2'),
    'two hooks in one entry': scenario('- clip: {layer: "*", norm: 1.0}',
                                       '- {clip: {layer: "*", norm: 1.0}, record: {layer: "*"}}'),
    # Quantities.
    'a size without its unit': training('bucket_cap: 25'),
    'a size in a unit of time': training('bucket_cap: 25 ms'),
    'a size of zero': training('bucket_cap: 0 MiB'),
    'a negative size': training('bucket_cap: -1 MiB'),
    'a size in a list without its unit': training('bucket_caps: [1 MiB, 4]'),
    'a rate without its unit': scenario('intra_node: nvlink4',
                                        'intra_node: {latency: 5 us, bandwidth: 450}'),
    'a latency without its unit': scenario('intra_node: nvlink4',
                                           'intra_node: {latency: 5, bandwidth: 450 GB/s}'),
    'a time of zero': scenario('  dtype: fp32', '  times: {forward: 0 ms}'),
    'a flop rate without its unit': scenario('device: h100-sxm',
                                             'device: {base: h100-sxm, peak: {fp32: 67}}'),
    # Numbers, truth values, names.
    'a count of zero': scenario('batch: 8', 'batch: 0'),
    'a count that is a word': scenario('batch: 8', 'batch: eight'),
    'a count beyond its range': scenario('ranks_per_node: 2', 'ranks_per_node: 2000'),
    'a fraction of a rank': scenario('ranks_per_node: 2', 'ranks_per_node: 2.5'),
    'a number below its range': scenario(
        '  ranks_per_node: 2', '  interference: {compute_slowdown: 0.5}\n  ranks_per_node: 2'),
    'yes for true': training('no_sync: yes'),
    'a name that nobody knows': training('strategy: bucketd'),
    'a name in a list': scenario('[naive, flat]', '[naive, falt]'),
    'tf32 in memory': scenario('dtype: fp32', 'dtype: tf32'),
    'a device that nobody knows': scenario('device: h100-sxm', 'device: h1000'),
    'a family of several devices': scenario('device: h100-sxm', 'device: A100'),
    'a comm hook that nobody knows': training('comm_hook: fp16_compres'),
    # Shapes.
    'a list in place of a number': scenario('batch: 8', 'batch: [8]'),
    'a name in place of a list': scenario('[naive, flat]', 'naive'),
    'a number in place of a mapping': scenario('''  model: resnet18
  batch: 8
  dtype: fp32
''', '  5\n'),
    'an empty list': scenario('[naive, flat]', '[]'),
    'an empty text': scenario('name: a small one', "name: ''"),
    'nothing at all': scenario('batch: 8', 'batch:'),
    'settings of a comm hook without any': training('comm_hook: {fp16_compress: {rank: 1}}'),
    'a setting of a comm hook out of range': training('comm_hook: {powersgd: {rank: 0}}'),
    'a step of a comm hook that nobody knows': training('comm_hook: [{cast: fp8}, all_reduce]'),
    # A model written out.
    'a family that nobody knows': scenario('model: resnet18', 'model: {family: gpt3}'),
    'a key of another family': scenario('model: resnet18',
                                        'model: {family: mlp, widths: [8, 8], classes: 10}'),
    'a family without its keys': scenario('model: resnet18', 'model: {family: mlp}'),
    # Files of other formats.
    'a profile of another version': profile('ddpsim.workload/1', 'ddpsim.workload/3'),
    'a profile without its forward pass': profile('forward: 6 ms\n', ''),
    'a parameter without a name': profile('name: 0.weight, ', ''),
    'a parameter that is never ready': profile(', ready: 9 ms', ''),
    'a shape of zero': profile('[64, 32]', '[64, 0]'),
    'a profile with a key more': profile('source: a test', 'batch: 8'),
    'a profile that was cut off': profile('source: a test', 'written_by: ddpsim 0.1.0'),
    'a kernel of a kind that nobody knows': description('kind: memory', 'kind: copy'),
    'a kernel without its bytes': description(', read: 9216', ''),
    'a product without a column': description('n: 64, ', ''),
    'a kernel three times over': description('[0, 2]', '[0, 2, 2]'),
    'a gradient that is nowhere complete': description(', after: 0', ''),
    'a description with a key more': description('source: by hand', 'forward: 6 ms'),
    'a description without its batch': description('batch: 8\n', ''),
    'a calibration that was cut off': calibration('end: ddpsim.calibration/1\n', ''),
    'a calibration of another version': calibration('format: ddpsim.calibration/1',
                                                    'format: ddpsim.calibration/2'),
    'a task that nobody knows': calibration('operation: copy in', 'operation: copy_in'),
    'a task without its time': calibration('traffic: 2 MB, time: 200 us', 'traffic: 2 MB'),
    'a matrix product of three extents': calibration('[64, 256, 128, 1]', '[64, 256, 128]'),
    'a slowdown beyond what can be': calibration('communication_slowdown: 0.95',
                                                 'communication_slowdown: 1e9'),
    'a part of no link': scenario('intra_node: nvlink4', 'intra_node: {carries: 0.7}'),
    'a part of no device': scenario('device: h100-sxm', 'device: {memory: 96 GB}'),
    "a part of no link in a cluster's file": cluster('nvlink4', '{nics: 4}'),
    "a part of a system's link with a key more": (
        'cluster', 'system: dgx-h100\nnodes: 2\ninter_node: {nisc: 4}\n'),
    "a part of a system's link out of range": (
        'cluster', 'system: dgx-h100\nnodes: 2\ninter_node: {nics: 0}\n'),
    'a link of another kind': link('kind: pcie', 'kind: pci'),
    'a table without times': link('{bytes: 4096, time: 600 us}', '{bytes: 4096}'),
    'an empty table': ('link', 'all_reduce: []\n'),
    'a link of nothing': ('link', 'kind: pcie\n'),
    'a device without a peak': device('peak: {fp32: 66.9 TFLOP/s}\n', ''),
    'a device without its multiprocessors': device('multiprocessors: 132\n', ''),
    'a number format that no device has': device('fp32: 66.9', 'fp64: 66.9'),
    'an efficiency beyond 1': device('multiprocessors: 132',
                                     'multiprocessors: 132\nmemory_efficiency: 1.5'),
    'a model without its layers': model('layers: 2\n', ''),
    'a model with a key more': model('heads: 4', 'heads: 4\nblocks: [1, 2]'),
    'a host without a factor': ('host', HOST.replace('factor: 1.2\n', '')),
    'a host beyond what can be': ('host', HOST.replace('1.2', '1000')),
    'an operation of nothing': ('operations', OPERATIONS.replace('gemm: {m: 8, n: 64, k: 32}, ',
                                                                 '')),
    'an operation without a time': ('operations', OPERATIONS.replace(', time: 4 us', '')),
    'a table of no device': ('operations', OPERATIONS.replace('device: a card\n', '')),
}
