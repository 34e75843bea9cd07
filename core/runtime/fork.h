// Fork: hooks for `outcore run`, which gives a forked child more than a placeholder where its
// parent's regions were. See fork.cc.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/region/view.h"

namespace outcore::runtime {

struct ForkHooks {
  // Called before and after fork() in the parent, last and first of everything that fork() calls:
  // nothing of the program runs in this thread in between.
  void (*before)() = nullptr;
  void (*after_in_parent)(bool may_have_failed) = nullptr;
  // In the child, when its addresses are placeholders or adopted.
  void (*after_in_child)() = nullptr;
  // In the child, within fork(): true if it has mapped something at the view's addresses.
  bool (*adopt)(const region::View& view) = nullptr;
  // The child touches a placeholder: true if something else is mapped there now. In a signal
  // handler.
  bool (*on_touch)(const std::byte* address) = nullptr;
};
void set_fork_hooks(const ForkHooks& hooks);

// In a child: forgets the parent's views in this range.
void forget_inherited(const std::byte* address, uint64_t size_bytes);
// Whether the touch of a parent's view may be repeated; if not, the child is ended with a message.
bool answer_inherited(const std::byte* address);

}  // namespace outcore::runtime
