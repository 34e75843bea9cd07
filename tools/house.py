#!/usr/bin/env python3
"""house: how large each product is, how much of it is asserted, and its longest functions.

Usage: tools/house.py [--check] [ROOT]. A table of all products, and the longest functions; with
--check only what is below its floor, exit status 1 if something is. Decision 0031 has its tables.

Lines are those of .h, .cc, .c and .py, comments among them, without tests. Assertions are counted a
thousand lines of .h, .cc and .c. Commands of all products are one row, and not in the product's.
"""

import collections
import re
import sys

import check_sizes
import sources

ASSERTION = re.compile(r"\b(?:OC_CHECK|OC_ASSERT|BENCH_CHECK|CLI_CHECK)\s*\(")
# Assertions a thousand lines, at least. Products that are not named are shown alone.
FLOORS = {"core": 15, "far": 8, "checkpoints": 8, "heaps": 8, "arrays": 8, "umap": 8, "run": 8,
          "bench": 8, "commands": 5, "cli": 7, "python": 4}
LONGEST = 6  # functions that are shown
PRODUCTS = ["core", "far", "checkpoints", "heaps", "arrays", "umap", "run", "bench", "commands",
            "cli", "python", "include", "tests"]


class Product:
    """What is counted of one row."""
    def __init__(self):
        self.files = self.lines = self.lines_of_cpp = self.assertions = 0

    def add(self, path, text):
        lines = text.count("\n")
        self.lines += lines
        self.files += 1
        if path.suffix in sources.CPP_SUFFIXES:
            self.lines_of_cpp += lines
            self.assertions += sum(1 for line in sources.strip_cpp(text).split("\n")
                                   if "#define" not in line for _ in ASSERTION.finditer(line))

    @property
    def density(self):
        return 1000 * self.assertions / max(self.lines_of_cpp, 1)


def product_of(path):
    """The row that a file belongs to, or None."""
    if "tests" in path.parts[:2]:
        return "tests"
    if path.parts[1:2] == ("commands",):
        return "commands"
    return path.parts[0] if path.parts[0] in PRODUCTS else None


def count(root):
    """(product -> what it has, (lines, function, path) of the library, the longest first)."""
    products, functions = collections.defaultdict(Product), []
    for path in sources.list_files(root):
        product = product_of(path)
        if product is None or path.suffix not in sources.CPP_SUFFIXES | {".py"}:
            continue
        text = sources.read(root, path)
        products[product].add(path, text)
        if path.suffix != ".py" and product not in ("tests", "include"):
            functions += [(lines, name, str(path))
                          for name, _, lines in check_sizes.cpp_functions(text)]
    return products, sorted(functions, reverse=True)


def below_floor(products):
    return [sources.Problem(f"{name}: {products[name].density:.1f} assertions a thousand lines, at "
                            f"least {floor}: say what must hold (core/base/assert.h, "
                            "cli/assert.h, bench/check.h)")
            for name, floor in FLOORS.items() if products[name].density < floor]


def print_tables(products, functions):
    print(f"{'':12} {'lines':>8} {'assertions':>11} {'a thousand':>11} {'floor':>6}")
    for name in PRODUCTS:
        row = products[name]
        print(f"{name:12} {row.lines:8,} {row.assertions:11,} {row.density:11.1f} "
              f"{FLOORS.get(name, ''):>6}")
    print("\nlongest functions")
    for lines, name, path in functions[:LONGEST]:
        print(f"{lines:4} {name} ({path})")


def main(arguments):
    is_check = "--check" in arguments
    rest = [argument for argument in arguments if argument != "--check"]
    root = sources.pathlib.Path(rest[0]).resolve() if rest else sources.ROOT
    products, functions = count(root)
    if not is_check:
        print_tables(products, functions)
    files = sum(product.files for product in products.values())
    return sources.report("house", below_floor(products), files) if is_check else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
