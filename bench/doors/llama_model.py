"""llama_model: a GGUF file of random weights, a mixture of experts, for llama_tokens.py.

Usage: llama_model.py FILE LAYERS EXPERTS [even|zipf]

Nothing is trained, so its words mean nothing; but what is read of the file for each of them, and
what is computed, is as in a trained model of this shape.

even (the default): no expert is preferred, of all that tokens could be. But from layer to layer the
tokens of one text come to resemble each other: in the text of llama-decode an eighth of a layer's
32 experts gets 0.36 (the first layer) to 0.74 (the last) of the choices.
zipf: a router prefers some, in each layer others, whatever the text: the most popular eighth gets
half of the choices, and the others by Zipf's law, the exponent 1. Element 0 of what goes from layer
to layer is a constant: every embedding has it, and no layer adds to it. So column 0 of a router
adds to each logit what llama_router.py says. What the norm before it divides by must be known:
embeddings are larger than all that the layers add, and tokens remain as different as they were.
"""

import sys

import gguf
import numpy as np
from llama_router import EXPERTS_USED, preferences

WIDTH, HEADS, KEY_HEADS, HEAD = 1024, 16, 4, 64
EXPERT_WIDTH = 512  # a matrix of an expert: half a MiB in one piece
WORDS = 1024  # besides the bytes and what begins and ends a text
CONTEXT = 1024
BLOCK, BLOCK_BYTES = 32, 34  # of Q8_0: a scale of two bytes, then a byte a weight
BYTE_DEVIATION = 74  # of a random signed byte
EMBEDDING = 4  # zipf: the deviation of its elements, where a layer adds at most 1 to each
CONSTANT = 32  # zipf: element 0
ADDED = 0.3  # zipf: the variance that a layer adds
RANKS_SEED = 18  # of a generator of its own: all other weights are as in an even model


class Model:
    def __init__(self, path, layers, experts, router="even"):
        self._random, self._experts = np.random.default_rng(17), experts
        self._is_zipf, self._ranks = router == "zipf", np.random.default_rng(RANKS_SEED)
        self._writer = gguf.GGUFWriter(path, "llama", use_temp_file=False)
        self._settings(layers)
        self._words()
        self._embeddings()
        for layer in range(layers):
            self._layer(f"blk.{layer}.", layer)
        self._ones("output_norm")
        self._weights("output", WORDS + 259, WIDTH)

    def write(self):
        self._writer.write_header_to_file()
        self._writer.write_kv_data_to_file()
        self._writer.write_tensors_to_file()
        self._writer.close()

    def _settings(self, layers):
        writer = self._writer
        writer.add_context_length(CONTEXT)
        writer.add_embedding_length(WIDTH)
        writer.add_block_count(layers)
        writer.add_feed_forward_length(EXPERT_WIDTH)
        writer.add_head_count(HEADS)
        writer.add_head_count_kv(KEY_HEADS)
        writer.add_rope_dimension_count(HEAD)
        writer.add_layer_norm_rms_eps(1e-5)
        writer.add_expert_count(self._experts)
        writer.add_expert_used_count(EXPERTS_USED)
        writer.add_file_type(gguf.LlamaFileType.MOSTLY_Q8_0)

    def _words(self):
        """A vocabulary in which a byte is a token, and so is each of WORDS."""
        kinds = gguf.TokenType
        words = [(b"<unk>", kinds.UNKNOWN), (b"<s>", kinds.CONTROL), (b"</s>", kinds.CONTROL)]
        words += [(b"<0x%02X>" % byte, kinds.BYTE) for byte in range(256)]
        words += [(b"w%d." % word, kinds.NORMAL) for word in range(WORDS)]
        self._writer.add_tokenizer_model("llama")
        self._writer.add_token_list([word for word, _ in words])
        self._writer.add_token_scores([0.0] * len(words))
        self._writer.add_token_types([kind for _, kind in words])
        self._writer.add_bos_token_id(1)
        self._writer.add_eos_token_id(2)

    def _embeddings(self):
        blocks = self._blocks(WORDS + 259, WIDTH)
        if self._is_zipf:
            blocks[..., :2] = scale_bytes(EMBEDDING / BYTE_DEVIATION)
            blocks[:, 0] = 0
            blocks[:, 0, :2], blocks[:, 0, 2] = scale_bytes(CONSTANT / 127), 127
        self._add("token_embd", blocks)

    def _layer(self, name, layer):
        self._ones(name + "attn_norm")
        self._weights(name + "attn_q", HEADS * HEAD, WIDTH)
        self._weights(name + "attn_k", KEY_HEADS * HEAD, WIDTH)
        self._weights(name + "attn_v", KEY_HEADS * HEAD, WIDTH)
        self._additions(name + "attn_output", WIDTH, HEADS * HEAD)
        self._ones(name + "ffn_norm")
        self._writer.add_tensor(name + "ffn_gate_inp.weight", self._router(layer))
        self._weights(name + "ffn_gate_exps", self._experts, EXPERT_WIDTH, WIDTH)
        self._weights(name + "ffn_up_exps", self._experts, EXPERT_WIDTH, WIDTH)
        self._additions(name + "ffn_down_exps", self._experts, WIDTH, EXPERT_WIDTH)

    def _router(self, layer):
        router = self._random.standard_normal((self._experts, WIDTH), "f4") / np.float32(WIDTH**0.5)
        if self._is_zipf:
            deviation = (EMBEDDING**2 + ADDED * layer)**0.5
            ranks = self._ranks.permutation(self._experts)
            router[:, 0] = np.array(preferences(self._experts))[ranks] * (deviation / CONSTANT)
        return router

    def _ones(self, name):
        self._writer.add_tensor(name + ".weight", np.ones(WIDTH, "f4"))

    def _weights(self, name, *shape):
        self._add(name, self._blocks(*shape))

    def _additions(self, name, *shape):
        """Weights of what is added to that which goes from layer to layer."""
        blocks = self._blocks(*shape)
        if self._is_zipf:
            blocks[..., 0, :, :2] = 0
        self._add(name, blocks)

    def _blocks(self, *shape):
        """Random bytes with one scale, so that what a row adds up to is about 1."""
        blocks = self._random.integers(0, 256, (*shape[:-1], shape[-1] // BLOCK, BLOCK_BYTES),
                                       np.uint8)
        blocks[..., :2] = scale_bytes(1 / (BYTE_DEVIATION * shape[-1]**0.5))
        return blocks

    def _add(self, name, blocks):
        self._writer.add_tensor(name + ".weight", blocks.reshape(*blocks.shape[:-2], -1),
                                raw_dtype=gguf.GGMLQuantizationType.Q8_0)


def scale_bytes(scale):
    return np.array([scale], "f2").view(np.uint8)


def main(words):
    if len(words) not in (3, 4) or words[3:] not in ([], ["even"], ["zipf"]):
        raise SystemExit("usage: llama_model.py FILE LAYERS EXPERTS [even|zipf]")
    Model(words[0], int(words[1]), int(words[2]), *words[3:]).write()


if __name__ == "__main__":
    main(sys.argv[1:])
