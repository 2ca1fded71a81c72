#!/usr/bin/env python3
"""The constants that ddpsim has are those that left_out.py computes from all networks. Three of the
host's are not computed (CHOSEN) and so not tested."""
import ast
import json
import re
import sys
import unittest

sys.dont_write_bytecode = True
import experiment  # beside this file

CHOSEN = {'LAUNCH', 'MODULE', 'ACCUMULATE'}
PARTS = ('start_us', 'block_ns', 'rate', 'sharpness')


def of_header():
    """{name: value} of model/kernel/step_constants.hpp."""
    text = (experiment.ROOT / 'model/kernel/step_constants.hpp').read_text()
    text = text[text.index('struct StepConstants'):]
    found = {name: float(value) for name, value in re.findall(r'\b(\w+) = ([\d.]+)', text)}
    for name, values in re.findall(r'\b(\w+)\{([\d., ]+)\}', text):
        found |= {f'{name}.{part}': float(value)
                  for part, value in zip(PARTS, values.split(','))}
    return found


def assigned(file):
    """{name: value} of the plain numbers that a module assigns."""
    found = {}
    for node in ast.parse((experiment.ROOT / file).read_text()).body:
        if isinstance(node, ast.Assign):
            target = node.targets[0]
            try:
                value = ast.literal_eval(node.value)
            except ValueError:
                continue
            if isinstance(target, ast.Tuple):
                found |= {each.id: number for each, number in zip(target.elts, value)}
            else:
                found[target.id] = value
    return found


class Constants(unittest.TestCase):
    def test_ddpsim_has_the_constants_that_all_networks_yield(self):
        runs = json.loads((experiment.HERE / 'results/left_out.json').read_text())['runs']
        kept = {name: value for name, value in runs[-1]['constants']['all'].items()
                if name not in CHOSEN}
        table = assigned('tests/experiments/operations_table.py')
        host = assigned('python/ddpsim/describe/host.py')
        has = of_header() | {'LIBRARY_LAUNCH': host['LIBRARY_LAUNCH']}
        has |= {f'{name} in a step': table['PRODUCTS_IN_A_STEP'][name] for name in ('bf16', 'tf32')}
        has['conv in a step'] = table['CONVOLUTIONS_IN_A_STEP']
        self.assertEqual(has, kept)


if __name__ == '__main__':
    unittest.main()
