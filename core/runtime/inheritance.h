// Inheritance: in a forked child, a region of the parent whose pages are in a buffer becomes the
// child's own at its first use there: at the same addresses, by a runtime of the child that is a
// member of the same buffer. Until then its addresses are a placeholder (fork.cc), so a child that
// does not use it, as one that goes on to exec(), pays nothing and is not a member.
//
// Where the child cannot become a member, or the file cannot be shared, the kernel maps the file in
// place of the region, outside of the buffer's limit, and one line on stderr says why. There is one
// for the process. Decision 0044.
#pragma once

#include <cstddef>
#include <memory>

#include "core/runtime/runtime_impl.h"

namespace outcore::runtime {

class Inheritance {
 public:
  // The region is mapped, and this process's. Forked children may have it from now on, too, if its
  // pages are in a buffer and its addresses are its own (not lent).
  static void note_mapped(Region::Impl& region);

  // Around fork(), with signals blocked: no region is being attached meanwhile.
  static void lock();
  static void unlock();

  // A touch of a placeholder. True: it may be repeated, because something is mapped there now.
  // False: the address is not a placeholder, or nothing can be mapped there. In a signal handler:
  // the work is done by a thread of its own, as the handler's stack may be small.
  static bool answer(const std::byte* address);
  // While a region is being attached, its view is not in the map for a moment. True: one was, and
  // is there by now. In a signal handler.
  static bool wait_for_attaching();

  // Before a call on the region, in a child: makes it the child's own if that is possible. Nothing
  // happens to other regions. Any thread but the fault path.
  static void attach(Region::Impl& region);
  // See start_after_fork(). REQUIRES: the parent's is in a buffer.
  static Result<Runtime> start_in_place_of(const std::shared_ptr<Runtime::Impl>& parents,
                                           RuntimeOptions options);
  // The child has ended its handle of the parent's region: touches of it are not answered any more.
  static void forget(Region::Impl& region);
};

}  // namespace outcore::runtime
