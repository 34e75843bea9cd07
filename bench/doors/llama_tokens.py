"""llama_tokens: tokens by llama.cpp from a GGUF file. Prints a line of JSON.

Usage: llama_tokens.py FILE mmap|memory prefill|decode

prefill: the time until a prompt is read; decode: the time of the tokens that follow a short one.
memory: the weights are read into memory of llama.cpp's own, and not mapped.
"""

import hashlib
import json
import resource
import sys
import time

import xllamacpp

PROMPT = {"prefill": 64, "decode": 4}  # tokens
ANSWER = {"prefill": 1, "decode": 64}
FIRST_WORD, PROMPT_WORDS, CONTEXT = 259, 1000, 256


def server_of(path, how):
    parameters = xllamacpp.CommonParams()
    parameters.model.path = path
    parameters.n_ctx = CONTEXT
    if how == "memory":
        parameters.load_mode = xllamacpp.llama_load_mode.LLAMA_LOAD_MODE_NONE
    # The threads of llama.cpp spin until the last is ready: two, beside anything else that runs
    # on two processors, measure who ran when.
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
    return xllamacpp.Server(parameters)


def main(path, how, what):
    began = time.perf_counter()
    server = server_of(path, how)
    load_seconds = time.perf_counter() - began
    answer = server.handle_completions({
        "prompt": [FIRST_WORD + at * 37 % PROMPT_WORDS for at in range(PROMPT[what])],
        "max_tokens": ANSWER[what], "ignore_eos": True, "logprobs": 10,
        "temperature": 1.0, "seed": 7})  # drawn: the likeliest words would soon go in circles
    times = answer["timings"]
    key, work = ("prompt_ms", PROMPT) if what == "prefill" else ("predicted_ms", ANSWER)
    said = json.dumps(answer["choices"][0]["logprobs"]).encode()
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(json.dumps({"seconds": times[key] / 1000, "work": work[what], "unit": "tokens/s",
                      "answer": hashlib.sha256(said).hexdigest()[:16],
                      "load_seconds": load_seconds, "rss_bytes": used.ru_maxrss * 1024,
                      "user_seconds": used.ru_utime, "system_seconds": used.ru_stime}))


if __name__ == "__main__":
    main(*sys.argv[1:])
