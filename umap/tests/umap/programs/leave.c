/* Writes through a region, and leaves without uunmap(). Usage: leave FILE. */
#include <fcntl.h>

#include "umap/umap.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const int fd = open(argv[1], O_RDWR);
  char* bytes = umap(0, 8192, PROT_READ | PROT_WRITE, UMAP_PRIVATE, fd, 0);
  if (bytes == UMAP_FAILED) return 4;
  bytes[5000] = 'w';
  return 0;
}
