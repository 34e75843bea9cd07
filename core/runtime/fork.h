// Fork: hooks of a door that knows better than a placeholder what a forked child needs where its
// parent's regions were. See fork.cc.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/region/view.h"

namespace outcore::runtime {

struct ForkHooks {
  // Before and after fork(), in the parent, as the last and the first of all that fork() calls:
  // nothing of the program runs in this thread in between.
  void (*before)() = nullptr;
  void (*after_in_parent)(bool may_have_failed) = nullptr;
  // In the child, when its addresses are placeholders or adopted.
  void (*after_in_child)() = nullptr;
  // Within fork(), in the child: true if it has mapped something at the view's addresses.
  bool (*adopt)(const region::View& view) = nullptr;
  // The child touches a placeholder: true if something else is mapped there now. In a handler.
  bool (*on_touch)(const std::byte* address) = nullptr;
};
void set_fork_hooks(const ForkHooks& hooks);

// The parent's views in this range are of no concern any more. In a child.
void forget_inherited(const std::byte* address, uint64_t size_bytes);
// Whether a touch of a parent's view may come again; if not, the child is ended with a message.
bool answer_inherited(const std::byte* address);

}  // namespace outcore::runtime
