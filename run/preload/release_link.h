// ReleaseLink: how a descendant asks the process that has taken a file to hand it back.
//
// It consists of a pair of connected sockets and a page of shared memory, made when the first file
// is taken. A message on the socket wakes the process, which finds the question in the page. Its
// descendants, and processes that share its memory, inherit the page and the other end of the pair.
// So nobody else can answer or ask; there is no name that could be taken, or that belongs to
// another process in another PID namespace; and asking needs no new descriptor. When the process is
// gone, its end is closed, which is seen at once.
#pragma once

#include <cstdint>

#include "run/preload/identity.h"

namespace outcore::preload {

class ReleaseLink {
 public:
  enum class Answer : uint8_t {
    kReleased,
    kRefused,  // the bytes of the file could not be stored
    kUnknown,  // the process has never taken such a file
    kGone,     // the process has ended, or has become another program
    kLate      // no answer in time, or the question could not be asked
  };
  struct Question {
    Identity file;
    bool is_only_if_written;  // a file that is only read may stay taken
  };

  // Call it once, when the library is loaded: forked children keep only the asking end.
  static void prepare();
  // Makes the pair if it does not exist. Returns the answering end, or -errno.
  static int start();
  // The asking end of this process; -1: it has taken nothing.
  static int asking_end();
  // Answers one question; `release` hands the file back.
  static void answer(int answering_end, Answer (*release)(const Question&));
  // Asks, and waits for at most 30 s, or 200 s while the process answers such questions. It
  // allocates nothing and changes no state, so a child of vfork() may ask, and a signal handler.
  // Calls `meanwhile` again and again while it waits.
  static Answer ask(int asking_end, const Question& question, void (*meanwhile)() = nullptr);
};

}  // namespace outcore::preload
