"""safetensors_experts: a mixture of experts whose weights lie in a safetensors file.

Usage: safetensors_experts.py build|run FILE

Each layer has 32 experts, matrices of half a MiB, and a token goes through four of them, popular
ones more often (zipf). `run` opens the file by safe_open, which maps it, and prints a digest of
what comes out of the last layer.
"""

import hashlib
import os
import sys

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save_file

LAYERS = 2 * int(os.environ.get("SCALE", "2"))  # of 16 MiB
EXPERTS, AT_ONCE, WIDTH = 32, 4, 512
TOKENS = 24


def name_of(layer, expert):
    return f"layers.{layer}.experts.{expert}.weight"


def build(path):
    random = np.random.default_rng(1)
    save_file({name_of(layer, expert): random.standard_normal((WIDTH, WIDTH), dtype="f4")
               .astype("f2") / np.float16(WIDTH ** 0.5)
               for layer in range(LAYERS) for expert in range(EXPERTS)}, path)


def run(path):
    random = np.random.default_rng(2)
    popularity = 1 / np.arange(1, EXPERTS + 1)
    popularity /= popularity.sum()
    order = [random.permutation(EXPERTS) for _ in range(LAYERS)]
    digest = hashlib.sha256()
    with safe_open(path, framework="numpy") as weights:
        for _ in range(TOKENS):
            state = random.standard_normal(WIDTH, dtype="f4")
            for layer in range(LAYERS):
                experts = random.choice(EXPERTS, AT_ONCE, replace=False, p=popularity)
                state = np.tanh(sum(
                    weights.get_tensor(name_of(layer, order[layer][e])).astype("f4") @ state
                    for e in experts))
            digest.update(state.tobytes())
    print(digest.hexdigest())


{"build": build, "run": run}[sys.argv[1]](*sys.argv[2:])
