// CancelBlock: while it exists, pthread_cancel() does not end this thread; a request waits for the
// thread's next cancellation point. Calls that the engine makes (pread, poll …) are cancellation
// points: a thread that ended there would leave pages half filled and locks held. Any thread;
// signal handlers.
#pragma once

namespace outcore::os {

class CancelBlock {
 public:
  CancelBlock() : before_(disable()) {}
  ~CancelBlock() { restore(before_); }
  CancelBlock(const CancelBlock&) = delete;
  CancelBlock& operator=(const CancelBlock&) = delete;

  // The same in two calls; restore() takes what disable() returned. A thread that could be
  // cancelled anywhere (PTHREAD_CANCEL_ASYNCHRONOUS) can afterwards be cancelled at cancellation
  // points only, because it could not be unwound here.
  static int disable();
  static void restore(int before);

 private:
  const int before_;
};

}  // namespace outcore::os
