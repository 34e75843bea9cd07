"""llama_model: a GGUF file of random weights, a mixture of experts, for llama_tokens.py.

Usage: llama_model.py FILE LAYERS EXPERTS

Nothing is trained, so its words mean nothing; but what is read of the file for each of them, and
what is computed, is as in a trained model of this shape, whose router is even-handed.
"""

import sys

import gguf
import numpy as np

WIDTH, HEADS, KEY_HEADS, HEAD = 1024, 16, 4, 64
EXPERTS_USED, EXPERT_WIDTH = 4, 512  # a matrix of an expert: half a MiB in one piece
WORDS = 1024  # besides the bytes and what begins and ends a text
CONTEXT = 1024
BLOCK, BLOCK_BYTES = 32, 34  # of Q8_0: a scale of two bytes, then a byte a weight


class Model:
    def __init__(self, path, layers, experts):
        self._random, self._experts = np.random.default_rng(17), experts
        self._writer = gguf.GGUFWriter(path, "llama", use_temp_file=False)
        self._settings(layers)
        self._words()
        self._weights("token_embd", WORDS + 259, WIDTH)
        for layer in range(layers):
            self._layer(f"blk.{layer}.")
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

    def _layer(self, name):
        self._ones(name + "attn_norm")
        self._weights(name + "attn_q", HEADS * HEAD, WIDTH)
        self._weights(name + "attn_k", KEY_HEADS * HEAD, WIDTH)
        self._weights(name + "attn_v", KEY_HEADS * HEAD, WIDTH)
        self._weights(name + "attn_output", WIDTH, HEADS * HEAD)
        self._ones(name + "ffn_norm")
        router = self._random.standard_normal((self._experts, WIDTH), "f4")
        self._writer.add_tensor(name + "ffn_gate_inp.weight", router / np.float32(WIDTH**0.5))
        self._weights(name + "ffn_gate_exps", self._experts, EXPERT_WIDTH, WIDTH)
        self._weights(name + "ffn_up_exps", self._experts, EXPERT_WIDTH, WIDTH)
        self._weights(name + "ffn_down_exps", self._experts, WIDTH, EXPERT_WIDTH)

    def _ones(self, name):
        self._writer.add_tensor(name + ".weight", np.ones(WIDTH, "f4"))

    def _weights(self, name, *shape):
        """Random bytes with one scale, so that what a row adds up to is about 1."""
        blocks = self._random.integers(0, 256, (*shape[:-1], shape[-1] // BLOCK, BLOCK_BYTES),
                                       np.uint8)
        scale = np.array([1 / (74 * shape[-1]**0.5)], "f2")  # 74: the deviation of a signed byte
        blocks[..., :2] = scale.view(np.uint8)
        self._writer.add_tensor(name + ".weight", blocks.reshape(*shape[:-1], -1),
                                raw_dtype=gguf.GGMLQuantizationType.Q8_0)


if __name__ == "__main__":
    Model(sys.argv[1], *map(int, sys.argv[2:])).write()
