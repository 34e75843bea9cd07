"""site_hooks: makes the links that work on a git host work in the site, too.

mkdocs knows only what lies in docs/. Pages there, and README.md or ARCHITECTURE.md, link to files
elsewhere in the repository: those become pages of the site (headers and examples as code), and
links in them are followed in turn. Links are written relative to the repository everywhere; here
they become relative to the pages. A link that leads nowhere ends a build with --strict.
"""

import os
import pathlib
import posixpath
import re

from mkdocs.structure.files import File

ROOT = pathlib.Path(__file__).resolve().parent.parent
DECISIONS = "internals/decisions"
# Pages of the navigation that may not be there yet.
OPTIONAL = {"guides/sight.md"}
LANGUAGES = {".h": "cpp", ".cc": "cpp", ".c": "c", ".py": "python", ".sh": "bash", ".toml": "toml"}
CODE_BYTES_MAX = 200_000
# A file that the page shows (tools/docs_pages.py): its name becomes the block's title.
NAMED = re.compile(r"^<!-- file: (\S+) -->\n(`{3,}\w+)$", re.MULTILINE)
LINK = re.compile(r"(\]\()([^)\s#]+)(#[^)\s]*)?(\))")
FENCE = re.compile(r"^(```|~~~).*?^\1\s*$", re.MULTILINE | re.DOTALL)


def outside_code(text, change):
    """`change` applied to all that is in no block of code."""
    kept, at = [], 0
    for match in FENCE.finditer(text):
        kept += [change(text[at:match.start()]), match.group(0)]
        at = match.end()
    return "".join([*kept, change(text[at:])])


def repository_path(src_uri):
    """Where in the repository a page of the site comes from."""
    if (ROOT / "docs" / src_uri).is_file():
        return "docs/" + src_uri
    if src_uri == DECISIONS + "/index.md":
        return f"docs/{DECISIONS}/index.md"
    return src_uri[len("source/"):] if src_uri.startswith("source/") else src_uri


def page_of(path):
    """The page of the site that shows a path of the repository, or None."""
    if path in ("docs/" + DECISIONS, f"docs/{DECISIONS}/index.md"):
        return DECISIONS + "/index.md"
    if not (ROOT / path).is_file():
        return None
    if path.startswith("docs/") and path.endswith((".md", ".png")):
        return path[len("docs/"):]
    if path.endswith(".md"):
        # (To mkdocs a README.md at the top is the site's first page; that is docs/index.md.)
        return "source/" + path if "/" in path or path == "README.md" else path
    return f"source/{path}.md"


def is_elsewhere(target):
    return "://" in target or target.startswith(("mailto:", "/"))


def links_of(path, text):
    """Paths of the repository that a page links to."""
    found = []

    def note(part):
        for match in LINK.finditer(part):
            if not is_elsewhere(match[2]):
                found.append(posixpath.normpath(posixpath.join(posixpath.dirname(path), match[2])))
        return part
    outside_code(text, note)
    return found


def text_of(path):
    """What a page that is not in docs/ shows."""
    text = (ROOT / path).read_text(encoding="utf-8")
    if path.endswith(".md"):
        return text
    language = LANGUAGES.get(pathlib.PurePath(path).suffix, "text")
    return (f"---\nsearch: {{exclude: true}}\n---\n# {path}\n\n"
            f"````{language}\n{text[:CODE_BYTES_MAX]}\n````\n")


def title_of(path):
    first = (ROOT / path).read_text(encoding="utf-8").split("\n", 1)[0]
    return first.lstrip("# ").strip()


def decision_paths():
    return sorted(p.name for p in (ROOT / "docs" / DECISIONS).glob("[0-9]*.md"))


def list_of_decisions():
    lines = ["# Decisions", "", "Why Outcore is built as it is: one page each, the oldest first. "
             "What was tried and left stands there, too.", ""]
    lines += [f"- [{title_of(f'docs/{DECISIONS}/{name}')}]({name})" for name in decision_paths()]
    return "\n".join(lines) + "\n"


def on_config(config):
    """Leaves out optional pages; the folder of decisions becomes its pages."""
    def pruned(entry):
        if isinstance(entry, dict):
            (title, value), = entry.items()
            if value == DECISIONS + "/":
                pages = [f"{DECISIONS}/{name}" for name in decision_paths()]
                return {title: [DECISIONS + "/index.md", *pages]}
            value = pruned(value)
            return {title: value} if value else None
        if isinstance(entry, list):
            return [kept for kept in map(pruned, entry) if kept]
        is_missing = entry in OPTIONAL and not (ROOT / "docs" / entry).is_file()
        return None if is_missing else entry
    config.nav = pruned(config.nav)
    return config


def on_files(files, config):
    """Adds the pages that are linked to, and what those link to."""
    waiting = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"]
    for file in files.documentation_pages():
        waiting += links_of("docs/" + file.src_uri, file.content_string)
    if not files.get_file_from_path(DECISIONS + "/index.md"):
        files.append(File.generated(config, DECISIONS + "/index.md", content=list_of_decisions()))
    seen = set()
    while waiting:
        path = waiting.pop()
        page = page_of(path)
        if path in seen or page is None or path.startswith("../"):
            continue
        seen.add(path)
        if not files.get_file_from_path(page):
            text = text_of(path)
            files.append(File.generated(config, page, content=text))
            if path.endswith(".md"):
                waiting += links_of(path, text)
    return files


def on_page_markdown(markdown, page, config, files):
    """Links of the repository become links of the site."""
    if page.file.src_uri.startswith(DECISIONS):
        page.meta.setdefault("search", {"boost": 0.3})  # after the pages for users
    here = page.file.src_uri
    folder = posixpath.dirname(repository_path(here))

    def changed(match):
        if is_elsewhere(match[2]):
            return match[0]
        target = page_of(posixpath.normpath(posixpath.join(folder, match[2])))
        if target is None:
            return match[0]  # pictures, and what leads nowhere: mkdocs says so
        link = os.path.relpath(target, posixpath.dirname(here) or ".")
        return f"{match[1]}{link}{match[3] or ''}{match[4]}"
    named = NAMED.sub(r'\2 title="\1"', markdown)
    return outside_code(named, lambda part: LINK.sub(changed, part))
