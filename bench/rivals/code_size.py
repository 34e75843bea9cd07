#!/usr/bin/env python3
"""code_size: lines and tokens of programs in C or C++.

Usage: bench/rivals/code_size.py FILE…

As the pMAP paper has it, lines without significant code do not count: a line counts if it holds a
token that is not a lone bracket or semicolon, so `}` alone is none. Tokens are those of the
language after comments are gone and before the preprocessor runs (C++20, 5.4 [lex.token]): names
and keywords, numbers, literals with their prefix, and operators and punctuators, of which the
longest that fits is one token (`::`, `<<=`, `->`; `>>` is one). A directive is one line; `#include
<mpi.h>` is three tokens: #, include, and the header's name.
"""

import re
import sys

# The longest first.
OPERATORS = (
    "%:%:", "<<=", ">>=", "...", "<=>", "->*", "::", ".*", "->", "++", "--", "<<", ">>", "<=", ">=",
    "==", "!=", "&&", "||", "+=", "-=", "*=", "/=", "%=", "^=", "&=", "|=", "##", "<:", ":>", "<%",
    "%>", "%:", "{", "}", "[", "]", "(", ")", ";", ":", "?", ".", "~", "!", "+", "-", "*", "/", "%",
    "^", "&", "|", "=", "<", ">", ",", "#")
PREFIX = r"(?:u8|u|U|L)?"
TOKEN = re.compile("|".join((
    rf'(?P<raw>{PREFIX}R"(?P<mark>[^\s()\\]{{0,16}})\((?:.|\n)*?\)(?P=mark)")',
    rf'(?P<text>{PREFIX}"(?:\\.|[^"\\\n])*")',
    rf"(?P<character>{PREFIX}'(?:\\.|[^'\\\n])+')",
    r"(?P<number>\.?\d(?:[eEpP][+-]|'?\w|\.)*)",
    r"(?P<name>[^\W\d]\w*)",
    "(?P<operator>" + "|".join(map(re.escape, OPERATORS)) + ")")))
HEADER = re.compile(r'<[^>\n]+>|"[^"\n]+"')
SPACE = re.compile(r"(?:\s|\\\n|//(?:\\\n|[^\n])*|/\*(?:.|\n)*?\*/)+")
ALONE = set("{}[]();")


def tokens(text):
    """Pairs (line, token), lines from 1."""
    found, at = [], 0
    while at < len(text):
        space = SPACE.match(text, at)
        if space:
            at = space.end()
            continue
        is_header = [token for _, token in found[-2:]] == ["#", "include"]
        token = is_header and HEADER.match(text, at) or TOKEN.match(text, at)
        line = text.count("\n", 0, at) + 1
        if token is None:
            raise ValueError(f"line {line}: no token of C++ begins at {text[at:at + 10]!r}")
        found.append((line, token.group()))
        at = token.end()
    return found


def code_size(text):
    """Lines and tokens."""
    found = tokens(text)
    lines = {line for line, token in found if token not in ALONE}
    return len(lines), len(found)


def main(paths):
    if not paths or paths[0].startswith("-"):
        print(__doc__.strip(), file=sys.stderr)
        return 2
    for path in paths:
        try:
            with open(path, encoding="utf-8") as file:
                lines, count = code_size(file.read())
        except (OSError, ValueError) as why:
            print(f"code_size: {path}: {why}", file=sys.stderr)
            return 1
        print(f"{lines:4} lines {count:5} tokens  {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
