#!/usr/bin/env python3
"""check_sizes: files ≤ 400 lines, functions ≤ 70, lines ≤ 100 columns, headers with a first line.

Usage: tools/check_sizes.py [ROOT]. Prints one line a problem; exit status 1 if there is one.
"""

import ast
import pathlib
import re
import sys

import sources

FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 70
COLUMNS_MAX = 100
INTRODUCTION = re.compile(r"^// [^\s:][^:]*: \S")
SCOPE = re.compile(r"\b(namespace|class|struct|union|enum)\b|\bextern\s*(\"[^\"]*\")?\s*$")
NAME = re.compile(r"([~\w:]+|operator\s*\S+)\s*\(")


def without_directives(text):
    """Blanks preprocessor lines, with their continuations: braces in macros need not balance."""
    out, is_continued = [], False
    for line in text.split("\n"):
        is_directive = is_continued or line.lstrip().startswith("#")
        is_continued = is_directive and line.endswith("\\")
        out.append("" if is_directive else line)
    return "\n".join(out)


def opens_function(head):
    """True if the text between the last statement and a brace is a function's head."""
    flat = re.sub(r"\btemplate\s*<[^{}]*?>\s*(?=[\w\[:~])", "", head)
    if "(" not in flat or flat.rstrip().endswith("="):
        return False
    return not SCOPE.search(flat.split("(")[0])


def cpp_functions(text):
    """Yields (name, first line, lines) of each function that is not inside another."""
    code = without_directives(sources.strip_cpp(text))
    stack, head_start, line = [], 0, 1
    for i, c in enumerate(code):
        if c == "\n":
            line += 1
        elif c == "{":
            head = code[head_start:i]
            is_inside = any(entry is not None for entry in stack)
            entry = None
            if not is_inside and opens_function(head):
                start = line - head.lstrip().count("\n")
                name = NAME.search(re.sub(r"\btemplate\s*<[^{}]*?>", "", head))
                entry = (name.group(1) if name else "function", start)
            stack.append(entry)
            head_start = i + 1
        elif c == "}":
            entry = stack.pop() if stack else None
            if entry:
                yield entry[0], entry[1], line - entry[1] + 1
            head_start = i + 1
        elif c == ";":
            head_start = i + 1


def python_functions(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.name, node.lineno, node.end_lineno - node.lineno + 1


def shell_functions(text):
    start = name = None
    for number, line in enumerate(text.split("\n"), 1):
        opened = re.match(r"(\w+)\(\) \{", line)
        if opened and not line.rstrip().endswith("}"):
            name, start = opened.group(1), number
        elif line == "}" and start:
            yield name, start, number - start + 1
            start = None


def functions(path, text):
    if path.suffix in sources.CPP_SUFFIXES:
        return cpp_functions(text)
    if path.suffix == ".py":
        return python_functions(text)
    return shell_functions(text) if path.suffix == ".sh" else ()


def check_header(path, lines):
    found = []
    if not lines or not INTRODUCTION.match(lines[0]):
        found.append(sources.problem(path, 1, "a header begins with '// Thing: what it is.'"))
    if "#pragma once" not in lines:
        found.append(sources.problem(path, 1, "a header says #pragma once"))
    return found


def check_file(path, text):
    lines = text.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    found = check_header(path, lines) if path.suffix == ".h" else []
    if len(lines) > FILE_LINES_MAX:
        why = f"{len(lines)} lines, at most {FILE_LINES_MAX}: split it by noun"
        found.append(sources.problem(path, len(lines), why))
    for number, line in enumerate(lines, 1):
        if len(line) > COLUMNS_MAX:
            why = f"{len(line)} columns, at most {COLUMNS_MAX}"
            found.append(sources.problem(path, number, why))
    for name, start, length in functions(path, text):
        if length > FUNCTION_LINES_MAX:
            why = f"{name} has {length} lines, at most {FUNCTION_LINES_MAX}: name its parts"
            found.append(sources.problem(path, start, why))
    return found


def main(arguments):
    root = pathlib.Path(arguments[0]).resolve() if arguments else sources.ROOT
    files = [p for p in sources.list_files(root) if p.suffix in sources.CODE_SUFFIXES]
    problems = [line for p in files for line in check_file(p, sources.read(root, p))]
    return sources.report("check_sizes", problems, len(files))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
