// Share: how much a test computes of what seeds alone decide, and how many of several cases alike.
// OUTCORE_TEST_SHARE=N asks for one part in N: where each step takes many times as long, and all of
// it is computed elsewhere.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <vector>

namespace outcore::scene {

inline uint64_t one_part_in() {
  const char* const text = std::getenv("OUTCORE_TEST_SHARE");
  return text == nullptr ? 1 : std::max<uint64_t>(std::strtoull(text, nullptr, 10), 1);
}

// Of so many, at least one.
inline uint64_t share_of(uint64_t count) { return std::max<uint64_t>(count / one_part_in(), 1); }

// The first of these cases, as many as share_of() says.
template <typename Case>
std::vector<Case> share_of(std::initializer_list<Case> cases) {
  return {cases.begin(), cases.begin() + share_of(cases.size())};
}

}  // namespace outcore::scene
