#!/usr/bin/env python3
"""check_page: opens pages of recorded runs in a browser and says what is wrong with them.

Usage: check_page.py PAGE.html...                 pages that the program made
       check_page.py --samples TEMPLATE D3        pages of samples, made for the check
Exit status: 0 good, 1 something is wrong (a line for each), 77 there is no browser.
"""

import contextlib
import pathlib
import re
import sys
import tempfile

import make_sample_runs
from browser import Browser

PAGE_BYTES_MAX, TEMPLATE_BYTES_MAX = 1_000_000, 80_000
WIDTHS = (360, 400, 1000, 1600, 1920)
SECTIONS = ("verdict", "figures", "timeline", "files", "sites", "misses", "reuse", "latency",
            "settings", "environment", "counters")
CONTENT = {"verdict": "h1 .given", "figures": ".figure", "timeline": "svg path", "files": ".file",
           "sites": "table.sites tbody tr", "misses": "svg path", "reuse": "svg .column",
           "latency": "svg rect", "settings": "dl div", "environment": "dl div",
           "counters": ".counters div"}

# Of the words of the page itself, without those that come from the run, and of what its pictures
# are made of, those that tell of a mistake. Looked for in the page: it is megabytes of text.
BAD_WORDS = r"""(() => {
  const copy = document.body.cloneNode(true);
  copy.querySelectorAll("script, .given").forEach(node => node.remove());
  const shapes = [...copy.querySelectorAll("svg *")].flatMap(node =>
    [...node.attributes].map(a => a.value));
  const hints = [...copy.querySelectorAll("[aria-label]")].map(n => n.getAttribute("aria-label"));
  const text = [copy.textContent, ...shapes, ...hints].join("\n");
  return [...text.matchAll(/\b(?:undefined|NaN|Infinity|null)\b|\[object/g)].slice(0, 3)
    .map(found => text.slice(Math.max(found.index - 30, 0), found.index + 30));
})()"""

ANSWER = ("(document.querySelector('#PART .answer') || {textContent: ''})"
          ".textContent.replaceAll('\\u00a0', ' ')")

# Labels of one picture that lie over each other, and what sticks out of the page.
LAYOUT = """(() => {
  const wrong = [], width = document.documentElement.clientWidth;
  if (document.scrollingElement.scrollWidth > width) wrong.push("wider than its window");
  for (const svg of document.querySelectorAll("svg")) {
    const texts = [...svg.querySelectorAll("text")]
      .map(node => [node, node.getBoundingClientRect()]).filter(([, box]) => box.width > 0);
    for (const [node, box] of texts)
      if (box.left < -1 || box.right > width + 1) wrong.push("clipped: " + node.textContent);
    for (let i = 0; i < texts.length; i += 1) for (let j = 0; j < i; j += 1) {
      const [a, b] = [texts[i][1], texts[j][1]];
      if (Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1
          && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 4)
        wrong.push("overlap: " + texts[i][0].textContent + " | " + texts[j][0].textContent);
    }
    for (const line of [...svg.querySelectorAll("line.limit")].map(n => n.getBoundingClientRect()))
      for (const [node, box] of texts)
        if (line.left > box.left + 1 && line.right < box.right - 1
            && Math.min(line.bottom, box.bottom) - Math.max(line.top, box.top) > 3)
          wrong.push("a line goes through: " + node.textContent);
  }
  return wrong;
})()"""

# Texts with less contrast than WCAG's level AA asks for.
CONTRAST = """(() => {
  const numbers = color => (color.match(/[\\d.]+/g) || []).map(Number);
  const light = color => numbers(color).slice(0, 3).map(v => v / 255)
    .map(v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
    .reduce((all, v, i) => all + v * [.2126, .7152, .0722][i], 0);
  const wrong = new Set(), walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const node = walk.currentNode.parentElement;
    if (!walk.currentNode.data.trim() || node.closest("script, noscript, .flag-text, :disabled")
        || !node.getClientRects().length) continue;
    let behind = node, color = "";
    for (; behind; behind = behind.parentElement) {
      color = getComputedStyle(behind).backgroundColor;
      const parts = numbers(color);
      if (parts.length && parts[3] !== 0) break;
    }
    const style = getComputedStyle(node), own = node.closest("svg") ? style.fill : style.color;
    const [a, b] = [light(own), light(behind ? color : "rgb(255,255,255)")];
    const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    if (ratio < 4.5)
      wrong.add(`contrast ${ratio.toFixed(1)}: ${walk.currentNode.data.slice(0, 40)}`);
  }
  return [...wrong];
})()"""


def has(run):
    """Which parts this run has something for."""
    def inner(name):
        value = run.get(name)
        is_known = isinstance(value, dict) and any(v is not None for v in value.values())
        return value if is_known else {}
    points = inner("miss_curve").get("points") or []
    line = [v for k, v in inner("timeline").items() if k != "step_s" and isinstance(v, list) and v]
    return {"verdict": bool(inner("verdict").get("headline")), "figures": bool(inner("counters")),
            "timeline": bool(line), "files": bool(run.get("files")),
            "sites": bool(run.get("sites")),
            "misses": len(points) > 1, "reuse": any(inner("reuse").get("again") or []),
            "latency": any(inner("latency").get("buckets") or []),
            "settings": bool(run.get("settings")), "environment": bool(run.get("environment")),
            "counters": bool(inner("counters") or inner("gauges"))}


class PageCheck:
    """What is wrong with one page."""

    def __init__(self, browser, path, is_strict):
        self.browser, self.path, self.is_strict = browser, pathlib.Path(path), is_strict
        self.wrong = []

    def expect(self, is_true, words):
        if not is_true:
            self.wrong.append(words)

    def run(self):
        size = self.path.stat().st_size
        self.expect(size < PAGE_BYTES_MAX, f"{size} bytes: a page must stay below a megabyte")
        self.browser.size(1000)
        self.browser.media("light")
        self.browser.open(self.path)
        runs = self.browser.ask("JSON.parse(document.getElementById('runs').textContent).runs")
        self.check_processes(runs)
        self.check_hostile(runs)
        self.check_keyboard()
        self.check_switches()
        for scheme in ("light", "dark"):
            self.browser.media(scheme)
            self.browser.settle()
            self.wrong += [f"{scheme}: {w}" for w in self.browser.ask(CONTRAST)]
        for width in WIDTHS:
            self.browser.size(width)
            self.browser.settle()
            self.wrong += [f"{width} wide: {w}" for w in self.browser.ask(LAYOUT)]
        self.check_paper()
        self.check_words("at last")
        self.check_without_scripts()
        self.wrong += [f"console: {error}" for error in self.browser.errors]
        self.expect(self.browser.requests[1:] == [], f"asked for {self.browser.requests[1:]}")
        return [f"{self.path.name}: {words}" for words in dict.fromkeys(self.wrong)]

    def check_words(self, when):
        bad = self.browser.ask(BAD_WORDS)
        self.expect(not bad, f"{when}: {bad}")

    def check_processes(self, runs):
        """Shows one process after the other; the one that waited longest comes first."""
        shown = self.browser.ask("document.querySelectorAll('.choice input').length")
        self.expect(shown == (len(runs) if len(runs) > 1 else 0), "the chooser lists all processes")
        self.expect(shown == 0 or self.browser.ask("!!document.querySelector('.sum')"), "no sum")
        order = sorted(runs, key=lambda r: -(((r.get("counters") or {}).get("fault_ns") or 0)
                                             if isinstance(r.get("counters"), dict) else 0))
        for i, run in enumerate(order):
            if shown:
                self.browser.ask(f"document.querySelectorAll('.choice input')[{i}].click()")
                self.browser.settle()
            self.check_sections(run, f"process {i}")
            self.check_words(f"process {i}")
        if shown:
            self.browser.ask("document.querySelector('.choice input').click()")
            self.browser.settle()

    def check_sections(self, run, which):
        ask, wanted = self.browser.ask, has(run)
        order = ask("[...document.querySelectorAll('main section')].map(s => s.id)")
        self.expect(order == list(SECTIONS), f"{which}: sections {order}")
        for name in SECTIONS:
            found = ask(f"document.querySelectorAll('#{name} {CONTENT[name]}').length")
            said = ask(f"(document.querySelector('#{name} .reason') || {{}}).textContent || ''")
            if self.is_strict:
                self.expect(bool(found) == wanted[name], f"{which}: {name} shows {found} things")
            self.expect(found or said.endswith("."), f"{which}: {name} is empty without a reason")
        if self.is_strict and wanted["files"]:
            count = ask("document.querySelectorAll('#files .file').length")
            self.expect(count == len(run["files"]), f"{which}: {count} files")
        counted = run.get("counters") if isinstance(run.get("counters"), dict) else {}
        if counted.get("call_waits") and not counted.get("faults"):
            said = ask("['files', 'reuse', 'latency'].map(id => "
                       "document.getElementById(id).textContent).join(' ')")
            for words in ("its faults", "a fault took", "of the faults", "no faults"):
                self.expect(words not in said, f"{which}: calls waited, and it says {words}")
        if not wanted["sites"] and run.get("why_no_sites"):
            said = ask("document.querySelector('#sites .reason').textContent")
            self.expect(run["why_no_sites"] in said, f"{which}: {said}")
        if self.is_strict and wanted["misses"]:
            answer = ask(ANSWER.replace("PART", "misses"))
            self.expect(re.search(r"\d %|as many misses", answer), f"{which}: no answer: {answer}")
        if self.is_strict and wanted["reuse"]:
            answer = ask(ANSWER.replace("PART", "reuse"))
            self.expect(re.search(r"\d % of the touches .* [KMG]iB of other", answer),
                        f"{which}: no answer: {answer}")
            self.check_reuse(run["reuse"], which)

    def check_reuse(self, reuse, which):
        """A column for each distance and one of first touches, as high as they are many."""
        counts, all_ = [n or 0 for n in reuse["again"]], sum(reuse["again"]) + reuse["first"]
        while sum(counts[:1]) < .005 * all_:  # the first has what is nearer, too
            counts[:2] = [sum(counts[:2])]
        heights = self.browser.ask("[...document.querySelectorAll('#reuse .column')]"
                                   ".map(node => Number(node.getAttribute('height')))")
        wanted = [*counts, reuse["first"]]
        self.expect(len(heights) == len(wanted), f"{which}: reuse has {len(heights)} columns")
        for height, n in zip(heights, wanted):
            expected = max(heights, default=0) * n / max(wanted)
            self.expect(abs(height - expected) < 2, f"{which}: reuse: {n} is {height} high")

    def check_hostile(self, runs):
        """Texts of the run stay texts."""
        ask = self.browser.ask
        self.expect(ask("window.hostile === undefined"), "a text of the run was executed")
        self.expect(ask("document.scripts.length") == 3, "scripts were added")
        added = ask("document.querySelectorAll('img, iframe, b:not(.decisions b)').length")
        self.expect(added == 0, "elements were added")
        title = runs[0].get("verdict") if isinstance(runs[0].get("verdict"), dict) else {}
        for sentence in title.get("sentences") or []:
            if "<" in sentence and "\x07" not in sentence and "\u202e" not in sentence:
                shown = ask("document.querySelector('main').textContent")
                self.expect(sentence in shown, f"not shown as it is: {sentence}")

    def check_keyboard(self):
        """Tab reaches whatever can be pressed; arrows read the charts."""
        ask = self.browser.ask
        reachable = ask("""[...document.querySelectorAll(
            "button, summary, .chart, .choice input:checked")]
          .filter(n => n.checkVisibility({contentVisibilityAuto: true}) && !n.disabled).length""")
        reached = ask("window.reached = new Set(), 0")
        for _ in range(reachable + 8):
            self.browser.key("Tab")
            reached = ask("document.activeElement !== document.body && "
                          "reached.add(document.activeElement), reached.size")
            if reached >= reachable:
                break
        self.expect(reached >= reachable, f"Tab reaches {reached} of {reachable}")
        for i in range(ask("document.querySelectorAll('.chart').length")):
            ask(f"document.querySelectorAll('.chart')[{i}].focus()")
            for name in ("ArrowRight", "ArrowRight", "ArrowDown"):
                self.browser.key(name)
            self.browser.settle()
            tip = ask("getComputedStyle(document.getElementById('tip')).visibility === 'visible'"
                      " ? document.getElementById('tip').textContent : ''")
            self.expect(re.search(r"\d", tip), f"chart {i} tells the keyboard nothing")
            self.expect(not re.search(r"NaN|undefined", tip), f"chart {i}: {tip}")
        ask("document.activeElement.blur()")

    def check_switches(self):
        pressed = self.browser.ask("""[...document.querySelectorAll(".switch button:enabled")]
          .map(b => (b.click(), b.getAttribute("aria-pressed"))).every(p => p === "true")""")
        self.expect(pressed, "a switch of a map does not switch")
        for _ in range(2):
            before = self.browser.ask("getComputedStyle(document.body).backgroundColor")
            self.browser.ask("document.getElementById('theme').click()")
            after = self.browser.ask("getComputedStyle(document.body).backgroundColor")
            self.expect(before != after, "the button for dark colours does nothing")
        self.browser.ask("delete document.documentElement.dataset.theme; localStorage.clear()")

    def check_without_scripts(self):
        """What a mail shows: words, if the page is one that the program has made."""
        self.browser.call("Emulation.setScriptExecutionDisabled", value=True)
        self.browser.open(self.path, is_drawn=False)
        shown = self.browser.ask("document.querySelector('noscript').innerText")
        self.expect("JavaScript, which does not run here" in shown, "nothing is said of scripts")
        self.browser.call("Emulation.setScriptExecutionDisabled", value=False)

    def check_paper(self):
        self.browser.media("dark")
        self.browser.ask("addEventListener('beforeprint', () => { window.closed_ = document"
                         ".querySelectorAll('details:not([open])').length; }), 0")
        paper = self.browser.paper()
        self.expect(paper.startswith(b"%PDF"), "cannot be printed")
        self.expect(self.browser.ask("window.closed_") == 0, "something is folded on paper")
        self.browser.media("dark", "print")
        self.expect(self.browser.ask("getComputedStyle(document.body).backgroundColor")
                    == "rgb(255, 255, 255)", "the paper is not white")
        self.browser.media("light")


def make_pages(folder, template_path, d3_path):
    template, d3 = pathlib.Path(template_path).read_text(), pathlib.Path(d3_path).read_text()
    pages = []
    for name, runs in make_sample_runs.samples().items():
        pages.append(pathlib.Path(folder) / f"{name}.html")
        pages[-1].write_text(make_sample_runs.make_page(template, d3, runs, f"{name} </title>"))
    return pages


def main():
    arguments = sys.argv[1:]
    if not arguments:
        sys.exit(__doc__)
    try:
        browser = Browser()
    except FileNotFoundError as error:
        print(f"check_page: skipped: {error}")
        sys.exit(77)
    wrong = []
    with contextlib.closing(browser), tempfile.TemporaryDirectory() as folder:
        pages = arguments
        if arguments[0].startswith("--"):
            pages = make_pages(folder, *arguments[-2:])
            size = pathlib.Path(arguments[-2]).stat().st_size
            if size >= TEMPLATE_BYTES_MAX:
                wrong.append(f"the template has {size} bytes: at most {TEMPLATE_BYTES_MAX}")
        for page in pages:
            wrong += PageCheck(browser, page, pathlib.Path(page).stem != "wrong").run()
    print("\n".join(wrong) or f"{len(pages)} pages are good")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
