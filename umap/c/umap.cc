// UMap's functions: see outcore/umap.h.
#include "outcore/umap.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <span>
#include <vector>

#include "core/base/units.h"
#include "core/c/outcome.h"
#include "umap/session/session.h"

using outcore::Error;
using outcore::Result;
using outcore::Status;
using outcore::c::guarded;
using outcore::c::outcome;
using outcore::umapped::MapRequest;
using outcore::umapped::Session;
using outcore::umapped::Setting;
using outcore::umapped::Settings;

namespace {

// 0 or -errno. Programs written for UMap do not ask why a call failed, so it is told on stderr.
int told(const Status& status) {
  if (!status.ok()) std::fprintf(stderr, "outcore: %s\n", status.message().c_str());
  return outcome(status);
}

// The result of a call that ends with 0 or -errno, in UMap's form.
int in_their_form(int result) {
  if (result == 0) return 0;
  errno = -result;
  return -1;
}

// For functions without a result, whose errors are left in errno: a success leaves it as it was,
// whatever the calls below have done to it. `call` returns 0 or -errno.
template <typename Call>
void leave_errno(const char* function, Call&& call) {
  const int before = errno;
  const int result = guarded(function, call);
  errno = result == 0 ? before : -result;
}

void* map(const MapRequest& request) {
  void* address = UMAP_FAILED;
  const int result = guarded("umap", [&] {
    const Result<std::byte*> mapped = Session::of_process().map(request);
    if (!mapped) return told(mapped.status());
    address = mapped.value();
    return 0;
  });
  if (result != 0) errno = -result;
  return address;
}

uint64_t get(Setting setting) { return Settings::of_process().get(setting); }

void set(Setting setting, uint64_t value) {
  static_cast<void>(
      guarded("umapcfg_set", [&] { return told(Settings::of_process().set(setting, value)); }));
}

// A negative one is out of range, too.
void set_percent(Setting setting, int percent) {
  set(setting, static_cast<uint64_t>(std::max(percent, 0)));
}

}  // namespace

void* umap(void* addr, size_t length, int prot, int flags, int fd, off_t offset) {
  return Umap::umap_ex(addr, length, prot, flags, fd, offset, nullptr);
}

void* umap_variable(void* addr, size_t length, int prot, int flags, int fd, off_t offset,
                    uint64_t page_size) {
  return Umap::umap_ex(addr, length, prot, flags, fd, offset, nullptr, page_size);
}

void* Umap::umap_ex(void* addr, std::size_t length, int prot, int flags, int fd, off_t offset,
                    Store* store, std::uint64_t page_size) {
  return map({static_cast<std::byte*>(addr), length, prot, flags, fd, offset, store, page_size});
}

int uunmap(void* addr, size_t length) {
  static_cast<void>(length);
  return in_their_form(guarded("uunmap", [&] {
    return told(Session::of_process().unmap(static_cast<const std::byte*>(addr)));
  }));
}

int umap_flush(void) {
  return in_their_form(guarded("umap_flush", [] { return told(Session::of_process().flush()); }));
}

void umap_prefetch(int npages, umap_prefetch_item* page_array) {
  // A hint that is wrong harms nobody, so nothing is printed.
  leave_errno("umap_prefetch", [&] {
    if (npages < 0 || (page_array == nullptr && npages > 0))
      return outcome(Error{EINVAL, "umap_prefetch: there is no list of pages"});
    std::vector<const std::byte*> pages;
    for (const umap_prefetch_item& item : std::span(page_array, static_cast<size_t>(npages)))
      pages.push_back(static_cast<const std::byte*>(item.page_base_addr));
    return outcome(Session::of_process().prefetch(pages));
  });
}

void umap_fetch_and_pin(char* paddr, uint64_t size) {
  leave_errno("umap_fetch_and_pin", [&] {
    return told(Session::of_process().pin(reinterpret_cast<const std::byte*>(paddr), size));
  });
}

void umap_adapt_pagesize(void* addr, uint64_t page_size) {
  static_cast<void>(addr), static_cast<void>(page_size);
}

int umap_has_write_support(void) { return 1; }

long umapcfg_get_system_page_size(void) { return outcore::base::kSystemPage; }
uint64_t umapcfg_get_umap_page_size(void) { return get(Setting::kPageBytes); }
uint64_t umapcfg_get_max_pages_in_buffer(void) {
  return Settings::of_process().pages_of(Session::of_process().budget_bytes());
}
uint64_t umapcfg_get_read_ahead(void) { return get(Setting::kReadAheadPages); }
uint64_t umapcfg_get_num_fillers(void) { return get(Setting::kFillers); }
uint64_t umapcfg_get_num_evictors(void) { return get(Setting::kEvictors); }
uint64_t umapcfg_get_num_flushers(void) { return get(Setting::kEvictors); }
uint64_t umapcfg_get_max_fault_events(void) { return get(Setting::kFaultEvents); }
int umapcfg_get_evict_low_water_threshold(void) {
  return static_cast<int>(get(Setting::kLowPercent));
}
int umapcfg_get_evict_high_water_threshold(void) {
  return static_cast<int>(get(Setting::kHighPercent));
}

void umapcfg_set_umap_page_size(uint64_t page_size) { set(Setting::kPageBytes, page_size); }
void umapcfg_set_max_pages_in_buffer(uint64_t max_pages) { set(Setting::kBufferPages, max_pages); }
void umapcfg_set_read_ahead(uint64_t num_pages) { set(Setting::kReadAheadPages, num_pages); }
void umapcfg_set_num_fillers(uint64_t num_fillers) { set(Setting::kFillers, num_fillers); }
void umapcfg_set_num_evictors(uint64_t num_evictors) { set(Setting::kEvictors, num_evictors); }
void umapcfg_set_num_flushers(uint64_t num_flushers) { set(Setting::kEvictors, num_flushers); }
void umapcfg_set_max_fault_events(uint64_t max_events) { set(Setting::kFaultEvents, max_events); }
void umapcfg_set_evict_low_water_threshold(int percent) {
  set_percent(Setting::kLowPercent, percent);
}
void umapcfg_set_evict_high_water_threshold(int percent) {
  set_percent(Setting::kHighPercent, percent);
}
