"""What PyTorch itself does: the order in which the gradients of multilayer perceptrons arrive.

    python3 arrival_oracle.py IN OUT

IN holds a line per network: 1 or 0, with or without biases, and the widths. OUT gets a line per
network, its parameters' names in the order their hooks fire. The hooks sit where
DistributedDataParallel's do, on the node that accumulates a parameter's gradient.
"""

import sys

import torch


def perceptron(bias, widths):
    modules = []
    for taken, given in zip(widths, widths[1:]):
        modules += [torch.nn.Linear(taken, given, bias=bias), torch.nn.ReLU()]
    return torch.nn.Sequential(*modules[:-1])


def arrivals(bias, *widths):
    network = perceptron(bias == 1, widths)
    fired = []
    accumulators = []  # a node lives as long as someone holds it
    for name, parameter in network.named_parameters():
        node = parameter.expand_as(parameter).grad_fn.next_functions[0][0]
        node.register_hook(lambda *unused, name=name: fired.append(name))
        accumulators.append(node)
    outputs = network(torch.randn(3, widths[0]))
    torch.nn.functional.mse_loss(outputs, torch.randn(3, widths[-1])).backward()
    return fired


def main(networks, answers):
    with open(networks) as source, open(answers, "w") as out:
        for line in source:
            print(*arrivals(*map(int, line.split())), file=out)


if __name__ == "__main__":
    main(*sys.argv[1:])
