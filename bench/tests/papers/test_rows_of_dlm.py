"""Rows of DLM have right answers."""

import unittest

from tiny_rows import TinyRows  # first: the paths

from experiment import DLM


class Rows(TinyRows, unittest.TestCase):
    paper = DLM


if __name__ == "__main__":
    unittest.main()
