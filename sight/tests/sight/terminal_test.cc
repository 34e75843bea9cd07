// outcore top on a real terminal: within tmux, with keys that are pressed, and a screen that is
// read.
#include <chrono>

#include "sight/tests/sight/scene.h"

namespace outcore::cli {
namespace {

class TopTerminal : public SightScene {
 protected:
  void SetUp() override {
    SightScene::SetUp();
    if (::access(a_library().c_str(), R_OK) != 0) GTEST_SKIP() << "the library is not built here";
    if (run_lines("bash", "command -v tmux").status != 0)
      GTEST_SKIP() << "tmux is not installed: tools/install_packages.sh test";
    // `on TEXT`: until the screen has it; `off TEXT`: until it has not. A bound, not a wait.
    std::ofstream(path("tools.sh")) << R"(
N=0
# tmux starts what it runs by $SHELL, or else by the user's shell: nobody's is nologin.
T() { SHELL=$(command -v bash) tmux -S $PWD/socket$N -f /dev/null "$@"; }
screen() { T capture-pane -p -t x; }
open_top() { # COLUMNS LINES TERM WORDS…
  local columns=$1 lines=$2 term=$3; shift 3
  N=$((N + 1)) # a server that ends may still take the next client
  T new-session -d -s x -x $columns -y $lines "bash --norc --noprofile"
  T send-keys -t x "export PS1=ready: LC_ALL=C TERM=$term; clear; stty -g > before" Enter
  T send-keys -t x "$O top $*; echo status \$?; stty -g > after" Enter
}
fail() { echo "$1"; screen; T kill-server; kill -9 $P; exit 0; }
on() { local end=$((SECONDS + 60)); until screen | grep -qF -- "$1"; do
  ((SECONDS < end)) || fail "never: $1"; done; }
off() { local end=$((SECONDS + 60)); while screen | grep -qF -- "$1"; do
  ((SECONDS < end)) || fail "still: $1"; done; }
press() { T send-keys -t x "$@"; }
closed() { on "status $1" && off 'q quit' &&
  { local end=$((SECONDS + 60)); until cmp -s before after; do
    ((SECONDS < end)) || fail 'the settings are not as before'; done; }; T kill-server; }
)";
  }
  Outcome show(const std::string& steps) const {
    return beside(". ./tools.sh\n" + steps + "\nT kill-server 2> /dev/null", "4M",
                  "data.bin again");
  }
};

TEST_F(TopTerminal, OpensSortsGoesIntoAProcessAndAFileAndQuits) {
  const Outcome outcome = show(R"(open_top 80 24 screen --pid $P --interval 100ms
on 'q quit'; on 'python3 hol'; on STALL
press s; press S; on 'USED/BUDGET'
press Enter; on 'HERE/SIZE'; on 'policy'; on 'data.bin'
press Enter; on 'WAITS THAT TOOK'; on 'prefetch_fills'; press End; on 'refaults '; press Escape
on 'HERE/SIZE'; press h; on 'any key goes back'; press x; on 'HERE/SIZE'
press q; on COMMAND; press / ; press n o n e Enter
on "No process has 'none'"; off 'python3 hol'; press Escape
on 'python3 hol'; press p; on paused; press p; off paused
press q; closed 0)");
  EXPECT_EQ(outcome.out, "");
}

TEST_F(TopTerminal, FollowsItsSizeDownToNothing) {
  const Outcome outcome = show(R"(open_top 120 40 screen --pid $P --interval 100ms
on 'python3 hol'; on USER
T resize-window -t x -x 60 -y 10; off USER; on 'python3'; on 'h help  q quit'
T resize-window -t x -x 12 -y 3; off STALL; press Enter; press Enter
T resize-window -t x -x 1 -y 1; press Down; press Up
T resize-window -t x -x 200 -y 50; on 'WAITS THAT TOOK'
press q; press q; on COMMAND; press q; closed 0)");
  EXPECT_EQ(outcome.out, "");
}

TEST_F(TopTerminal, WarmsAndEvictsAfterAQuestion) {
  const Outcome outcome = show(R"(open_top 100 24 screen --pid $P --interval 100ms
on 'python3 hol'; press w; on 'open a process'; press Enter; on 'HERE/SIZE'
press e; on 'data.bin in process'; press n; off 'y/n'
press e; on 'y/n'; press y; on 'in memory'
press w; on 'y/n'; press y; on 'warmed '
press r; on 'budget of its own'; press q; on COMMAND; press q; closed 0)");
  EXPECT_EQ(outcome.out, "");
}

TEST_F(TopTerminal, WhatIsInMemoryIsOfTheWholeFileNotOfItsLastPiece) {
  std::ofstream(path("big.bin")) << std::string(20 << 20, 'x');
  const Outcome outcome = beside(R"(. ./tools.sh
open_top 200 24 screen --pid $P --interval 100ms
on 'python3 hol'; press Enter; on 'HERE/SIZE'
press e; on 'y/n'; press y; on 'big.bin: 0 B in memory'
press w; on 'y/n'; press y; on 'big.bin: 20 MiB in memory'
press q; on COMMAND; press q; closed 0
T kill-server 2> /dev/null)",
                                 "64M", "big.bin");
  EXPECT_EQ(outcome.out, "");
}

TEST_F(TopTerminal, TheRemedyIsReadOnAScreenOfEightyColumns) {
  const Outcome outcome = show(R"(open_top 80 24 screen --pid $P --interval 100ms
on 'python3 hol'; press r; on 'outcore run --buffer NAME` to resize it'
press q; closed 0)");
  EXPECT_EQ(outcome.out, "");
}

TEST_F(TopTerminal, IsGivenBackAfterSignals) {
  for (const char* signal : {"INT", "TERM", "HUP", "QUIT", "ABRT", "USR1"}) {
    const Outcome outcome =
        show(std::string("open_top 80 24 screen --pid $P\non 'q quit'\n") + "kill -" + signal +
             R"( $(pgrep -P $(T display -p -t x '#{pane_pid}'))
closed '')");
    EXPECT_EQ(outcome.out, "") << signal;
  }
}

TEST_F(TopTerminal, IsStoppedAndGoesOn) {
  const Outcome outcome = show(R"(open_top 80 24 screen --pid $P --interval 100ms
on 'q quit'; press C-z; on 'Stopped'; off 'q quit'; press 'fg; echo status $?' Enter; on 'q quit'
on 'python3 hol'; press q; closed 0)");
  EXPECT_EQ(outcome.out, "");
}

TEST_F(TopTerminal, TerminalsThatCannotAreToldInOneLine) {
  const Outcome outcome = show(R"(for term in dumb no-such-terminal ''; do
open_top 160 24 "'$term'" --pid $P; on 'top --once'; on 'status 1'; T kill-server; done
for term in xterm xterm-256color linux vt100; do
open_top 80 24 $term --pid $P; on 'q quit'; press q; closed 0; done)");
  EXPECT_EQ(outcome.out, "");
}

}  // namespace
}  // namespace outcore::cli
