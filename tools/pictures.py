#!/usr/bin/env python3
"""pictures.py [NAME…] : draws docs/pictures/use-NAME.png anew, what the page about a run of each
use case shows; and report-*.png, the top of the one about REPORT, light and dark, in three sizes.
Needs chromium, an `outcore` of `make build`, Pillow, and what the use cases need (Python with
numpy, safetensors, faiss and outcore: PICTURES_PYTHON; kraken2, ragout-examples)."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "sight/tests/page")]

import browser  # noqa: E402
import docs_pages  # noqa: E402
from PIL import Image  # noqa: E402

PYTHON = os.environ.get("PICTURES_PYTHON", sys.executable)
WIDTH = 1000
REPORT = "genomics"  # of which the guide and the README show more
SIZES = {"": 1000, "-wide": 1600, "-narrow": 400}
# Whole parts of the page: what the texts beside the pictures are about.
SHOWN = ("verdict", "figures", "misses")
SHOWN_OF = {"graphs": (*SHOWN, "files"), "numpy": ("verdict", "figures", "timeline"),
            "simulations": (*SHOWN, "files"), "vector-search": ("verdict", "figures", "files")}
SHOWN_OF_REPORT = ("verdict", "figures", "timeline", "files")
KEEP = """(shown => {
  document.querySelector("footer").remove();
  [...document.querySelectorAll("#files .file")].slice(1).forEach(node => node.remove());
  for (const node of document.querySelectorAll("main > :not(.who)"))
    if (![node, ...node.querySelectorAll("section")].some(n => shown.includes(n.id))) node.remove();
})"""

# By use case: the command that the page shows, with a budget at which there is something to see.
RUNS = {
    "genomics": "outcore run -q --budget 16M --min-size 1M --report page.html -- "
                "kraken2 --db db --memory-mapping --output under.txt reads.fa",
    "graphs": "outcore run --budget 16M --min-size 1M --report page.html -- ./bfs",
    "model-weights": "outcore run --budget 32M --report page.html -- python3 generate.py",
    "numpy": "OUTCORE_REPORT=run.json python3 rows.py outcore && "
             "outcore report run.json -o page.html",
    "simulations": "OUTCORE_REPORT=run.json OUTCORE_BUDGET=24M ./stream && "
                   "outcore report run.json -o page.html",
    "vector-search": "outcore run --budget 32M --report page.html -- python3 query.py",
}
# What a page's commands make first; all that begin with one of these.
PREPARATIONS = ("python3 make_", "python3 index.py", "gcc ", "occ ", "mkdir ", "kraken2-build ")


def prepare(page, folder, environment):
    for block in docs_pages.blocks_of(page.read_text(encoding="utf-8")):
        if "file" in block.notes:
            (folder / block.notes["file"]).write_text(block.text, encoding="utf-8")
        elif block.language == "console":
            for command in docs_pages.commands_of(block):
                if command.text.startswith(PREPARATIONS):
                    subprocess.run(command.text, shell=True, check=True, cwd=folder,
                                   env=environment)


def take(shot, page, name, shown, width=WIDTH, scheme="light"):
    shot.size(width)
    shot.media(scheme)
    shot.open(page)
    shot.ask(f"{KEEP}({json.dumps(shown)})")
    shot.settle()
    path = ROOT / f"docs/pictures/{name}.png"
    shot.picture(path)
    with Image.open(path) as picture:  # a third of the bytes, and nobody sees a difference
        picture.convert("RGB").quantize(128, dither=Image.Dither.NONE).save(path, optimize=True)
    print(f"docs/pictures/{name}.png")


def main():
    names = sys.argv[1:] or list(RUNS)
    if unknown := [name for name in names if name not in RUNS]:
        sys.exit(f"pictures: '{unknown[0]}' is not a use case: use one of {', '.join(RUNS)}")
    path = f"{ROOT / 'build/bin'}:{os.path.dirname(PYTHON)}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "OUTCORE_CONFIG": ""}
    shot = browser.Browser()
    try:
        for name in names:
            with tempfile.TemporaryDirectory(prefix=f"{name}-") as folder:
                prepare(ROOT / f"docs/use-cases/{name}.md", pathlib.Path(folder), environment)
                subprocess.run(RUNS[name], shell=True, check=True, cwd=folder, env=environment)
                page = f"{folder}/page.html"
                take(shot, page, f"use-{name}", SHOWN_OF.get(name, SHOWN))
                for size, width in SIZES.items() if name == REPORT else ():
                    for scheme in ("light", "dark"):
                        take(shot, page, f"report-{scheme}{size}", SHOWN_OF_REPORT, width, scheme)
    finally:
        shot.close()


if __name__ == "__main__":
    main()
