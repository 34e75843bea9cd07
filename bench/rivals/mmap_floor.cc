// The floor: one file that all processes map and copy their boxes into, and out of.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "bench/rivals/rival.h"

namespace outcore::rivals {
namespace {

class MmapFloor final : public Rival {
 public:
  std::string name() const override { return "mmap"; }
  std::string version() const override { return ""; }
  std::vector<std::string> files(const Work& work, unsigned) const override { return {path(work)}; }

  void write(const Work& work, const Data& data) override {
    map(work, true);
    for (size_t v = 0; v < kVariables.size(); ++v) {
      const Box box = work.box(kVariables[v], work.rank, Division::kBoxes);
      for_each_row(work.shape(kVariables[v]), box, [&](uint64_t at, uint64_t number) {
        std::memcpy(array(work, v) + number, data[v].data() + at, box.dims.back() * 8);
      });
    }
    unmap(work);
  }
  void read(const Work& work, Division division, Data* data) override {
    map(work, false);
    for (size_t v = 0; v < kVariables.size(); ++v) {
      const Box box = work.box(kVariables[v], work.rank, division);
      for_each_row(work.shape(kVariables[v]), box, [&](uint64_t at, uint64_t number) {
        std::memcpy((*data)[v].data() + at, array(work, v) + number, box.dims.back() * 8);
      });
    }
    unmap(work);
  }

  bool has_views() const override { return true; }
  Look view(const Work& work, size_t v, const Box& box) override {
    if (file_ == nullptr) map(work, false);
    work_ = work;
    const Dims shape = work.shape(kVariables[v]);
    Look look{array(work, v), Dims(shape.size(), 1)};
    for (size_t d = shape.size() - 1; d-- > 0;)
      look.strides[d] = look.strides[d + 1] * shape[d + 1];
    for (size_t d = 0; d < shape.size(); ++d) look.data += box.at[d] * look.strides[d];
    return look;
  }
  void end_views() override { unmap(work_); }

 private:
  static std::string path(const Work& work) { return work.path("mapped"); }
  double* array(const Work& work, size_t v) const {
    return file_ + kVariables[v].first * work.side * work.side * work.side;
  }
  void map(const Work& work, bool is_write) {
    const int fd =
        ::open(path(work).c_str(), (is_write ? O_RDWR | O_CREAT : O_RDONLY) | O_CLOEXEC, 0600);
    if (fd < 0 || (is_write && ::ftruncate(fd, static_cast<off_t>(work.bytes())) != 0))
      fail("open " + path(work) + ": " + std::strerror(errno));
    void* const at =
        ::mmap(nullptr, work.bytes(), PROT_READ | (is_write ? PROT_WRITE : 0), MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) fail("map " + path(work) + ": " + std::strerror(errno));
    ::close(fd);
    file_ = static_cast<double*>(at);
  }
  void unmap(const Work& work) {
    ::munmap(file_, work.bytes());
    file_ = nullptr;
  }

  double* file_ = nullptr;
  Work work_;
};

}  // namespace

std::unique_ptr<Rival> make_rival() { return std::make_unique<MmapFloor>(); }

}  // namespace outcore::rivals
