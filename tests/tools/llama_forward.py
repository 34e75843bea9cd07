"""llama_forward: which experts a prompt's tokens take, in a model of bench/doors/llama_model.py.

Usage: llama_forward.py LAYERS EXPERTS even|zipf TOKENS [EXPERT_WIDTH]

Prints a line of JSON. Needs NumPy; instead of gguf, a writer that keeps what it is given.
"""

import hashlib
import json
import pathlib
import sys
import types
from unittest import mock

import numpy as np

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "bench" / "doors"))
FIRST_WORD = 259


class Tensors(dict):
    """What is written of a model: of all else that a writer is told, nothing."""

    def add_tensor(self, name, values, raw_dtype=None):
        self[name.removesuffix(".weight")] = values

    def __getattr__(self, name):
        return lambda *_: None


def model_of(layers, experts, router, expert_width=None):
    tensors = Tensors()
    sys.modules["gguf"] = types.SimpleNamespace(
        GGUFWriter=lambda *_, **__: tensors, TokenType=mock.Mock(), LlamaFileType=mock.Mock(),
        GGMLQuantizationType=mock.Mock())
    import llama_model
    llama_model.EXPERT_WIDTH = expert_width or llama_model.EXPERT_WIDTH
    llama_model.Model("", layers, experts, router)
    return tensors, llama_model


def weights(tensor):
    """The numbers of blocks of Q8_0."""
    blocks = tensor.reshape(*tensor.shape[:-1], -1, 34)
    scales = np.ascontiguousarray(blocks[..., :2]).view("f2").astype("f4")
    return (blocks[..., 2:].view("i1") * scales).reshape(*tensor.shape[:-1], -1)


def normed(x):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5)


def turned(x):
    """Rotary positions, of neighbouring elements."""
    count, _, width = x.shape
    angles = np.arange(count)[:, None] * 10000.0 ** (-np.arange(0, width, 2) / width)
    turns = np.exp(1j * angles)[:, None, :]
    pairs = (x[..., ::2] + 1j * x[..., 1::2]) * turns
    return np.stack([pairs.real, pairs.imag], -1).reshape(x.shape).astype("f4")


class Forward:
    def __init__(self, tensors, shape):
        self._tensors, self._shape = tensors, shape
        self.counts = []

    def likelihoods(self, words):
        """Of the word after the last, as llama.cpp has them."""
        x = weights(self._tensors["token_embd"][words])
        for layer in range(sum(name.endswith("attn_q") for name in self._tensors)):
            x = self._experts(f"blk.{layer}.", self._attention(f"blk.{layer}.", x))
        logits = weights(self._tensors["output"]) @ normed(x[-1])
        return logits - np.log(np.exp(logits).sum())

    def _attention(self, name, x):
        def of(what):
            y = normed(x) @ weights(self._tensors[name + what]).T
            return y.reshape(len(x), -1, self._shape.HEAD)

        query, key, value = turned(of("attn_q")), turned(of("attn_k")), of("attn_v")
        shared = query.shape[1] // key.shape[1]
        key, value = np.repeat(key, shared, 1), np.repeat(value, shared, 1)
        scores = np.einsum("qhd,khd->hqk", query, key) / self._shape.HEAD**0.5
        scores = np.exp(scores) * np.tri(len(x), dtype="f4")
        mixed = np.einsum("hqk,khd->qhd", scores / scores.sum(-1, keepdims=True), value)
        return x + mixed.reshape(len(x), -1) @ weights(self._tensors[name + "attn_output"]).T

    def _experts(self, name, x):
        y = normed(x)
        logits = y @ self._tensors[name + "ffn_gate_inp"].T
        taken = np.argsort(-logits, 1)[:, :self._shape.EXPERTS_USED]
        shares = np.exp(np.take_along_axis(logits, taken, 1))
        shares /= shares.sum(1, keepdims=True)
        self.counts.append(np.bincount(taken.ravel(), minlength=logits.shape[1]).tolist())
        added = np.zeros_like(x)
        for expert in range(logits.shape[1]):
            token, place = np.nonzero(taken == expert)
            gate, up, down = (weights(self._tensors[name + f"ffn_{what}_exps"][expert])
                              for what in ("gate", "up", "down"))
            gated = y[token] @ gate.T
            gated *= (y[token] @ up.T) / (1 + np.exp(-gated))
            added[token] += shares[token, place, None] * (gated @ down.T)
        return x + added


def main(layers, experts, router, tokens, expert_width=0):
    tensors, shape = model_of(int(layers), int(experts), router, int(expert_width))
    forward = Forward(tensors, shape)
    words = np.random.default_rng(5).integers(FIRST_WORD, FIRST_WORD + shape.WORDS, int(tokens))
    forward.likelihoods(words)
    hashes = {name: hashlib.sha256(values.tobytes()).hexdigest()
              for name, values in tensors.items()}
    print(json.dumps({"counts": forward.counts, "hashes": hashes, "hash": hashlib.sha256(
        "".join(hashes.values()).encode()).hexdigest()}))


if __name__ == "__main__":
    main(*sys.argv[1:])
