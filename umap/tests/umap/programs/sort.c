/* Sorts the numbers of a file, as a program written for UMap does, in C.
   Usage: sort FILE COUNT. Prints "sorted", the page size and the pages of the buffer. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "umap/umap.h"

static int compare(const void* a, const void* b) {
  const uint64_t x = *(const uint64_t*)a, y = *(const uint64_t*)b;
  return (x > y) - (x < y);
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const uint64_t count = strtoull(argv[2], NULL, 10);
  const uint64_t page = umapcfg_get_umap_page_size();
  const uint64_t bytes = (count * sizeof(uint64_t) + page - 1) / page * page;
  const int fd = open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0600);
  if (fd < 0 || posix_fallocate(fd, 0, (off_t)bytes) != 0) return 3;
  uint64_t* numbers = umap(NULL, bytes, PROT_READ | PROT_WRITE, UMAP_PRIVATE, fd, 0);
  if (numbers == UMAP_FAILED) {
    perror("umap");
    return 4;
  }
  for (uint64_t i = 0; i < count; ++i) numbers[i] = (i * 2654435761U) % count;
  if (umap_flush() != 0) return 5;
  struct umap_prefetch_item first = {numbers};
  umap_prefetch(1, &first);
  qsort(numbers, count, sizeof *numbers, compare);
  for (uint64_t i = 1; i < count; ++i)
    if (numbers[i - 1] > numbers[i]) return 6;
  printf("sorted %llu %llu\n", (unsigned long long)page,
         (unsigned long long)umapcfg_get_max_pages_in_buffer());
  if (uunmap(numbers, bytes) != 0) return 7;
  return close(fd);
}
