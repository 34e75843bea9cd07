#!/bin/bash
# deb.sh : builds build/outcore_VERSION_ARCHITECTURE.deb: library, headers, command, preload
# library, occ, man pages and completions, for the Debian or Ubuntu on which it is made.
set -euo pipefail
cd "$(dirname "$0")/.."
source_dir=$PWD
objects=$source_dir/build-deb
stage=$source_dir/build/deb
export CCACHE_BASEDIR=$source_dir CCACHE_NOHASHDIR=1 CCACHE_DEPEND=1
jobs=${JOBS:-$(nproc)}

cmake -S . -B "$objects" -G Ninja -DCMAKE_INSTALL_PREFIX=/usr -DOUTCORE_WERROR=ON \
  -DOUTCORE_TESTS=OFF >/dev/null
cmake --build "$objects" -j "$jobs" --target installable -- --quiet
version=$(sed -n 's/^project(outcore VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
architecture=$(dpkg --print-architecture)
rm -rf "$stage"
DESTDIR=$stage/root cmake --install "$objects" --strip >/dev/null
root=$stage/root
find "$root" -name '*.a' -exec strip --strip-debug {} +
gzip --best --no-name "$root"/usr/share/man/man1/*.1

# What it needs, by the libraries that its files name: the command's are necessary, those of the
# modules of `outcore arrays` are for their formats alone.
mkdir -p "$stage/debian"
printf 'Source: outcore\n\nPackage: outcore\nArchitecture: %s\n' "$architecture" \
  >"$stage/debian/control"
mapfile -t modules < <(find "$root/usr/lib" -path '*/outcore/outcore_*.so')
mapfile -t programs < <(find "$root/usr/bin" -type f
  find "$root/usr/lib" -maxdepth 2 -name 'liboutcore*.so')
modules=("${modules[@]/#/-e}") programs=("${programs[@]/#/-e}")
needs=$(cd "$stage" && dpkg-shlibdeps -O -dDepends "${programs[@]}" -dRecommends "${modules[@]}" \
  2>"$stage/shlibdeps.log") || {
  cat "$stage/shlibdeps.log" >&2
  exit 1
}
field() { sed -n "s/^shlibs:$1=//p" <<<"$needs"; }

mkdir -p "$root/DEBIAN"
cat >"$root/DEBIAN/control" <<CONTROL
Package: outcore
Version: $version
Architecture: $architecture
Maintainer: ${DEB_MAINTAINER:-The Outcore project <outcore@localhost>}
Section: utils
Priority: optional
Installed-Size: $(du -sk "$root/usr" | cut -f1)
Depends: $(field Depends)
Recommends: $(field Recommends)
Suggests: g++, pkg-config, liburing-dev, libboost-dev
Description: data far larger than memory, used as if it were in memory
 A pager in user space: pages of files are read when they are touched, within a
 memory budget, and written back when they changed. The command runs programs
 as they are; the library is for C++ and C (which link it by pkg-config, with
 liburing-dev).
CONTROL
mkdir -p "$root/usr/share/doc/outcore"
cp LICENSE "$root/usr/share/doc/outcore/copyright"
package=$source_dir/build/outcore_${version}_$architecture.deb
dpkg-deb --root-owner-group --build "$root" "$package" >/dev/null
echo "$package"
