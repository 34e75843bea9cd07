// DLM_ARRAY in C++: a reference to the array, so that sizeof and range loops are right.
#include <outcore/dlm.h>

#include <cstdio>

DLM_ARRAY(double, matrix, [500][2000]);
struct Fill {
  Fill() {
    for (auto& row : matrix)
      for (double& value : row) value = 2;
  }
} fill;

int main() {
  double sum = 0;
  for (const auto& row : matrix)
    for (const double value : row) sum += value;
  const bool is_right = sum == 2.0 * 500 * 2000 && sizeof matrix == 8ul * 500 * 2000 &&
                        DLM_SIZEOF(matrix) == sizeof matrix;
  std::printf(is_right ? "right\n" : "wrong\n");
  return is_right ? 0 : 1;
}
