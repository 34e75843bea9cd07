"""Rows of NVMalloc have right answers."""

import unittest

from tiny_rows import TinyRows  # first: the paths

from experiment import NVMALLOC


class Rows(TinyRows, unittest.TestCase):
    paper = NVMALLOC


if __name__ == "__main__":
    unittest.main()
