#!/usr/bin/env python3
"""The kept results of experiments, and what adds a run to them."""
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
import experiment  # beside this file

RESULTS = sorted((experiment.HERE / 'results').glob('*.json'))
KEY = ('rate', 'cap')


def run(date, *places):
    """A run with a case for each (rate, cap)."""
    return {'date': date, 'summary': {'cases': len(places)},
            'cases': [{'rate': rate, 'cap': cap, 'error': 0.1} for rate, cap in places]}


def dates_with_cases(document):
    return [each['date'] for each in document['runs'] if 'cases' in each]


class Results(unittest.TestCase):
    empty = {'format': experiment.FORMAT, 'experiment': 'tests/experiments/none.py', 'runs': []}

    def test_a_run_keeps_its_cases_until_later_runs_have_measured_all_of_them(self):
        document = experiment.with_run(self.empty, run('first', (1, 4), (2, 4), (5, 4)), KEY)
        document = experiment.with_run(document, run('second', (1, 4), (2, 4)), KEY)
        self.assertEqual(dates_with_cases(document), ['first', 'second'])
        document = experiment.with_run(document, run('third', (5, 4)), KEY)
        self.assertEqual(dates_with_cases(document), ['second', 'third'])
        self.assertEqual([each['summary']['cases'] for each in document['runs']], [3, 2, 1])

    def test_another_cap_is_another_case(self):
        document = experiment.with_run(self.empty, run('first', (1, 4)), KEY)
        document = experiment.with_run(document, run('second', (1, 25)), KEY)
        self.assertEqual(dates_with_cases(document), ['first', 'second'])

    def test_the_text_of_results_is_read_back_as_it_was(self):
        document = experiment.with_run(self.empty, run('a "date"', (1, None)), KEY)
        document['runs'][0]['conditions'] = []
        self.assertEqual(json.loads(experiment.text_of(document)), document)

    def test_numbers_keep_six_digits(self):
        self.assertEqual(experiment.rounded({'error': [0.12345678, 13628812.3, 7, None]}),
                         {'error': [0.123457, 13628800, 7, None]})

    def test_a_run_is_added_to_the_file_of_its_experiment_alone(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / 'results.json'
            script = experiment.HERE / 'comm_hooks.py'
            experiment.add_run(file, script, run('first', (1, 4)), KEY)
            experiment.add_run(file, script, run('second', (1, 4)), KEY)
            self.assertEqual(dates_with_cases(json.loads(file.read_text())), ['second'])
            with self.assertRaises(SystemExit):
                experiment.add_run(file, experiment.HERE / 'speed.py', run('third', (1, 4)), KEY)
            self.assertEqual(len(json.loads(file.read_text())['runs']), 2)

    def test_errors_are_summed_up_by_their_sizes(self):
        # Sizes 0.01 to 0.10: the median lies between the fifth and the sixth, and nine are at
        # most 0.09.
        errors = [(-1) ** number * number / 100 for number in range(1, 11)]
        self.assertEqual(experiment.rounded(experiment.error_summary(errors, 0.04)),
                         {'cases': 10, 'median_error': 0.055, 'ninth_decile_error': 0.09,
                          'worst_error': 0.1, 'within': 0.04, 'cases_within': 4})


class KeptResults(unittest.TestCase):
    def test_every_experiment_has_its_results_and_says_where_they_come_from(self):
        self.assertEqual([file.stem for file in RESULTS],
                         ['collectives', 'comm_hooks', 'described_checks', 'described_cpu',
                          'h200_steps', 'left_out', 'other_devices', 'own_loops',
                          'shards_on_hosts', 'single_operations', 'speed', 'stragglers',
                          'strategies', 'timm_steps', 'torch_comparison', 'tuned_torch'])
        for file in RESULTS:
            document = json.loads(file.read_text())
            self.assertEqual(document['format'], experiment.FORMAT)
            self.assertEqual(document['experiment'], f'tests/experiments/{file.stem}.py')
            dates = [each['date'] for each in document['runs']]
            self.assertEqual(dates, sorted(dates))
            for each in document['runs']:
                for what in ('date', 'revision', 'version', 'machine', 'command'):
                    self.assertTrue(each[what], f'{file.name}: a run without {what}')
            self.assertIn('cases', document['runs'][-1])

    def test_the_error_of_a_case_is_its_predicted_over_its_measured_step(self):
        for file in RESULTS:
            for each in json.loads(file.read_text())['runs']:
                for case in each.get('cases', []):
                    if 'predicted_ms' in case and 'error' in case:
                        # Times are kept to 0.1 ms of at least 100, errors to 0.1 %.
                        self.assertAlmostEqual(case['error'],
                                               case['predicted_ms'] / case['measured_ms'] - 1,
                                               delta=0.0016)

    def test_results_are_laid_out_as_a_run_would_write_them(self):
        for file in RESULTS:
            document = json.loads(file.read_text())
            self.assertEqual(file.read_text(), experiment.text_of(document), file.name)


class Scripts(unittest.TestCase):
    def test_every_experiment_tells_its_flags_and_the_command_that_repeats_it(self):
        for file in RESULTS:
            name = f'tests/experiments/{file.stem}.py'
            done = subprocess.run([sys.executable, experiment.ROOT / name, '--help'],
                                  capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(name, done.stdout)
            for flag in re.findall(r'^    .*', done.stdout, re.M):
                for used in re.findall(r'(--[a-z][a-z-]*)', flag):
                    self.assertIn(used, done.stdout.split('options:')[1], f'{name}: {used}')


if __name__ == '__main__':
    unittest.main()
