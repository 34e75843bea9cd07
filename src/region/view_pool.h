// ViewPool: memory for views that is never given back, so that a late reader of the address map
// touches a View, if perhaps the wrong one, and never something else.
#pragma once

#include <new>

#include "os/process_lock.h"
#include "region/view.h"

namespace outcore::region {

class ViewPool {
 public:
  static ViewPool& instance() {
    static ViewPool* pool = new ViewPool;
    return *pool;
  }

  View* take() {
    const os::SignalBlock block;
    const os::Locked locked(lock_);
    if (free_ == nullptr) return &(new Node)->view;
    Node* node = free_;
    free_ = node->next;
    // `users` is kept: a late reader may be between its increment and its decrement.
    View& view = node->view;
    view.shown.~Table();
    new (&view.shown) os::Table<std::atomic<uint64_t>>();
    view.size_bytes = 0;
    view.advice = Advice::kNormal;
    view.space = nullptr;
    view.is_closed = false;
    view.is_replaced = false;
    view.is_inherited = false;
    return &view;
  }

  void give_back(View* view) {
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
