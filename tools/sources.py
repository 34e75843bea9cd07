"""Sources: the files of the project that the checks look at, and their text without comments."""

import pathlib
import subprocess

CODE_SUFFIXES = {".h", ".cc", ".c", ".py", ".sh", ".cmake"}
CPP_SUFFIXES = {".h", ".cc", ".c"}
ROOT = pathlib.Path(__file__).resolve().parent.parent


class Problem(str):
    """One line for people: where, what, and the remedy."""


def problem(path, line, text):
    return Problem(f"{path}:{line}: {text}")


def list_files(root=ROOT):
    """Paths relative to `root`: what git tracks or would track; without git, every file."""
    git = ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = None
    if (root / ".git").exists():
        listed = subprocess.run(git, capture_output=True, check=False)
    if listed is not None and listed.returncode == 0:
        names = [pathlib.PurePosixPath(n) for n in listed.stdout.decode().split("\0") if n]
        return sorted({name for name in names if (root / name).is_file()})
    found = (p.relative_to(root) for p in root.rglob("*") if p.is_file())
    return sorted(pathlib.PurePosixPath(p) for p in found if not p.parts[0].startswith("build"))


def read(root, path):
    return (root / path).read_text(encoding="utf-8", errors="replace")


def blank(text):
    """The same text with every character but newlines replaced, so that line numbers stay."""
    return "".join("\n" if c == "\n" else " " for c in text)


def end_of_quoted(text, start):
    """The index after the literal that opens at `start`; a newline ends a broken one."""
    quote, i = text[start], start + 1
    while i < len(text) and text[i] != quote and text[i] != "\n":
        i += 2 if text[i] == "\\" else 1
    return min(i + 1, len(text))


def is_digit_separator(text, i):
    """True for the quote of 1'000."""
    before, after = text[i - 1 : i], text[i + 1 : i + 2]
    return before.isalnum() and after.isalnum() and not (before in "uUL" and after == "'")


def strip_cpp(text, keep_literals=False):
    """C++ without comments, and without the contents of literals unless they are kept."""
    out, i = [], 0
    while i < len(text):
        two = text[i : i + 2]
        if two == "//":
            end = text.find("\n", i)
            end = len(text) if end < 0 else end
            out.append(blank(text[i:end]))
        elif two == "/*":
            end = text.find("*/", i + 2)
            end = len(text) if end < 0 else end + 2
            out.append(blank(text[i:end]))
        elif two == 'R"':
            open_at = text.find("(", i)
            close = ")" + text[i + 2 : open_at] + '"'
            end = text.find(close, open_at)
            end = len(text) if end < 0 else end + len(close)
            out.append(text[i:end] if keep_literals else '""' + blank(text[i + 2 : end]))
        elif text[i] == '"' or (text[i] == "'" and not is_digit_separator(text, i)):
            end = end_of_quoted(text, i)
            inside = text[i + 1 : end - 1]
            out.append(text[i:end] if keep_literals else text[i] + blank(inside) + text[end - 1])
        else:
            end = i + 1
            out.append(text[i])
        i = end
    return "".join(out)


def report(name, problems, checked):
    """Prints the problems and returns the exit status."""
    for line in problems:
        print(line)
    verdict = f"{len(problems)} problems" if problems else "ok"
    print(f"{name}: {checked} files, {verdict}")
    return 1 if problems else 0
