// A file mapped with a budget of a quarter of its size: reads return its contents, and writes reach
// it; grow, discard, private regions, and addresses chosen by the program.
#define _GNU_SOURCE
#include "core/tests/c/check.h"
#include "core/tests/c/file.h"

enum { kWords = 2 << 20 };  // 16 MiB
static const uint64_t kBudget = 4 << 20, kBytes = kWords * sizeof(uint64_t);

static void a_read_only_region_shows_the_file(oc_runtime* runtime, const char* path) {
  oc_region* region;
  CHECK_OK(oc_map(runtime, path, NULL, &region));
  CHECK(oc_size(region) == kBytes);
  CHECK(oc_page_size(region) == 4096);
  CHECK(oc_access_of(region) == OC_READ_ONLY);
  CHECK(oc_delivery_of(region) > OC_DELIVERY_AUTO);
  CHECK(oc_frames_of(region) > OC_FRAMES_AUTO);
  CHECK(strstr(oc_uri(region), path) != NULL);
  const uint64_t* words = oc_data(region);
  for (uint64_t i = 0; i < kWords; ++i) CHECK(words[i] == word_of(i));
  const uint64_t nothing = 0;
  CHECK_IS(-EACCES, oc_write(region, 0, &nothing, sizeof nothing));
  CHECK_SAYS("read-only");
  CHECK_OK(oc_unmap(region, 0));
}

static void what_is_written_reaches_the_file(oc_runtime* runtime, const char* path) {
  const oc_map_options options = map_options(OC_READ_WRITE, 0);
  oc_region* region;
  CHECK_OK(oc_map(runtime, path, &options, &region));
  uint64_t* words = oc_data(region);
  for (uint64_t i = 0; i < kWords; i += 3) words[i] = ~word_of(i);
  CHECK_OK(oc_flush_range(region, 0, 4096));
  CHECK(word_in_file(3) == ~word_of(3));
  CHECK_OK(oc_flush(region));
  for (uint64_t i = 0; i < kWords; i += 4099)
    CHECK(word_in_file(i) == (i % 3 == 0 ? ~word_of(i) : word_of(i)));
  words[1] = 77;
  CHECK_OK(oc_sync(region));
  CHECK(word_in_file(1) == 77);
  words[1] = word_of(1);
  CHECK_OK(oc_unmap(region, 0));
  CHECK(word_in_file(1) == word_of(1));
}

static void read_and_write_copy(oc_runtime* runtime, const char* path) {
  const oc_map_options options = map_options(OC_READ_WRITE, 0);
  oc_region* region;
  CHECK_OK(oc_map(runtime, path, &options, &region));
  uint64_t out[1500], in[1500];
  for (uint64_t i = 0; i < 1500; ++i) out[i] = i * i;
  CHECK_OK(oc_write(region, 4096 - 8, out, sizeof out));
  CHECK_OK(oc_read(region, 4096 - 8, in, sizeof in));
  CHECK(memcmp(in, out, sizeof in) == 0);
  CHECK(memcmp((char*)oc_data(region) + 4096 - 8, out, sizeof out) == 0);
  CHECK_OK(oc_prefault(region, 0, 64 << 10));
  CHECK_OK(oc_prefetch(region, 1 << 20, 1 << 20));
  const uint64_t pages[] = {9, 3, 4, 5, 1000};
  CHECK_OK(oc_prefetch_list(region, pages, 5));
  CHECK_OK(oc_prefetch_list(region, NULL, 0));
  CHECK_OK(oc_unmap(region, 0));
}

static void a_private_region_keeps_its_changes(oc_runtime* runtime, const char* path) {
  const oc_map_options options = map_options(OC_PRIVATE, 0);
  const uint64_t before = word_in_file(5);
  oc_region* region;
  CHECK_OK(oc_map(runtime, path, &options, &region));
  uint64_t* words = oc_data(region);
  // Touches every page, so most are evicted.
  for (uint64_t i = 0; i < kWords; i += 512) words[i + 5] = i;
  for (uint64_t i = 0; i < kWords; i += 512) CHECK(words[i + 5] == i);
  CHECK_OK(oc_flush(region));
  CHECK_OK(oc_unmap(region, 0));
  CHECK(word_in_file(5) == before);
}

static void a_region_grows_in_place_and_discards(oc_runtime* runtime) {
  oc_map_options options = map_options(OC_READ_WRITE, 1 << 20);
  options.reserve_bytes = 8 << 20;
  options.page_bytes = 64 << 10;
  oc_region* region;
  CHECK_OK(oc_map(runtime, "memory:", &options, &region));
  CHECK(oc_page_size(region) == 64 << 10);
  char* bytes = oc_data(region);
  memset(bytes, 1, 1 << 20);
  CHECK_OK(oc_grow(region, 8 << 20));
  CHECK(oc_data(region) == bytes && oc_size(region) == 8 << 20);
  CHECK(bytes[(1 << 20) - 1] == 1 && bytes[1 << 20] == 0 && bytes[(8 << 20) - 1] == 0);
  CHECK_IS(-EINVAL, oc_grow(region, 9 << 20));
  CHECK_OK(oc_discard(region, 4096, 4096));
  CHECK(bytes[4095] == 1 && bytes[4096] == 0 && bytes[8191] == 0 && bytes[8192] == 1);
  CHECK_IS(-EINVAL, oc_discard(region, 1, 4096));
  CHECK_OK(oc_unmap(region, 0));
}

static void regions_go_where_the_program_says(oc_runtime* runtime, const char* path) {
  oc_reservation* reservation;
  oc_region* region;
  CHECK_OK(oc_reserve(runtime, 32 << 20, &reservation));
  CHECK(oc_reservation_size(reservation) == 32 << 20);
  oc_map_options options = map_options(OC_READ_ONLY, 1 << 20);
  options.offset = 4096;
  options.address = (char*)oc_reservation_data(reservation) + (16 << 20);
  CHECK_OK(oc_map(runtime, path, &options, &region));
  CHECK(oc_data(region) == options.address);
  CHECK(*(uint64_t*)oc_data(region) == word_in_file(512));
  CHECK_IS(-EBUSY, oc_release(reservation));
  CHECK_SAYS("is inside the reservation");
  CHECK_OK(oc_unmap(region, 0));
  CHECK_IS(-EBUSY, oc_stop(runtime));
  CHECK_SAYS("1 reservation");
  CHECK_OK(oc_release(reservation));
}

int main(void) {
  const char* path = make_file(kWords);
  oc_runtime* runtime = start(kBudget);
  a_read_only_region_shows_the_file(runtime, path);
  what_is_written_reaches_the_file(runtime, path);
  read_and_write_copy(runtime, path);
  a_private_region_keeps_its_changes(runtime, path);
  a_region_grows_in_place_and_discards(runtime);
  regions_go_where_the_program_says(runtime, path);
  CHECK_OK(oc_stop(runtime));
  return 0;
}
