// The median along a pile of pictures, as a program written for UMap reads them: each picture is a
// file, and a store of the program puts them together. Usage: median FOLDER PICTURES. Prints the
// median of the first and of the last pixel.
#include <fcntl.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "umap/store/SparseStore.h"
#include "umap/store/Store.hpp"
#include "umap/umap.h"

namespace {

const std::size_t kPixels = 64 * 1024;
const std::size_t kPictureBytes = kPixels * sizeof(float);

class Pictures : public Umap::Store {
 public:
  explicit Pictures(const std::vector<int>& files) : files_(files) {}
  ssize_t read_from_store(char* buf, size_t nb, off_t off) {
    const std::size_t at = static_cast<std::size_t>(off);
    return pread(files_[at / kPictureBytes], buf, nb, static_cast<off_t>(at % kPictureBytes));
  }
  ssize_t write_to_store(char*, size_t, off_t) { return -1; }

 private:
  std::vector<int> files_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::size_t count = std::strtoul(argv[2], nullptr, 10);
  std::vector<int> files;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string name = std::string(argv[1]) + "/picture" + std::to_string(i);
    const int fd = open(name.c_str(), O_RDWR | O_CREAT, 0600);
    const std::vector<float> picture(kPixels, static_cast<float>((i * 7) % count));
    if (fd < 0 || pwrite(fd, picture.data(), kPictureBytes, 0) < 0) return 3;
    files.push_back(fd);
  }
  Pictures store(files);
  void* const region =
      Umap::umap_ex(nullptr, count * kPictureBytes, PROT_READ, UMAP_PRIVATE, -1, 0, &store);
  if (region == UMAP_FAILED) return 4;
  const float* const cube = static_cast<const float*>(region);
  for (const std::size_t pixel : {std::size_t{0}, kPixels - 1}) {
    std::vector<float> values;
    for (std::size_t i = 0; i < count; ++i) values.push_back(cube[i * kPixels + pixel]);
    std::nth_element(values.begin(), values.begin() + count / 2, values.end());
    std::printf("%g\n", static_cast<double>(values[count / 2]));
  }
  return uunmap(region, count * kPictureBytes);
}
