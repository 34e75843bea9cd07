"""profiles: what the processors did while a row ran that is behind: the page, and a sentence below
the row's own table."""

import sys
from collections import Counter

import kept_runs
from experiments import EXPERIMENTS
from published_runs import command_of, device_of
from verdict import behind

PAGE = "profiles.md"
HEAD = (
    "# Where the time goes\n\n"
    "Drawn by `make bench-papers OPTIONS=--profile`: of each row of the papers' pages that is "
    "asked and not met, and of each other row the point where the best rival is ahead by most, "
    "what the processors did while it ran once more, ours and the best rival's: samples of the "
    "whole machine, a thousand a second, told by what the functions on the stack are for "
    "(`bench/papers/processor_time.py`). {machine}. Figures are the time of a processor for a unit "
    "of work, so that columns can be compared, with their share of what is not idle; \"idle\" is "
    "what waited, for the device or for each other. What Outcore has the C library do, copies say, "
    "may count as the program's. Where what is asked is beside another setting of Outcore, that "
    "is the second column. A run by itself may well be faster here than it was on the row's "
    "page.\n")
_NAMED = 3  # kinds of work, and functions
_IDLE = "idle"


def per_work(profile, kind):
    """Seconds of a processor a unit of work; None: of a run that was stopped."""
    work = profile["rate"] * profile["seconds"]
    return profile["by_kind"].get(kind, 0.0) / work if work else None


def shares(profile):
    """Of what was not idle, by kind."""
    busy = sum(s for kind, s in profile["by_kind"].items() if kind != _IDLE)
    return {kind: s / busy for kind, s in profile["by_kind"].items() if kind != _IDLE and busy}


def most_of(profile):
    """What took most of the processors' time, in words."""
    most = Counter(shares(profile)).most_common(_NAMED)
    return ", ".join(f"{kind} {share:.0%}" for kind, share in most)


def differences(ours, other, scale, unit):
    """What ours takes more than the other, in words; or, where it does not, what it takes."""
    name, spent = other["column"], f"Most of ours is {most_of(ours)}."
    kinds = {*ours["by_kind"], *other["by_kind"]}
    pairs = {kind: (per_work(ours, kind), per_work(other, kind)) for kind in kinds}
    if per_work(ours, _IDLE) is None:
        return f"Ours was stopped before it ended. {spent}"
    if per_work(other, _IDLE) is None:
        return f"{name} was stopped before it ended. {spent}"
    if ours["rate"] >= other["rate"]:
        return f"This time ours was no slower than {name}. {spent}"
    more = {kind: (mine - its) * scale for kind, (mine, its) in pairs.items()}
    waits = more.pop(_IDLE, 0.0)
    total = sum(more.values())
    if total <= 0:
        waited = (f"the processors wait {waits:.3g} {unit} more for each" if waits > 0
                  else "other load had the processors")
        return f"Ours works no longer than {name} does: {waited}. {spent}"
    most = sorted((k for k in more if more[k] > 0), key=more.__getitem__, reverse=True)[:_NAMED]
    least = min(more, key=more.__getitem__)
    but = (f", but {-more[least]:.3g} less for {least}"
           if more[least] < -total / 10 else "")
    return (f"Ours works {total:.3g} {unit} more than {name}: "
            + ", ".join(f"{kind} {more[kind]:.3g}" for kind in most) + f"{but}.")


def unit_for(seconds):
    """In which this is no very small number, and how many of it a second has."""
    return next((name, scale) for name, scale, least in (
        ("seconds", 1.0, 1.0), ("milliseconds", 1e3, 1e-3), ("microseconds", 1e6, 1e-6),
        ("nanoseconds", 1e9, 0.0))
        if seconds >= least)


def _unit_of(profiles):
    return unit_for(max(per_work(p, k) or 0.0 for p in profiles for k in p["by_kind"]))


def _told(profiles):
    """A sentence of one point's."""
    unit, scale = _unit_of(profiles)
    if len(profiles) == 1:
        return f"Most of ours is {most_of(profiles[0])}."
    return differences(*profiles, scale, unit)


def explanation_of(experiment, profiles):
    """What stands in the way at the point where ours is behind by most; "" if nothing is known."""
    points = {}
    for p in profiles:
        points.setdefault(p["point"], []).append(p)
    if not points:
        return ""

    def ratio(point):
        ours, *others = points[point]
        return ours["rate"] / others[0]["rate"] if others and others[0]["rate"] else 1.0

    worst = min(points, key=ratio)
    unit = points[worst][0]["unit"].removesuffix("/s") or "units of work"
    at = f" ({experiment.axis}: {worst})" if worst else ""
    told = _told(points[worst])
    return (f"[What stands in the way]({PAGE}){at}, for each of the {unit}: "
            f"{told[0].lower()}{told[1:]}")


def _cell(profile, kind, scale):
    taken = per_work(profile, kind)
    if taken is None:
        return "-"
    share = shares(profile).get(kind)
    return f"{taken * scale:.3g}" + (f" ({share:.0%})" if share else "")


def _functions_of(profile):
    found = profile.get("by_function") or {}
    busy = sum(s for kind, s in profile["by_kind"].items() if kind != _IDLE)
    return ", ".join(f"`{name}` {s / busy:.1%}" for name, s in list(found.items())[:_NAMED])


def profiles_of(profiles):
    """Lines of Markdown: a table for each row and point."""
    by_name = {e.name: e for e in EXPERIMENTS}
    for name, point in dict.fromkeys((p["profile"], p["point"]) for p in profiles):
        here = [p for p in profiles if (p["profile"], p["point"]) == (name, point)]
        one = by_name[name]
        yield f"## {one.title}: {one.axis} {point}".rstrip(": ")
        yield ""
        unit, scale = _unit_of(here)
        day = f", {here[0]['measured']}" if "measured" in here[0] else ""
        asked = f"asked {one.asked:g}" if one.asked else "nothing asked"
        yield (f"{one.paper}, `{command_of(one)}`; {asked}{day}. {unit.capitalize()} "
               f"of a processor for each of the {here[0]['unit'].removesuffix('/s')}:")
        yield ""
        yield "| | " + " | ".join(p["column"] for p in here) + " |"
        yield "| --- |" + " ---: |" * len(here)
        sums = Counter()
        for p in here:
            sums.update(p["by_kind"])
        for kind, _ in sums.most_common():
            yield f"| {kind} | " + " | ".join(_cell(p, kind, scale) for p in here) + " |"
        yield ""
        functions = _functions_of(here[0])
        yield _told(here) + (f" Of Outcore's own code: {functions} of all." if functions else "")
        yield ""


def draw_profiles(runs, profiles, folder):
    """Only of all rows that are behind: those that are not there would seem to be met."""
    have = {r["row"] for r in runs}
    if not profiles or any(e.name not in have for e in EXPERIMENTS):
        return
    wanted = {(e.name, one.point): one.other or "outcore" for e in EXPERIMENTS
              for one in behind(e, [r for r in runs if r["row"] == e.name])}
    profiles = [p for p in profiles if (p["profile"], p["point"]) in wanted]
    have = {(p["profile"], p["point"], p["column"]) for p in profiles}
    missing = sorted(place for place, other in wanted.items() if (*place, other) not in have)
    if missing:
        print("bench-papers: the page of profiles stays: behind, and without one: "
              + ", ".join(" ".join(words) for words in missing), file=sys.stderr)
        return
    head = HEAD.format(machine=f"{kept_runs.machine()}{device_of(runs)}")
    path = folder / PAGE
    path.write_text("\n".join([head, *profiles_of(profiles)]).rstrip() + "\n", encoding="utf-8")
    print(path)
