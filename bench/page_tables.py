"""page_tables: tables of pages that are drawn from runs."""


def number(value):
    """A rate; None: not measured; 0: of a run that was stopped."""
    if value is None:
        return "-"
    if value == 0:
        return "stopped"
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value:.3g}"


def table(head, rows):
    """Lines: all columns but the first and the last have figures."""
    yield f"| {' | '.join(head)} |".replace("|  |", "| |")
    yield "| --- |" + " ---: |" * (len(head) - 2) + " --- |"
    for row in rows:
        yield f"| {' | '.join(row)} |"
    yield ""
