"""describe(): from a model, a batch and a loss to the description of a training step."""
import contextlib
import json
from dataclasses import replace

import torch

from .. import _user_step
from . import collectives, sharded
from .capture import Capture, said_by_model
from .cuda import what_a_device_does
from .errors import DescribeError
from .fused import fuse
from .layers import Depth, cut
from .meta import OnMeta, batch_on_meta, model_on_meta
from .modules import Ran
from .operations import Recorder, cache_bytes
from .optimizers import name_of
from .releases import NEWEST, check_release
from .tensors import STORED, UNLIKE, shown_type, stored_as, tensors_in
from .transformers_models import without_padding
from .workload import Buffers, Frozen, FrozenParameter, Parameter, Workload


def describe(model, batch, loss=None, optimizer=None, *, autocast=None, attention=None,
             device='cuda', later_micro_batch=False, tf32=None, clip_gradients=False,
             allow_unknown=False, fused=False, measure=None, source=None, release=NEWEST, ranks=2):
    """Describes one training step of `model` on `batch`, on no device.

    loss: a function of (model, batch) that returns the number to call backward() on; or a loss of
    torch.nn, called with the model's output for batch[0] and with batch[1]; or None, where the
    model returns its loss itself (its output's `loss`, as in transformers).
    optimizer: an optimizer, its class or ddpsim's name; it is named, not run.
    autocast: 'bf16' or 'fp16', or torch's names of these: the step runs under autocast.
    attention: flash, efficient or math, instead of CUDA's own choice.
    device: 'cuda', or 'cpu' for what PyTorch runs on a CPU: no fused dropout, RMS norms of small
    kernels.
    later_micro_batch: not the first micro-batch of a step but a later one, which adds its
    gradients to those that are there.
    tf32: 'conv' (convolutions of fp32 numbers multiply in TF32: PyTorch's default on GPUs since the
    A100) or 'all' (matrix products too: set_float32_matmul_precision('high')). Left out: fp32.
    clip_gradients: the step clips gradients by the norm of all of them (clip_grad_norm_).
    allow_unknown: operations without a rule are priced by their bytes, and listed as partial.
    fused: a bound of what a compiler does: chains of kernels that only move memory read their
    first inputs and write their last results.
    release: of PyTorch whose choices are meant, '2.6', '2.11' or '2.13': which attention runs on
    GPUs that cuDNN has one for, and whether an RMS norm is one kernel. The torch that is installed
    only captures.
    measure: a function from the operations of the step (a list of operations.Operation) to the
    seconds that each takes; the kernels of an operation carry its time, shared by their bytes.

    ranks: of how many ranks a model sees itself as one, where it asks torch.distributed: what it
    sends itself (synchronised batch norms, losses that gather) is written down.

    A model that fully_shard wraps is described as it was before, and the keys of a scenario's
    `training` that shard it so are the description's `training`.

    The model is not changed. Raises DescribeError, whose text is one line.
    """
    check_release(release)
    autocast = autocast_type(autocast)
    notes = []
    compiled = compiled_parts(model, loss)
    model, batch = unwrapped(model, notes), batch_on_meta(batch)
    training = {}
    if sharded.is_sharded(model):
        training, said = sharded.training_of(model)
        notes += [f'fully_shard wraps the model: write `training: {flow(training)}`', *said]
        if autocast is None and (autocast := autocast_of(training)):
            notes.append('its passes are described under autocast to the type of parameters')
        model = sharded.plain(model)
    model = model_on_meta(model)
    batch = without_padding(model, batch, notes)
    value_of = loss_function(loss, notes)
    if measure and (device != 'cpu' or fused):
        raise DescribeError('measure: operations are measured on a CPU, and not fused')
    recorder = Recorder(cache_bytes()) if measure else None
    if tf32 not in (None, 'conv', 'all'):
        raise DescribeError(f'tf32: unknown choice "{tf32}"; known: conv, all')
    capture = Capture(model, allow_unknown, device, recorder, tf32, attention,
                      there=[*tensors_in(batch), *plain_tensors(model)])
    gradients = {p: p.grad for p in model.parameters()}
    try:
        with contextlib.ExitStack() as contexts:
            for context in (torch.random.fork_rng(devices=[]), torch.enable_grad(),
                            torch.compiler.set_stance('force_eager'), seen_compiled(compiled),
                            OnMeta(), collectives.one_of(ranks),
                            what_a_device_does(model, capture, device, attention, release,
                                               notes)):
                contexts.enter_context(context)
            torch.manual_seed(0)
            for parameter in model.parameters():
                parameter.grad = None
                if later_micro_batch and parameter.requires_grad:
                    parameter.grad = torch.empty_like(parameter)
            run(model, batch, value_of, capture, autocast, device)
    finally:
        for parameter, gradient in gradients.items():
            parameter.grad = gradient
    sent = collectives.in_words([each for each, _ in capture.step.collectives], ranks)
    notes += [sent] if sent else []
    notes += [unlike_note(*each) for each in capture.step.unlike.items()]
    if compiled:
        notes.append(f'torch.compile is not captured: {" and ".join(compiled)} described eager (a '
                     'compiler fuses kernels: fewer launches, fewer bytes; fused, or --fused, '
                     'bounds them)')
    if measure:
        with_times(capture.step, measure(recorder.operations))
    in_tf32(capture.step, tf32, notes, device)
    if device == 'cpu':
        notes.append('described as PyTorch runs on a CPU')
    if later_micro_batch:
        notes.append('a later micro-batch: gradients are added to those that are there')
    workload = assembled(model, batch, capture, optimizer, fused, notes, source)
    workload.clip_gradients = bool(clip_gradients)
    workload.release = release if device == 'cuda' else None
    workload.training = training
    return workload


def autocast_of(training):
    """Of a model that fully_shard casts to 16 bits: its description's passes are autocast's, which
    is what a scenario takes for those of mixed precision."""
    given = training.get('mp_policy', {}).get('param_dtype')
    return autocast_type(given) if given in ('bf16', 'fp16') else None


def flow(value):
    """Keys and values as YAML in one line."""
    if isinstance(value, dict):
        return '{' + ', '.join(f'{key}: {flow(each)}' for key, each in value.items()) + '}'
    if isinstance(value, list):
        return '[' + ', '.join(json.dumps(each) for each in value) + ']'
    return str(value).lower() if isinstance(value, bool) else str(value)


def autocast_type(given):
    """torch's name of it; None: no autocast."""
    types = {'bf16': torch.bfloat16, 'fp16': torch.float16}
    if given is None or given in types.values():
        return given
    if not isinstance(given, str) or given not in types:
        raise DescribeError(f"autocast: unknown type {given!r}; known: 'bf16', 'fp16'")
    return types[given]


def run(model, batch, value_of, capture, autocast, device):
    """Forward, then backward, under `capture`."""
    name = type(model).__name__
    with capture:
        try:
            with (torch.autocast(device, dtype=autocast) if autocast
                  else contextlib.nullcontext()):
                value = value_of(model, batch)
        except DescribeError:
            raise
        except Exception as problem:
            raise said_by_model(problem, capture, name) from problem
        if not isinstance(value, torch.Tensor) or value.numel() != 1:
            got = (f'a tensor of shape {list(value.shape)}' if isinstance(value, torch.Tensor)
                   else type(value).__name__)
            raise DescribeError(f'{name}: the loss has to be one number, a tensor to call '
                                f'backward() on; got {got}')
        if not value.requires_grad:
            raise DescribeError(f'{name}: the loss does not depend on any parameter of the model '
                                'that loss(model, batch) was given')
        capture.backward_begins()
        try:
            value.backward()
        except DescribeError:
            raise
        except Exception as problem:
            raise said_by_model(problem, capture, f'{name} (backward)') from problem


def with_times(step, seconds):
    """Every kernel with its share of its operation's time."""
    launches = step.forward + step.backward
    moved = {}
    for launch in launches:
        moved.setdefault(launch.operation, []).append(_weight(launch.kernel))
    for launch in launches:
        share = _weight(launch.kernel) / sum(moved[launch.operation])
        launch.kernel = replace(launch.kernel, time=share * seconds[launch.operation])


def _weight(kernel):
    return max(1, kernel.read + kernel.written)


def in_tf32(step, which, notes, device):
    """Products of fp32 numbers as tensor cores multiply them."""
    kinds = {None: (), 'conv': ('conv',), 'all': ('conv', 'gemm')}[which]
    changed = 0
    for launch in step.forward + step.backward:
        kernel = launch.kernel
        if kernel.kind in kinds and kernel.type == 'fp32' and kernel.tensor_cores:
            launch.kernel = replace(kernel, type='tf32')
            changed += 1
    if changed:
        notes.append(f'{changed} products of fp32 numbers are multiplied in TF32')
    elif which is None and device == 'cuda' and any(
            launch.kernel.kind == 'conv' and launch.kernel.type == 'fp32'
            for launch in step.forward):
        notes.append('convolutions of fp32 numbers: ddpsim multiplies in TF32 on GPUs that have '
                     'it, as PyTorch does')


def unlike_note(dtype, count):
    """A note on products in a format for which no device of the catalogue has a rate."""
    instead = ('one product of fp32 numbers' if UNLIKE[dtype] == 1
               else f'{UNLIKE[dtype]} real products of fp32 numbers')
    doubles = dtype in (torch.float64, torch.complex128)
    return (f'{count} products of {shown_type(dtype)} numbers priced as {instead}'
            + (', as fast as the tensor cores of an A100 or H100 have them; other devices take 2 '
               'to 64 times as long' if doubles else ''))


def is_compiled(function):
    """By torch.compile."""
    return hasattr(function, '_torchdynamo_orig_callable')


def compiled_parts(model, loss):
    """What of the step torch.compile is asked to compile, in words."""
    modules = sum(hasattr(module, '_orig_mod') or getattr(module, '_compiled_call_impl', None)
                  is not None or is_compiled(module.forward)
                  for module in (model.modules() if isinstance(model, torch.nn.Module) else ()))
    parts = [f'{modules} compiled {"module" if modules == 1 else "modules"}'] if modules else []
    return parts + (['the compiled loss'] if is_compiled(loss) else [])


@contextlib.contextmanager
def seen_compiled(parts):
    """Adds compiled functions that the step calls, where nothing else of it is compiled."""
    from torch._dynamo import eval_frame
    name = '_callback_from_stance'  # is asked at every call of what is compiled
    found = getattr(eval_frame, name, None)

    def asked(callback):
        if callback not in (None, False) and not parts:
            parts.append('compiled functions')
        return found(callback)
    if found:
        setattr(eval_frame, name, asked)
    try:
        yield
    finally:
        if found:
            setattr(eval_frame, name, found)


def unwrapped(model, notes):
    """The user's own module."""
    if not isinstance(model, torch.nn.Module):
        raise DescribeError(f'the model is a {type(model).__name__}, not a torch.nn.Module')
    while hasattr(model, '_orig_mod') or type(model).__name__ == 'DistributedDataParallel':
        model = model._orig_mod if hasattr(model, '_orig_mod') else model.module
    if not model.training:
        notes.append('the model is in evaluation mode: no dropout, batch norms keep statistics')
    return model


def loss_function(loss, notes):
    """loss as a function of (model, batch)."""
    return _user_step.loss_function(loss, notes, DescribeError)


def assembled(model, batch, capture, optimizer, fused, notes, source):
    """What was captured, as a Workload."""
    step = capture.step
    layers, places = cut(step, Depth(model), type(model).__name__)
    ran = None if fused else Ran(step, layers, places)
    ends = fuse(layers, step.completed, places) if fused else None
    if fused:
        notes.append('fused: of each chain of kernels that only move memory, the first reads and '
                     'the last writes count: a bound of what a compiler can save')
    sent = ([each for each, _ in step.collectives] if fused  # their places are among the unfused
            else collectives.placed(step.collectives, layers, places))
    parameters, arrival = parameters_of(model, step, places, ends, ran)
    forward_gemms = {}
    for layer in layers:
        for kernel in layer.forward + layer.backward:
            if kernel.kind != 'memory':
                forward_gemms[kernel.type] = forward_gemms.get(kernel.type, 0) + kernel.flops
    by_type = {}
    for parameter in model.parameters():
        if not parameter.requires_grad:
            continue
        key = stored_as('parameters', parameter.dtype)
        by_type[key] = by_type.get(key, 0) + parameter.numel()
    dtype = max(by_type, key=by_type.__getitem__) if by_type else 'fp32'
    compute = max(forward_gemms, key=forward_gemms.__getitem__) if forward_gemms else dtype
    samples, sequence = size_of(batch)
    optimizer = name_of(optimizer, notes)
    attention = max(step.used, key=step.used.get) if step.used else None
    if len(step.used) > 1:
        notes.append('attention of more than one kind: ' + ', '.join(
            f'{kind} x {count}' for kind, count in sorted(step.used.items())))
    if any(launch.kernel.op == 'aten._grouped_mm' and launch.kernel.operations == 1
           for launch in step.forward):
        notes.append('products of experts described as one kernel for all, as GPUs have it since '
                     'Hopper; others launch one for each')
    if any(p.sparse for p in parameters):
        notes.append('sparse gradients: every index of the batch is taken as a row of its own')
    return Workload(
        source=source or f'torch {torch.__version__.split("+")[0]}, meta device, '
                         f'{type(model).__name__}, batch {samples}',
        model=type(model).__name__, batch=samples, sequence=sequence, dtype=dtype,
        compute=None if compute == dtype else compute, optimizer=optimizer, attention=attention,
        layers=layers, parameters=parameters, arrival=arrival, buffers=buffers_of(model),
        frozen=frozen_of(model),
        frozen_parameters=frozen_parameters_of(model, layers, ran), inputs=inputs_of(batch),
        collectives=sent,
        notes=notes, partial=[f'{op} x {count}' for op, count in step.unpriced.items()])


def parameters_of(model, step, places, ends, ran):
    """Parameters, and the order in which their gradients are complete. `ran` is None where kernels
    are not those that were captured."""
    starts, at = {}, []  # index of every backward kernel in its layer
    for place in places:
        at.append(starts.get(place, 0))
        starts[place] = at[-1] + 1
    completed = {}
    for name, launches in step.completed:
        completed.setdefault(name, launches)
    parameters = []
    for name, parameter in model.named_parameters():
        if not parameter.requires_grad:
            continue
        shape, dtype = tuple(parameter.shape), stored_as(name, parameter.dtype)
        if name not in completed:
            parameters.append(Parameter(name, shape, dtype, unused=True))
            continue
        last = max(0, completed[name] - 1)
        rows = step.sparse_rows.get(name)
        forward, backward = ran.of(name, places[last], at[last]) if ran else (None, None)
        parameters.append(Parameter(name, shape, dtype, layer=places[last],
                                    after=ends[last] if ends else at[last],
                                    sparse=rows is not None, rows=rows or 0,
                                    forward=forward, backward=backward))
    index = {parameter.name: i for i, parameter in enumerate(parameters)}
    return parameters, [index[name] for name in completed]


def buffers_of(model):
    groups = {}
    for buffer in model.buffers():
        tensors, size = groups.get(buffer.dtype, (0, 0))
        groups[buffer.dtype] = tensors + 1, size + buffer.numel() * buffer.element_size()
    return [Buffers(*group) for group in groups.values()]


def plain_tensors(model):
    """Tensors that modules hold as plain attributes."""
    return [tensor for module in model.modules() for name, value in vars(module).items()
            if not name.startswith('_') for tensor in tensors_in(value)
            if tensor.layout is torch.strided]


def frozen_of(model):
    """What lives on the device and is neither trained nor broadcast, each piece of memory once."""
    seen = {_storage_of(t) for t in (*model.buffers(), *(p for p in model.parameters()
                                                         if p.requires_grad))}
    groups = {}
    for tensor in (*model.parameters(), *plain_tensors(model)):
        key = _storage_of(tensor)
        if key is None or key in seen or tensor.requires_grad and not tensor.is_leaf:
            continue
        seen.add(key)
        tensors, size = groups.get(tensor.dtype, (0, 0))
        groups[tensor.dtype] = tensors + 1, size + tensor.untyped_storage().nbytes()
    return [Frozen(*group) for group in groups.values() if group[1]]


def frozen_parameters_of(model, layers, ran):
    """Parameters that are not trained, a tied one once, of formats that ddpsim knows. Each is of
    the layer of the module that it is in, or of one around that."""
    def layer_of(name):
        covers = [(len(layer.name), index) for index, layer in enumerate(layers)
                  if name.startswith(layer.name + '.')]
        return max(covers, key=lambda each: (each[0], -each[1]))[1] if covers else 0

    def entries(name):
        return ran.of(name, layer_of(name)) if ran else (None, None)

    return [FrozenParameter(name, tuple(parameter.shape), stored_as(name, parameter.dtype),
                            layer_of(name), *entries(name))
            for name, parameter in model.named_parameters()
            if not parameter.requires_grad and parameter.dtype in STORED and parameter.numel() > 0]


def inputs_of(batch):
    """Bytes of a batch, each of whose tensors is moved to the device by itself."""
    return sum(t.numel() * t.element_size() for t in tensors_in(batch))


def _storage_of(tensor):
    return tensor.untyped_storage()._cdata if tensor.layout is torch.strided else None


def size_of(batch):
    """Samples, and tokens per sample where the batch holds rows of indices."""
    tensors = [t for t in tensors_in(batch) if t.dim() > 0]
    samples = tensors[0].shape[0] if tensors else 1
    rows = [t.shape[1] for t in tensors
            if t.dim() == 2 and not t.is_floating_point() and t.shape[0] == samples]
    return samples, max(rows) if rows else None
