#!/bin/bash
# llama.sh : llama.cpp answers from weights that it maps, a mixture of experts larger than the
# budget. The tokens, and how likely each was, are those of weights in memory.
BUDGET=10M
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
needs_module gguf xllamacpp
grep -q avx2 /proc/cpuinfo || skip "the package xllamacpp needs a processor with AVX2"
export PYTHONDONTWRITEBYTECODE=1
doors=$here/../../../bench/doors

answer() { "$PYTHON" -c 'import json, sys; print(json.loads(sys.argv[1])["answer"])' "$1"; }

for router in even zipf; do
  "$PYTHON" "$doors/llama_model.py" "$router.gguf" 2 8 "$router" 2>model.log ||
    fail "no model: $(tail -n 3 model.log)"
  for what in prefill decode; do
    plain=$("$PYTHON" "$doors/llama_tokens.py" "$router.gguf" memory "$what" 2>plain.log) ||
      fail "llama.cpp: $(tail -n 5 plain.log)"
    under=$(rt -- "$PYTHON" "$doors/llama_tokens.py" "$router.gguf" mmap "$what" 2>under.log) ||
      fail "llama.cpp: $(tail -n 5 under.log)"
    expect_taken "*/$router.gguf"
    expect_equal "$router, $what" "$(answer "$plain")" "$(answer "$under")"
  done
done
