#!/bin/bash
# ceph_cluster.sh FOLDER : a small Ceph on 127.0.0.1 for the tests: a monitor, three OSDs over files
# (bluestore), cephx, no manager. Everything is within FOLDER, which must be empty.
#
# Prints `ready` or `failed: WHY`, then obeys lines of standard input, each answered by `done` or
# `failed: WHY`: `kill-osd N`, `stop-osd N` (SIGSTOP), `continue-osd N`, `start-osd N`,
# `wait-osds N` (until so many are up), `ceph ARGUMENT…`, `rbd ARGUMENT…`. At the end of standard
# input, when whoever started it has ended in whatever way, it ends the daemons and removes FOLDER.
# Daemons die with this shell.
set -uo pipefail
folder=${1:?ceph_cluster.sh: which folder?}
conf=$folder/ceph.conf
osds=3
export CEPH_CONF=$conf LC_ALL=C
unset CEPH_ARGS CEPH_KEYRING
exec 3>&1 >"$folder/log" 2>&1

declare -A pid_of
finish() {
  trap - EXIT
  local pid
  for pid in "${pid_of[@]}"; do kill -KILL "$pid"; done
  wait
  rm -rf "$folder"
}
trap finish EXIT
trap 'exit 1' HUP INT TERM

fail() {
  echo "failed: $*" >&3
  exit 1
}

write_conf() {
  cat >"$conf" <<END
[global]
fsid = $(cat /proc/sys/kernel/random/uuid)
mon host = [v2:127.0.0.1:$port/0,v1:127.0.0.1:$((port + 1))/0]
public addr = 127.0.0.1
cluster addr = 127.0.0.1
auth cluster required = cephx
auth service required = cephx
auth client required = cephx
osd pool default size = 2
osd pool default min size = 1
osd pool default pg autoscale mode = off
osd crush chooseleaf type = 0
mon allow pool delete = true
mon osd min down reporters = 1
mon osd reporter subtree level = osd
mon data avail crit = 1
mon data avail warn = 2
mon osd full ratio = .97
mon osd backfillfull ratio = .96
mon osd nearfull ratio = .95
mon cluster log to file = false
osd heartbeat interval = 1
osd heartbeat grace = 3
run dir = $folder
[mon]
mon data = $folder/mon
[osd]
osd data = $folder/osd.\$id
osd objectstore = bluestore
osd class update on start = false
osd mclock skip benchmark = true
osd client watch timeout = 6
bluestore block size = 2147483648
bluestore fsck on mkfs = false
bluestore cache autotune = false
bluestore cache size = 33554432
osd memory target = 939524096
[mon]
log file = $folder/\$name.log
admin socket = $folder/\$name.asok
[osd]
log file = $folder/\$name.log
admin socket = $folder/\$name.asok
[client]
keyring = $folder/keyring
END
}

# start NAME COMMAND… : a daemon that dies with this shell.
start() {
  local name=$1
  shift
  setpriv --pdeathsig KILL "$@" 3>&- </dev/null &
  pid_of[$name]=$!
}

start_osd() {
  start "osd.$1" ceph-osd -f -i "$1" --keyring "$folder/osd.$1/keyring"
}

# A port that nobody listens on, below those that the system gives to clients; and the next one.
free_port() {
  local candidate
  for _ in {1..50}; do
    candidate=$((20000 + RANDOM % 10000))
    (: <"/dev/tcp/127.0.0.1/$candidate") 2>/dev/null && continue
    (: <"/dev/tcp/127.0.0.1/$((candidate + 1))") 2>/dev/null && continue
    echo "$candidate"
    return
  done
  return 1
}

start_monitor() {
  local keyring=$folder/keyring i
  ceph-authtool --create-keyring "$keyring" --gen-key -n mon. --cap mon 'allow *' &&
    ceph-authtool "$keyring" --gen-key -n client.admin --cap mon 'allow *' --cap osd 'allow *' &&
    ceph-authtool "$keyring" --gen-key -n client.tenant --cap mon 'profile rbd' \
      --cap osd 'profile rbd pool=data' &&
    ceph-authtool "$keyring" --gen-key -n client.reader --cap mon 'profile rbd-read-only' \
      --cap osd 'profile rbd-read-only pool=data' || return
  for ((i = 0; i < osds; i++)); do
    mkdir "$folder/osd.$i"
    ceph-authtool --create-keyring "$folder/osd.$i/keyring" --gen-key -n "osd.$i" \
      --cap mon 'allow profile osd' --cap osd 'allow *' &&
      ceph-authtool "$keyring" --import-keyring "$folder/osd.$i/keyring" || return
  done
  monmaptool --create --fsid "$(sed -n 's/^fsid = //p' "$conf")" \
    --addv a "[v2:127.0.0.1:$port,v1:127.0.0.1:$((port + 1))]" "$folder/monmap" &&
    ceph-mon --mkfs -i a --monmap "$folder/monmap" --keyring "$keyring" || return
  start mon ceph-mon -f -i a --public-addr "127.0.0.1:$port"
}

start_osds() {
  local i uuid lines= makers=()
  for ((i = 0; i < osds; i++)); do
    uuid=$(cat /proc/sys/kernel/random/uuid)
    lines+="osd create $uuid $i"$'\n'
    truncate -s 2G "$folder/osd.$i/block"
    ceph-osd -i "$i" --mkfs --osd-uuid "$uuid" --keyring "$folder/osd.$i/keyring" 3>&- &
    makers+=($!)
  done
  wait "${makers[@]}" || return
  lines+="osd pool create data 16 16 replicated"$'\n'"osd pool create small 4 4 replicated"$'\n'
  lines+="osd pool application enable data rbd"$'\n'"osd pool application enable small rbd"$'\n'
  lines+="osd pool set-quota small max_bytes 67108864"
  timeout 60 ceph <<<"$lines" || return
  for ((i = 0; i < osds; i++)); do start_osd "$i"; done
}

wait_for_osds() {
  for _ in {1..150}; do
    [[ $(timeout 20 ceph osd stat) == *" $1 up"* ]] && return
    sleep 0.2
  done
  return 1
}

# obey COMMAND ARGUMENT… : what standard input asks for.
obey() {
  case $1 in
  kill-osd) kill -KILL "${pid_of[osd.$2]}" && { wait "${pid_of[osd.$2]}" || true; } ;;
  stop-osd) kill -STOP "${pid_of[osd.$2]}" ;;
  continue-osd) kill -CONT "${pid_of[osd.$2]}" ;;
  start-osd) start_osd "$2" ;;
  wait-osds) wait_for_osds "$2" ;;
  ceph | rbd) timeout 30 "$@" 3>&- ;;
  *) return 1 ;;
  esac
}

mkdir "$folder/mon"
port=$(free_port) || fail "no free port"
write_conf
start_monitor || fail "the monitor: $(tail -n 1 "$folder/log")"
start_osds || fail "the OSDs: $(tail -n 1 "$folder/log")"
wait_for_osds "$osds" || fail "the OSDs do not come up: $(timeout 20 ceph osd stat)"
echo ready >&3

while read -r -a words; do
  if obey "${words[@]}"; then echo done >&3; else echo "failed: $(tail -n 1 "$folder/log")" >&3; fi
done
