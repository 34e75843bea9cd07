#!/bin/bash
# build.sh LIBRARY INTO [NAME…] : compiles the programs of bench/rivals, all or those named, by
# mpicxx into the folder INTO, Outcore's with the archive LIBRARY; of all, the examples, too. What
# is newer than its sources stays. INTO/NAME.log: what the compiler said of one that cannot be
# built, which is no error: the table says it. OUTCORE_LINK: more words for the linker. OMPI_CXX:
# the compiler, which may have a word before it ("ccache c++").
set -uo pipefail
cd "$(dirname "$0")/../.."
library=${1:?build.sh: which liboutcore.a?} into=${2:?build.sh: into which folder?} missing=0
shift 2
names=("$@")
if ((${#names[@]} == 0)); then
  names=(outcore mmap_floor write_floor hdf5 netcdf pnetcdf adios adios2)
  names+=(example_{outcore,hdf5,netcdf,pnetcdf,adios,adios2})
fi
mkdir -p "$into"
wheel=$into/adios2-wheel/adios2

# Where Debian has what pkg-config does not say: the headers of NetCDF's MPI, ADIOS' archives.
libraries=/usr/lib/$(mpicxx -dumpmachine)
flags=(-std=c++20 -O3 -Wall -Wextra -Wshadow -DOMPI_SKIP_MPICXX -I. -Iinclude)
words_to_compile() { # of a library
  case $1 in
  hdf5) pkg-config --cflags hdf5-openmpi ;;
  netcdf | adios)
    pkg-config --cflags netcdf-mpi hdf5-openmpi
    echo "-I$libraries/netcdf/mpi/include"
    ;;
  pnetcdf) pkg-config --cflags pnetcdf ;;
  adios2) echo "-isystem $wheel/include" ;;
  esac
}
words_to_link() {
  case $1 in
  outcore) echo "$library -luring -lpthread -ldl ${OUTCORE_LINK-}" ;;
  hdf5) pkg-config --libs hdf5-openmpi ;;
  netcdf) pkg-config --libs netcdf-mpi ;;
  pnetcdf) pkg-config --libs pnetcdf ;;
  adios)
    echo "-L$libraries/adios/openmpi -ladios $(pkg-config --libs hdf5-openmpi netcdf-mpi)" \
      "-lhdf5_openmpi_hl -lz -lbz2 -lsz -llz4 -lblosc -lm -lpthread"
    ;;
  adios2)
    echo "-L$wheel -Wl,-rpath,$(realpath "$wheel") -Wl,-rpath-link,$wheel/../adios2.libs" \
      "-ladios2_cxx -ladios2_core"
    ;;
  esac
}
is_new() { # is_new OUTPUT INPUT…
  local input
  [[ -e $1 ]] || return 1
  for input in "${@:2}"; do [[ $1 -nt $input ]] || return 1; done
}
headers=(bench/rivals/*.h bench/*.h bench/rivals/build.sh include/outcore/*.h)
# object NAME : compiled again if its source, or a header, is newer. What all programs have in
# common is compiled once.
object() {
  local output=$into/$1.o source=bench/rivals/$1.cc words
  ! is_new "$output" "$source" "${headers[@]}" || return 0
  words=$(words_to_compile "${1#example_}") || return
  # shellcheck disable=SC2086
  mpicxx "${flags[@]}" $words -c "$source" -o "$output"
}
program() { # program OUTPUT LIBRARY OBJECT…
  local output=$into/$1 words name inputs=()
  for name in "${@:3}"; do
    object "$name" || return
    inputs+=("$into/$name.o")
  done
  if is_new "$output" "${inputs[@]}" && [[ $2 != outcore || $output -nt $library ]]; then return; fi
  words=$(words_to_link "$2") || return
  # shellcheck disable=SC2086
  mpicxx -o "$output" "${inputs[@]}" $words
}

for name in "${names[@]}"; do
  objects=(rival "$name")
  [[ $name != example_* ]] || objects=("$name")
  if program "$name" "${name#example_}" "${objects[@]}" >"$into/$name.log" 2>&1; then
    rm -f "$into/$name.log"
  else
    rm -f "$into/$name"
    echo "build: $name cannot be built: $into/$name.log" >&2
    missing=$((missing + 1))
  fi
done
echo "-- rivals: built in $into, $missing cannot be built"
