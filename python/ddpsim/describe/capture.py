"""One training step on the meta device, written down.

Nothing is computed: tensors on the meta device have shapes and no memory. A dispatch mode sees each
operation below autograd, forward and backward; hooks of modules say where in the model it stands,
hooks of parameters when a gradient is complete, hooks of saved tensors what autograd keeps.
"""
import contextlib
import functools
import os
import sys
import weakref
from dataclasses import dataclass, field, replace
from typing import Optional

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from . import collectives, host, results
from .alive import Alive
from .errors import DescribeError, first_line, own_fault
from .kernels import Call, Kernel
from .rules import kernels_of, launches_nothing
from .tensors import UNLIKE
from .workspaces import copies, transforms

_TORCH = os.path.dirname(torch.__file__) + os.sep
_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


@dataclass
class Launch:
    """A kernel as it was launched, and where in the model: `path` is that of a module ('' is the
    model itself), None where it is not known."""
    kernel: Kernel
    path: Optional[str]
    position: Optional[int] = None  # of a backward kernel: the forward launches before its forward
    operation: Optional[int] = None  # its number in the recorder's list, where there is one
    held: int = 0     # bytes alive when it runs, beside what was there before the step
    in_fp32: int = 0  # that it takes more where convolutions multiply in fp32
    settled: int = 0  # of a backward kernel: bytes of gradients that were parameters' by then


@dataclass
class Step:
    """What was seen."""
    forward: list = field(default_factory=list)   # Launch
    backward: list = field(default_factory=list)  # Launch
    completed: list = field(default_factory=list)  # (parameter's name, backward launches before it)
    ran: dict = field(default_factory=dict)       # module's path -> first and last forward launch
    kept: list = field(default_factory=list)      # (forward launches before it, path, bytes)
    sparse_rows: dict = field(default_factory=dict)  # parameter's name -> rows of its gradient
    unpriced: dict = field(default_factory=dict)  # operation -> count
    used: dict = field(default_factory=dict)      # what was taken to be CUDA's -> count
    collectives: list = field(default_factory=list)  # that the model sends, and launches before
    unlike: dict = field(default_factory=dict)    # type -> products of it, which have no rate
    settled: int = 0  # bytes of gradients of parameters, when backward has ended


def own(method):
    """What goes wrong in it is ddpsim's own fault."""
    @functools.wraps(method)
    def run(self, *args):
        try:
            return method(self, *args)
        except DescribeError:
            raise
        except Exception as problem:
            raise own_fault(problem, self.where()) from problem
    return run


class Capture(TorchDispatchMode):
    """Use as a context around the forward pass; call `backward_begins` before loss.backward().
    `device`: whose kernels, 'cuda' or 'cpu'. `recorder`: is given every call. `tf32`: which
    products of fp32 numbers multiply in TF32. `attention`: the user's choice of it. `there`:
    tensors that are there before the step, beside parameters and buffers."""

    def __init__(self, model, allow_unknown=False, device='cuda', recorder=None, tf32=None,
                 attention=None, there=()):
        super().__init__()
        self.step = Step()
        self.recorder = recorder
        self.allow_unknown = allow_unknown
        self._device, self._tf32, self._attention = device, tf32, attention
        self._waiting = 0.0      # microseconds of the host since the last kernel's call
        self._node = None        # the backward node of the last call
        self._in_backward = False
        self._modules = []       # paths of the modules that are running
        self._begun = []         # of these the forward launches before each
        self._node_at = {}       # autograd node -> (path, forward launches before it)
        self._kept = {}          # storage -> a weak reference to it
        self._sparse_rows = 0    # of sparse gradients that no parameter has yet
        self.alive = Alive((*model.parameters(), *model.buffers(), *there))
        self._silent = 0
        self._paths = {}
        for name, module in model.named_modules():
            self._paths.setdefault(module, name)
        self._model = model
        self._hooks = contextlib.ExitStack()

    # --- what is hooked ---

    def __enter__(self):
        model = self._model
        for tensor in (*model.parameters(), *model.buffers()):
            storage = tensor.untyped_storage()
            self._kept[storage._cdata] = weakref.ref(storage)
        hooks = torch.nn.modules.module
        for handle in (hooks.register_module_forward_pre_hook(self._module_begins),
                       hooks.register_module_forward_hook(self._module_ends, always_call=True),
                       *(parameter.register_post_accumulate_grad_hook(self._completes(name))
                         for name, parameter in model.named_parameters()
                         if parameter.requires_grad)):
            self._hooks.callback(handle.remove)
        self._hooks.enter_context(
            torch.autograd.graph.saved_tensors_hooks(self._keep, lambda tensor: tensor))
        return super().__enter__()

    def __exit__(self, *problem):
        result = super().__exit__(*problem)
        self.step.settled = self.alive.settled
        self._hooks.close()
        return result

    def backward_begins(self):
        self._in_backward = True

    def _module_begins(self, module, inputs):
        path = self._paths.get(module)
        self._modules.append(self.path if path is None else path)
        self._begun.append(len(self.step.forward))
        if type(module).__name__ != 'OptimizedModule':  # of torch.compile, described eager
            self._waiting += host.MODULE

    def _module_ends(self, module, inputs, output):
        if self._modules:
            path, first = self._modules.pop(), self._begun.pop()
            last = len(self.step.forward) - 1
            if first <= last and path == self._paths.get(module):
                self.step.ran.setdefault(path, (first, last))

    @property
    def path(self):
        return self._modules[-1] if self._modules else ''

    def path_of(self, module):
        """The path of a module of the model, or None."""
        return self._paths.get(module) if isinstance(module, torch.nn.Module) else None

    def _completes(self, name):
        return functools.partial(self._completed, name)

    @own
    def _completed(self, name, parameter):
        self.step.completed.append((name, len(self.step.backward)))
        self._waiting += host.ACCUMULATE
        if parameter.grad is None:
            return
        self.alive.settle(parameter.grad)
        if parameter.grad.is_sparse:  # all rows of the table where it is made in another way
            rows, self._sparse_rows = self._sparse_rows or parameter.shape[0], 0
            self.step.sparse_rows[name] = min(rows, parameter.shape[0])

    @own
    def _keep(self, tensor):
        """Each storage once, where it is kept first."""
        if not self._in_backward and tensor.layout is torch.strided:
            storage = tensor.untyped_storage()
            known = self._kept.get(storage._cdata)
            if known is None or known() is None:
                self._kept[storage._cdata] = weakref.ref(storage)
                self.step.kept.append((len(self.step.forward), self.path, storage.nbytes()))
        return tensor.detach()

    # --- what is dispatched ---

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func.namespace == 'prim' or func.namespace == 'profiler':
            return func(*args, **kwargs)
        sends = func.namespace in collectives.NAMESPACES
        try:
            result = (collectives if sends else results).result_of(func, args, kwargs)
        except (RuntimeError, NotImplementedError) as problem:
            raise self._cannot(func, problem) from None
        self.alive.add(result)
        if not sends:
            self.note(Call(func, args, kwargs, result))
        elif collectives.name_of(func):
            self.sends(collectives.name_of(func), collectives.given(func, args, kwargs))
        return result

    def sends(self, op, size):
        """Writes down a collective of the model's own."""
        path = self._place_in_backward()[0] if self._in_backward else self.path
        launches = len(self.step.backward if self._in_backward else self.step.forward)
        self.step.collectives.append((collectives.Collective(
            op, 'backward' if self._in_backward else 'forward', path or '', size), launches))

    @own
    def note(self, call):
        """Writes down the kernels of a call."""
        self._know_node()
        call.device, call.tf32 = self._device, self._tf32
        call.chosen_attention = self._attention
        call.of_autograd = self._in_backward and not self._modules
        self._sparse_rows += sparse_rows_of(call)
        if launches_nothing(call):
            if (call.func.is_view and not self._in_backward
                    and call.op not in host.VIEWS_OF_OTHERS):
                self._waiting += host.VIEW
            return
        kernels = self._in_known_formats(call, kernels_of(call))
        if kernels is None:
            if call.inputs and all(tensor.device.type == 'cpu' for tensor in call.inputs):
                return  # a number that decides what runs, drawn on the host
            if not self.allow_unknown:
                raise DescribeError(
                    f'{self.where()}: no rule says what {call.op} launches; '
                    '--allow-unknown prices it by its bytes')
            self.step.unpriced[call.op] = self.step.unpriced.get(call.op, 0) + 1
            kernels = [call.memory()]
        operation = self.recorder.add(call, kernels) if self.recorder else None
        self.launch(kernels, self._cost(call), operation,
                    transforms(call) if self._device == 'cuda' else 0)

    def launch(self, kernels, cost=None, operation=None, in_fp32=0):
        """Writes down kernels of one call; `cost`: what it takes the host, and the launches that
        this holds; left out: a plain elementwise call."""
        cost = cost or (host.backward('') if self._in_backward else host.forward('', False))
        kernels = one_operation(kernels, self._shares(kernels, cost), self._runs_again())
        copied = copies(kernels)
        held, settled = self.alive.held + copied, self.alive.settled
        more = max(0, in_fp32 - copied)
        if not self._in_backward:
            self.step.forward += [Launch(kernel, self.path, None, operation, held, more)
                                  for kernel in kernels]
            return
        path, position = self._place_in_backward()
        self.step.backward += [Launch(kernel, path, position, operation, held, more, settled)
                               for kernel in kernels]

    def _runs_again(self):
        """Is it the forward pass of a checkpoint, in the backward pass? Checkpoints of both kinds
        switch gradients on there, where all else of a node runs without; and modules run there
        alone."""
        return self._in_backward and (bool(self._modules) or (
            torch.is_grad_enabled() and torch._C._current_autograd_node() is not None))

    def _in_known_formats(self, call, kernels):
        """Products of numbers that no device has a rate for, as those of fp32 that stand for
        them."""
        factors = next((t.dtype for t in call.inputs if t.dtype in UNLIKE), None)
        if kernels is None or factors is None:
            return kernels
        changed = []
        for kernel in kernels:
            if kernel.gemm:
                count = UNLIKE[factors]
                gemm = kernel.gemm._replace(batch=count * kernel.gemm.batch)
                kernel = replace(kernel, gemm=gemm, type='fp32', tensor_cores=False)
                self.step.unlike[factors] = self.step.unlike.get(factors, 0) + 1
            changed.append(kernel)
        return changed

    def _cost(self, call):
        if not self._in_backward or self._modules:  # a checkpointed module runs again
            half = call.inputs and call.inputs[-1].dtype.itemsize == 2
            return host.forward(call.op, half)
        node = torch._C._current_autograd_node()
        number = None if node is None else node._sequence_nr()
        first, self._node = number is not None and number != self._node, number
        of_linear = call.op == 'aten.sum' and node is not None and node.name() == 'AddmmBackward0'
        return host.backward(call.op, first, of_linear)

    def _shares(self, kernels, cost):
        """What of the host's time is each kernel's; of a CPU, which runs them itself, none."""
        if self._device != 'cuda' or not kernels:
            return [None] * len(kernels)
        shares = host.shared(kernels, cost)
        shares[0] += self._waiting
        self._waiting = 0.0
        return [round(share, 1) for share in shares]

    def _know_node(self):
        """Remembers where the autograd node just made stands. Nodes are numbered as they are made;
        the first operation to run after a node was made is that node's."""
        node = torch._C._autograd._get_sequence_nr() - 1
        if self._in_backward:  # a checkpointed module runs again
            if self._modules:
                self._node_at.setdefault(node, (self.path, None))
        else:
            self._node_at.setdefault(node, (self.path, len(self.step.forward)))

    def _place_in_backward(self):
        if self._modules:  # a checkpointed module runs again
            return self.path, None
        node = torch._C._current_autograd_node()
        if node is None:
            return None, None
        return self._node_at.get(node._sequence_nr(), (None, None))

    # --- what goes wrong ---

    def where(self):
        """The module and the line of the model that are running."""
        path, _ = self._place_in_backward() if self._in_backward else (self.path, None)
        module = path or type(self._model).__name__
        line = user_line(sys._getframe(1))
        phase = ' (backward)' if self._in_backward and not self._modules else ''
        return f'{module}{phase}: {line}' if line and not phase else f'{module}{phase}'

    def _cannot(self, func, problem):
        name = f'{func.namespace}.{func._overloadpacket.__name__}'
        if needs_values(func, problem):
            return DescribeError(
                f'{self.where()}: {name} needs the values of a tensor, and a description computes '
                'none; give the count or the branch as a plain number, or do it outside the model')
        if isinstance(problem, NotImplementedError) or 'fake impl' in str(problem):
            return DescribeError(
                f'{self.where()}: {name} has no rule for shapes; a custom operation registers one '
                'with torch.library.register_fake')
        return problem


def sparse_rows_of(call):
    """Rows of the sparse gradient that a call makes, each index a row of its own."""
    if call.op == 'aten._sparse_coo_tensor_with_dims_and_tensors':
        return call['values'].shape[0]
    if call.op == 'aten._embedding_bag_backward' and call['sparse']:
        return call['indices'].numel()
    return 0


def one_operation(kernels, shares, recomputed):
    """The kernels of one call, each with its share of the host's time: what multiplies, or else the
    first, begins the operation."""
    main = next((i for i, kernel in enumerate(kernels) if kernel.kind != 'memory'), 0)
    return [kernel.launched(kernel.operations if i == main else 0, share, recomputed)
            for i, (kernel, share) in enumerate(zip(kernels, shares))]


def needs_values(func, problem):
    tags = func.tags
    return (torch.Tag.data_dependent_output in tags or torch.Tag.dynamic_output_shape in tags
            or 'cannot be called on meta tensors' in str(problem)
            or func._overloadpacket.__name__ in ('_local_scalar_dense', 'equal', 'is_nonzero'))


def user_line(frame):
    """file:line of the innermost frame that is neither torch's nor ours."""
    while frame is not None:
        file = frame.f_code.co_filename
        if not (file.startswith((_TORCH, _HERE, '<')) or 'contextlib' in file):
            return f'{shown(file)}:{frame.f_lineno}'
        frame = frame.f_back
    return ''


def shown(file):
    """A path as a user would type it."""
    relative = os.path.relpath(file)
    return file if relative.startswith('..') else relative


def line_of(problem):
    """file:line of the model where an exception came from, or ''."""
    found, trace = '', problem.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if not file.startswith((_TORCH, _HERE, '<')) and 'contextlib' not in file:
            found = f'{shown(file)}:{trace.tb_lineno}'
        trace = trace.tb_next
    return found


# Mistakes of a program, as one makes them in Python. torch's operations raise others, and an
# IndexError where a tensor has not so many dimensions.
_MISTAKES = (TypeError, AttributeError, KeyError, NameError, ArithmeticError, AssertionError)
# Files of ours that call what users wrote.
_CALLERS = ('step.py', 'user_file.py', 'meta.py', '_user_step.py')


def is_ours(problem):
    """Was it ddpsim's code that failed, not the model's?"""
    trace = problem.__traceback__
    while trace.tb_next is not None:
        trace = trace.tb_next
    file = trace.tb_frame.f_code.co_filename
    return (isinstance(problem, _MISTAKES) and file.startswith(_HERE)
            and os.path.basename(file) not in _CALLERS)


def said_by_model(problem, capture, where):
    """An exception of the model's code as one line: the innermost module, its line, the text."""
    if is_ours(problem):
        return own_fault(problem, where)
    trace = problem.__traceback__
    while trace is not None:
        where = capture.path_of(trace.tb_frame.f_locals.get('self')) or where
        trace = trace.tb_next
    line = line_of(problem)
    return DescribeError(f'{where}: {line + ": " if line else ""}{type(problem).__name__}: '
                         f'{first_line(problem)}')
