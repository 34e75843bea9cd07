// What a process has written and not stored: the kernel is asked, as nobody counts it.
#include <fcntl.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/assert.h"
#include "core/base/error.h"
#include "core/os/descriptor_place.h"
#include "core/os/uapi.h"
#include "outcore/sight.h"

namespace outcore {
namespace {

struct Range {
  uint64_t start = 0, end = 0;
};

// Of the line that begins a mapping in /proc/PID/smaps; of others nothing.
bool parse_range(std::string_view line, Range* range) {
  const size_t dash = line.find('-'), blank = line.find(' ');
  if (dash == std::string_view::npos || blank == std::string_view::npos || dash > blank)
    return false;
  const char* const text = line.data();
  Range found;
  if (std::from_chars(text, text + dash, found.start, 16).ptr != text + dash) return false;
  if (std::from_chars(text + dash + 1, text + blank, found.end, 16).ptr != text + blank)
    return false;
  *range = found;
  return found.start < found.end;
}

// Adds what was written of a range to all that are told of it.
class Sum {
 public:
  explicit Sum(std::span<const StorePlaces> stores) {
    sum_.each.resize(stores.size());
    for (size_t i = 0; i < stores.size(); ++i) {
      if (!stores[i].are_all) continue;
      sum_.each[i] = 0;
      for (const auto& [start, end] : stores[i].ranges) places_.push_back({start, end, i});
    }
    std::sort(places_.begin(), places_.end(),
              [](const Place& a, const Place& b) { return a.start < b.start; });
  }
  void add(uint64_t start, uint64_t end) {
    OC_CHECK(start <= end);
    sum_.all += end - start;
    // Mappings do not overlap, so those that end behind the start are the last ones.
    auto place = std::partition_point(places_.begin(), places_.end(),
                                      [&](const Place& p) { return p.end <= start; });
    for (; place != places_.end() && place->start < end; ++place)
      *sum_.each[place->store] += std::min(end, place->end) - std::max(start, place->start);
  }
  DirtyBytes take() { return std::move(sum_); }

 private:
  struct Place {
    uint64_t start = 0, end = 0;
    size_t store = 0;
  };
  DirtyBytes sum_;
  std::vector<Place> places_;
};

// 0 or -errno.
int add_written(int pagemap, Range range, Sum* sum) {
  std::array<os::PageRegion, 512> runs;
  while (range.start < range.end) {
    os::PagemapScan scan{};
    scan.size = sizeof scan;
    scan.start = range.start, scan.end = range.end;
    scan.vec = reinterpret_cast<uint64_t>(runs.data()), scan.vec_len = runs.size();
    scan.category_mask = scan.return_mask = os::kPageIsWritten;
    scan.category_anyof_mask = os::kPageIsPresent | os::kPageIsSwapped;
    const int found = ::ioctl(pagemap, OC_PAGEMAP_SCAN, &scan);
    if (found < 0 && errno != EINTR && errno != EAGAIN) return -errno;
    for (int i = 0; i < found; ++i)
      sum->add(runs[static_cast<size_t>(i)].start, runs[static_cast<size_t>(i)].end);
    if (scan.walk_end <= range.start && found >= 0) break;
    range.start = std::max(range.start, scan.walk_end);
  }
  return 0;
}

}  // namespace

std::vector<StorePlaces> places_of(std::span<const PublishedRuntime> runtimes) {
  std::vector<StorePlaces> places;
  for (const PublishedRuntime& runtime : runtimes)
    places.insert(places.end(), runtime.places.begin(), runtime.places.end());
  return places;
}

Result<DirtyBytes> dirty_bytes(pid_t process, std::span<const StorePlaces> stores) {
  const std::string folder = "/proc/" + std::to_string(process), what = "look at " + folder;
  const os::Descriptor pagemap(::open((folder + "/pagemap").c_str(), O_RDONLY | O_CLOEXEC));
  if (pagemap.get() < 0) return base::system_error(errno == ENOENT ? ESRCH : errno, what);
  std::ifstream maps(folder + "/smaps");
  Sum sum(stores);
  bool is_any = false;
  Range range;
  for (std::string line; std::getline(maps, line);) {
    if (parse_range(line, &range) || !line.starts_with("VmFlags:")) continue;
    // Watched by userfaultfd for writes, and writable: what is only read is never protected.
    if (line.find(" uw") == std::string::npos || line.find(" wr") == std::string::npos) continue;
    is_any = true;
    if (const int result = add_written(pagemap.get(), range, &sum); result != 0)
      return base::system_error(result == -ENOTTY ? ENOTSUP : -result, what,
                                result == -ENOTTY ? "it needs Linux 6.7" : "");
  }
  if (!is_any)
    return Error{ENOENT, what + ": it has nothing mapped for writing whose writes the kernel sees"};
  return sum.take();
}

}  // namespace outcore
