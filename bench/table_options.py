"""table_options: what is said to a table of benchmarks, and what is wrong with it, in one line."""

import argparse


class Parser(argparse.ArgumentParser):
    """Wrong input gets one line."""

    def error(self, message):
        self.exit(2, f"{self.prog}: {message}; see --help\n")


def parse(arguments, prog, description, quick, names, paths, more=None, repeats=3):
    """The options of the table `prog`, whose rows have these names; `paths` are its script's.
    more(parser) adds its own. Each run is done `repeats` times by default."""
    usage = f"{prog} [--quick] [--repeats N] [--rows NAME…] [--list]{' [OPTION…]' if more else ''}"
    parser = Parser(prog=prog, usage=usage, description=description)
    parser.add_argument("--quick", action="store_true", help=quick)
    parser.add_argument("--repeats", type=int, metavar="N",
                        help=f"runs of each ({repeats}; --quick: 1)")
    parser.add_argument("--rows", nargs="+", metavar="NAME", help="these rows; --list names them")
    parser.add_argument("--list", action="store_true", help="names the rows")
    for name in paths:
        parser.add_argument(f"--{name}", help=argparse.SUPPRESS)
    if more is not None:
        more(parser)
    options = parser.parse_args(arguments)
    unknown = [name for name in options.rows or [] if name not in names]
    if unknown:
        parser.exit(2, f"{prog}: '{unknown[0]}' is not a row; there are: {', '.join(names)}\n")
    if options.repeats is None:
        options.repeats = 1 if options.quick else repeats
    if not 1 <= options.repeats <= 99:
        parser.exit(2, f"{prog}: --repeats {options.repeats}: give 1 … 99\n")
    return options
