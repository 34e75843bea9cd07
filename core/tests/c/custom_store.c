// A store in C: its functions provide the bytes, the calls return its errors, and it ends when
// nobody uses it any more.
#include <pthread.h>

#include "core/tests/c/check.h"

enum { kCapacity = 8 << 20 };

typedef struct {
  pthread_mutex_t mutex;
  unsigned char* bytes;
  uint64_t size_bytes;
  int read_error, write_error;  // returned when not 0
  int syncs, discards, ends;
} Shelf;

static uint64_t shelf_size(void* context) {
  Shelf* shelf = context;
  pthread_mutex_lock(&shelf->mutex);
  const uint64_t size_bytes = shelf->size_bytes;
  pthread_mutex_unlock(&shelf->mutex);
  return size_bytes;
}

static int shelf_read(void* context, uint64_t offset, void* into, size_t size_bytes) {
  Shelf* shelf = context;
  pthread_mutex_lock(&shelf->mutex);
  const int error = shelf->read_error;
  if (error == 0) memcpy(into, shelf->bytes + offset, size_bytes);
  pthread_mutex_unlock(&shelf->mutex);
  return error;
}

static int shelf_write(void* context, uint64_t offset, const void* from, size_t size_bytes) {
  Shelf* shelf = context;
  pthread_mutex_lock(&shelf->mutex);
  const int error = shelf->write_error;
  if (error == 0) memcpy(shelf->bytes + offset, from, size_bytes);
  pthread_mutex_unlock(&shelf->mutex);
  return error;
}

static int shelf_sync(void* context) { return ++((Shelf*)context)->syncs, 0; }

static int shelf_resize(void* context, uint64_t size_bytes) {
  Shelf* shelf = context;
  if (size_bytes > kCapacity) return -ENOSPC;
  pthread_mutex_lock(&shelf->mutex);
  shelf->size_bytes = size_bytes;
  pthread_mutex_unlock(&shelf->mutex);
  return 0;
}

static int shelf_discard(void* context, uint64_t offset, uint64_t size_bytes) {
  Shelf* shelf = context;
  pthread_mutex_lock(&shelf->mutex);
  memset(shelf->bytes + offset, 0, size_bytes);
  ++shelf->discards;
  pthread_mutex_unlock(&shelf->mutex);
  return 0;
}

static void shelf_end(void* context) { ++((Shelf*)context)->ends; }

static void set_errors(Shelf* shelf, int read_error, int write_error) {
  pthread_mutex_lock(&shelf->mutex);
  shelf->read_error = read_error;
  shelf->write_error = write_error;
  pthread_mutex_unlock(&shelf->mutex);
}

static oc_store_calls shelf_calls(void) {
  oc_store_calls calls;
  oc_store_calls_init(&calls);
  calls.name = "shelf";
  calls.size = shelf_size;
  calls.read = shelf_read;
  calls.write = shelf_write;
  calls.sync = shelf_sync;
  calls.resize = shelf_resize;
  calls.discard = shelf_discard;
  calls.end = shelf_end;
  calls.read_concurrency = 4;
  return calls;
}

static void bytes_go_to_the_store_and_back(oc_runtime* runtime, oc_store* store, Shelf* shelf) {
  oc_map_options options = map_options(OC_READ_WRITE, 0);
  oc_region *region, *view;
  CHECK_OK(oc_map_store(runtime, store, &options, &region));
  CHECK(strcmp(oc_uri(region), "shelf") == 0);
  const int result = oc_map_store(runtime, store, NULL, &view);  // the same bytes, counted once
  if (result == -ENOTSUP) {  // older kernels can share frames with one delivery only
    CHECK_SAYS("delivery=mprotect");
    CHECK_OK(oc_unmap(region, 0));
    options.delivery = OC_DELIVERY_MPROTECT;
    CHECK_OK(oc_map_store(runtime, store, &options, &region));
    CHECK_OK(oc_map_store(runtime, store, NULL, &view));
  } else {
    CHECK_OK(result);
  }
  unsigned char* bytes = oc_data(region);
  for (uint64_t at = 0; at < oc_size(region); at += 512) {
    CHECK(bytes[at] == 3);
    bytes[at] = (unsigned char)(at / 512);
  }
  const unsigned char* seen = oc_data(view);
  for (uint64_t at = 0; at < oc_size(view); at += 512) CHECK(seen[at] == (unsigned char)(at / 512));
  CHECK_OK(oc_sync(region));
  CHECK(shelf->syncs == 1);
  for (uint64_t at = 0; at < shelf->size_bytes; at += 512)
    CHECK(shelf->bytes[at] == (unsigned char)(at / 512) && shelf->bytes[at + 1] == 3);
  CHECK_OK(oc_discard(region, 1 << 20, 1 << 20));
  CHECK(shelf->discards > 0 && bytes[1 << 20] == 0 && seen[(2 << 20) - 1] == 0);
  CHECK_OK(oc_unmap(view, 0));
  CHECK_OK(oc_unmap(region, 0));
}

static void its_errors_come_back(oc_runtime* runtime, oc_store* store, Shelf* shelf) {
  const oc_map_options options = map_options(OC_READ_WRITE, 0);
  oc_region* region;
  char byte = 9;
  CHECK_OK(oc_map_store(runtime, store, &options, &region));
  CHECK_OK(oc_advise(region, 0, oc_size(region), OC_ADVICE_RANDOM));
  set_errors(shelf, -ENODEV, 0);
  CHECK_IS(-ENODEV, oc_read(region, 0, &byte, 1));
  CHECK_SAYS("shelf");
  set_errors(shelf, 5, 0);  // a value that a store must not return: the page fails, or stays failed
  CHECK(oc_read(region, 1 << 20, &byte, 1) == -EIO);
  set_errors(shelf, 0, 0);
  CHECK_OK(oc_retry_failed(region));
  CHECK_OK(oc_read(region, 0, &byte, 1));

  CHECK_OK(oc_write(region, 8192, "x", 1));
  set_errors(shelf, 0, -ENOSPC);
  CHECK_IS(-ENOSPC, oc_flush(region));
  CHECK_SAYS("shelf");
  oc_metric_values values;
  oc_metric_values_init(&values);
  CHECK_OK(oc_region_metrics(region, &values));
  CHECK(values.degraded == 1 && values.write_back_errors > 0);
  CHECK_IS(-ENOSPC, oc_unmap(region, 0));  // nothing is lost: the region still exists
  CHECK(*((char*)oc_data(region) + 8192) == 'x');
  set_errors(shelf, 0, 0);
  CHECK_OK(oc_unmap(region, 0));
  CHECK(shelf->bytes[8192] == 'x');

  CHECK_OK(oc_map_store(runtime, store, &options, &region));
  CHECK_OK(oc_write(region, 8192, "y", 1));
  set_errors(shelf, 0, -ENOSPC);
  CHECK_IS(-ENOSPC, oc_unmap(region, 1));  // with force the region is gone, and so is the byte
  set_errors(shelf, 0, 0);
  CHECK(shelf->bytes[8192] == 'x');
}

static void it_grows_as_far_as_it_can(oc_runtime* runtime, oc_store* store, Shelf* shelf) {
  oc_map_options options = map_options(OC_READ_WRITE, 0);
  options.reserve_bytes = 2 * kCapacity;
  oc_region* region;
  CHECK_OK(oc_map_store(runtime, store, &options, &region));
  CHECK_OK(oc_grow(region, kCapacity));
  CHECK(shelf->size_bytes == kCapacity && *((char*)oc_data(region) + kCapacity - 1) == 0);
  CHECK_IS(-ENOSPC, oc_grow(region, 2 * kCapacity));
  CHECK_OK(oc_unmap(region, 0));
}

static void a_store_without_write_is_read_only(oc_runtime* runtime, Shelf* shelf) {
  oc_store_calls calls = shelf_calls();
  calls.write = NULL;
  calls.end = NULL;
  oc_store* store;
  oc_region* region;
  oc_map_options options = map_options(OC_READ_WRITE, 0);
  CHECK_OK(oc_store_new(&calls, shelf, &store));
  CHECK_IS(-EACCES, oc_map_store(runtime, store, &options, &region));
  CHECK_SAYS("have no write");
  CHECK(region == NULL);
  options.access = OC_PRIVATE;
  CHECK_OK(oc_map_store(runtime, store, &options, &region));
  memset(oc_data(region), 1, 4096);
  CHECK_OK(oc_unmap(region, 0));
  oc_store_free(store);
}

static void wrong_calls_are_refused(Shelf* shelf) {
  oc_store* store;
  oc_store_calls calls = shelf_calls();
  calls.read = NULL;
  CHECK_IS(-EINVAL, oc_store_new(&calls, shelf, &store));
  CHECK_SAYS("calls->read is NULL");
  calls = shelf_calls();
  calls.alignment_bytes = 1000;
  CHECK_IS(-EINVAL, oc_store_new(&calls, shelf, &store));
  CHECK_SAYS("a power of two");
  calls.struct_bytes = 0;
  CHECK_IS(-EINVAL, oc_store_new(&calls, shelf, &store));
  CHECK_SAYS("oc_store_calls_init");
  CHECK(store == NULL && shelf->ends == 0);
}

int main(void) {
  for (uint32_t is_fault_safe = 0; is_fault_safe <= 1; ++is_fault_safe) {
    Shelf shelf = {.mutex = PTHREAD_MUTEX_INITIALIZER, .size_bytes = 4 << 20};
    shelf.bytes = calloc(kCapacity, 1);
    CHECK(shelf.bytes != NULL);
    memset(shelf.bytes, 3, shelf.size_bytes);
    oc_runtime* runtime = start(2 << 20);
    oc_store_calls calls = shelf_calls();
    calls.is_fault_safe = is_fault_safe;  // no thread that could fault ever holds the lock
    oc_store* store;
    wrong_calls_are_refused(&shelf);
    CHECK_OK(oc_store_new(&calls, &shelf, &store));
    bytes_go_to_the_store_and_back(runtime, store, &shelf);
    its_errors_come_back(runtime, store, &shelf);
    it_grows_as_far_as_it_can(runtime, store, &shelf);
    a_store_without_write_is_read_only(runtime, &shelf);
    oc_region* last;
    CHECK_OK(oc_map_store(runtime, store, NULL, &last));
    oc_store_free(store);
    CHECK(shelf.ends == 0);  // the region keeps it alive
    CHECK(*(unsigned char*)oc_data(last) == shelf.bytes[0]);
    CHECK_OK(oc_unmap(last, 0));
    CHECK(shelf.ends == 1);
    CHECK_OK(oc_stop(runtime));
    free(shelf.bytes);
  }
  oc_store_free(NULL);
  return 0;
}
