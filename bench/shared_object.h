// SharedObject: one object in memory that a process shares with the children it forks.
#pragma once

#include <sys/mman.h>

#include <new>
#include <utility>

namespace outcore::bench {

// The parent makes it before it forks, and it is gone when all processes are. `T` needs no
// destructor's work: none is called.
template <typename T>
class SharedObject {
 public:
  // `arguments` are those of T's constructor.
  template <typename... Arguments>
  explicit SharedObject(Arguments&&... arguments) {
    void* const memory =
        mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory != MAP_FAILED) object_ = new (memory) T(std::forward<Arguments>(arguments)...);
  }
  ~SharedObject() {
    if (object_ != nullptr) munmap(object_, sizeof(T));
  }
  SharedObject(const SharedObject&) = delete;
  SharedObject& operator=(const SharedObject&) = delete;
  // nullptr: there was no memory; errno says why, right after the constructor.
  T* get() const { return object_; }

 private:
  T* object_ = nullptr;
};

}  // namespace outcore::bench
