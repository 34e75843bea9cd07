"""What a type checker says of programs that use the package, under `mypy --strict`."""

import subprocess
import sys

import outcore

_PROGRAM = '''
from typing import Any

import numpy as np

import outcore

a = outcore.open("a.npy", "r+", advise="random")
reveal_type(a)
reveal_type(a[0])
reveal_type(a[1:3])
reveal_type(a[[1, 2]])
b: outcore.Array[np.float32] = outcore.zeros((3, 4), "f4")
reveal_type(b[0, 0])
reveal_type(b.dtype)
print(a.sum(axis=0), a + 1, np.sin(np.asarray(a)), a.mT, a.resident_bytes)
'''

_WRONG = [
    'import outcore\noutcore.open("a.npy", "rw")\n',
    'import outcore\noutcore.zeros(3, order="K")\n',
    'import outcore\noutcore.open("a.npy", advise="often")\n',
    'import outcore\noutcore.open("a.npy", on_error="ignore")\n',
    'import outcore\noutcore.zeros(3).no_such_attribute\n',
    'import outcore\noutcore.zeros(3).smu()\n',
    'import outcore\noutcore.zeros(3).advise("hot")\n',
    'import outcore\nx: str = outcore.zeros(3)[0]\n',
]


def test_mypy_knows_what_is_there_and_what_is_not(tmp_path):
    right = tmp_path / "right.py"
    right.write_text(_PROGRAM)
    wrong = [tmp_path / f"wrong_{i}.py" for i in range(len(_WRONG))]
    for path, text in zip(wrong, _WRONG):
        path.write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", tmp_path / "cache", right,
         *wrong], capture_output=True, text=True, timeout=300, check=False, cwd=tmp_path)
    errors = [line for line in done.stdout.splitlines() if ": error:" in line]
    assert not [line for line in errors if line.startswith("right.py")], done.stdout
    for path in wrong:
        assert any(line.startswith(path.name) for line in errors), f"{path.name}\n{done.stdout}"
    seen = [line.split('"')[1] for line in done.stdout.splitlines() if "Revealed type" in line]
    assert "Array[" in seen[0] and "View" in seen[1] and "View" in seen[2], seen
    assert "ndarray" in seen[3] and "floating" in seen[4] and "floating" in seen[5], seen
    assert not any(kind == "Any" for kind in seen)
    assert outcore.Array[float]
