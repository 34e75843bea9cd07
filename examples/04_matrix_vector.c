// The DLM paper's example program (Midorikawa et al., 2008, figure 2): a matrix of 80 GB times a
// vector, on any machine. What was added: how many rows, and whether the answer is right.
//
//   occ -O2 04_matrix_vector.c -o matrix_vector
//   OUTCORE_BUDGET=1G ./matrix_vector 1000
#include <stdio.h>
#include <stdlib.h>

#ifndef N
#define N 100000  // a: 80 GB, x: 800 KB
#endif

dlm double a[N][N], x[N];

int main(int argc, char* argv[]) {
  const long asked = argc > 1 ? strtol(argv[1], NULL, 10) : N;
  const int rows = asked < N ? (int)asked : N;
  double* y = (double*)dlm_alloc(sizeof(double) * N);  // y: 800 KB
  if (y == NULL) {
    perror("dlm_alloc");
    return 1;
  }
  for (int i = 0; i < rows; i++)
    for (int j = 0; j < N; j++) a[i][j] = i;
  for (int i = 0; i < N; i++) x[i] = i;

  for (int i = 0; i < rows; i++) {
    y[i] = 0;
    for (int j = 0; j < N; j++) y[i] += a[i][j] * x[j];
  }

  const double sum = (double)N * (N - 1) / 2;
  for (int i = 0; i < rows; i++) {
    if (y[i] == i * sum) continue;
    fprintf(stderr, "y[%d] is %.17g, not %.17g\n", i, y[i], i * sum);
    return 1;
  }
  printf("%d rows of %zu bytes each: right\n", rows, sizeof a[0]);
  dlm_free(y);
  return 0;
}
