#!/usr/bin/env python3
"""check_circles: the modules of the Python package import downwards, and never in a circle.

Usage: tools/check_circles.py [ROOT]. Counts every import: those within functions, which run late,
and those for type checkers only, too. Prints one line a circle; exit status 1 if there is one.
"""

import ast
import pathlib
import sys

import sources

PACKAGE = pathlib.PurePosixPath("python/outcore")


def module_of(path):
    """The dotted name of a file of the package: "outcore.walk"; "outcore" is its __init__."""
    parts = [PACKAGE.name, *path.relative_to(PACKAGE).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def base_of(node, module, is_package):
    """The module that `from … import` names, in full."""
    if node.level == 0:
        return node.module
    parts = module.split(".")
    up = node.level - (1 if is_package else 0)
    return ".".join(parts[: len(parts) - up] + ([node.module] if node.module else []))


def imports_of(module, is_package, text, modules):
    """Yields (imported module, line) for each import of a module of the package."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name in modules:
                    yield alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom):
            base = base_of(node, module, is_package)
            inner = [f"{base}.{alias.name}" for alias in node.names]
            for target in {name if name in modules else base for name in inner}:
                if target in modules:
                    yield target, node.lineno


def find_circles(edges):
    """Yields circles of {module: {imported: line}}, as lists of modules; none shares an import."""
    done, way = set(), []

    def walk(module):
        way.append(module)
        for target in sorted(edges.get(module, ())):
            if target in way:
                yield way[way.index(target):]
            elif target not in done:
                yield from walk(target)
        way.pop()
        done.add(module)

    for module in sorted(edges):
        if module not in done:
            yield from walk(module)


def check(texts):
    """Problems of {path: text}, the package's files."""
    paths = {module_of(path): path for path in texts}
    edges = {}
    for module, path in paths.items():
        found = imports_of(module, path.stem == "__init__", texts[path], paths)
        edges[module] = {target: line for target, line in found if target != module or
                         path.stem != "__init__"}
    problems = []
    for circle in find_circles(edges):
        line = edges[circle[0]][circle[1 % len(circle)]]
        names = " → ".join(name.rpartition(".")[2] for name in [*circle, circle[0]])
        problems.append(sources.problem(paths[circle[0]], line, f"a circle of imports: {names}: "
                                        "give the lower one what it needs as an argument"))
    return problems


def main(arguments):
    root = pathlib.Path(arguments[0]).resolve() if arguments else sources.ROOT
    files = [p for p in sources.list_files(root)
             if p.suffix in (".py", ".pyi") and PACKAGE in p.parents]
    problems = check({p: sources.read(root, p) for p in files})
    return sources.report("check_circles", problems, len(files))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
