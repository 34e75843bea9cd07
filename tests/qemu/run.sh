#!/bin/bash
# run.sh BUILD [PROGRAM…] : boots the distribution's own kernel (Debian 12: 6.1) in qemu, without
# hardware help, and runs test programs of BUILD/bin there; conformance and kernel facts unless
# others are named.
# RESULT: where the JUnit file goes. QEMU_SECONDS_MAX: when to give up. Root is not needed.
set -euo pipefail
source_dir=$(cd "$(dirname "$0")/../.." && pwd)
build=$(realpath "${1:?run.sh: which build directory?}")
shift
programs=("$@")
((${#programs[@]})) || programs=(test_conformance test_kernel)
result=${RESULT:-$build/qemu.xml}
seconds_max=${QEMU_SECONDS_MAX:-1500}
cache=$build/qemu
root=$cache/root

fail() {
  echo "qemu: $*" >&2
  exit 1
}

# Prints the folder of the unpacked kernel package; downloads it the first time.
fetch_kernel() {
  local package
  package=$(apt-cache depends linux-image-cloud-amd64 |
    sed -n 's/.*Depends: \(linux-image-6\.1.*\)/\1/p')
  [[ -n $package ]] ||
    fail "apt knows no linux-image-cloud-amd64 6.1: apt-get update, on Debian 12"
  if [[ ! -d $cache/$package ]]; then
    (cd "$cache" && apt-get download "$package" >/dev/null 2>&1) || fail "cannot download $package"
    dpkg-deb -x "$cache/$package"_*.deb "$cache/$package.part"
    rm "$cache/$package"_*.deb
    mv "$cache/$package.part" "$cache/$package"
  fi
  echo "$cache/$package"
}

# copy_program FILE TARGET: with the libraries it is linked to, where they are looked for.
copy_program() {
  local library
  install -D "$1" "$root$2"
  while read -r library; do
    [[ -f $root$library ]] || install -D "$library" "$root$library"
  done < <(ldd "$1" | grep -o '/[^ ]*' || true)
}

make_initramfs() {
  local program kernel=$1
  rm -rf "$root"
  mkdir -p "$root"/{bin,dev,proc,sys,tmp,run,mnt,tests,etc}
  install -D /bin/busybox "$root/bin/busybox"
  install -m 755 "$source_dir/tests/qemu/init.sh" "$root/init"
  find "$kernel/lib/modules" -name 'loop.ko' -exec cp {} "$root/loop.ko" \;
  copy_program "$(command -v mke2fs || echo /sbin/mke2fs)" /mke2fs
  echo 'root:x:0:0:root:/:/bin/sh' >"$root/etc/passwd"
  for program in "${programs[@]}"; do
    [[ -x $build/bin/$program ]] || fail "$build/bin/$program is not built"
    copy_program "$build/bin/$program" "/tests/$program"
    strip --strip-debug "$root/tests/$program"
  done
  [[ ! -x $build/bin/outcore ]] || copy_program "$build/bin/outcore" "$build/bin/outcore"
  (cd "$root" && find . | cpio --quiet -o -H newc | gzip -1) >"$cache/initramfs"
}

boot() {
  timeout "$seconds_max" qemu-system-x86_64 -machine q35 -accel tcg,thread=multi -cpu max -smp 2 \
    -m 3072 -nographic -no-reboot -nodefaults -vga none \
    -serial stdio -serial "file:$cache/results" \
    -kernel "$1"/boot/vmlinuz-* -initrd "$cache/initramfs" \
    -append "console=ttyS0 panic=-1 quiet mitigations=off" </dev/null
}

# The guest writes gtest's XML files one after the other: joined under one element.
join_results() {
  echo '<all>'
  tr -d '\r' <"$cache/results" | grep -v '^<?xml\|^status: '
  echo '</all>'
}

for tool in qemu-system-x86_64 cpio busybox; do
  command -v "$tool" >/dev/null || "$source_dir/tools/install_packages.sh" qemu
done
mkdir -p "$cache"
rm -f "$cache/results"
kernel=$(fetch_kernel)
make_initramfs "$kernel"
echo "booting $(basename "$kernel") with ${programs[*]}"
boot "$kernel" || fail "the machine did not come to its end within $seconds_max s"
join_results >"$result"
failed=$(grep -c '^status: [^0]' "$cache/results" || true)
ended=$(grep -c '^status: ' "$cache/results" || true)
echo "qemu: $ended of ${#programs[@]} programs ended, $failed of them failed"
[[ $ended == "${#programs[@]}" && $failed == 0 ]]
