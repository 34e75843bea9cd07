// Units: what the two files of one program share.
#pragma once

enum { kRows = 300, kColumns = 5000 };  // 12 MB

struct point {
  int id;
  double at[3];
};

extern dlm double grid[kRows][kColumns];
extern dlm struct point points[100000];

double sum_of_grid(void);
int counted(void);
void fill_other(void);
double sum_of_other(void);
