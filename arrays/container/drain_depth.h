// DrainDepth: counts, on the stack of a thread, how many containers it has followed from one to the
// next while it looks for an array that was drained. One object for each container it follows.
#pragma once

namespace outcore::arrays {

// Bounds the search: containers may name each other in a circle.
class DrainDepth {
 public:
  DrainDepth() { ++depth_; }
  ~DrainDepth() { --depth_; }
  DrainDepth(const DrainDepth&) = delete;
  DrainDepth& operator=(const DrainDepth&) = delete;
  bool is_too_deep() const { return depth_ > kDepthMax; }

 private:
  static constexpr int kDepthMax = 4;
  static inline thread_local int depth_ = 0;
};

}  // namespace outcore::arrays
