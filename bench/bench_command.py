"""bench_command: programs that a table runs to their end, and what `outcore bench` prints."""

import json
import os
import signal
import subprocess

SECONDS_MAX = 900  # of one command


class Failed(Exception):
    """A run, or what it needs, failed; the text says why, in one line."""


class TookTooLong(Failed):
    """It was ended."""


def environment(**more):
    """As it is outside, without what would change Outcore's defaults."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("OUTCORE_")}
    return {**kept, "OUTCORE_CONFIG": "", **more}


def run(words, while_it_runs=None, seconds_max=SECONDS_MAX, **variables):
    """Its output; `variables` are of its environment. `while_it_runs(process)` may disturb it.
    TookTooLong after `seconds_max`."""
    with subprocess.Popen([str(w) for w in words], env=environment(**variables),
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as process:
        try:
            if while_it_runs is not None:
                while_it_runs(process)
            output, errors = process.communicate(timeout=seconds_max)
        except subprocess.TimeoutExpired:
            _end(process)
            raise TookTooLong(f"{words[0]} took more than {seconds_max} s") from None
        except BaseException:
            _end(process)
            raise
    if process.returncode != 0:
        raise Failed((errors.strip().splitlines() or [f"status {process.returncode}"])[-1])
    return output


def lines_of(outcore, workload, *options, while_it_runs=None, **variables):
    """The lines of `outcore bench`: one for each run."""
    said = run([outcore, "bench", workload, *options, "--json"], while_it_runs, **variables)
    return [json.loads(line) for line in said.splitlines()]


def _end(process):
    """Swap that it switched on must go: it gets time for that."""
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(timeout=60)
    except subprocess.TimeoutExpired:
        process.kill()
    process.communicate()
