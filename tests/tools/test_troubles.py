"""Every message of docs/guides/troubles.md is one that the sources can print."""

import errno
import os
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import sources  # noqa: E402

PAGE = ROOT / "docs/guides/troubles.md"
ROOMS = ("core", "far", "checkpoints", "heaps", "arrays", "umap", "run", "sight", "cli", "include",
         "python")
# Examples of names that users mistype; what stands around them is ours.
EXAMPLES = re.compile(r"'--budgt'|OUTCORE_BUDGT|hosts\.txt|mode 'r'")
LETTERS_MIN = 9
# What the C library says of an error.
ERRNO_TEXTS = {os.strerror(number) for number in errno.errorcode}


def messages(text):
    """The first column of the tables below `## Messages`, but for what compilers say."""
    part = text.split("## Messages\n")[1].split("### Compiling")[0]
    return re.findall(r"^\| `([^`]+)`", part, re.MULTILINE)


def fixed_parts(message):
    """What is the same each time: of at least a few letters."""
    parts = re.split("…|[():;]", EXAMPLES.sub("…", message))
    parts = [part.strip(" :;,'") for part in parts]
    return [part for part in parts if len(part) >= LETTERS_MIN and part not in ERRNO_TEXTS]


def texts_of_the_sources():
    """All sources in one text, their literals joined as the compiler joins them."""
    kept = []
    for path in sources.list_files(ROOT):
        is_ours = path.parts[0] in ROOMS and path.suffix in {".cc", ".h", ".py", ".html"}
        if is_ours and "tests" not in path.parts:
            kept.append(re.sub(r'"\s*\n\s*f?"', "", sources.read(ROOT, path)))
    return "\n".join(kept)


class Troubles(unittest.TestCase):
    def test_every_message_is_of_the_sources(self):
        text = texts_of_the_sources()
        listed = messages(PAGE.read_text(encoding="utf-8"))
        self.assertGreater(len(listed), 30)
        for message in listed:
            for part in fixed_parts(message):
                self.assertIn(part, text, message)


if __name__ == "__main__":
    unittest.main()
