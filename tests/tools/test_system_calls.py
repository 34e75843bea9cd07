"""system_calls: the table is whole, and what it misses is noticed."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import system_calls  # noqa: E402

ROWS = [("read", 0, "kTakenOver", "stored first"), ("getpid", 39, "kNothing", ""),
        ("stat", 4, "kFaults", "")]
KERNEL = {"read": 0, "getpid": 39, "stat": 4}
ANSWERS = "case SYS_read: return read();"


def problems(rows=ROWS, kernel=KERNEL, answers=ANSWERS, page=None):
    return system_calls.complaints(rows, kernel, answers,
                                   system_calls.to_page(rows) if page is None else page)


class SystemCalls(unittest.TestCase):
    def test_every_call_of_this_kernels_headers_is_in_the_table(self):
        self.assertEqual(system_calls.main([]), 0)

    def test_a_table_that_says_all_is_accepted(self):
        self.assertEqual(problems(), [])

    def test_a_new_call_is_noticed(self):
        self.assertIn("new_call", problems(kernel=KERNEL | {"new_call": 999})[0])

    def test_another_number_is_noticed(self):
        self.assertEqual(len(problems(kernel=KERNEL | {"read": 7})), 1)

    def test_what_is_there_twice_is_noticed(self):
        self.assertTrue(problems(rows=ROWS + [("read", 5, "kNothing", "")]))
        self.assertTrue(problems(rows=ROWS + [("other", 39, "kNothing", "")]))

    def test_what_syscall_does_not_answer_is_noticed(self):
        self.assertEqual(len(problems(answers="")), 1)
        self.assertEqual(len(problems(answers=ANSWERS + "case SYS_stat: return 0;")), 1)

    def test_a_call_that_the_window_does_not_know_is_noticed(self):
        self.assertEqual(len(system_calls.shape_complaints(ROWS, 'S(read, "- =")')), 1)
        self.assertEqual(system_calls.shape_complaints(ROWS, 'S(stat, "s o144")'), [])

    def test_a_page_of_another_table_is_noticed(self):
        self.assertEqual(len(problems(page="")), 1)

    def test_entries_over_several_lines_are_read(self):
        text = 'X(a, 1, kFaults, "")\nX(b, 2, kNothing,\n  "one "\n  "two, (three)")\n'
        rows = system_calls.read_table(text)
        self.assertEqual(rows, [("a", 1, "kFaults", ""), ("b", 2, "kNothing", "one two, (three)")])


if __name__ == "__main__":
    unittest.main()
