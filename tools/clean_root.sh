#!/bin/bash
# clean_root.sh FOLDER : a Debian of this machine's release and mirror in FOLDER, with nothing but
# its smallest set of packages, for tests of what is installed. Root; debootstrap and the network.
# One that is there is taken as it is.
set -euo pipefail
root=$1
((EUID == 0)) || {
  echo "clean_root.sh: needs root" >&2
  exit 1
}
[[ ! -e $root/.whole ]] || exit 0
tools/install_packages.sh clean-root
suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
mirror=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/*.{sources,list} 2>/dev/null |
  grep -v '^ *#' | grep -oE 'https?://[^ ]+' | head -n 1 || true)
rm -rf "$root"
debootstrap --variant=minbase --include=ca-certificates "$suite" "$root" \
  "${mirror:-http://deb.debian.org/debian}" >"$root.log" 2>&1 || {
  tail -n 20 "$root.log" >&2
  exit 1
}
# How this machine reaches the network.
cp /etc/resolv.conf "$root/etc/resolv.conf"
for file in /etc/apt/apt.conf.d/*proxy* /etc/apt/apt.conf; do
  [[ ! -f $file ]] || cp "$file" "$root/etc/apt/apt.conf.d/90${file##*/}"
done
touch "$root/.whole"
