#!/bin/bash
# test_deb.sh : builds the Debian package, installs it with apt into a clean root, and runs there
# the command, a program in C that is compiled against it, and one in C++. Root.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/check_lib.sh
package=$(tools/deb.sh | tail -n 1)
root=$PWD/build/clean-root
tools/clean_root.sh "$root"

# A copy, so that the next test finds a clean one; on a filesystem with reflinks it costs nothing.
work=$(mktemp -d)
trap 'umount "$work/root/proc" "$work/root/dev" 2>/dev/null || true; rm -rf "$work"' EXIT
cp -a --reflink=auto "$root" "$work/root"
mount -t proc proc "$work/root/proc"
mount --bind /dev "$work/root/dev"
inside() { chroot "$work/root" env -i PATH=/usr/sbin:/usr/bin LC_ALL=C.UTF-8 \
  DEBIAN_FRONTEND=noninteractive http_proxy="${http_proxy-}" https_proxy="${https_proxy-}" "$@"; }

cp "$package" "$work/root/outcore.deb"
cp examples/02_words.c examples/10_graph.cc "$work/root/root/"
check "apt-get update" inside apt-get update -qq
check "apt installs it, with what it needs alone" \
  inside apt-get install -y --no-install-recommends /outcore.deb
check "the command runs" inside outcore info
check "outcore run takes a file" inside bash -c '
  head -c 80M /dev/zero >zeros && outcore run --budget 16M --explain -- \
    perl -e "1" 2>&1 && outcore check perl'
check "the manual is there" inside test -s /usr/share/man/man1/outcore.1.gz
check "the completion is there" inside test -s /usr/share/bash-completion/completions/outcore
check "a compiler is installed beside it" \
  inside apt-get install -y --no-install-recommends g++ pkg-config liburing-dev libboost-dev
check "a program in C works" inside bash -c 'cd /root && echo "a b a" >text &&
  cc 02_words.c -o words $(pkg-config --cflags --libs outcore) && ./words text'
check "a program in C++ works" inside bash -c 'cd /root && echo "0 1 1 2" >edges &&
  g++ -std=c++20 10_graph.cc -o graph $(pkg-config --cflags --libs outcore) &&
  ./graph graph.heap <edges && [[ $(./graph graph.heap 0 | wc -l) == 3 ]]'
check "it goes again" inside bash -c 'apt-get purge -y outcore && [[ ! -e /usr/bin/outcore ]]'
