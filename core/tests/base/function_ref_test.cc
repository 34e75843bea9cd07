#include "core/base/function_ref.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

namespace outcore::base {
namespace {

int twice(FunctionRef<int(int)> f) { return f(f(1)); }

TEST(FunctionRef, CallsWhatItRefersTo) {
  int calls = 0;
  auto add = [&calls, step = 3](int i) mutable { return ++calls, i + step++; };
  EXPECT_EQ(twice(add), 8);
  EXPECT_EQ(twice(add), 12);  // the same lambda, not a copy
  EXPECT_EQ(calls, 4);
  const auto constant = [](int i) { return 2 * i; };
  EXPECT_EQ(twice(constant), 4);
  EXPECT_EQ(twice([](int i) { return i - 5; }), -9);
  const std::function<int(int)> function = [](int i) { return -i; };
  EXPECT_EQ(twice(function), 1);
}

TEST(FunctionRef, OfAnotherRefersToTheSame) {
  int calls = 0;
  const auto count = [&calls] { ++calls; };
  const auto other = [](FunctionRef<void()> f) { f(); };
  const FunctionRef<void()> first = count;
  FunctionRef<void()> second = first;
  other(second);
  second = [&calls](FunctionRef<void()>) { return calls += 10; }(first) > 0 ? first : second;
  second();
  EXPECT_EQ(calls, 12);
  other([&calls] { return ++calls; });  // and what it returns is nobody's
  EXPECT_EQ(calls, 13);
}

TEST(FunctionRef, HandsArgumentsAndResultsOn) {
  const auto take = [](std::unique_ptr<int> p, const std::string& s, int& out) {
    out = *p;
    return s + "!";
  };
  const FunctionRef<std::string(std::unique_ptr<int>, const std::string&, int&)> f = take;
  int out = 0;
  EXPECT_EQ(f(std::make_unique<int>(7), "so", out), "so!");
  EXPECT_EQ(out, 7);
  static_assert(sizeof f == 2 * sizeof(void*));
}

}  // namespace
}  // namespace outcore::base
