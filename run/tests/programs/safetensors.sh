#!/bin/bash
# safetensors.sh : experts of a model, read from a safetensors file that is mapped.
BUDGET=12M
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
needs_python

"$PYTHON" "$here/safetensors_experts.py" build model.safetensors
plain=$("$PYTHON" "$here/safetensors_experts.py" run model.safetensors)
under=$(rt -- "$PYTHON" "$here/safetensors_experts.py" run model.safetensors)
expect_taken '*/model.safetensors'
expect_equal "what comes out of the experts" "$plain" "$under"
