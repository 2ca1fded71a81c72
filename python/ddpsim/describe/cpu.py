"""What a CPU does instead of what the meta device shows.

Both break these operations up into smaller ones, but not into the same. Sources, torch 2.13:
aten/src/ATen/native/Onehot.cpp; aten/src/ATen/native/RNN.cpp (FullLayer multiplies all inputs of a
layer with the input weights at once on a CPU; GRUCell and SimpleCell);
aten/src/ATen/native/mkldnn/RNN.cpp (an LSTM is one operation of oneDNN for each layer and
direction).
"""
import torch
from torch.nn.functional import dropout, linear

from .recurrent import Shape
from .tensors import format_of

KINDS = ('gru', 'rnn_tanh', 'rnn_relu')


def one_hot(indices, num_classes=-1):
    """Zeros with ones where the indices say, after a look at the smallest and largest of them."""
    if num_classes < 0:
        return torch.ops.aten.one_hot.default.decompose(indices, num_classes)
    torch.aminmax(indices)
    result = torch.zeros(*indices.shape, num_classes, dtype=indices.dtype, device=indices.device)
    return result.scatter_(-1, indices.unsqueeze(-1), 1)


def lstm(data, first, params, has_biases, num_layers, dropout_p, train, bidirectional,
         batch_first):
    """What stands for aten::lstm.input."""
    if first[0].shape[-1] != first[1].shape[-1]:  # projections: as the meta device has it
        return torch.ops.aten.lstm.input.decompose(data, first, params, has_biases, num_layers,
                                                   dropout_p, train, bidirectional, batch_first)
    data = (data.transpose(0, 1) if batch_first else data).contiguous()
    hidden, directions, width = first[0].shape[-1], 2 if bidirectional else 1, len(params)
    width //= num_layers * directions
    states, cells = (each.contiguous().unbind(0) for each in first)
    last_states, last_cells = [], []
    for layer in range(num_layers):
        results = []
        for direction in range(directions):
            number = layer * directions + direction
            weights = list(params[width * number:width * (number + 1)])
            if not has_biases:
                weights += [torch.zeros(weight.shape, dtype=weight.dtype, device=weight.device)
                            for weight in weights]
            result, state, cell, _ = torch.ops.aten.mkldnn_rnn_layer(
                data, *weights, states[number], cells[number], direction == 1, [], _LSTM, hidden,
                num_layers, has_biases, bidirectional, batch_first, train)
            results.append(result)
            last_states.append(state)
            last_cells.append(cell)
        data = torch.cat(results, -1) if bidirectional else results[0]
        if dropout_p and train and layer < num_layers - 1:
            data = dropout(data, dropout_p)
    return ((data.transpose(0, 1) if batch_first else data), torch.stack(last_states, 0),
            torch.stack(last_cells, 0))


_LSTM = 2  # oneDNN's number of the kind (rnn_kind in RNN.cpp)


def lstm_layer(call):
    """The products and gates of one layer and direction, which are one operation."""
    return _shape_of(call).forward(*_format_of(call))


def lstm_layer_backward(call):
    return _shape_of(call).backward(*_format_of(call))


def _shape_of(call):
    shape = Shape('lstm', call['input'], [call['hx_'], call['hx_']], 1, 1, call['has_biases'])
    shape.op, shape.first_trained = 'aten.mkldnn_rnn_layer', True
    return shape


def _format_of(call):
    return format_of(call['input'].dtype), call['input'].element_size()


RULES = {'aten.mkldnn_rnn_layer': lstm_layer,
         'aten.mkldnn_rnn_layer_backward': lstm_layer_backward}


def recurrent_on_cpu(kind):
    """The function that stands for aten::gru.input and its kin."""
    cell = gru_cell if kind == 'gru' else simple_cell(
        torch.tanh if kind == 'rnn_tanh' else torch.relu)

    def run(data, first, params, has_biases, num_layers, dropout_p, train, bidirectional,
            batch_first):
        data = data.transpose(0, 1) if batch_first else data
        directions, width = (2 if bidirectional else 1), (4 if has_biases else 2)
        states, last = list(first.unbind(0)), []
        for layer in range(num_layers):
            results = []
            for direction in range(directions):
                number = layer * directions + direction
                weights = [*params[width * number:width * (number + 1)], None, None][:4]
                inputs = data.flip(0) if direction else data
                result, state = one_layer(cell, inputs, states[number], *weights)
                results.append(result.flip(0) if direction else result)
                last.append(state)
            data = torch.cat(results, -1) if bidirectional else results[0]
            if dropout_p and train and layer < num_layers - 1:
                data = dropout(data, dropout_p)
        return (data.transpose(0, 1) if batch_first else data), torch.stack(last, 0)
    return run


def one_layer(cell, data, state, input_weight, weight, input_bias, bias):
    results = []
    for inputs in linear(data, input_weight, input_bias).unbind(0):
        state = cell(inputs, state, weight, bias)
        results.append(state)
    return torch.stack(results, 0), state


def gru_cell(inputs, state, weight, bias):
    reset_in, update_in, new_in = inputs.unsafe_chunk(3, 1)
    reset, update, new = linear(state, weight, bias).unsafe_chunk(3, 1)
    reset = reset.add_(reset_in).sigmoid_()
    update = update.add_(update_in).sigmoid_()
    new = new_in.add(new.mul_(reset)).tanh_()
    return (state - new).mul_(update).add_(new)


def simple_cell(activation):
    def cell(inputs, state, weight, bias):
        return activation(linear(state, weight, bias).add_(inputs))
    return cell
