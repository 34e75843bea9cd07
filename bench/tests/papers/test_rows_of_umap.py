"""Rows of UMap have right answers."""

import unittest

from tiny_rows import TinyRows  # first: the paths

from experiment import UMAP


class Rows(TinyRows, unittest.TestCase):
    paper = UMAP


if __name__ == "__main__":
    unittest.main()
