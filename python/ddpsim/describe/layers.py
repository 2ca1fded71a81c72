"""Layers: consecutive kernels of the forward pass, named by the module they run in.

The order of kernels is kept exactly. A layer ends where the next one begins; what runs between two
modules (an addition of positions, the loss after the last) belongs to the layer before. Backward is
cut to the same layers from the last to the first: where the engine does not quite keep that order
(an embedding's gradient between two blocks), the cut is the one that agrees with the most kernels'
own modules.
"""
from dataclasses import dataclass, field


@dataclass
class Layer:
    name: 'str | None'
    forward: list = field(default_factory=list)   # Kernel
    backward: list = field(default_factory=list)  # Kernel
    kept: int = 0
    forward_peak: int = 0   # the most bytes alive at one time in its forward pass
    backward_peak: int = 0  # likewise, less the gradients of parameters that are there at its end
    forward_peak_in_fp32: int = 0   # the same where convolutions multiply in fp32
    backward_peak_in_fp32: int = 0


class Depth:
    """At which depth of module paths a layer is: at members of lists of modules.

    `blocks.3` of a ModuleList or Sequential `blocks` whose members are modules with modules of
    their own, and `layer1.0`, but not `layer1.0.downsample.0`. A list inside a member is gone into
    where the member is little else (stages of blocks); elsewhere the layer is the child of the
    model, or of the module that holds the lists.
    """

    def __init__(self, model):
        self._modules = dict(model.named_modules())
        self._known = {}
        self._lists = []
        self._find(model, '')

    def _find(self, module, path):
        for name, child in module.named_children():
            place = f'{path}.{name}' if path else name
            if _is_list(child):
                self._lists.append(place)
                for index, member in child.named_children():
                    if _is_list(member) or _little_else(member):
                        self._find_inside(member, f'{place}.{index}')
            elif list(child.children()):
                self._find(child, place)
        if not path and _is_list(module):
            self._lists.append('')
            for index, member in module.named_children():
                if _is_list(member):
                    self._find_inside(member, index)

    def _find_inside(self, member, place):
        if _is_list(member):
            self._lists.append(place)
        for name, child in member.named_children():
            if _is_list(child):
                self._lists.append(f'{place}.{name}')

    def layer_of(self, path):
        """The layer a module belongs to; None for the model itself and for what holds lists."""
        if path not in self._known:
            self._known[path] = self._layer_of(path)
        return self._known[path]

    def _layer_of(self, path):
        if not path:
            return None
        parts = path.split('.')
        depth = 0
        for place in self._lists:  # the deepest list the path is in
            length = len(place.split('.')) if place else 0
            if parts[:length] == (place.split('.') if place else []):
                depth = max(depth, length + 1)
        if depth == 0:  # beside all lists: the child of what holds lists, or of the model
            holders = {'.'.join(place.split('.')[:-1]) for place in self._lists if place}
            for length in range(len(parts), -1, -1):
                if '.'.join(parts[:length]) in holders:
                    depth = length + 1
                    break
            depth = max(depth, 1)
        return None if depth > len(parts) else '.'.join(parts[:depth])


def _is_list(module):
    """Members are numbered and have modules of their own."""
    members = list(module.named_children())
    return bool(members) and all(name.isdigit() for name, _ in members) and any(
        list(member.children()) for _, member in members)


def _little_else(member):
    """A stage: a list of modules of one class, and at most one other child with parameters."""
    children = list(member.children())
    lists = [child for child in children if _is_list(child)]
    others = [c for c in children if c not in lists and any(True for _ in c.parameters())]
    return bool(lists) and len(others) <= 1 and all(
        len({type(m) for m in inner.children()}) == 1 for inner in lists)


def cut(step, depth, whole):
    """The layers of a captured Step; `whole` names the layer of a model that has no modules."""
    layers, layer_at = [], []
    names = {}
    for launch in step.forward:
        name = depth.layer_of(launch.path)
        if name is not None and (not layers or layers[-1].name != name):
            if len(layers) == 1 and layers[0].name is None:
                layers[0].name = name  # what ran before the first module
            else:
                layers.append(Layer(name))
        elif not layers:
            layers.append(Layer(None))
        layers[-1].forward.append(launch.kernel)
        layer_at.append(len(layers) - 1)
    if not layers:
        layers, layer_at = [Layer(None)], []
    last_of = {layer.name: i for i, layer in enumerate(layers)}
    for layer in layers:  # a module that runs again makes another layer
        plain = layer.name if layer.name is not None else whole
        names[plain] = names.get(plain, 0) + 1
        layer.name = plain if names[plain] == 1 else f'{plain} ({names[plain]})'

    own = [_own_layer(launch, layer_at, last_of, depth) for launch in step.backward]
    places = descending(own, len(layers))
    for launch, place in zip(step.backward, places):
        layers[place].backward.append(launch.kernel)
    _peaks(step, layers, layer_at, places)
    for position, path, size in step.kept:
        layers[_keeper(position, depth.layer_of(path), layer_at, layers)].kept += size
    return layers, places


def _peaks(step, layers, layer_at, places):
    """What layers hold at most. Gradients of parameters are counted with those in a step's memory
    once a layer ends; what else there is then, at most, is its `backward_peak`."""
    for launch, place in zip(step.forward, layer_at):
        layer = layers[place]
        layer.forward_peak = max(layer.forward_peak, launch.held)
        layer.forward_peak_in_fp32 = max(layer.forward_peak_in_fp32, launch.held + launch.in_fp32)
    begins = {}
    for launch, place in zip(step.backward, places):
        layer, there = layers[place], launch.held + launch.settled
        layer.backward_peak = max(layer.backward_peak, there)
        layer.backward_peak_in_fp32 = max(layer.backward_peak_in_fp32, there + launch.in_fp32)
        begins.setdefault(place, launch.settled)
    ends = step.settled
    for place in sorted(begins):  # from the last to run to the first
        layer = layers[place]
        layer.backward_peak = max(0, layer.backward_peak - ends)
        layer.backward_peak_in_fp32 = max(0, layer.backward_peak_in_fp32 - ends)
        ends = begins[place]


def _keeper(position, name, layer_at, layers):
    """The layer that keeps a tensor: arguments are kept before the kernel is launched, results
    after."""
    if not layer_at:
        return 0
    before = layer_at[max(0, position - 1)]
    after = layer_at[min(position, len(layer_at) - 1)]
    return after if name is not None and layers[before].name != name else before


def _own_layer(launch, layer_at, last_of, depth):
    """The layer whose forward made the node that launched this backward kernel."""
    if launch.position is not None and layer_at:
        return layer_at[min(launch.position, len(layer_at) - 1)]
    if launch.path is not None:
        return last_of.get(depth.layer_of(launch.path))
    return None


def descending(own, count):
    """Layers for kernels in order, from count - 1 down to 0, that agree with most of `own`.

    None in `own` agrees with every layer. Dynamic programming over kernels: best[l] is the most
    agreement of the kernels so far if the last of them is in layer l.
    """
    known = [place for place in own if place is not None]
    if all(a >= b for a, b in zip(known, known[1:])):
        places, current = [], known[0] if known else count - 1
        for place in own:
            current = current if place is None else place
            places.append(current)
        return places
    # reachable[l]: the best over layers >= l, and which; kept per kernel to walk back.
    best, steps = [0] * count, []
    for place in own:
        came, running, top = [0] * count, -1, count - 1
        for layer in range(count - 1, -1, -1):
            if best[layer] > running:
                running, top = best[layer], layer
            came[layer] = top
            best[layer] = running + (1 if place is None or place == layer else 0)
        steps.append(came)
    layer = max(range(count), key=lambda i: (best[i], i))
    places = []
    for came in reversed(steps):
        places.append(layer)
        layer = came[layer]
    return places[::-1]
