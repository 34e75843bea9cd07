#!/bin/bash
# run.sh BUILD : the suite as user nobody, where the system forbids userfaultfd to users. As root.
# RESULT: where the JUnit file goes. Tests that need root say so and skip; those in Python read the
# sources alone, by an interpreter that nobody may not be allowed to run, and stay out.
set -euo pipefail
build=$(realpath "${1:?run.sh: which build directory?}")
source_dir=$(cd "$(dirname "$0")/../.." && pwd)
result=${RESULT:-$build/unprivileged.xml}
knob=/proc/sys/vm/unprivileged_userfaultfd

# A mount namespace of our own: what is mounted below goes away with it.
if [[ ${OUTCORE_IS_INSIDE-} != yes ]]; then
  OUTCORE_IS_INSIDE=yes exec unshare --mount --propagation private "$0" "$build"
fi

# nobody may not enter every checkout: the first closed folder on the way is covered by an empty one
# that holds the way to the checkout and nothing else.
open_the_way() {
  local folder=/ part held IFS=/
  for part in ${source_dir#/}; do
    folder=${folder%/}/$part
    setpriv --reuid=nobody --regid=nogroup --clear-groups test -x "$folder" && continue
    if [[ $folder == "$source_dir" ]]; then
      mode_before=$(stat -c %a "$source_dir")
      chmod o+x "$source_dir"
      return
    fi
    held=$home/checkout
    mkdir "$held"
    mount --bind "$source_dir" "$held"
    mount -t tmpfs -o mode=755 tmpfs "$folder"
    mkdir -p "$source_dir"
    mount --bind "$held" "$source_dir"
    return
  done
}

home=$(mktemp -d)
before=$(cat "$knob")
mode_before=
finish() {
  echo "$before" >"$knob"
  [[ -z $mode_before ]] || chmod "$mode_before" "$source_dir"
  umount "$home/checkout" 2>/dev/null || true
  rm -rf --one-file-system "$home"
}
trap finish EXIT
trap 'exit 130' INT TERM

open_the_way
python=$(PATH=/usr/bin:/bin command -v python3)
# The tests are named as root, once; nobody may write ctest's log, and nothing else in the build.
ctest --test-dir "$build" -N >/dev/null
rm -rf "$build/Testing"
mkdir "$build/Testing"
mount -t tmpfs -o mode=1777 tmpfs "$build/Testing"
chown nobody "$home"
echo 0 >"$knob"

# What permissions change: how faults are delivered, what may be locked, opened, limited. Not what
# is the same for every user: computations, formats, stores, heaps, occ, seeds beyond the first.
left_out='python|nobody-cannot|rbd|redis|sim|policy|predecessor|tools|base|os|options'
left_out="$left_out|pool|store|prefetch|metrics|cut|stress|heap|capture|example"
same='^With/(Occ|Dlm)|^Occ|Mechanisms/.*/[A-Za-z]*(64|1024)KiB'
same="$same|^Bench(Checkpoint|Arrays)\.|^FramesOf\.|^MasterKills\.|^By/FarProgramsEnd"
same="$same|^TogetherRedis"
same="$same|^(CompressedArrays|DamagedArrays|ForgedRecords|Objects|Drains|Sums)\."
same="$same|^preload.sequence..*[1-9]1$"
# Commands that compute, describe or compare: what they map is mapped by the tests that stay, too.
same="$same|^Arrays[A-Za-z]*Command\.|EveryWork\.|^(Sort|Matmul|Kmers|Gradients|Graph)(Run|Bench)\."
same="$same|^JointPartitions\.|^OfWorkload\.|^FarBenchOnServer\.|^YcsbFile\.|^Bench\."
same="$same|^YcsbHeap\.|^Kmer[A-Za-z]*\.|^Layouts/KmerDatabase\.|^Processes/TwoPassRunOf\."
same="$same|^RealGenomes\.|^(MissCurve|ReuseDistances)[/.]|^Recording\.OfManyEvents"
same="$same|^Stores/ArraysOn\.|^Pmem\."
status=0
setpriv --reuid=nobody --regid=nogroup --clear-groups --inh-caps=-all --bounding-set=-all \
  env HOME="$home" TMPDIR="$home" OUTCORE_IS_INSIDE= OUTCORE_TEST_SHARE=4 \
  "$python" "$source_dir/tools/run_tests.py" "$build" --jobs "${JOBS:-2}" \
  --timeout "${TEST_SECONDS_MAX:-300}" --without-label "^($left_out)\$" --without "$same" \
  --junit "$build/Testing/unprivileged.xml" || status=$?
cp "$build/Testing/unprivileged.xml" "$result" || status=1
exit "$status"
