# Completion of the outcore command for bash.
_outcore() {
  local word=${COMP_WORDS[COMP_CWORD]} before=
  ((COMP_CWORD == 0)) || before=${COMP_WORDS[COMP_CWORD - 1]}
  local command=${COMP_WORDS[1]-} choices
  COMPREPLY=()
  case $before in
  --memory) choices="dram mmap mmap-random direct outcore" ;;
  --page) choices="4k 16k 64k 256k 1M 2M 16M" ;;
  --store)
    choices="file: sparse: scratch: memory:"
    mapfile -t COMPREPLY < <(compgen -f -- "$word")
    ;;
  --fast | --disk)
    mapfile -t COMPREPLY < <(compgen -d -- "$word")
    return
    ;;
  --size | --budget | --threads) return ;;
  *)
    case $COMP_CWORD:$command in
    1:*) choices="info bench demo --help --version" ;;
    *:info) choices="--help --json" ;;
    2:bench) choices="random-io scan sort bfs compare table ingest --help" ;;
    *:bench)
      choices="--size --budget --threads --page --memory --store --fast --disk --json --help"
      [[ $word == -* ]] || mapfile -t COMPREPLY < <(compgen -f -- "$word")
      ;;
    *:demo) choices="--json --help" ;;
    *) return ;;
    esac
    ;;
  esac
  local more
  mapfile -t more < <(compgen -W "$choices" -- "$word")
  COMPREPLY+=("${more[@]}")
}
complete -o filenames -F _outcore outcore
