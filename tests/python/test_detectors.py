"""The catalogue's detectors against torchvision's, as far as no box is chosen by its value."""
import json
import os
import pathlib
import subprocess
import sys

import pytest
from describe_models import torch
from test_catalogue import times

from ddpsim.describe import describe

# A wheel of torchvision that was built beside another build of torch has no operators of its own.
# Nothing here chooses boxes: that the operators have names is enough.
for name in ('nms', 'qnms'):
    if not hasattr(torch.ops.torchvision, name):
        torch.library.define(f'torchvision::{name}', '(Tensor a, Tensor b, float c) -> Tensor')
sys.path.append(str(pathlib.Path(__file__).parents[2] / 'build/detectors'))
try:
    import torchvision
    from torchvision.models.detection import rpn, ssd
    from torchvision.models.detection.backbone_utils import _resnet_fpn_extractor
    from torchvision.models.detection.mask_rcnn import MaskRCNN
except ImportError:
    assert os.environ.get('DDPSIM_TORCH') != 'required', 'no torchvision'
    pytest.skip('NOT RUN: no torchvision', allow_module_level=True)

BATCH = 2
CLASSES, BOXES, MASKS, HEIGHT, WIDTH = 91, 512, 128, 800, 1088


class Ssd(torch.nn.Module):
    """Backbone and heads of ssd300_vgg16, from a trained VGG-16."""

    def __init__(self):
        super().__init__()
        backbone = ssd._vgg_extractor(torchvision.models.vgg16(), False, 4)
        anchors = ssd.DefaultBoxGenerator([[2], [2, 3], [2, 3], [2, 3], [2], [2]])
        whole = ssd.SSD(backbone, anchors, (300, 300), CLASSES)
        self.backbone, self.head = whole.backbone, whole.head

    def forward(self, pictures):
        return self.head(list(self.backbone(pictures).values()))


def ssd_loss(model, pictures):
    found = model(pictures)
    logits = found['cls_logits'].view(-1, CLASSES)
    classes = torch.zeros(len(logits), dtype=torch.long, device=logits.device)
    return torch.nn.functional.cross_entropy(logits, classes) + found['bbox_regression'].mean()


class MaskRcnn(torch.nn.Module):
    """What is trained of maskrcnn_resnet50_fpn, from a trained ResNet-50. Numbers of the largest
    level, as many as the boxes take, stand for the boxes."""

    def __init__(self):
        super().__init__()
        body = torchvision.models.resnet50(norm_layer=torchvision.ops.FrozenBatchNorm2d)
        whole = MaskRCNN(_resnet_fpn_extractor(body, 3), num_classes=CLASSES)
        self.backbone, self.rpn = whole.backbone, torch.nn.Module()
        self.rpn.head = whole.rpn.head
        self.roi_heads = torch.nn.Module()
        for name in ('box_head', 'box_predictor', 'mask_head', 'mask_predictor'):
            setattr(self.roi_heads, name, getattr(whole.roi_heads, name))

    def forward(self, pictures):
        levels = list(self.backbone(pictures).values())
        proposals = rpn.concat_box_prediction_layers(*self.rpn.head(levels))

        def boxes(each, side):
            rows = each * len(pictures)
            return levels[0].reshape(-1)[:rows * 256 * side * side].view(rows, 256, side, side)
        heads = self.roi_heads
        scores, deltas = heads.box_predictor(heads.box_head(boxes(BOXES, 7)))
        outlines = heads.mask_predictor(heads.mask_head(boxes(MASKS, 14)))
        return *proposals, scores, deltas, outlines


def sum_of_means(model, pictures):
    return sum(each.mean() for each in model(pictures))


DETECTORS = {'ssd300': (Ssd, ssd_loss, (300, 300)),
             'maskrcnn-resnet50': (MaskRcnn, sum_of_means, (HEIGHT, WIDTH))}


def described(name, **settings):
    make, loss, size = DETECTORS[name]
    with torch.device('meta'):
        return describe(make().train(), torch.zeros(BATCH, 3, *size), loss, torch.optim.SGD,
                        **settings)


def shapes(program, folder, name):
    """[(name, bytes)] of the catalogue's parameters as their hooks fire."""
    file = folder / 'scenario.yaml'
    file.write_text(json.dumps({'workload': {'model': name, 'batch': BATCH},
                                'cluster': {'device': 'h200'}, 'compare': ['bucketed'],
                                # A bucket for each parameter.
                                'training': {'bucket_cap': '1 B', 'first_bucket_cap': '1 B'}}))
    done = subprocess.run([program, 'schedule', file, '--json', '-', '-q'], check=True,
                          capture_output=True, text=True)
    said = json.loads(done.stdout)
    sizes = {name: bucket['bytes'] for bucket in said['buckets'] for name in bucket['parameters']}
    return [(hook['parameter'], sizes[hook['parameter']]) for hook in said['hooks']]


@pytest.mark.parametrize('name', DETECTORS)
def test_the_catalogue_has_the_parameters_of_torchvision_in_the_order_of_their_hooks(
        program, tmp_path, name):
    ours, theirs = shapes(program, tmp_path, name), described(name)
    sizes = {each.name: 4 * torch.Size(each.shape).numel() for each in theirs.parameters}
    assert dict(ours) == sizes and len(ours) == len(sizes)

    # Weight and bias of a convolution are complete together, in either order.
    def modules(names):
        return [name.rpartition('.')[0] for name in names]
    arrival = [theirs.parameters[i].name for i in theirs.arrival]
    assert modules(name for name, _ in ours) == modules(arrival)


@pytest.mark.parametrize('how, settings, workload', [
    ('fp32', {}, {'dtype': 'fp32'}),
    ('autocast', {'autocast': torch.bfloat16}, {'dtype': 'fp32', 'compute': 'bf16'})])
def test_a_step_of_ssd_takes_as_long_as_its_description_says(program, tmp_path, how, settings,
                                                             workload):
    file = tmp_path / 'described.yaml'
    file.write_text(described('ssd300', **settings).text())
    compute = {'compute': 'fp32'} if how == 'fp32' else {}
    ours = {'model': 'ssd300', 'batch': BATCH, 'optimizer': 'sgd', **workload}
    own, other = (times(program, tmp_path, each, 'h200', 'cluster.launch=1 ns')
                  for each in (ours, {'model': str(file), **compute}))
    assert own[1:] == pytest.approx(other[1:], rel=0.04)  # the passes
