#!/bin/bash
# docs.sh [MKDOCS OPTION…] : the documentation as a site, in build/site; a link that leads nowhere
# is an error. What mkdocs needs is installed once, into build/docs-venv, and no network used after.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=build/docs-venv
requirements=docs/requirements.txt
python=${PYTHON:-python3}

wanted=$("$python" --version)-$(sha256sum <"$requirements")
if [[ $(cat "$venv/requirements.stamp" 2>/dev/null) != "$wanted" ]]; then
  echo "installing what docs/requirements.txt names into $venv"
  rm -rf "$venv"
  if ! "$python" -m venv "$venv"; then
    echo "docs.sh: $python cannot make environments: tools/install_packages.sh docs" >&2
    exit 1
  fi
  if ! PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1 \
    "$venv/bin/pip" install --quiet --only-binary :all: -r "$requirements"; then
    echo "docs.sh: the packages of $requirements cannot be installed (see above)" >&2
    exit 1
  fi
  echo "$wanted" >"$venv/requirements.stamp"
fi

# (With --quiet mkdocs would not count its warnings.)
log=$(mktemp)
trap 'rm -f "$log"' EXIT
NO_MKDOCS_2_WARNING=1 DISABLE_MKDOCS_2_WARNING=true \
  "$venv/bin/mkdocs" build --strict "$@" >"$log" 2>&1 || {
  grep -vE '^INFO|^  - |^$' "$log" >&2
  exit 1
}
if grep -rnE '<(script|img|link)[^>]* (src|href)="?https?://' build/site --include=*.html; then
  echo "docs.sh: these pages would ask a network for something when they are read" >&2
  exit 1
fi
echo "build/site/index.html: $(find build/site -name '*.html' | wc -l) pages"
