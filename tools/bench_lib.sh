# bench_lib.sh : what the benchmarks' scripts share; sourced by tools/bench*.sh, from the project.
# shellcheck shell=bash

# list_rows TABLE OPTION… : lists or helps and ends, where that is asked for; ends with a message
# where something is wrong with the options.
list_rows() {
  local table=$1 option
  shift
  for option in "$@"; do
    case $option in --list | --help | -h) exec python3 "$table" "$@" ;; esac
  done
  python3 "$table" --list "$@" >/dev/null
}

# need_root NAME WHY VARIABLE,… OPTION… : starts the script again by sudo, unless this is root.
need_root() {
  local name=$1 why=$2 variables=$3
  shift 3
  ((EUID != 0)) || return 0
  command -v sudo >/dev/null || {
    echo "$name: needs root to $why: run as root, or install sudo" >&2
    exit 1
  }
  exec sudo --preserve-env="$variables" "tools/${0##*/}" "$@"
}

# need_space NAME FOLDER MIB REMEDY : ends with a message where the folder's disk has less free.
need_space() {
  local free_mib
  free_mib=$(df --output=avail -m "$2" | tail -n 1)
  ((free_mib < $3)) || return 0
  echo "$1: $((free_mib)) MiB free in $2, $3 are needed: set $4" >&2
  exit 1
}

# on_exit FUNCTION : called at the end, also after an interrupt, when what run_table started has
# ended.
running=
on_exit() {
  trap 'trap "" INT TERM; stop_table; '"$1" EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
}
stop_table() {
  [[ -z $running ]] || { kill "$running" && wait "$running"; } 2>/dev/null || true
}

# run_table COMMAND… : its status.
run_table() {
  local status=0
  "$@" &
  running=$!
  wait "$running" || status=$?
  running=
  return "$status"
}

# remove_image IMAGE : an interrupt between the steps of loop_device.sh leaves a device without a
# mount.
remove_image() {
  local device
  device=$(losetup -nO NAME -j "$1" 2>/dev/null || true)
  [[ -z $device ]] || losetup -d "$device" || true
  rm -f "$1"
}
