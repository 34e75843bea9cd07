# Completion of the outcore command for bash. What can be said comes from --help, and so is never stale.

# Prints the options that `outcore WORD…` takes, and its subcommands.
_outcore_words() {
  "${COMP_WORDS[0]}" "$@" --help 2>/dev/null | awk '
    /^Examples?:/ { exit }
    /^Subcommands:/ { is_commands = 1; next }
    is_commands && /^  [a-z]/ { print $1 }
    !is_commands { while (match($0, /--[a-z][a-z-]*/)) {
      if (!seen[word = substr($0, RSTART, RLENGTH)]++) print word
      $0 = substr($0, RSTART + RLENGTH) } }
    /^$/ { is_commands = 0 }'
}

# The numbers of processes that can be watched.
_outcore_processes() {
  "${COMP_WORDS[0]}" top --json --interval 50ms 2>/dev/null | grep -oE '"pid":[0-9]+' | cut -d: -f2
}

# The index of the program in `outcore run [OPTION…] [--] PROGRAM…`, or of the word being written.
_outcore_program() {
  local i
  for ((i = 2; i < COMP_CWORD; i++)); do
    case ${COMP_WORDS[i]} in
    --) echo $((i + 1)) && return ;;
    --explain | --quiet | -q | --allow-aio | --keep-privileges | --share-writes | --help | -h | --*=*) ;;
    = | -*) # an option's value is the next word, or what stands behind "="
      [[ ${COMP_WORDS[i]} == = || ${COMP_WORDS[i + 1]} != = ]] && ((i++))
      ;;
    *) break ;;
    esac
  done
  echo "$i"
}

_outcore() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} choices= i
  local said=()
  for ((i = 1; i < COMP_CWORD && i < 3; i++)); do
    [[ ${COMP_WORDS[i]} == [a-z]* ]] || break
    said+=("${COMP_WORDS[i]}")
    [[ ${COMP_WORDS[1]} == @(arrays|bench|buffers|checkpoint|heap|store) ]] || break
  done
  COMPREPLY=()
  if [[ ${COMP_WORDS[1]} == run ]] && ((COMP_CWORD > 1)); then
    i=$(_outcore_program)
    if ((COMP_CWORD > i)); then # the program's own words
      if declare -F _command_offset >/dev/null; then
        _command_offset "$i"
      else
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
      fi
      return
    fi
    if ((COMP_CWORD == i)) && [[ $word != -* ]]; then
      mapfile -t COMPREPLY < <(compgen -c -- "$word")
      return
    fi
    case $before in
    --json | --map | --not-map | --hosts | --learn | --report | --metrics) mapfile -t COMPREPLY < <(compgen -f -- "$word") && return ;;
    --store) choices="scratch: far://" before=--choice ;;
    --replicas) choices="0 1" before=--choice ;;
    esac
  elif [[ ${COMP_WORDS[1]} == check && $word != -* ]] && ((COMP_CWORD > 1)); then
    mapfile -t COMPREPLY < <(compgen -c -f -- "$word")
    return
  elif [[ ${COMP_WORDS[1]} == @(arrays|checkpoint|heap|store) && $word != -* ]] && ((COMP_CWORD > 2)); then
    mapfile -t COMPREPLY < <(compgen -f -- "$word")
    return
  elif [[ ${COMP_WORDS[1]} =~ ^(residency|warm|evict)$ && $word != -* && $before != --* ]]; then
    mapfile -t COMPREPLY < <(compgen -f -- "$word")
    return
  elif [[ ${COMP_WORDS[1]} == report && $word != -* ]] && ((COMP_CWORD > 1)); then
    mapfile -t COMPREPLY < <(compgen -f -- "$word")
    return
  elif [[ ${COMP_WORDS[1]} == @(stat|explain) && $word != -* ]] && ((COMP_CWORD == 2)); then
    mapfile -t COMPREPLY < <(compgen -W "$(_outcore_processes)" -- "$word")
    return
  fi
  case $before in
  --choice) ;;
  --pid) choices=$(_outcore_processes) ;;
  --format) choices="prometheus openmetrics" ;;
  --sort) choices="pid user stalled budget fills read write p99 refaults amplification cpu rss command" ;;
  --interval) choices="200ms 1s 5s 1min" ;;
  --memory) choices="all dram dram-huge mmap mmap-random mmap-dontneed swap direct two-pass outcore outcore-random" ;;
  --compress) choices="lz4 zstd zstd:1 zstd:9 zstd:19" ;;
  --page) choices="4k 16k 64k 256k 1M 2M 16M" ;;
  --delivery) choices="auto in-thread messages mprotect" ;;
  --frames) choices="auto shared private" ;;
  --on-error) choices="signal zero abort" ;;
  --advice) choices="normal random sequential" ;;
  --policy) choices="auto s3-fifo di-mmap fifo" ;;
  --distribution) choices="uniform zipf once" ;;
  --table) choices="records heap" ;;
  --dir | --scratch-dir | --disk | --fast | --out) mapfile -t COMPREPLY < <(compgen -d -- "$word") ;;
  --store | --edges | --graph | --json-file) mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
  *)
    choices=$(_outcore_words "${said[@]}")
    [[ $word == -* || $COMP_CWORD -lt 3 ]] || mapfile -t COMPREPLY < <(compgen -f -- "$word")
    ;;
  esac
  local more
  mapfile -t more < <(compgen -W "$choices" -- "$word")
  COMPREPLY+=("${more[@]}")
}
complete -o filenames -F _outcore outcore
