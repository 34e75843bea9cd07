// CancelBlock: pthread_cancel() does not end this thread during its life; a request waits for the
// thread's next cancellation point. What the engine calls (pread, poll …) are such points: a thread
// that ended there would leave pages half filled and locks held. Any thread, handlers too.
#pragma once

namespace outcore::os {

class CancelBlock {
 public:
  CancelBlock() : before_(disable()) {}
  ~CancelBlock() { restore(before_); }
  CancelBlock(const CancelBlock&) = delete;
  CancelBlock& operator=(const CancelBlock&) = delete;

  // The same in two steps; disable() returns what restore() is given. A thread that asked to be
  // ended anywhere (PTHREAD_CANCEL_ASYNCHRONOUS) is afterwards ended at cancellation points alone:
  // here it could not be unwound.
  static int disable();
  static void restore(int before);

 private:
  const int before_;
};

}  // namespace outcore::os
