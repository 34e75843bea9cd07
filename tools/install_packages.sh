#!/bin/bash
# install_packages.sh GROUP… : installs what is missing; build, test, redis, engines, kraken,
# bench, profile, demo, docs, qemu, programs, mpi, clean-root, rivals-LIBRARY (Debian 12).
# Asks apt only when something is missing; then it needs root or sudo.
set -euo pipefail

packages_of() {
  case $1 in
  build)
    echo g++ cmake ninja-build pkg-config ccache python3 liburing-dev libcli11-dev
    echo nlohmann-json3-dev libtomlplusplus-dev libgtest-dev libgmock-dev libboost-dev libxxhash-dev
    echo node-d3 libdw-dev systemtap-sdt-dev prometheus-cpp-dev # outcore report, export, probes
    echo libssl-dev librbd-dev librados-dev liblz4-dev libzstd-dev libncurses-dev
    echo libzip-dev libhdf5-dev libnetcdf-dev libpng-dev zlib1g-dev libblosc-dev # outcore arrays
    ;;
  test)
    echo clang clang-format clang-tidy libclang-rt-14-dev lld util-linux e2fsprogs gnuplot-nox
    echo libopenmpi-dev openmpi-bin libcereal-dev tmux
    ;;
  redis) echo redis-server ;;
  engines) # whose servers the tests of their stores start
    packages_of redis
    echo openssl openssh-server iproute2 ceph-mon ceph-osd ceph-common
    ;;
  kraken) echo kraken2 ;;
  bench) echo util-linux e2fsprogs mount gnuplot-nox libhiredis-dev ;;
  profile) echo linux-perf ;;
  demo) echo util-linux ;;
  docs) echo python3 python3-venv ragout-examples ;;
  qemu) echo qemu-system-x86 busybox-static cpio zstd xz-utils libc-bin ;;
  programs) # whose answers under `outcore run` are compared with those of a plain run
    echo kraken2 bowtie2 ncbi-blast+ last-align lmdb-utils sqlite3 rocksdb-tools fio git
    echo default-jdk-headless liblucene8-java python3 python3-venv g++ stress-ng
    ;;
  clean-root) echo debootstrap ;;
  mpi) echo libopenmpi-dev openmpi-bin ;;
  # The libraries of parallel I/O that named arrays are measured beside, each by itself: one may be
  # missing.
  rivals-hdf5) echo libhdf5-openmpi-dev ;;
  rivals-netcdf) echo libnetcdf-mpi-dev libhdf5-openmpi-dev ;;
  rivals-pnetcdf) echo libpnetcdf-dev ;;
  rivals-adios)
    echo libadios-dev libadios-openmpi-dev libnetcdf-mpi-dev libhdf5-openmpi-dev
    echo zlib1g-dev libbz2-dev libaec-dev liblz4-dev libblosc-dev
    ;;
  rivals-adios2) echo python3-pip ;;
  *)
    echo "install_packages.sh: '$1' is not a group:" \
      "build, test, redis, engines, kraken, bench, profile, demo, docs, qemu, programs, mpi," \
      "clean-root, rivals-LIBRARY" >&2
    return 2
    ;;
  esac
}

# Prints a line for each package that apt-get sets up; all that it says goes to the log.
show_progress() {
  local log=$1 line count=0
  while IFS= read -r line; do
    echo "$line" >>"$log"
    if [[ $line == "Setting up "* ]]; then
      count=$((count + 1))
      line=${line#Setting up }
      echo "  $count: ${line%% *}"
    fi
  done
}

run_apt() {
  local log=$1
  shift
  local as_root=()
  ((EUID == 0)) || as_root=(sudo)
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive LC_ALL=C apt-get "$@" 2>&1 </dev/null |
    show_progress "$log"
}

missing=()
wanted=()
if (($# == 0)); then
  echo "usage: install_packages.sh GROUP…, of build, test, redis, engines, kraken, bench," \
    "profile, demo, docs, qemu, programs, mpi, clean-root, rivals-LIBRARY" >&2
  exit 2
fi
for group in "$@"; do
  names=$(packages_of "$group") || exit 2
  # shellcheck disable=SC2206  # package names have no spaces
  wanted+=($names)
done
if ! command -v dpkg-query >/dev/null; then
  echo "install_packages: no dpkg here; install yourself what these are elsewhere: ${wanted[*]}" >&2
  exit 0
fi
for package in "${wanted[@]}"; do
  state=$(dpkg-query -W -f='${db:Status-Abbrev}' "$package" 2>/dev/null || true)
  [[ $state == ii* || " ${missing[*]-} " == *" $package "* ]] || missing+=("$package")
done
((${#missing[@]})) || exit 0

if ((EUID != 0)) && ! command -v sudo >/dev/null; then
  echo "install_packages: run this as root, then try again:" \
    "apt-get update && apt-get install -y --no-install-recommends ${missing[*]}" >&2
  exit 1
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
echo "installing: ${missing[*]}"
if ! run_apt "$log" update || ! run_apt "$log" install -y --no-install-recommends "${missing[@]}"
then
  tail -n 20 "$log" >&2
  echo "install_packages: apt-get could not install: ${missing[*]} (its last words are above)" >&2
  exit 1
fi
