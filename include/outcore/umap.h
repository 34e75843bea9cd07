// UMap's interface over Outcore, for C99 and C++11 and later: programs written for UMap 2
// (https://github.com/LLNL/umap) compile unchanged, by #include "umap/umap.h", and link with
// liboutcore. docs/guides/from-umap.md says what differs. For new programs: outcore/runtime.h.
//
// Outcome    A function that fails returns -1 (umap(): UMAP_FAILED) with errno, and prints one line
//            on stderr; oc_last_error() (outcore/outcore.h) has the same text. Nothing aborts.
// Settings   UMap's environment variables (UMAP_PAGESIZE, UMAP_BUFSIZE, …), then Outcore's own
//            (OUTCORE_BUDGET, …), which take precedence, then the umapcfg_set_… of the program.
// Lifetime   All regions share one runtime and its budget. It starts with the first umap() and ends
//            with the last uunmap(). exit() writes regions of files back, and leaves regions of the
//            program's own stores alone, which may be gone by then: unmap those. What it does not
//            store is reported on stderr.
// Threads    Any thread may call any function.
// fork       A child has none of its parent's regions; it may map its own.
#pragma once

// NOLINTBEGIN(modernize-*,readability-identifier-naming): C, with names as in UMap

#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

#ifdef __cplusplus
#include <mutex>   // UMap's header includes it, and programs rely on that
#include <string>  // likewise

#include "outcore/umap_store.h"
#endif

#define UMAP_PRIVATE MAP_PRIVATE
#define UMAP_FIXED MAP_FIXED
#define UMAP_FAILED ((void*)-1)

#ifdef __cplusplus
extern "C" {
#endif

// Maps `length` bytes of an open file from `offset` on. What the program writes there reaches the
// file, by eviction, umap_flush(), uunmap() and exit(): "private" means that UMap, not the kernel's
// page cache, holds the pages. The program may close `fd` afterwards; the file is opened anew.
//   addr    NULL: Outcore chooses. Otherwise a multiple of the page size, at which the region
//           begins if the addresses are free; with UMAP_FIXED in any case, and what is mapped
//           there is replaced, once the same map has worked elsewhere.
//   length  Any number of bytes. Bytes past the end of the file read zero; one that is written
//           there with another value makes the file longer, up to it.
//   prot    PROT_READ or PROT_READ|PROT_WRITE.
//   flags   UMAP_PRIVATE, or UMAP_PRIVATE|UMAP_FIXED.
//   offset  A multiple of 4096. (UMap 2 maps from 0, whatever it is.)
// Errors: EINVAL (an argument, or a setting: the message says which), EBADF, ENODEV (neither a file
// nor a block device), EACCES (not open for what prot says, or the file cannot be opened anew),
// EEXIST (UMAP_FIXED, and a region is there), EBUSY (the file is mapped with another page size;
// two regions that write would share a page of the program's own store),
// ENOMEM (addresses, or the budget), EPERM (userfaultfd and the like: see `outcore info`).
void* umap(void* addr, size_t length, int prot, int flags, int fd, off_t offset);
// The same with another page size than the others: a power of two, 4 KiB … 16 MiB; 0: as others.
void* umap_variable(void* addr, size_t length, int prot, int flags, int fd, off_t offset,
                    uint64_t page_size);

// Writes everything back and unmaps the region that begins at `addr`, the whole region, whatever
// `length` says. Errors: EINVAL (no region begins there); those of the store: then the region stays
// mapped, and no byte is lost.
int uunmap(void* addr, size_t length);

// Returns when the stores of all regions have every byte that was written before the call.
// Otherwise the first error; the others are written all the same.
int umap_flush(void);

struct umap_prefetch_item {
  void* page_base_addr;  // any address in the page
};
// Starts to bring these pages in, in any order, and returns at once. A hint: pages for which there
// is no room are skipped. errno becomes EINVAL if one of them is in no region, which is skipped,
// too; otherwise it stays as it is.
void umap_prefetch(int npages, struct umap_prefetch_item* page_array);
// Brings the range in and keeps it in memory until uunmap(). If it fails, errno becomes EINVAL (the
// address is in no region), ENOMEM (more than the budget can hold) or an error of the store, and a
// line is printed; otherwise it stays as it is.
void umap_fetch_and_pin(char* paddr, uint64_t size);
// UMap changes the page size of a region by this. Outcore finds how much a miss brings in by
// itself, so the call does nothing.
void umap_adapt_pagesize(void* addr, uint64_t page_size);
int umap_has_write_support(void);  // 1

// The settings as they are, from UMap's variables, Outcore's options and the functions below.
long umapcfg_get_system_page_size(void);
uint64_t umapcfg_get_umap_page_size(void);       // bytes
uint64_t umapcfg_get_max_pages_in_buffer(void);  // the budget, in pages of this size
uint64_t umapcfg_get_read_ahead(void);           // pages
uint64_t umapcfg_get_num_fillers(void);
uint64_t umapcfg_get_num_evictors(void);
uint64_t umapcfg_get_num_flushers(void);  // an older name of the same
uint64_t umapcfg_get_max_fault_events(void);
int umapcfg_get_evict_low_water_threshold(void);   // percent
int umapcfg_get_evict_high_water_threshold(void);  // percent

// Of early versions of UMap 2. The page size holds for regions mapped afterwards; the others from
// the next start of the runtime on: call them before the first umap(). A value that cannot be is
// reported on stderr, and changes nothing.
void umapcfg_set_umap_page_size(uint64_t page_size);
void umapcfg_set_max_pages_in_buffer(uint64_t max_pages);
void umapcfg_set_read_ahead(uint64_t num_pages);
void umapcfg_set_num_fillers(uint64_t num_fillers);
void umapcfg_set_num_evictors(uint64_t num_evictors);
void umapcfg_set_num_flushers(uint64_t num_flushers);
void umapcfg_set_max_fault_events(uint64_t max_events);
void umapcfg_set_evict_low_water_threshold(int percent);
void umapcfg_set_evict_high_water_threshold(int percent);

#ifdef __cplusplus
}  // extern "C"

// For programs that name the client of UMap's server, which Outcore does not have: 0.
inline void umap_prefetch(int npages, umap_prefetch_item* page_array, int client_fd) {
  (void)client_fd;
  umap_prefetch(npages, page_array);
}

namespace Umap {

// umap() of the program's own store, which must live until uunmap(); `fd` is not used. nullptr: of
// the file `fd`.
void* umap_ex(void* addr, std::size_t length, int prot, int flags, int fd, off_t offset,
              Store* store, std::uint64_t page_size = 0);

}  // namespace Umap
#endif

// NOLINTEND(modernize-*,readability-identifier-naming)
