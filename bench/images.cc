// images: vectors through a cube of images over time, and the median of the pixels on each, which
// finds faint objects that move: the idea is of median_calculation, an application that comes with
// UMap. The images are a FITS file. Median and sum of each vector are compared with those of the
// generator.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <memory>
#include <vector>

#include "bench/check.h"
#include "bench/data.h"
#include "bench/image_cube.h"
#include "bench/image_file.h"
#include "bench/medium.h"
#include "bench/workload.h"
#include "cli/text.h"

namespace outcore::bench {
namespace {

constexpr uint64_t kVectorsDefault = 1000, kVectorsAReport = 4;
constexpr uint64_t kImageStepBytes = uint64_t{32} << 20;

// What is found on a vector. One wrong pixel may leave the median as it is; the sum tells it.
struct OnVector {
  uint32_t median = 0;
  uint64_t sum = 0;
  bool operator==(const OnVector&) const = default;
};

class Images : public Workload {
 public:
  explicit Images(const Options& options)
      : options_(options),
        vectors_(options.touches == 0 ? kVectorsDefault : options.touches),
        cube_(options.size_bytes, options.seed),
        images_(cube_),
        file_(options, cli::format("outcore-bench-images-%llu-%llu.fits",
                                   static_cast<unsigned long long>(options.size_bytes),
                                   static_cast<unsigned long long>(options.seed))),
        tag_(cli::format("FITS images %llu seed %llu",
                         static_cast<unsigned long long>(options.size_bytes),
                         static_cast<unsigned long long>(options.seed))) {}

  uint64_t data_bytes() const override { return images_.size_bytes(); }
  const std::string& uri() const override { return file_.uri(); }
  void forget() override { file_.forget(); }
  Status prepare() override;
  Status run(Stage& stage) override;
  Status check(const RunResult& result) override;

 private:
  // Looks at the vector of this number, always the same. `values` is room that is used again.
  template <typename PixelAt>
  OnVector look(uint64_t number, std::vector<uint32_t>& values, PixelAt pixel_at) const;

  Options options_;
  uint64_t vectors_;
  ImageCube cube_;
  ImageFile images_;  // after cube_, which it looks into
  Data file_;
  std::string tag_;
};

// Threads compute a step, and then one thread writes it, in order.
Status Images::prepare() {
  if (Status s = file_.claim(); !s) return s;
  if (file_.is_clean(tag_)) return {};
  file_.mark_changed();
  const uint64_t size_bytes = images_.size_bytes();
  auto medium = open_medium(file_.uri(), size_bytes, true);
  if (!medium) return medium.error();
  std::vector<uint32_t> words(std::min(kImageStepBytes, size_bytes) / sizeof(uint32_t));
  const unsigned threads = making_threads();
  for (uint64_t at = 0; at < size_bytes; at += kImageStepBytes) {
    const uint64_t count = std::min(kImageStepBytes, size_bytes - at) / sizeof(uint32_t);
    const uint64_t first = at / sizeof(uint32_t);
    on_threads(threads, [&](unsigned thread) {
      const uint64_t last = count * (thread + 1) / threads;
      for (uint64_t i = count * thread / threads; i < last; ++i) words[i] = images_.word(first + i);
    });
    const auto step = std::as_bytes(std::span(words).first(count));
    if (Status s = (*medium)->write(at, step); !s) return s;
  }
  if (Status s = (*medium)->sync(); !s) return s;
  file_.mark_clean(tag_);
  return {};
}

template <typename PixelAt>
OnVector Images::look(uint64_t number, std::vector<uint32_t>& values, PixelAt pixel_at) const {
  Random random(mix(options_.seed) + number);
  const SkyVector vector(cube_, random);
  OnVector found;
  values.clear();
  vector.for_each_pixel([&](uint64_t index) {
    values.push_back(pixel_at(index));
    found.sum += values.back();
  });
  found.median = median_of(values);
  return found;
}

Status Images::run(Stage& stage) {
  std::vector<OnVector> found(vectors_);
  std::atomic<uint64_t> wrong{0}, pixels{0};
  if (Status s = stage.settle(); !s) return s;
  auto mapped = stage.map({file_.uri(), 0, images_.size_bytes(), false});
  if (!mapped) return mapped.error();
  const auto* const pixels_of_file =
      reinterpret_cast<const uint32_t*>(mapped.value().data()) + images_.word_of(0);
  if (Status s = stage.start(vectors_); !s) return s;
  on_threads(options_.threads, [&](unsigned thread) {
    std::vector<uint32_t> values;
    uint64_t untold = 0, pixels_here = 0;
    for (uint64_t i = thread; i < vectors_; i += options_.threads) {
      found[i] = look(i, values,
                      [&](uint64_t index) { return ImageFile::pixel_in(pixels_of_file[index]); });
      pixels_here += values.size();
      if (++untold < kVectorsAReport) continue;
      stage.progress(untold);
      untold = 0;
    }
    stage.progress(untold);
    pixels += pixels_here;
  });
  stage.stop();
  on_threads(options_.threads, [&](unsigned thread) {
    std::vector<uint32_t> values;
    for (uint64_t i = thread; i < vectors_; i += options_.threads)
      wrong += look(i, values, [&](uint64_t index) { return cube_.pixel(index); }) != found[i];
  });
  auto& extra = stage.result().extra;
  extra["images"] = cube_.frames();
  extra["image_side"] = cube_.side();
  extra["pixels"] = pixels.load();
  extra["wrong"] = wrong.load();
  return stage.finish(static_cast<double>(vectors_), "vectors/s");
}

Status Images::check(const RunResult& result) {
  const uint64_t wrong = result.extra.value("wrong", uint64_t{0});
  if (result.is_stopped || wrong == 0) return {};
  return Error{EILSEQ, cli::format("%llu vectors had other pixels than those that were made",
                                   static_cast<unsigned long long>(wrong))};
}

}  // namespace

std::unique_ptr<Workload> make_images(const Options& options) {
  return std::make_unique<Images>(options);
}

}  // namespace outcore::bench
