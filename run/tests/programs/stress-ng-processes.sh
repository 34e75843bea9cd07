#!/bin/bash
# stress-ng-processes.sh: stress-ng's stressors for signals, timers, threads and processes.
# shellcheck source-path=SCRIPTDIR source=lib_stress_ng.sh
. "$(dirname "$0")/lib_stress_ng.sh"

all_end_as_plainly \
  "alarm fault itimer kill sigabrt sigchld sigfd sigfpe" \
  "sigio signal signest sigpending sigpipe sigq sigrt sigsegv" \
  "sigsuspend sigtrap timer timerfd pidfd eventfd poll" \
  "clone close daemon exec exit-group fork pthread" \
  "ptrace session spawn switch vfork wait zombie"
