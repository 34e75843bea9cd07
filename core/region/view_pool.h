// ViewPool: memory for views that is never freed, so that a late reader of the address map touches
// a View, possibly another one, but never other data. Any thread; not on the fault path.
#pragma once

#include <algorithm>
#include <new>

#include "core/base/assert.h"
#include "core/os/process_lock.h"
#include "core/region/view.h"

namespace outcore::region {

class ViewPool {
 public:
  static ViewPool& instance() {
    static ViewPool* pool = new ViewPool;
    return *pool;
  }

  View* allocate() {
    const os::SignalBlock block;
    const os::Locked locked(lock_);
    if (free_ == nullptr) return &(new Node)->view;
    Node* node = free_;
    free_ = node->next;
    // Do not reset `users`: a late reader may be about to decrement it.
    View& view = node->view;
    view.shown.~Table();
    new (&view.shown) os::Table<std::atomic<uint64_t>>();
    view.size_bytes = 0;
    view.advice = Advice::kNormal;
    view.cache = nullptr;
    view.is_closed = false;
    view.is_replaced = false;
    view.is_inherited = false;
    view.owner = nullptr;
    return &view;
  }

  // A view of the bytes [from, to) of another view. No cache knows it yet.
  View* allocate_part(const View& whole, uint64_t from, uint64_t to) {
    OC_CHECK(from < to);
    OC_CHECK(to <= whole.reserved_bytes);
    OC_CHECK(from % base::kSystemPage == 0);
    View* part = allocate();
    const uint64_t shown = std::min(whole.size_bytes.load(), to);
    part->address = whole.address + from;
    part->offset = whole.offset + from;
    part->size_bytes = shown > from ? shown - from : 0;
    part->reserved_bytes = to - from;
    part->page_bytes = whole.page_bytes;
    part->is_writable = whole.is_writable.load();
    part->is_closed = whole.is_closed.load();
    part->on_error = whole.on_error;
    part->advice = whole.advice.load();
    return part;
  }

  void free(View* view) {
    OC_CHECK(view != nullptr);
    const os::SignalBlock block;
    const os::Locked locked(lock_);
    Node* node = reinterpret_cast<Node*>(view);
    view->shown.~Table();
    new (&view->shown) os::Table<std::atomic<uint64_t>>();
    node->next = free_;
    free_ = node;
  }

 private:
  struct Node {
    View view;
    Node* next = nullptr;
  };
  os::ProcessLock lock_;
  Node* free_ = nullptr;
};

}  // namespace outcore::region
