#!/bin/bash
# git.sh : fsck of a repository with one big pack, mapped whole and by windows.
BUDGET=8M MIN_SIZE=64K
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
needs git

export GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.org \
  GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.org
git init --quiet repository
cd repository
# What cannot be compressed, so that the pack is as large as the files.
python3 -c '
import random
for number in range(24):
    with open(f"file{number}", "wb") as file:
        file.write(random.Random(number).randbytes(2 << 20))'
git -c core.compression=0 add .
git commit --quiet -m "files"
git -c core.compression=0 -c pack.window=0 repack --quiet -a -d
files=$(sha1sum file*)
rm file*

for window in 1g 1m; do
  git=(git -c "core.packedGitWindowSize=$window")
  rt -- "${git[@]}" fsck --full --strict || fail "git fsck found errors"
  expect_taken '*/pack-*.pack'
  plain=$("${git[@]}" cat-file --batch --batch-all-objects | md5sum)
  under=$(rt -- "${git[@]}" cat-file --batch --batch-all-objects | md5sum)
  expect_taken '*/pack-*.pack'
  expect_equal "all objects, windows of $window" "$plain" "$under"
done
rt -- git checkout --quiet -- .
expect_taken '*/pack-*.pack'
expect_equal "what was checked out" "$files" "$(sha1sum file*)"
