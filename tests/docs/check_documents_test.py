#!/usr/bin/env python3
"""That check_documents.py and check_lines.py find what is wrong, and what is printed is written."""
import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
import check_documents as check  # beside this file
import check_lines

PRINTED = ['name   step', 'flat   1.00', 'naive  2.00', 'done']


class Printed(unittest.TestCase):
    def test_what_is_printed_agrees_line_by_line(self):
        self.assertTrue(check.agrees(PRINTED, PRINTED))
        self.assertFalse(check.agrees(PRINTED[:-1], PRINTED))
        self.assertFalse(check.agrees([*PRINTED[:-1], 'Done'], PRINTED))

    def test_lines_may_be_left_out_where_it_says_so(self):
        self.assertTrue(check.agrees(['name   step', '[...]', 'done'], PRINTED))
        self.assertTrue(check.agrees(['[...]', 'naive  2.00', '[...]'], PRINTED))
        self.assertTrue(check.agrees(['[...]'], PRINTED))
        self.assertFalse(check.agrees(['flat   1.00', '[...]'], PRINTED))
        self.assertFalse(check.agrees(['[...]', 'flat   1.00'], PRINTED))
        self.assertFalse(check.agrees(['[...]', 'naive  2.01', '[...]'], PRINTED))

    def test_parts_stand_in_order_and_do_not_overlap(self):
        self.assertFalse(check.agrees(['[...]', 'naive  2.00', '[...]', 'flat   1.00', '[...]'],
                                      PRINTED))
        self.assertFalse(check.agrees(['name   step', 'flat   1.00', '[...]', 'flat   1.00',
                                       'naive  2.00', 'done'], PRINTED))

    def test_an_update_keeps_what_is_left_out(self):
        new = ['name    step', 'flat    1.50', 'naive   2.50', 'more', 'finished']
        self.assertEqual(check.updated(['name   step', '[...]', 'naive  2.00', '[...]'], new),
                         ['name    step', '[...]', 'naive   2.50', '[...]'])
        self.assertEqual(check.updated(['[...]', 'done'], new), ['[...]', 'finished'])
        self.assertEqual(check.updated(PRINTED, new), new)
        for printed in (['[...]', 'flat   1.00', '[...]', 'done'], ['name', '[...]']):
            self.assertTrue(check.agrees(check.updated(printed, new), new))


class FakeProgram:
    """Says what ddpsim would."""
    names = ['run', 'tune']

    def __init__(self, folder, printed=None, code=0):
        self.folder, self.printed, self.code = pathlib.Path(folder), printed, code

    def help(self, command):
        return {'': 'ddpsim --version', 'run': '--why  --set KEY=VALUE  -q'}.get(command, '--set')

    def knows_key(self, key):
        return key == 'training.bucket_cap'

    def run(self, command):
        return self.printed, self.code


class Documents(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def document(self, text):
        path = self.folder / 'page.md'
        path.write_text(text)
        return check.Document(path)

    def problems(self, text):
        return [problem.split(': ', 1)[1] for problem in
                check.text_problems(self.document(text), FakeProgram(self.folder))]

    def command_problems(self, text, printed, code=0, update=False):
        found = check.command_problems(self.document(text),
                                       FakeProgram(self.folder, printed, code), set(), update)
        return [problem.split(': ', 1)[1] for problem in found]

    def test_a_page_in_order_has_no_problems(self):
        self.assertEqual(self.problems(
            '# A page\n\nSee [below](#the-end), `tests/docs/check_documents.py --texts`, `--why`,\n'
            '`ddpsim run FILE --set training.bucket_cap=1MiB`, `training.bucket_cap`.\n\n'
            '```console\n$ ddpsim run --why\n```\n\n## The end\n'), [])

    def test_stale_names_are_found(self):
        for text, problem in (
                ('[a](nowhere.md)', 'a link to nowhere.md, which is not there'),
                ('# One\n[a](#two)', 'a link to #two, which page.md does not have'),
                ('`tests/docs/nothing.py`', 'no file "tests/docs/nothing.py"'),
                ('`tests/docs/check_documents.py --none`',
                 'tests/docs/check_documents.py has no flag --none'),
                ('`ddpsim run --none`', 'ddpsim run has no flag --none'),
                ('`ddpsim guess FILE`', 'ddpsim has no command "guess"'),
                ('`--no-such-flag`', 'no flag --no-such-flag anywhere'),
                ('`training.cap`', 'no key training.cap'),
                ('```console gpu\n$ ddpsim run \\\n    --none\n```',
                 'ddpsim run has no flag --none'),
                ('```sh\ntools/no-such-file --set\n```', 'no file "tools/no-such-file"'),
                ('```console quickly\n$ ddpsim run\n```', 'what does "quickly" mean?'),
                ('```\nanything\n```', 'what is a block of ""?'),
                ('x' * 121, '121 columns, at most 120'),
                ('The run of revision 0fde57f', '"revision 0fde57f" belongs to a diary'),
                ('On 2026-11-21 it was so', '"2026-11-21" belongs to a diary')):
            self.assertEqual(self.problems(text + '\n'), [problem], text)

    def test_what_commands_print_may_be_wide_and_dated(self):
        self.assertEqual(self.problems('```console\n$ ddpsim run\n2026-11-21 ' + 'x' * 121
                                       + '\n```\n'), [])

    def test_commands_are_run_and_compared(self):
        text = '```console\n$ ddpsim run\none\n```\n'
        self.assertEqual(self.command_problems(text, ['one']), [])
        self.assertIn('prints something else', self.command_problems(text, ['two'])[0])
        self.assertIn('exit code 2, not 0', self.command_problems(text, ['one'], code=2)[0])
        self.assertEqual(
            self.command_problems(text.replace('console', 'console exit=2'), ['one'], code=2), [])
        for word in check.NOT_RUN:
            self.assertEqual(
                self.command_problems(text.replace('console', f'console {word}'), ['two']), [])

    def test_an_update_writes_each_block_where_it_stands(self):
        text = ('```console\n$ ddpsim run\nold\n$ ddpsim tune\nold\n```\nProse.\n\n'
                '```console\n$ ddpsim run \\\n    --why\n[...]\nold\n```\nEnd.\n')
        self.assertEqual(self.command_problems(text, ['one', 'two'], update=True), [])
        self.assertEqual((self.folder / 'page.md').read_text(),
                         '```console\n$ ddpsim run\none\ntwo\n$ ddpsim tune\none\ntwo\n```\nProse.'
                         '\n\n```console\n$ ddpsim run \\\n    --why\n[...]\ntwo\n```\nEnd.\n')

    def test_sections_are_called_as_github_calls_them(self):
        self.assertEqual(
            self.document('# A `run`, first\n## Pros & cons\n## The end\n## The end\n').anchors(),
            {'a-run-first', 'pros--cons', 'the-end', 'the-end-1'})


class Lines(unittest.TestCase):
    def test_lines_of_code_that_are_too_long_are_found_and_data_may_be_wide(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name in ('wide.yaml', 'page.md', 'notes', 'build/made.cpp', '.git/hook.py'):
                (root / name).parent.mkdir(exist_ok=True)
                (root / name).write_text('x' * 200 + '\n')
            (root / 'fits.cpp').write_text('ä' * 100 + '\n')  # columns, not bytes
            self.assertEqual(list(check_lines.long_lines(root)), [])
            for name in ('a.cu', 'CMakeLists.txt', 'room/b.hpp', 'room/script'):
                (root / name).parent.mkdir(exist_ok=True)
                (root / name).write_text('#!/bin/sh\n# ' + 'x' * 99 + '\n')
            self.assertEqual(list(check_lines.long_lines(root)),
                             [f'{name}:2: 101 columns, at most 100'
                              for name in ('CMakeLists.txt', 'a.cu', 'room/b.hpp', 'room/script')])


if __name__ == '__main__':
    unittest.main()
