// ReleaseLink: how a descendant asks the process that has a taken file to hand it back.
//
// A pair of connected sockets and a page of shared memory, made when the first file is taken. The
// process is rung on one end, and finds the question in the page; whoever descends from it, or
// shares its memory, inherits page and other end. So nobody else can answer or ask, it needs no
// name that could be taken, or that is another process's in another PID namespace, and no
// descriptor to ask. When the process is gone, its end is closed: that is seen at once.
#pragma once

#include <cstdint>

#include "run/preload/identity.h"

namespace outcore::preload {

class ReleaseLink {
 public:
  enum class Answer : uint8_t {
    kReleased,
    kRefused,  // its bytes could not be stored
    kUnknown,  // the process has never had such a file
    kGone,     // the process has ended, or has become another program
    kLate      // no answer in time, or the question could not be asked
  };
  struct Question {
    Identity file;
    bool is_only_if_written;  // a file that is only read may stay taken
  };

  // Once, when the library begins: forked children keep the asking end alone.
  static void prepare();
  // Makes the pair if there is none. The answering end, or -errno.
  static int start();
  // The asking end of this process; -1: it has taken nothing.
  static int asking_end();
  // Answers one question; `release` does what is asked for.
  static void answer(int answering_end, Answer (*release)(const Question&));
  // Asks and waits, 30 s at most. No memory is allocated, and no state is changed: a child of
  // vfork() may ask. A signal handler, too.
  static Answer ask(int asking_end, const Question& question);
};

}  // namespace outcore::preload
