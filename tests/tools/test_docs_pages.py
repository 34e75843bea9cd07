"""docs_pages: which blocks are run, which commands they have, and when what they print is right."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import docs_pages  # noqa: E402


def page(*blocks):
    return docs_pages.blocks_of("\n\n".join(blocks))


class Blocks(unittest.TestCase):
    def test_a_block_that_is_neither_run_nor_marked_is_a_problem(self):
        for block in ("```\nmake\n```", "```fortran\nend\n```",
                      "<!-- not run: -->\n```\nmake\n```"):
            self.assertIsNotNone(page(block)[0].problem(), block)

    def test_a_reason_is_enough(self):
        block, = page("<!-- not run: needs Docker -->\n```bash\ndocker run x\n```")
        self.assertIsNone(block.problem())
        self.assertFalse(block.is_run)

    def test_other_languages_are_shown_unless_they_are_files(self):
        shown, file = page("```c\nint x;\n```", "<!-- file: a.c -->\n```c\nint x;\n```")
        self.assertEqual((shown.is_run, shown.problem()), (False, None))
        self.assertTrue(file.is_run)
        self.assertEqual((file.notes["file"], file.text), ("a.c", "int x;\n"))

    def test_a_note_is_of_the_next_block_alone(self):
        first, second = page("<!-- slow -->\n<!-- needs: jq, faiss -->\n```bash\nx\n```",
                             "```bash\ny\n```")
        self.assertEqual((first.needs, "slow" in first.notes), (["jq", "faiss"], True))
        self.assertEqual(second.notes, {})

    def test_text_between_a_note_and_a_block_parts_them(self):
        block, = page("<!-- slow -->\nBut this:\n```bash\nx\n```")
        self.assertEqual(block.notes, {})

    def test_a_session_is_known_by_its_prompt(self):
        session, program = page("```python\n>>> 1\n1\n```", "```python\nprint(1)\n```")
        self.assertEqual((session.is_session, program.is_session), (True, False))


class Commands(unittest.TestCase):
    def commands(self, text):
        block, = page(f"```console\n{text}\n```")
        return [(c.text, c.shown) for c in docs_pages.commands_of(block)]

    def test_each_prompt_is_a_command_with_what_it_prints(self):
        self.assertEqual(self.commands("$ a\n1\n2\n$ b"), [("a", ["1", "2"]), ("b", [])])

    def test_a_command_goes_on_while_the_shell_would_ask_for_more(self):
        for text in ("a \\\n  b", "sqlite3 x \"\n  SELECT 1;\"",
                     "for i in 1 2; do\n  a $i\n  done; wait", "cat <<E\nx y\nE", "a 'b\n  c'"):
            self.assertEqual(self.commands(f"$ {text}\nprinted"), [(text, ["printed"])])

    def test_an_apostrophe_within_quotes_opens_nothing(self):
        self.assertEqual(self.commands("$ echo \"it's\"\nit's"), [("echo \"it's\"", ["it's"])])

    def test_without_prompts_the_block_is_one_command(self):
        self.assertEqual(self.commands("a\nb"), [("a\nb", [])])


class Comparison(unittest.TestCase):
    def test_what_is_printed_must_be_shown(self):
        self.assertIsNone(docs_pages.compare(["1", "2"], ["1", "2"], []))
        self.assertIn("not shown: 2", docs_pages.compare(["1"], ["1", "2"], []))
        self.assertIn("not printed: 3", docs_pages.compare(["1", "3"], ["1"], []))

    def test_numbers_of_the_output_count(self):
        self.assertIsNotNone(docs_pages.compare(["sum 41"], ["sum 42"], []))
        self.assertIsNone(docs_pages.compare(["sum 41"], ["sum 42"], [], do_numbers_vary=True))

    def test_dots_stand_for_lines_and_for_parts_of_them(self):
        self.assertIsNone(docs_pages.compare(["a", "…", "z"], ["a", "b", "c", "z"], []))
        self.assertIsNone(docs_pages.compare(["a … z"], ["a lot of z"], []))
        self.assertIsNotNone(docs_pages.compare(["…", "z"], ["a", "b"], []))

    def test_of_reports_numbers_units_and_folders_may_differ(self):
        shown = "  …/hash.k2d       8.6 MiB       2199    9.1 MiB   1.06 x        0 B  *"
        printed = "  …wy_cz/page/hash.k2d  90.2 KiB   7    1.0 GiB   3.06 x        12 B  *"
        self.assertIsNone(docs_pages.compare([shown], [], ["outcore: x", printed]))
        self.assertIsNotNone(docs_pages.compare([shown], [], [printed.replace("hash", "taxo")]))


if __name__ == "__main__":
    unittest.main()
