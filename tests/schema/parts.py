"""Files of which a part stands elsewhere, by what they are: (format, text, flags). The program
takes each: a scenario as it is, a cluster with --cluster, beside a scenario of its own."""

WORKLOAD = 'workload: {model: resnet18, batch: 8}\n'
# Lines of one rank of two nodes of two; NCCL does not name the GPUs.
NCCL_LOG = ''.join(f'node-1:4000:5000 [0] NCCL INFO {line}\n' for line in (
    'NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.0.0.1<0>',
    '=== System : maxBw 370.8 totalBw 370.8 ===',
    'CPU/0 (1/2/-1)',
    '+ PCI[24.0] - GPU/1A000 (0)',
    '              + NVL[370.8] - NVS/0',
    '+ PCI[24.0] - NIC/1B000',
    '              + NET[50.0] - NET/0 (0/1/50.000000)',
    'comm 0x50 rank 0 nRanks 4 nNodes 2 localRanks 2 localRank 0 MNNVL 0',
    'Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM',
))


def beside_system(keys):
    return 'scenario', WORKLOAD + f'cluster: {{system: dgx-h100, nodes: 2, {keys}}}\n', ()


CASES = {
    'the NICs of a system': beside_system('inter_node: {nics: 4}'),
    'what the links of a system carry': beside_system('intra_node: {carries: 0.7}'),
    'another network for a system': beside_system(
        'inter_node: {kind: ethernet, bandwidth: 100 Gbit/s}'),
    'the device of a system': beside_system('device: {memory: 96 GB}'),
    'a factor beside a system': beside_system('host: {factor: 1.2}'),
    'another link of a system': beside_system('inter_node: {base: ib-hdr, latency: 9 us}'),
    'a link that changes an entry': (
        'scenario', WORKLOAD + 'cluster: {device: h100-sxm, ranks_per_node: 2, '
                               'intra_node: {base: nvlink4, carries: 0.7}}\n', ()),
    'a file over a system': ('cluster', 'system: dgx-h100\ninter_node: {nics: 4}\n', ()),
    'a cluster without a device': (
        'cluster', 'nodes: 2\nranks_per_node: 2\nintra_node: nvlink4\ninter_node: ib-ndr\n',
        ('--device', 'h100-sxm')),
    'a cluster without links': (
        'cluster', 'device: h100-sxm\nranks_per_node: 2\n', ('--link', 'nvlink4')),
}
