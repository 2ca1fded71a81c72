"""Which kernels of a layer's passes belong to the module that a parameter is in."""


class Ran:
    """`places`: the layer of every backward launch of a captured Step that is cut to `layers`."""

    def __init__(self, step, layers, places):
        self._step = step
        self._forward = _numbered([i for i, layer in enumerate(layers) for _ in layer.forward])
        self._backward = _numbered(places)
        self._ran_backward = {}  # module's path -> its first and last launch
        for number, launch in enumerate(step.backward):
            for path in _with_those_around(launch.path):
                first, _ = self._ran_backward.get(path, (number, number))
                self._ran_backward[path] = (first, number)

    def of(self, name, layer, after=None):
        """The first and the last entry of the layer's forward and backward pass that the module of
        a parameter runs; None where some are in other layers. A parameter that another module uses
        for it is of that. `after`: the entry behind which its gradient is complete."""
        *around, _ = name.split('.')
        path = next((p for p in _with_those_around('.'.join(around)) if p in self._step.ran), None)
        if path is None:
            return None, None
        backward = _entries(self._ran_backward.get(path), self._backward, layer)
        if backward and after is not None:
            backward = min(backward[0], after), max(backward[1], after)
        return _entries(self._step.ran[path], self._forward, layer), backward


def _numbered(places):
    """(layer, entry of it) of every launch, given its layer."""
    count, numbered = {}, []
    for place in places:
        numbered.append((place, count.get(place, 0)))
        count[place] = count.get(place, 0) + 1
    return numbered


def _with_those_around(path):
    """'a.b', 'a', '' of 'a.b'."""
    while path is not None:
        yield path
        path = path.rpartition('.')[0] if path else None


def _entries(launches, numbered, layer):
    if launches is None:
        return None
    (first_layer, first), (last_layer, last) = (numbered[each] for each in launches)
    return (first, last) if first_layer == last_layer == layer else None
