"""The Python that a plan prints wraps a model in the installed torch so that it sends what was
planned."""
import json
import pathlib

import pytest
from describe_models import torch

import ddpsim

pytest.importorskip('torch', minversion='2.13')
transformers = pytest.importorskip('transformers')

from fully_shard_record import on_mesh, ranks, recorded_step  # noqa: E402
from shard_models import sent_by_ddpsim  # noqa: E402
from test_jobs import END, on_two_ranks  # noqa: E402

SIZES = {'layers': 4, 'd_model': 64, 'd_ff': 128, 'heads': 4, 'vocabulary': 128, 'positions': 32}


@pytest.fixture
def scenario(tmp_path):
    """A small GPT-2 on two nodes of two GPUs."""
    def made(nodes=2, **more):
        path = tmp_path / 'scenario.yaml'
        path.write_text(json.dumps({
            'workload': {'model': {'base': 'gpt2', **SIZES}, 'batch': 2, 'sequence': 16,
                         'compute': 'bf16'},
            'cluster': {'device': 'h100-sxm', 'nodes': nodes, 'ranks_per_node': 2,
                        'intra_node': 'nvlink4', 'inter_node': 'ib-ndr'},
            **more}))
        return str(path)
    return made


MODEL = """
import torch, transformers
torch.manual_seed(1)
model = transformers.GPT2LMHeadModel(transformers.GPT2Config(
    vocab_size=128, n_embd=64, n_inner=128, n_layer=4, n_head=4, n_positions=32))
tokens = torch.randint(0, 128, (2, 16))

def loss(model, batch):
    return model(input_ids=batch, labels=batch).loss
"""


def a_model():
    names = {}
    exec(MODEL, names)
    return names['model'], names['tokens'], names['loss']


def wrapped(code, model):
    """What the code does, on processors."""
    exec(code.replace('"cuda"', '"cpu"'), {'model': model})


def of_step(scenario, step):
    """The scenario as the step of a plan has it."""
    return ddpsim.load(scenario, set={**step.set, 'compare': '[fsdp]'})


@pytest.mark.parametrize('units, replicate', [
    (None, 1), (None, 2), (['transformer.h.*.attn', 'transformer.h.*.mlp'], 2),
    (['transformer.h.0+transformer.h.1', 'transformer.h.2+transformer.h.3', 'transformer.ln_f'], 1),
    (['transformer.h.0+transformer.h.1+transformer.h.2', 'transformer.h.3+transformer.ln_f'], 1)])
def test_the_code_of_a_plan_sends_what_is_planned(units, replicate, scenario, tmp_path):
    training = {'replicate': replicate, **({'units': units} if units else {})}
    path = scenario(training=training)
    plan = ddpsim.plan(path, strategies='fsdp', batches=2,
                       set={'training.reshard_after_forward': 'auto'} if units else None)
    # With autocast and mixed, and with replicas mixed; checkpoints or none; resharding or not.
    assert len(plan) == (6 if replicate == 1 else 4) * (1 if units else 2)
    for step in plan:
        model, batch, loss = a_model()
        with ranks(4):
            wrapped(step.code, model)
            sent = recorded_step(model, batch, loss).sent
        file = tmp_path / 'planned.yaml'
        file.write_text(json.dumps(of_step(path, step)))
        planned = sent_by_ddpsim(str(file))
        # Units of several modules have names of their own.
        has_checkpoints = step.set.get('workload.activation_checkpointing') == 'full'
        # Units inside checkpoints are gathered in another order (docs/sharding.md).
        is_inside = has_checkpoints and units is not None and units[0].endswith('attn')
        in_order = sorted if is_inside else list
        assert in_order((kind, size, str(type)) for kind, _, size, type in sent) == in_order(
            (kind, size, str(type)) for kind, _, size, type in planned)
        wrappers = [name for name, module in model.named_modules()
                    if type(module).__name__.endswith('CheckpointWrapper')]
        assert len(wrappers) == (4 if has_checkpoints else 0)


def test_the_keyword_arguments_of_a_plan_send_what_is_planned(scenario, tmp_path):
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
    path = scenario()
    plan = ddpsim.plan(path, strategies=['fsdp'], batches=[2],
                       set={'workload.activation_checkpointing': 'none'})
    assert plan.units == tuple((f'transformer.h.{i}',) for i in range(4))
    assert {'mesh' in step.fully_shard_kwargs for step in plan} == {True, False}
    for step in plan:
        outside = step.fully_shard_kwargs
        assert outside.get('mesh') in (None, {'replicate': 2, 'shard': 2})
        model, batch, loss = a_model()
        with ranks(4):
            keywords = step.fully_shard_kwargs
            if 'mesh' in keywords:
                assert keywords['mesh'] is step.fully_shard_kwargs['mesh']
                assert keywords['mesh'] == on_mesh(2, 2)
            assert isinstance(keywords.get('mp_policy', MixedPrecisionPolicy()),
                              MixedPrecisionPolicy)
            for names in plan.units:
                fully_shard([model.get_submodule(name) for name in names], **keywords)
            fully_shard(model, **keywords)
            sent = recorded_step(model, batch, loss).sent
        file = tmp_path / 'planned.yaml'
        file.write_text(json.dumps(of_step(path, step)))
        assert sent == sent_by_ddpsim(str(file))
    assert plan.fully_shard_kwargs == plan.best.fully_shard_kwargs


def test_what_is_no_fsdp_has_no_keyword_arguments(scenario):
    plan = ddpsim.plan(scenario(), strategies='bucketed', batches='1,2')
    assert plan.code == '' and {step.strategy for step in plan} == {'bucketed'}
    with pytest.raises(ValueError, match='the strategy is bucketed'):
        plan.best.fully_shard_kwargs
    assert plan.cheapest.record['cost_place'] == 1


def test_a_zero_of_a_plan_has_what_its_project_takes(scenario):
    plan = ddpsim.plan(scenario(), strategies='zero2', batches=[2])
    assert all('"zero_optimization": {' in step.code for step in plan)
    assert all(('"bf16": {"enabled": true}' in step.code) == ('training.mp_policy' in step.set)
               for step in plan)
    assert any('training.mp_policy' in step.set for step in plan)
    with pytest.raises(ValueError, match='the strategy is zero2'):
        plan.best.fully_shard_kwargs


def test_where_nothing_fits_a_plan_is_empty_and_says_so(scenario):
    path = scenario(name='large')
    plan = ddpsim.plan(path, gpus=2, batches=1000000, strategies='bucketed')
    assert len(plan) == 0 and plan.rows()
    with pytest.raises(LookupError, match='no combination fits'):
        plan.best
    with pytest.raises(ddpsim.InputError, match='--gpus 3'):
        ddpsim.plan(path, gpus=3)
    with pytest.raises(ddpsim.InputError, match='gpus: expected a whole number'):
        ddpsim.plan(path, gpus=[2.5])


@pytest.mark.parametrize('training', [
    {}, {'mp_policy': {'param_dtype': 'bf16'}, 'replicate': 2, 'reshard_after_forward': True}])
def test_what_tune_recommends_sends_what_is_predicted(training, scenario, tmp_path):
    from torch.distributed.fsdp import fully_shard
    path = scenario(training={'strategy': 'fsdp', **training})
    plan = ddpsim.tune(path, noise=0)
    assert plan.pays and plan.ddp_kwargs == {} and plan.bound_ms <= plan.step_ms
    assert len(plan.rows()) == plan.record['evaluated']
    assert 'fully_shard(model' in repr(plan) and plan.report().endswith(plan.code)
    advised = plan.record['advised_sharding']
    sent = []
    for wrap_by_code in (False, True):
        model, batch, loss = a_model()
        with ranks(4):
            if wrap_by_code:
                wrapped(plan.code, model)
            else:
                for names in plan.units:
                    fully_shard([model.get_submodule(name) for name in names],
                                **plan.fully_shard_kwargs)
                fully_shard(model, **plan.fully_shard_kwargs)
            sent.append([(kind, size, type) for kind, _, size, type
                         in recorded_step(model, batch, loss).sent])
    keys = ('reshard_after_forward', 'replicate', 'reduce_scatter_max_input_buffers',
            'separate_reduce_scatter_group')
    file = tmp_path / 'tuned.yaml'
    file.write_text(json.dumps(ddpsim.load(path, set={
        'compare': '[fsdp]', 'training.units': ['+'.join(names) for names in plan.units],
        **{f'training.{key}': advised[key] for key in keys}})))
    planned = [(kind, size, type) for kind, _, size, type
               in sent_by_ddpsim(str(file))]
    assert sent == [planned, planned]
    assert ddpsim.run(str(file))['fsdp'].step_ms == plan.step_ms


def test_tune_of_buckets_has_no_arguments_for_fully_shard(scenario):
    plan = ddpsim.tune(scenario())
    assert plan.code == '' and plan.units == ()
    with pytest.raises(ValueError, match='the strategy is not fsdp'):
        plan.fully_shard_kwargs


RANK = """
import json, os, sys
sys.path.insert(0, sys.argv[1])
import torch
import torch.distributed as dist
from fully_shard_record import recorded_step

dist.init_process_group("gloo")
for code in sys.argv[2:]:
    exec(open("model.py").read())
    exec(open(code).read())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    before = loss(model, tokens).item()
    for _ in range(3):
        loss(model, tokens).backward()
        optimizer.step()
        optimizer.zero_grad()
    after = loss(model, tokens).item()
    record = recorded_step(model, tokens, loss)
    if dist.get_rank() == 0:
        print(json.dumps({"sent": [[kind, unit, size, str(type)] for kind, unit, size, type
                                   in record.sent], "losses": [before, after]}))
dist.destroy_process_group()
"""


def test_the_code_trains_on_two_ranks_of_gloo(scenario, tmp_path):
    path = scenario(nodes=1)
    plan = ddpsim.plan(path, strategies='fsdp', batches=2)
    tried = list({tuple(sorted(step.set.items())): step for step in plan}.values())[:2]
    files = [f'code{i}.py' for i in range(len(tried))]
    for file, step in zip(files, tried):
        (tmp_path / file).write_text(step.code)
    (tmp_path / 'model.py').write_text(MODEL)
    (tmp_path / 'train.py').write_text(RANK + END)
    said, _ = on_two_ranks(tmp_path, 'train.py', str(pathlib.Path(__file__).parent), *files)
    records = [json.loads(line) for line in said.splitlines() if line.startswith('{')]
    assert len(records) == len(tried) == 2
    for step, record in zip(tried, records):
        file = tmp_path / 'planned.yaml'
        file.write_text(json.dumps(of_step(path, step)))
        assert record['sent'] == [[kind, unit, size, str(type)] for kind, unit, size, type
                                  in sent_by_ddpsim(str(file))]
        before, after = record['losses']
        assert after < before


def counted_products(model, batch, loss):
    """How often a step multiplies matrices, forward and backward."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Counter(TorchDispatchMode):
        products = 0

        def __torch_dispatch__(self, operation, types, arguments=(), keywords=None):
            self.products += operation is torch.ops.aten.mm.default
            return operation(*arguments, **(keywords or {}))

    with Counter() as counter:
        loss(model, batch).backward()
    return counter.products


def test_code_of_selective_checkpoints_runs_every_second_product_again(tmp_path):
    layers, sizes = 3, {'layers': 3, 'd_model': 64, 'd_ff': 128, 'heads': 4, 'vocabulary': 128}
    path = tmp_path / 'llama.yaml'
    path.write_text(json.dumps({
        'workload': {'model': {'family': 'llama', **sizes}, 'batch': 2, 'sequence': 16},
        'cluster': {'system': 'dgx-h100'}}))

    def products(checkpoints):
        plan = ddpsim.plan(str(path), strategies='fsdp', batches=2,
                           set={'workload.activation_checkpointing': checkpoints})
        torch.manual_seed(1)
        model = transformers.LlamaForCausalLM(transformers.LlamaConfig(
            vocab_size=128, hidden_size=64, intermediate_size=128, num_hidden_layers=layers,
            num_attention_heads=4, num_key_value_heads=4))
        tokens = torch.randint(0, 128, (2, 16))
        with ranks(2):
            wrapped(plan.best.code, model)
            return counted_products(model, tokens, lambda model, batch: model(
                input_ids=batch, labels=batch, use_cache=False).loss)

    plain = products('none')
    # Nothing needs what the last of a block's seven products gives. Of the others the first, third
    # and fifth are kept.
    assert products('full') == plain + 6 * layers
    assert products('selective') == plain + 3 * layers
