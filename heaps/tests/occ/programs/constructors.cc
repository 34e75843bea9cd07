// Objects made before main use arrays, also the earliest, and their ends do.
#include <cstdio>
#include <vector>

namespace {
dlm int early[1 << 20];
}
namespace shared {
extern dlm long values[1 << 19];
}
dlm long shared::values[1 << 19];

struct Counter {
  Counter() {}
  Counter(const Counter&) = delete;
  ~Counter() { ++early[77]; }
  int value;
};
dlm Counter counters[1000];  // a class with constructor and destructor

struct Early {
  Early() {
    for (int i = 0; i < 1 << 20; ++i) early[i] = i;
  }
};
__attribute__((init_priority(101))) Early first;

struct Later {
  long sum = 0;
  Later() {
    for (int i = 0; i < 1 << 20; ++i) sum += early[i];
    for (long& value : shared::values) value = 5;
    for (Counter& counter : counters) counter.value = 9;
  }
  ~Later() { std::printf(early[3] == 3 ? "end\n" : "wrong end\n"); }
};
Later later;
dlm double rest = later.sum / 2.0;  // an initialiser that the program computes

int main() {
  static dlm char inside[3 << 20];
  std::vector<long> copy(std::begin(shared::values), std::end(shared::values));
  inside[(3 << 20) - 1] = 'x';
  const bool is_right = later.sum == (1l << 20) * ((1l << 20) - 1) / 2 && copy.back() == 5 &&
                        sizeof(shared::values) == 8ul << 19 && rest == later.sum / 2.0 &&
                        counters[999].value == 9 && inside[0] == 0;
  std::printf(is_right ? "right\n" : "wrong\n");
  return is_right ? 0 : 1;
}
