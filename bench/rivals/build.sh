#!/bin/bash
# build.sh LIBRARY INTO : compiles the programs of bench/rivals by mpicxx into the folder INTO,
# Outcore's with the archive LIBRARY. INTO/NAME.log: what the compiler said of one that cannot be
# built, which is no error: the table says it. OUTCORE_LINK: more words for the linker.
set -uo pipefail
cd "$(dirname "$0")/../.."
library=${1:?build.sh: which liboutcore.a?} into=${2:?build.sh: into which folder?}
mkdir -p "$into"
wheel=$into/adios2-wheel/adios2

# Where Debian has what pkg-config does not say: the headers of NetCDF's MPI, ADIOS' archives.
libraries=/usr/lib/$(mpicxx -dumpmachine)
flags=(-std=c++20 -O3 -Wall -Wextra -Wshadow -DOMPI_SKIP_MPICXX -I. -Iinclude)
words_of() { # the words for the compiler and linker of a library
  case $1 in
  outcore) echo "$library -luring -lpthread -ldl ${OUTCORE_LINK-}" ;;
  hdf5) pkg-config --cflags --libs hdf5-openmpi ;;
  netcdf)
    pkg-config --cflags --libs netcdf-mpi
    echo "-I$libraries/netcdf/mpi/include"
    ;;
  pnetcdf) pkg-config --cflags --libs pnetcdf ;;
  adios)
    echo "-L$libraries/adios/openmpi -ladios $(pkg-config --cflags --libs hdf5-openmpi)" \
      "-I$libraries/netcdf/mpi/include $(pkg-config --libs netcdf-mpi) -lhdf5_openmpi_hl" \
      "-lz -lbz2 -lsz -llz4 -lblosc -lm -lpthread"
    ;;
  adios2)
    echo "-isystem $wheel/include -L$wheel -Wl,-rpath,$PWD/$wheel" \
      "-Wl,-rpath-link,$wheel/../adios2.libs -ladios2_cxx -ladios2_core"
    ;;
  esac
}
compile() { # compile NAME OUTPUT SOURCE… : done again if a source, or Outcore, is newer
  local words
  # shellcheck disable=SC2207
  words=($(words_of "$1")) || return 1
  mpicxx "${flags[@]}" -o "$2" "${@:3}" "${words[@]}"
}
is_new() { # is_new OUTPUT SOURCE…
  local source
  [[ -x $1 ]] || return 1
  for source in "${@:2}"; do [[ $1 -nt $source ]] || return 1; done
}

headers=(bench/rivals/*.h bench/rivals/build.sh include/outcore/*.h "$library")
missing=0
for name in outcore mmap_floor write_floor hdf5 netcdf pnetcdf adios adios2; do
  main=(bench/rivals/rival.cc "bench/rivals/$name.cc")
  example=bench/rivals/example_$name.cc
  for output in "$name" "example_$name"; do
    sources=("${main[@]}")
    [[ $output == "$name" ]] || sources=("$example")
    [[ -e ${sources[0]} ]] || continue
    ! is_new "$into/$output" "${sources[@]}" "${headers[@]}" || continue
    rm -f "$into/$output"
    if compile "$name" "$into/$output" "${sources[@]}" >"$into/$output.log" 2>&1; then
      rm -f "$into/$output.log"
    else
      echo "build: $output cannot be built: $into/$output.log" >&2
      missing=$((missing + 1))
    fi
  done
done
echo "-- rivals: built in $into, $missing cannot be built"
