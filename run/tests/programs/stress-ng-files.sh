#!/bin/bash
# stress-ng-files.sh: stress-ng's stressors for files.
# shellcheck source-path=SCRIPTDIR source=lib_stress_ng.sh
. "$(dirname "$0")/lib_stress_ng.sh"

all_end_as_plainly \
  "access chmod copy-file dentry dir dup fallocate fcntl" \
  "file-ioctl filename flock fstat getdent handle hdd inotify" \
  "io iomix lease link locka lockf lockofd readahead" \
  "rename seek sendfile splice symlink sync-file tee utime" \
  "aio fanotify sockfd pipe null full revio"
ends_as_plainly aiol # io_setup() is refused with --alloc
