// Outcore in C: the C API, for C11 and later; C++ may include it too. Arrays: outcore/arrays_c.h.
//
// The functions correspond to those of the C++ headers, which describe them in full;
// docs/reference/c.md has examples. Rules for all functions:
//
// Outcome    A function that can fail returns 0, or -errno. oc_last_error() then says what was
//            attempted on what, why it failed, and what to do. Nothing is thrown; lack of memory is
//            -ENOMEM. A NULL handle or pointer where none is allowed is -EINVAL.
// Ownership  A function that creates something returns it through its last parameter, NULL if it
//            failed. The caller frees it with the function named beside its type. Texts and structs
//            passed in are copied. Texts that are returned belong to the handle they came from.
// Not set    In structs, 0 or NULL means "not set": the default applies, see
//            docs/reference/options.md. Initialise each struct with its _init function, so that it
//            may grow in later releases.
// Units      Bytes and milliseconds, as the names say. Offsets are relative to the first byte of
//            the region; a range need not be aligned: it is widened to pages.
// Threads    Any thread may call any function, but a call that ends a handle must not run at the
//            same time as other calls with it.
// fork       A child has no runtime: calls on its parent's handles return -EPERM.
// Releases   A function or field that is newer than 0.1 says in which release it came.
#pragma once

// NOLINTBEGIN(modernize-*,readability-identifier-naming): C, with names as in C

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct oc_runtime oc_runtime;  // a budget, and the regions that share it; free with oc_stop
typedef struct oc_region oc_region;    // a mapping of a store; free with oc_unmap
typedef struct oc_reservation oc_reservation;  // addresses kept free; free with oc_release
typedef struct oc_store oc_store;              // the program's own store; free with oc_store_free
typedef struct oc_restarted oc_restarted;      // a restored checkpoint; free with oc_restarted_free

// Why the last failed call of this thread failed: one line, valid until the thread's next failed
// call; "" if none failed. Successful calls do not change it.
const char* oc_last_error(void);
const char* oc_version(void);  // "0.1.0"

// -- Constants for fields and parameters of type uint32_t --

enum {                // oc_map_options.access
  OC_READ_ONLY = 0,   // a write raises SIGSEGV, as with mmap
  OC_READ_WRITE = 1,  // changes reach the store by write-back, flush and unmap
  OC_PRIVATE = 2,     // changes are this region's own and never reach the store
};
enum {                        // delivery: how the runtime is notified of a fault; 0: not set
  OC_DELIVERY_AUTO = 1,       // the best that the kernel offers
  OC_DELIVERY_IN_THREAD = 2,  // the faulting thread fills; a system call on an absent page: EFAULT
  OC_DELIVERY_MESSAGES = 3,   // event threads fill; a system call on an absent page works
  OC_DELIVERY_MPROTECT = 4,   // where userfaultfd is not allowed; a system call: as with IN_THREAD
};
enum {                    // frames: the memory of a resident page; 0: not set
  OC_FRAMES_AUTO = 1,     // the best that the kernel offers
  OC_FRAMES_SHARED = 2,   // a memfd: writes are tracked at 4 KiB without faults
  OC_FRAMES_PRIVATE = 3,  // anonymous memory: the cheapest fill
};
enum { OC_FETCH_AUTO = 1, OC_FETCH_PAGE = 2 };  // fetch; 0: not set; see outcore/options.h
enum {                     // on_error: what an access gets whose fill failed; 0: not set
  OC_ON_ERROR_SIGNAL = 1,  // SIGBUS with the address, as with mmap
  // Zeros; degraded. Refused with write access; as a default it means OC_ON_ERROR_SIGNAL there.
  OC_ON_ERROR_ZERO = 2,
  OC_ON_ERROR_ABORT = 3,  // the program ends with a message
};
enum {                       // advice
  OC_ADVICE_NORMAL = 0,      // readahead on
  OC_ADVICE_RANDOM = 1,      // readahead off
  OC_ADVICE_SEQUENTIAL = 2,  // readahead starts at its largest window
  OC_ADVICE_WILL_NEED = 3,   // prefetch the range
  OC_ADVICE_DONT_NEED = 4,   // evict the range now; dirty bytes are written back first
  OC_ADVICE_COLD = 5,        // evict the range before other pages
};

// For options for which 0 is a useful value: sets them to 0.
#define OC_ZERO UINT64_MAX

// -- Runtime --

typedef struct oc_options {
  size_t struct_bytes;          // set by oc_options_init
  uint64_t budget_bytes;        // hard limit for resident pages, pages in flight and bounce buffers
  uint64_t page_bytes;          // default for regions
  uint64_t readahead_bytes;     // largest readahead window; OC_ZERO: no readahead
  uint64_t wait_ms_max;         // bound of a wait for memory to be freed; OC_ZERO: fail at once
  const char* policy;           // "auto", "s3-fifo", "di-mmap:hot=75%", "fifo"
  const char* scratch_dir;      // folder for private regions and scratch stores
  const char* metrics_at_exit;  // "none", "text" (standard error), or a path for lines of JSON
  const char* kernel;           // use no kernel features newer than "5.15", "6.1", "6.8"
  uint32_t keepers, prefetch_threads, event_threads;
  uint32_t high_watermark;              // percent of the budget above which keepers evict
  uint32_t low_watermark;               // percent of the budget down to which they evict
  uint32_t delivery, frames, on_error;  // defaults for regions
  uint32_t ignore_environment;          // 1: also ignores config files
  uint32_t checkpoint_keep;             // how many checkpoints are kept (default 3)
  uint64_t checkpoint_every_ms;         // interval of periodic checkpoints: see outcore/options.h
  const char* checkpoint_pool;          // versioned:FOLDER; NULL: the pool of the regions
  const char* learn_file;  // keeps what was needed first; the next start brings it in ahead
  uint64_t budget_min_bytes, budget_max_bytes;  // of a budget that adapts: see outcore/options.h
  uint32_t adapts_budget;                       // 1: it follows what the machine has left
  uint32_t fetch;                               // how much a miss brings in; 0: not set
  const char *buffer, *report_file;             // see outcore/options.h, as for event_batch
  uint32_t event_batch;
} oc_options;

static inline void oc_options_init(oc_options* options) {
  memset(options, 0, sizeof *options);
  options->struct_bytes = sizeof *options;
}

// Starts a runtime; options may be NULL. Errors: -EINVAL (an option: the message says where it was
// set and which values are valid; or a budget that is too small: the message gives the smallest
// that works), -ENOMEM, -EPERM (the delivery is not available).
int oc_start(const oc_options* options, oc_runtime** runtime);
// Ends the runtime and its threads. -EBUSY: a region or reservation is left; nothing has changed.
int oc_stop(oc_runtime* runtime);

// Changes the budget; with adapts_budget it then stays so. A smaller one evicts before the call
// returns. Errors: -EBUSY (pinned pages, or pages that cannot be written, are in the way; the old
// budget stays), -EINVAL (the message gives the smallest that works).
int oc_resize_budget(oc_runtime* runtime, uint64_t bytes);
uint64_t oc_budget(const oc_runtime* runtime);

// Keeps addresses free for oc_map_options.address.
int oc_reserve(oc_runtime* runtime, uint64_t size_bytes, oc_reservation** reservation);
void* oc_reservation_data(const oc_reservation* reservation);
uint64_t oc_reservation_size(const oc_reservation* reservation);
// -EBUSY: a region is inside; nothing has changed.
int oc_release(oc_reservation* reservation);

// -- Mapping --

typedef struct oc_map_options {
  size_t struct_bytes;     // set by oc_map_options_init
  uint64_t offset;         // first byte of the store; a multiple of 4096
  uint64_t size_bytes;     // 0: to the end of the store
  uint64_t page_bytes;     // unit of fault, eviction and I/O: a power of two, 4 KiB … 16 MiB
  uint64_t reserve_bytes;  // addresses kept for oc_grow; 0: as large as the region
  void* address;           // inside a reservation of this runtime; NULL: Outcore chooses
  uint32_t access;
  uint32_t may_create;  // 1: create the store, or enlarge it to offset + size_bytes
  uint32_t advice;
  uint32_t delivery, frames, on_error;  // 0: the runtime's default
} oc_map_options;

static inline void oc_map_options_init(oc_map_options* options) {
  memset(options, 0, sizeof *options);
  options->struct_bytes = sizeof *options;
}

// Maps a store by URI: PATH or file:PATH, sparse:DIR?segment=64M, scratch:[DIR], memory:. Options
// may be NULL: the whole store, read-only. Errors: those of the system for the store; -EINVAL (URI,
// offset, size, page size, address), -ENOMEM (addresses, or the budget), -EBUSY (mapped already
// with another page size or delivery), -EACCES.
int oc_map(oc_runtime* runtime, const char* uri, const oc_map_options* options, oc_region** region);

// Flushes and unmaps. 0: the region and its handle are gone. Otherwise the first error of its
// write-backs, and the region stays as it was, so that no byte is lost. With force (1) it is gone
// in any case, and what could not be stored is lost.
int oc_unmap(oc_region* region, int force);

void* oc_data(const oc_region* region);          // first byte; constant until oc_unmap
uint64_t oc_size(const oc_region* region);       // bytes
uint64_t oc_page_size(const oc_region* region);  // bytes
const char* oc_uri(const oc_region* region);
uint32_t oc_access_of(const oc_region* region);    // OC_READ_ONLY …
uint32_t oc_delivery_of(const oc_region* region);  // what was chosen; never 0 or AUTO
uint32_t oc_frames_of(const oc_region* region);    // what was chosen; never 0 or AUTO

// -- Region --

// Brings the range in and keeps it resident until oc_unpin; pins nest. System calls and devices may
// use pinned memory in every delivery. Errors: -ENOMEM (more than the budget can hold), and errors
// of the store.
int oc_pin(oc_region* region, uint64_t offset, uint64_t size_bytes);
int oc_unpin(oc_region* region, uint64_t offset, uint64_t size_bytes);  // -EINVAL: not pinned
// Starts to bring pages in, and returns at once; skips pages for which there is no room.
int oc_prefetch(oc_region* region, uint64_t offset, uint64_t size_bytes);
// The same for a list of page numbers (offset / page size), in any order.
int oc_prefetch_list(oc_region* region, const uint64_t* pages, size_t count);
// Brings the range in, and returns when it is there. It may be evicted at any time afterwards.
int oc_prefault(oc_region* region, uint64_t offset, uint64_t size_bytes);
int oc_advise(oc_region* region, uint64_t offset, uint64_t size_bytes, uint32_t advice);

// 0: the store has every byte that was written before the call. Otherwise the store's first error
// since the last flush.
int oc_flush(oc_region* region);
int oc_flush_range(oc_region* region, uint64_t offset, uint64_t size_bytes);
int oc_sync(oc_region* region);  // oc_flush, then makes the store durable

// Makes the range read zero, in the region and in the store. Needs multiples of 4096 (-EINVAL).
int oc_discard(oc_region* region, uint64_t offset, uint64_t size_bytes);
// Enlarges store and region in place. -EINVAL: beyond reserve_bytes, or smaller than now.
int oc_grow(oc_region* region, uint64_t size_bytes);

// Like memcpy, but a failed fill is returned as an error instead of a signal. With in-thread
// delivery, use them around system calls: oc_read() and then write(2).
int oc_read(const oc_region* region, uint64_t offset, void* into, size_t size_bytes);
int oc_write(oc_region* region, uint64_t offset, const void* from, size_t size_bytes);
// Makes failed pages absent again, and pages that read zero because their read failed: the next
// access tries the store again. -EBUSY: such a page is pinned.
int oc_retry_failed(oc_region* region);

// -- Custom stores --

// The functions of a custom store. Each gets `context` and returns 0 or -errno (values above 0
// count as -EIO). Any thread may call them, many at a time, until `end`.
typedef struct oc_store_calls {
  size_t struct_bytes;              // set by oc_store_calls_init
  const char* name;                 // for messages; NULL: "custom:"
  uint64_t (*size)(void* context);  // required. Bytes in the store; only resize changes this
  // Required. Fills all of `into` with the bytes at offset; never called for bytes past the end.
  int (*read)(void* context, uint64_t offset, void* into, size_t size_bytes);
  // Stores all of `from`; never called twice at a time for the same bytes. NULL: the store is
  // read-only.
  int (*write)(void* context, uint64_t offset, const void* from, size_t size_bytes);
  int (*sync)(void* context);                         // makes it durable; NULL: nothing to do
  int (*resize)(void* context, uint64_t size_bytes);  // new bytes read zero; NULL: -ENOTSUP
  // NULL: zeros are written instead
  int (*discard)(void* context, uint64_t offset, uint64_t size_bytes);
  void (*end)(void* context);  // the last call, when no handle and no region is left; may be NULL
  uint64_t alignment_bytes;    // transfers with multiples of this are fast; 0: any
  uint32_t read_concurrency;   // transfers at a time that the store serves well; 0: no limit
  uint32_t write_concurrency;
  // 1: read may be called inside a signal handler of the faulting thread, because it allocates
  // nothing and takes no lock that the program could hold. 0: only threads of the runtime call it.
  uint32_t is_fault_safe;
  uint32_t is_volatile;  // 1: its bytes are lost when the process ends
} oc_store_calls;

static inline void oc_store_calls_init(oc_store_calls* calls) {
  memset(calls, 0, sizeof *calls);
  calls->struct_bytes = sizeof *calls;
}

// If it fails, it has called none of the functions, not even `end`.
int oc_store_new(const oc_store_calls* calls, void* context, oc_store** store);
// Releases the caller's handle; regions over the store keep it alive. NULL is allowed.
void oc_store_free(oc_store* store);
// As oc_map. Two regions of one store show the same bytes. may_create enlarges it by `resize`.
int oc_map_store(oc_runtime* runtime, oc_store* store, const oc_map_options* options,
                 oc_region** region);

// -- Heaps: allocation larger than memory (docs/reference/heap.md) --

// Memory as from malloc, whose bytes live in a store. If a function returns NULL, errno is ENOMEM,
// ENOSPC (the store is full), EINVAL (alignment), EPERM (a forked child) or an error of the store,
// and oc_last_error() has the message. Any thread. Space in the store is reserved by the
// allocation, so that later accesses do not fail for lack of it.
typedef struct oc_heap oc_heap;  // free with oc_heap_destroy

typedef struct oc_heap_options {
  size_t struct_bytes;      // set by oc_heap_options_init
  const char* store;        // URI; NULL: scratch:
  oc_store* store_object;   // instead of a URI
  const char* name;         // for messages
  uint64_t reserve_bytes;   // addresses, which bound all allocations; 0: 1 TiB, or what there is
  uint64_t page_bytes;      // 0: the runtime's
  uint64_t kept_bytes_max;  // limit of free memory that is kept for reuse
  uint32_t advice;
  uint32_t delivery;       // 0: the runtime's; if that is auto: messages, if permitted
  uint32_t may_overwrite;  // 1: allow a store that holds bytes; they are lost
  uint32_t unused;         // 0
} oc_heap_options;

static inline void oc_heap_options_init(oc_heap_options* options) {
  memset(options, 0, sizeof *options);
  options->struct_bytes = sizeof *options;
}

// Options may be NULL. Errors: those of the store, -EEXIST (it holds bytes), -EINVAL, -ENOMEM.
int oc_heap_create(oc_runtime* runtime, const oc_heap_options* options, oc_heap** heap);
// Frees all blocks, too.
int oc_heap_destroy(oc_heap* heap);
void* oc_heap_malloc(oc_heap* heap, size_t size_bytes);
void* oc_heap_calloc(oc_heap* heap, size_t count, size_t size_bytes);  // reads zero
// NULL: allocates; 0 bytes: frees, and returns NULL.
void* oc_heap_realloc(oc_heap* heap, void* block, size_t size_bytes);
void* oc_heap_aligned_alloc(oc_heap* heap, size_t alignment, size_t size_bytes);
// NULL is allowed; a pointer that is not a block ends the program.
void oc_heap_free(oc_heap* heap, void* block);
size_t oc_heap_usable_size(const oc_heap* heap, const void* block);  // 0 for NULL
int oc_heap_trim(oc_heap* heap);  // gives free memory back to the store now

typedef struct oc_heap_values {
  size_t struct_bytes;                         // set by oc_heap_values_init
  uint64_t allocated_bytes, allocated_blocks;  // of all blocks
  uint64_t reserved_bytes;                     // space reserved in the store
  uint64_t kept_bytes;                         // free part of reserved_bytes
  uint64_t address_bytes;                      // addresses used so far
  uint64_t resident_bytes;                     // in memory
  uint64_t metadata_bytes;                     // in ordinary memory
} oc_heap_values;

static inline void oc_heap_values_init(oc_heap_values* values) {
  memset(values, 0, sizeof *values);
  values->struct_bytes = sizeof *values;
}

int oc_heap_metrics(const oc_heap* heap, oc_heap_values* values);

// The default heap of the process, created at its first use from the environment: OUTCORE_STORE (a
// URI; default scratch:), OUTCORE_BUDGET, OUTCORE_PAGE and so on. It ends with the process. NULL:
// it cannot be created; the next use tries again.
oc_heap* oc_default_heap(void);
// Functions for the default heap.
void* oc_malloc(size_t size_bytes);
void* oc_calloc(size_t count, size_t size_bytes);
void* oc_realloc(void* block, size_t size_bytes);
void* oc_aligned_alloc(size_t alignment, size_t size_bytes);
void oc_free(void* block);
size_t oc_usable_size(const void* block);

// -- Checkpoints, in a pool versioned:FOLDER (docs/guides/checkpoints.md, outcore/checkpoint.h) --

typedef struct oc_checkpoint_part {  // a region, or ordinary memory
  const oc_region* region;           // NULL: memory
  const char* name;  // of the object in the pool; may be NULL for a region of the pool
  void* memory;
  uint64_t size_bytes;  // of the memory
} oc_checkpoint_part;

typedef struct oc_checkpoint_options {
  size_t struct_bytes;  // set by oc_checkpoint_options_init
  const char* pool;     // versioned:FOLDER, created if missing; NULL: the pool of the regions
  const char* comment;
  // Both or none: between quiesce (0 or -errno) and resume the program must not write to the parts.
  int (*quiesce)(void* context);
  void (*resume)(void* context);
  void* context;
  uint32_t leaves_threads;  // 1: no thread is stopped by a signal
  uint32_t unused;          // 0
} oc_checkpoint_options;

static inline void oc_checkpoint_options_init(oc_checkpoint_options* options) {
  memset(options, 0, sizeof *options);
  options->struct_bytes = sizeof *options;
}

// Makes a checkpoint of all parts at one moment, while the program continues; it is durable when
// the call returns. options and *pause_ns (how long threads were stopped) may be NULL. Errors:
// those of outcore::checkpoint().
int oc_checkpoint(const char* name, const oc_checkpoint_part* parts, size_t count,
                  const oc_checkpoint_options* options, uint64_t* pause_ns);
// Restores the pool's objects from the checkpoint; name NULL: the newest. No region may be on the
// pool. -ENOENT: there is no such checkpoint.
int oc_restart(const char* pool, const char* name, oc_restarted** last);
void oc_restarted_free(oc_restarted* last);
const char* oc_restarted_name(const oc_restarted* last);
int oc_restarted_size(const oc_restarted* last, const char* object, uint64_t* size_bytes);
int oc_restarted_read(const oc_restarted* last, const char* object, void* into, size_t size_bytes);

// -- Metrics: docs/reference/metrics.md describes each --
enum { OC_LATENCY_BUCKETS = 40 };

typedef struct oc_metric_values {
  size_t struct_bytes;  // set by oc_metric_values_init
  // Counters.
  uint64_t faults, fills, prefetch_fills, zero_fills, minor_faults, write_faults, rescues,
      evictions, write_backs, read_bytes, written_bytes, read_requests, write_requests, fill_errors,
      write_back_errors, waits_for_frame, waits_for_page, wait_for_frame_ns, wait_for_page_ns,
      prefetch_dropped, flushes, discarded;
  // Gauges: current values.
  uint64_t budget_bytes, used_bytes, used_bytes_max, bounce_bytes, metadata_bytes, degraded;
  uint64_t fault_latency[OC_LATENCY_BUCKETS];  // [i]: faults and call_waits of 2^i … 2^(i+1) - 1 ns
  uint64_t learnt_fills, replays;              // a counter and a gauge of later releases
  uint64_t budget_shrinks, budget_growths, budget_shrink_failures, budget_shrink_ns_max, fault_ns,
      refaults, call_waits, call_wait_ns;
} oc_metric_values;

static inline void oc_metric_values_init(oc_metric_values* values) {
  memset(values, 0, sizeof *values);
  values->struct_bytes = sizeof *values;
}

int oc_metrics(const oc_runtime* runtime, oc_metric_values* values);
// Counters of the region's store pages: regions of one store share them. Of the gauges only
// used_bytes (its resident pages) and degraded (0 or 1); the others are 0.
int oc_region_metrics(const oc_region* region, oc_metric_values* values);

// -- Functions that return texts: they write the text to `buffer`, with a final NUL, and its size
// with the NUL to *needed_bytes (may be NULL). -ERANGE: the buffer is too small; nothing was
// written. With a NULL buffer of 0 bytes they only return the size, which is not an error. --

int oc_metrics_json(const oc_runtime* runtime, char* buffer, size_t size_bytes,
                    size_t* needed_bytes);
// One line for each option: "name = value (where from)".
int oc_describe_options(const oc_runtime* runtime, char* buffer, size_t size_bytes,
                        size_t* needed_bytes);
// What kernel and process offer, what is missing and the remedy; the default budget.
int oc_info_json(char* buffer, size_t size_bytes, size_t* needed_bytes);

#ifdef __cplusplus
}
#endif

// NOLINTEND(modernize-*,readability-identifier-naming)
