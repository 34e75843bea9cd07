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
    "Drawn by `make bench-papers OPTIONS=--profile`: of what is asked and not met on the papers' "
    "pages, and of each row's other points that where the best rival is ahead by most: what the "
    "processors did while it ran once more, ours and that rival's: samples of the whole machine, "
    "a thousand a second, divided by what the functions on the stack are for "
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
    """A sentence: what took most of the processors' time; "" where nothing was seen."""
    most = Counter(shares(profile)).most_common(_NAMED)
    return f"Most of it is {', '.join(f'{kind} {s:.0%}' for kind, s in most)}." if most else ""


def differences(ours, other, scale, unit):
    """A sentence: what ours takes more than the other; "" where it takes no more. REQUIRES: both
    ended."""
    kinds = sorted({*ours["by_kind"], *other["by_kind"]})  # so that ties have an order
    more = {kind: (per_work(ours, kind) - per_work(other, kind)) * scale for kind in kinds}
    waits = max(more.pop(_IDLE, 0.0), 0.0)
    total = sum(more.values())
    name = other["column"]
    if total <= 0:
        return (f"Ours works no longer than {name} does: the processors wait {waits:.3g} {unit} "
                "more." if waits > 0 else "")
    most = sorted((k for k in more if more[k] > 0), key=more.__getitem__, reverse=True)[:_NAMED]
    least = min(more, key=more.__getitem__)
    but = f", but {-more[least]:.3g} less for {least}" if more[least] < -total / 10 else ""
    wait = f", and the processors wait {waits:.3g} more" if waits > total / 10 else ""
    return (f"Ours works {total:.3g} {unit} more than {name}: "
            + ", ".join(f"{kind} {more[kind]:.3g}" for kind in most) + f"{but}{wait}.")


def unit_for(seconds):
    """In which this is no very small number, and how many of it a second has."""
    return next((name, scale) for name, scale, least in (
        ("seconds", 1.0, 1.0), ("milliseconds", 1e3, 1e-3), ("microseconds", 1e6, 1e-6),
        ("nanoseconds", 1e9, 0.0)) if seconds >= least)


def _unit_of(profiles):
    return unit_for(max(sum(per_work(p, k) or 0.0 for k in p["by_kind"]) for p in profiles))


def _work_of(profiles):
    """What they do, of a run that ended."""
    return next((p["unit"].removesuffix("/s") for p in profiles if p["unit"]), "units of work")


def told(one, profiles):
    """What stands in the way at a point (verdict.Behind), and whether it is for a unit of work."""
    ours, *others = profiles
    most = most_of(ours)
    stopped = [p["column"] for p in profiles if per_work(p, _IDLE) is None]
    if stopped:
        return f"{'; '.join(stopped)}: stopped before it ended. {most}".strip(), False
    if not others:
        return most, False
    name = others[0]["column"]
    if one.is_ahead:
        return f"Ours is ahead of {name}, by less than is asked. {most}".strip(), False
    if ours["rate"] >= others[0]["rate"]:
        return f"This time ours was no slower than {name}. {most}".strip(), False
    unit, scale = _unit_of(profiles)
    more = differences(ours, others[0], scale, unit)
    return (more, True) if more else (f"Other load had the processors. {most}".strip(), False)


def _profiles_of(one, profiles):
    """Of the point, ours and the other's; [] where one is missing."""
    wanted = ["outcore", *([one.other] if one.other else [])]
    found = [[p for p in profiles if (p["point"], p["column"]) == (one.point, column)]
             for column in wanted]
    return [lines[-1] for lines in found] if all(found) else []


def explanation_of(experiment, runs, profiles):
    """What stands in the way where ours is behind by most; "" if nothing is, or is known."""
    for one in behind(experiment, runs):
        here = _profiles_of(one, profiles)
        if not here:
            continue
        at = f" ({experiment.axis}: {one.point})" if one.point else ""
        text, is_each = told(one, here)
        each = f", for each of the {_work_of(here)}" if is_each else ""
        return f"[What stands in the way]({PAGE}){at}{each}: {text[0].lower()}{text[1:]}"
    return ""


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


def section_of(experiment, one, profiles):
    """Lines of Markdown: a table of a point."""
    unit, scale = _unit_of(profiles)
    day = f", {profiles[0]['measured']}" if "measured" in profiles[0] else ""
    asked = f"asked {experiment.asked:g}" if experiment.asked else "nothing asked"
    yield f"## {experiment.title}: {experiment.axis} {one.point}".rstrip(": ")
    yield ""
    yield (f"{experiment.paper}, `{command_of(experiment)}`; {asked}{day}. {unit.capitalize()} of "
           f"a processor for each of the {_work_of(profiles)}:")
    yield ""
    yield "| | " + " | ".join(p["column"] for p in profiles) + " |"
    yield "| --- |" + " ---: |" * len(profiles)
    sums = Counter()
    for p in profiles:
        sums.update(p["by_kind"])
    for kind, _ in sums.most_common():
        yield f"| {kind} | " + " | ".join(_cell(p, kind, scale) for p in profiles) + " |"
    yield ""
    functions = _functions_of(profiles[0])
    own = f" Of Outcore's own code: {functions} of all." if functions else ""
    yield f"{told(one, profiles)[0]}{own}"
    yield ""


def draw_profiles(runs, profiles, folder):
    """Only of all rows that are behind: those that are not there would seem to be met."""
    have = {r["row"] for r in runs}
    if not profiles or any(e.name not in have for e in EXPERIMENTS):
        return
    lines, missing = [], []
    for experiment in EXPERIMENTS:
        mine = [p for p in profiles if p["profile"] == experiment.name]
        for one in behind(experiment, [r for r in runs if r["row"] == experiment.name]):
            here = _profiles_of(one, mine)
            if here:
                lines += section_of(experiment, one, here)
            else:
                missing.append(f"{experiment.name} {one.point}")
    if missing:
        print("bench-papers: the page of profiles stays: behind, and without one: "
              + ", ".join(missing), file=sys.stderr)
        return
    head = HEAD.format(machine=f"{kept_runs.machine()}{device_of(runs)}")
    path = folder / PAGE
    path.write_text("\n".join([head, *lines]).rstrip() + "\n", encoding="utf-8")
    print(path)
