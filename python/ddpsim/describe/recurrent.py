"""Recurrent layers as cuDNN runs them; the meta device runs dozens of small kernels a step of time.

Per layer and direction: one product of all inputs with the input weights; then for every step of
time one product with the recurrent weights, and one kernel for the gates. Backward the same in
reverse, then one product each for the gradients of the inputs and of both weights, and a sum for
each bias. Source: Appleyard, Kocisky, Blunsom, "Optimizing Performance of Recurrent Neural Networks
on GPUs" (arXiv 1604.01946), sections 3.1 and 3.2. cuDNN's persistent kernels, which it chooses for
some sizes, launch fewer.
"""
import torch

from . import host
from .kernels import Gemm, Kernel, Pattern
from .tensors import format_of, tensors_in

GATES = {'lstm': 4, 'gru': 3, 'rnn_tanh': 1, 'rnn_relu': 1}


class Recurrent(torch.autograd.Function):
    @staticmethod
    def forward(ctx, capture, shape, data, *rest):
        """`rest`: the weights, then the first states."""
        result = data.new_empty(*data.shape[:2], shape.directions * shape.hidden)
        states = [torch.empty_like(state) for state in rest[len(rest) - shape.states:]]
        reserve = data.new_empty(shape.kept_elements())
        ctx.save_for_backward(data, *rest, result, reserve)
        ctx.capture, ctx.shape, ctx.format = capture, shape, format_of(data.dtype)
        capture.launch(shape.forward(ctx.format, data.element_size()),
                       host.forward('aten.convolution', data.element_size() == 2))
        return (result, *states)

    @staticmethod
    def backward(ctx, *gradients):
        data, *rest = ctx.saved_tensors[:-2]
        ctx.capture.launch(ctx.shape.backward(ctx.format, data.element_size()),
                           host.backward('recurrent'))
        made = [torch.empty_like(t) if t.requires_grad or ctx.needs_input_grad[i + 2] else None
                for i, t in enumerate((data, *rest))]
        return None, None, *made


class Shape:
    def __init__(self, kind, data, states, layers, directions, biased):
        self.gates, self.hidden = GATES[kind], states[0].shape[-1]
        self.layers, self.directions = layers, directions
        self.steps, self.batch = data.shape[0], data.shape[1]
        self.inputs, self.biased, self.states = data.shape[2], biased, len(states)
        self.first_trained = any(state.requires_grad for state in states)
        self.tokens = self.steps * self.batch
        self.op = f'aten.{kind}'

    def kept_elements(self):
        """What cuDNN keeps for backward: of every layer its gates and one state more (an LSTM's
        cells; the product with the new gate's weights, or the results, of others), and the results
        of an LSTM's layers but the last, which are the inputs of the next one."""
        rows = self.layers * (self.gates + 1) + (self.layers - 1 if self.states == 2 else 0)
        return rows * self.directions * self.tokens * self.hidden

    def _layers(self):
        """Width of the input of every layer, once for each direction."""
        for layer in range(self.layers):
            width = self.inputs if layer == 0 else self.directions * self.hidden
            yield from [width] * self.directions

    def _product(self, m, n, k, kind, size, along_k=2):
        return Kernel(self.op, kind, size * (m * k + k * n), size * m * n, kind='gemm',
                      gemm=Gemm(m, n, k), along_k=along_k)

    def forward(self, kind, size):
        wide = self.gates * self.hidden
        gates = Kernel(self.op, kind, size * self.batch * (2 * wide + self.hidden),
                       size * self.batch * (wide + self.hidden))
        kernels = []
        for width in self._layers():
            kernels.append(self._product(self.tokens, wide, width, kind, size))
            kernels += self.steps * [self._product(self.batch, wide, self.hidden, kind, size),
                                     gates]
        return kernels

    def backward(self, kind, size):
        wide, op = self.gates * self.hidden, self.op + '_backward'
        gates = Kernel(op, kind, size * self.batch * (wide + 3 * self.hidden),
                       size * self.batch * (wide + self.hidden))
        bias = Kernel(op, kind, size * self.tokens * wide, size * wide,
                      pattern=Pattern('sum_of_rows', self.tokens, wide))
        kernels = []
        # In 16 bits a step's product, of few results and a long sum, is cut into parts: an LSTM of
        # three layers over 64 steps launches 1179 kernels under autocast and 902 in fp32, and its
        # backward pass takes longer than forward (tests/data/h200).
        parts = 2 * 4 * self.batch * self.hidden
        summed = [Kernel(op, kind, parts, parts)] if size == 2 else []
        for width in reversed(list(self._layers())):
            back = [self._product(self.batch, self.hidden, wide, kind, size, along_k=1), *summed]
            kernels += (self.steps - 1) * [gates, *back] + [gates]
            if self.first_trained:
                kernels += back
            kernels += [self._product(self.tokens, width, wide, kind, size, along_k=1),
                        self._product(wide, width, self.tokens, kind, size, along_k=0),
                        self._product(wide, self.hidden, self.tokens, kind, size, along_k=0)]
            if self.biased:
                kernels += [bias, bias]
        return kernels


def recurrent_for(capture, kind, count):
    """The function that stands for aten::lstm.input and its kin."""
    def run(data, first, params, has_biases, num_layers, dropout, train, bidirectional,
            batch_first):
        states = tensors_in(first)
        if len({state.shape[-1] for state in states}) > 1:  # projections: as the meta device has it
            return getattr(torch.ops.aten, kind).input.decompose(
                data, first, params, has_biases, num_layers, dropout, train, bidirectional,
                batch_first)
        # Between layers cuDNN's dropout is part of the gates' kernel.
        count('recurrent layers described as cuDNN runs them')
        data = data.transpose(0, 1) if batch_first else data
        shape = Shape(kind, data, states, num_layers, 2 if bidirectional else 1, has_biases)
        result, *last = Recurrent.apply(capture, shape, data, *params, *states)
        return (result.transpose(0, 1) if batch_first else result, *last)
    return run
