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

_outcore() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} choices= i
  local said=()
  for ((i = 1; i < COMP_CWORD && i < 3; i++)); do
    [[ ${COMP_WORDS[i]} == [a-z]* ]] || break
    said+=("${COMP_WORDS[i]}")
    [[ ${COMP_WORDS[1]} == bench ]] || break
  done
  COMPREPLY=()
  case $before in
  --memory) choices="all dram dram-huge mmap mmap-random direct outcore" ;;
  --page) choices="4k 16k 64k 256k 1M 2M 16M" ;;
  --delivery) choices="auto in-thread messages mprotect" ;;
  --frames) choices="auto shared private" ;;
  --advice) choices="normal random sequential" ;;
  --policy) choices="s3-fifo di-mmap fifo" ;;
  --distribution) choices="uniform zipf once" ;;
  --dir | --disk | --fast | --out) mapfile -t COMPREPLY < <(compgen -d -- "$word") ;;
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
