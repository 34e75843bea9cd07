// Deeper: how many containers a thread has followed from one to where its arrays were drained.
#pragma once

namespace outcore::arrays {

// Containers that name each other end somewhere.
class Deeper {
 public:
  Deeper() { ++depth_; }
  ~Deeper() { --depth_; }
  Deeper(const Deeper&) = delete;
  Deeper& operator=(const Deeper&) = delete;
  bool is_too_deep() const { return depth_ > kDepthMax; }

 private:
  static constexpr int kDepthMax = 4;
  static inline thread_local int depth_ = 0;
};

}  // namespace outcore::arrays
