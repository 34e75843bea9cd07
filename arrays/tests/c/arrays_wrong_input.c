// Calls on arrays that are refused: -errno, one line that says what would do, and nothing written.
#define _GNU_SOURCE
#include <sys/wait.h>

#include "core/tests/c/check.h"
#include "core/tests/c/folder.h"
// After folder.h, which it needs.
#include "arrays/tests/c/container.h"

static const uint64_t kShape[] = {6, 4}, kZero[] = {0, 0};
static double box[6][4];

static void null_is_told_by_name(oc_arrays* out) {
  oc_arrays* none = out;
  oc_names* names = (oc_names*)&names;
  const oc_array_view* view = (const oc_array_view*)&view;
  CHECK_IS(-EINVAL, oc_arrays_open(container_path, OC_ARRAYS_READ, NULL, NULL, NULL));
  CHECK_SAYS("oc_arrays_open: arrays is NULL");
  CHECK_IS(-EINVAL, oc_arrays_open(NULL, OC_ARRAYS_READ, NULL, NULL, &none));
  CHECK_SAYS("oc_arrays_open: uri is NULL");
  CHECK(none == NULL);
  CHECK_IS(-EINVAL, oc_arrays_close(NULL));
  CHECK_SAYS("oc_arrays_close: arrays is NULL");
  CHECK_IS(-EINVAL, oc_arrays_abort(NULL));
  CHECK_IS(-EINVAL, oc_arrays_flush(NULL));
  CHECK_IS(-EINVAL, oc_arrays_verify(NULL, NULL, NULL));
  CHECK_IS(-ENOENT, oc_arrays_verify(out, "no such", NULL));
  CHECK_IS(-EINVAL, oc_arrays_alloc(NULL, "u", "<f8", 2, kShape, NULL));
  CHECK_IS(-EINVAL, oc_arrays_alloc(out, NULL, "<f8", 2, kShape, NULL));
  CHECK_SAYS("oc_arrays_alloc: name is NULL");
  CHECK_IS(-EINVAL, oc_arrays_alloc(out, "v", NULL, 2, kShape, NULL));
  CHECK_SAYS("oc_arrays_alloc: type is NULL");
  CHECK_IS(-EINVAL, oc_arrays_alloc(out, "v", "<f8", 2, NULL, NULL));
  CHECK_SAYS("oc_arrays_alloc: dims is NULL");
  CHECK_IS(-EINVAL, oc_arrays_store(out, "u", "<f8", NULL, 2, kZero, kShape));
  CHECK_SAYS("oc_arrays_store: data is NULL");
  CHECK_IS(-EINVAL, oc_arrays_store(out, "u", "<f8", box, 2, NULL, kShape));
  CHECK_SAYS("oc_arrays_store: offsets is NULL");
  CHECK_IS(-EINVAL, oc_arrays_store_whole(out, "v", "<f8", NULL, 0, NULL, NULL));
  CHECK_IS(-EINVAL, oc_arrays_store_text(out, "v", NULL));
  CHECK_IS(-EINVAL, oc_arrays_load(out, "u", "<f8", NULL, 2, kZero, kShape));
  CHECK_SAYS("oc_arrays_load: into is NULL");
  CHECK_IS(-EINVAL, oc_arrays_load_whole(out, "u", "<f8", NULL, sizeof box));
  CHECK_IS(-EINVAL, oc_arrays_load_whole(out, "u", NULL, box, sizeof box));
  CHECK_IS(-EINVAL, oc_arrays_load_text(out, NULL, NULL, 0, NULL));
  CHECK_IS(-EINVAL, oc_arrays_view(out, "u", "<f8", 0, NULL, NULL, NULL));
  CHECK_IS(-EINVAL, oc_arrays_view(out, "u", "<f8", 2, NULL, NULL, &view));
  CHECK_IS(-EINVAL, oc_arrays_view(out, "u", NULL, 0, NULL, NULL, &view));
  CHECK(view == NULL);
  CHECK_IS(-EINVAL, oc_arrays_info(out, "u", NULL));
  CHECK_IS(-EINVAL, oc_arrays_list(out, NULL));
  CHECK_IS(-EINVAL, oc_arrays_list(NULL, &names));
  CHECK(names == NULL);
  CHECK_IS(-EINVAL, oc_arrays_rename(out, "u", NULL));
  CHECK_IS(-EINVAL, oc_arrays_remove(out, NULL));
  CHECK_IS(-EINVAL, oc_arrays_set_attribute(out, "u", NULL, "text"));
  CHECK_IS(-EINVAL, oc_arrays_attribute(out, "u", NULL, NULL, 0, NULL));
  CHECK_IS(-EINVAL, oc_arrays_attributes(out, "u", NULL));
  CHECK(oc_arrays_has(NULL, "u") == 0 && oc_arrays_has(out, NULL) == 0);
  CHECK(*oc_arrays_uri(NULL) == 0 && oc_names_count(NULL) == 0 && oc_names_at(NULL, 0) == NULL);
  oc_names_free(NULL);
}

static void opening_is_refused(void) {
  oc_arrays* arrays = (oc_arrays*)&arrays;
  char other[700];
  snprintf(other, sizeof other, "%s/none.oca", folder_path);
  CHECK_IS(-ENOENT, oc_arrays_open(other, OC_ARRAYS_READ, NULL, NULL, &arrays));
  CHECK_SAYS("none.oca");
  CHECK(arrays == NULL);
  CHECK_IS(-EINVAL, oc_arrays_open(other, 3, NULL, NULL, &arrays));
  CHECK_SAYS("OC_ARRAYS_UPDATE (2)");
  oc_communicator together = oc_processes(0);
  CHECK_IS(-EINVAL, oc_arrays_open(other, OC_ARRAYS_WRITE, &together, NULL, &arrays));
  together = oc_processes(2);
  together.rank = 2;
  CHECK_IS(-EINVAL, oc_arrays_open(other, OC_ARRAYS_WRITE, &together, NULL, &arrays));
  CHECK_SAYS("rank 2 of 2");
  together.struct_bytes = 0;
  CHECK_IS(-EINVAL, oc_arrays_open(other, OC_ARRAYS_WRITE, &together, NULL, &arrays));
  CHECK_SAYS("oc_communicator_init()");
  oc_arrays_options options;
  memset(&options, 0, sizeof options);
  CHECK_IS(-EINVAL, oc_arrays_open(other, OC_ARRAYS_WRITE, NULL, &options, &arrays));
  CHECK_SAYS("oc_arrays_options_init()");
  together = oc_processes(2);
  CHECK_IS(-ENOTSUP, oc_arrays_open("memory:", OC_ARRAYS_WRITE, &together, NULL, &arrays));
  CHECK(access(other, F_OK) != 0);  // nothing was made
  FILE* file = fopen(other, "w");
  CHECK(file != NULL && fputs("no container at all", file) >= 0 && fclose(file) == 0);
  CHECK_IS(-EINVAL, oc_arrays_open(other, OC_ARRAYS_WRITE, NULL, NULL, &arrays));
  CHECK_SAYS("none.oca");
  char kept[32] = "";
  file = fopen(other, "r");
  CHECK(file != NULL && fgets(kept, sizeof kept, file) != NULL && fclose(file) == 0);
  CHECK(strcmp(kept, "no container at all") == 0);
}

static void types_and_shapes_are_refused(oc_arrays* out) {
  const uint64_t huge[] = {UINT64_C(1) << 40, UINT64_C(1) << 40};
  uint64_t many[OC_DIMS_MAX + 1];
  for (size_t i = 0; i <= OC_DIMS_MAX; ++i) many[i] = 1;
  CHECK_IS(-EINVAL, oc_arrays_alloc(out, "v", "<f9", 2, kShape, NULL));
  CHECK_SAYS("'<f9' is not a type of elements");
  CHECK_IS(-EINVAL, oc_arrays_alloc(out, "v", ">f8", 2, kShape, NULL));
  CHECK_IS(-EINVAL, oc_arrays_alloc(out, "v", oc_struct_type(0).text, 2, kShape, NULL));
  CHECK_IS(-EINVAL, oc_arrays_alloc(out, "v", oc_struct_type(SIZE_MAX).text, 2, kShape, NULL));
  CHECK_IS(-EINVAL, oc_arrays_alloc(out, "v", "<f8", 2, huge, NULL));
  CHECK_SAYS("more than 4 EiB");
  CHECK_IS(-EINVAL, oc_arrays_store_whole(out, "v", "<f8", box, 2, huge, NULL));
  CHECK_IS(-EINVAL, oc_arrays_alloc(out, "v", "<f8", OC_DIMS_MAX + 1, many, NULL));
  CHECK_SAYS("33 dimensions: at most 32");
  CHECK_IS(-EINVAL, oc_arrays_load(out, "u", "<f8", box, UINT32_MAX, kZero, kShape));
  CHECK_IS(-EINVAL, oc_arrays_alloc(out, "", "<f8", 2, kShape, NULL));
  CHECK_IS(-EINVAL, oc_arrays_alloc(out, "a\nb", "<f8", 2, kShape, NULL));
  CHECK_IS(-EEXIST, oc_arrays_alloc(out, "u", "<f8", 1, kShape, NULL));
  oc_array_options options;
  oc_array_options_init(&options);
  options.order = 2;
  CHECK_IS(-EINVAL, oc_arrays_alloc(out, "v", "<f8", 2, kShape, &options));
  CHECK_SAYS("OC_ORDER_COLUMN (1)");
  CHECK_IS(-EINVAL, oc_arrays_store_whole(out, "v", "<f8", box, 2, kShape, &options));
  options.order = OC_ORDER_ROW;
  options.may_replace = 2;
  CHECK_IS(-EINVAL, oc_arrays_alloc(out, "v", "<f8", 2, kShape, &options));
  CHECK_SAYS("0 or 1 will do");
  options.may_replace = 0;
  options.compress = "zip";
  CHECK_IS(-EINVAL, oc_arrays_alloc(out, "v", "<f8", 2, kShape, &options));
  CHECK_SAYS("none, lz4, zstd");
  options.compress = "zstd:20";
  CHECK_IS(-EINVAL, oc_arrays_store_whole(out, "v", "<f8", box, 2, kShape, &options));
  options.compress = NULL;
  options.tiles = kZero;
  CHECK_IS(-EINVAL, oc_arrays_alloc(out, "v", "<f8", 2, kShape, &options));
  options.struct_bytes = 0;
  CHECK_IS(-EINVAL, oc_arrays_alloc(out, "v", "<f8", 2, kShape, &options));
  CHECK_SAYS("oc_array_options_init()");
  CHECK(oc_arrays_has(out, "v") == 0);
}

static void boxes_and_names_are_refused(oc_arrays* out) {
  const uint64_t at[] = {1, 0}, overflow[] = {UINT64_MAX, 0};
  const oc_array_view* view;
  oc_array_info info;
  CHECK_IS(-EINVAL, oc_arrays_store(out, "u", "<f8", box, 2, at, kShape));
  CHECK_SAYS("the box ends at 1 + 6 in dimension 0, where the array has 6");
  CHECK_IS(-EINVAL, oc_arrays_load(out, "u", "<f8", box, 2, overflow, kShape));
  CHECK_IS(-EINVAL, oc_arrays_load(out, "u", "<f8", box, 1, kZero, kShape));
  CHECK_SAYS("it has 2 dimensions (6 x 4)");
  CHECK_IS(-EINVAL, oc_arrays_view(out, "u", "<f8", 2, at, kShape, &view));
  CHECK_IS(-EINVAL, oc_arrays_store(out, "u", "<f4", box, 2, kZero, kShape));
  CHECK_SAYS("it holds <f8, not <f4");
  CHECK_IS(-EINVAL, oc_arrays_load_whole(out, "u", OC_TYPE_INT64, box, sizeof box));
  CHECK_SAYS("it holds <f8, not <i8");
  CHECK_IS(-EINVAL, oc_arrays_load_whole(out, "u", "<f8", box, sizeof box - 8));
  CHECK_SAYS("it has 192 bytes, not 184");
  CHECK_IS(-EINVAL, oc_arrays_view(out, "u", "<f4", 0, NULL, NULL, &view));
  CHECK_IS(-EINVAL, oc_arrays_load_text(out, "u", NULL, 0, NULL));
  CHECK_SAYS("not text");
  oc_array_info_init(&info);
  CHECK_IS(-ENOENT, oc_arrays_info(out, "velocty", &info));
  CHECK_SAYS("velocity");
  CHECK_IS(-ENOENT, oc_arrays_load(out, "velocty", "<f8", box, 2, kZero, kShape));
  CHECK_SAYS("velocity");
  CHECK_IS(-ENOENT, oc_arrays_store(out, "velocty", "<f8", box, 2, kZero, kShape));
  CHECK_IS(-ENOENT, oc_arrays_rename(out, "velocty", "w"));
  CHECK_IS(-ENOENT, oc_arrays_remove(out, "velocty"));
  CHECK_IS(-ENOENT, oc_arrays_set_attribute(out, "velocty", "unit", "m/s"));
  CHECK_IS(-ENOENT, oc_arrays_attribute(out, "velocty", "unit", NULL, 0, NULL));
  info.struct_bytes = 8;
  CHECK_IS(-EINVAL, oc_arrays_info(out, "u", &info));
  CHECK_SAYS("oc_array_info_init()");
}

static void a_reader_writes_nothing(void) {
  oc_arrays* in = open_container(OC_ARRAYS_READ);
  CHECK_IS(-EACCES, oc_arrays_alloc(in, "v", "<f8", 2, kShape, NULL));
  CHECK_SAYS("open for reading");
  CHECK_IS(-EACCES, oc_arrays_store(in, "u", "<f8", box, 2, kZero, kShape));
  CHECK_IS(-EACCES, oc_arrays_store_text(in, "v", "text"));
  CHECK_IS(-EACCES, oc_arrays_rename(in, "u", "v"));
  CHECK_IS(-EACCES, oc_arrays_remove(in, "u"));
  CHECK_IS(-EACCES, oc_arrays_set_attribute(in, "u", "unit", "m/s"));
  oc_arrays* second;
  oc_arrays* writer = open_container(OC_ARRAYS_UPDATE);
  CHECK_IS(-EBUSY, oc_arrays_open(container_path, OC_ARRAYS_UPDATE, NULL, NULL, &second));
  CHECK_IS(-EBUSY, oc_arrays_store(writer, "u", "<f8", box, 2, kZero, kShape));
  CHECK_SAYS("reads it");
  CHECK_OK(oc_arrays_close(in));
  CHECK_OK(oc_arrays_close(writer));
}

static void a_closed_handle_is_told_so(void) {
  oc_arrays* in = open_container(OC_ARRAYS_READ);
  char text[8];
  oc_names* names;
  CHECK_OK(oc_arrays_close(in));
  CHECK_IS(-EBADF, oc_arrays_close(in));
  CHECK_SAYS("oc_arrays_close: the container is closed");
  CHECK_IS(-EBADF, oc_arrays_load_whole(in, "u", "<f8", box, sizeof box));
  CHECK_IS(-EBADF, oc_arrays_store(in, "u", "<f8", box, 2, kZero, kShape));
  CHECK_IS(-EBADF, oc_arrays_list(in, &names));
  CHECK_IS(-EBADF, oc_arrays_flush(in));
  CHECK_IS(-EBADF, oc_arrays_verify(in, NULL, NULL));
  CHECK_IS(-EBADF, oc_arrays_attribute(in, NULL, "a", text, sizeof text, NULL));
  CHECK(oc_arrays_has(in, "u") == 0 && *oc_arrays_uri(in) == 0);
  // As many as anybody opens, and still.
  for (int i = 0; i < 100; ++i) CHECK_OK(oc_arrays_close(open_container(OC_ARRAYS_READ)));
  CHECK_IS(-EBADF, oc_arrays_close(in));
}

// What its parent has open stays as it is.
static void a_child_gets_eperm(void) {
  oc_arrays* out = open_container(OC_ARRAYS_UPDATE);
  const oc_array_view* view;
  CHECK_OK(oc_arrays_view(out, "u", "<f8", 0, NULL, NULL, &view));
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    oc_names* names;
    CHECK_IS(-EPERM, oc_arrays_store_text(out, "v", "text"));
    CHECK_SAYS("in the parent of this process");
    CHECK_IS(-EPERM, oc_arrays_list(out, &names));
    CHECK_IS(-EPERM, oc_arrays_flush(out));
    CHECK_IS(-EPERM, oc_arrays_close(out));
    CHECK_IS(-EPERM, oc_arrays_abort(out));
    CHECK(oc_arrays_has(out, "u") == 0);
    oc_array_view_free(view);
    _exit(0);
  }
  int status = 1;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  CHECK_OK(oc_arrays_store_text(out, "v", "text"));
  CHECK(((const double*)view->data)[0] == 7);
  oc_array_view_free(view);
  CHECK_OK(oc_arrays_close(out));
}

int main(void) {
  setenv("OUTCORE_BUDGET", "16M", 1);
  make_container_path();
  box[0][0] = 7;
  oc_arrays* out = open_container(OC_ARRAYS_WRITE);
  CHECK_OK(oc_arrays_alloc(out, "u", "<f8", 2, kShape, NULL));
  CHECK_OK(oc_arrays_alloc(out, "velocity", "<f8", 2, kShape, NULL));
  CHECK_OK(oc_arrays_store(out, "u", "<f8", box, 2, kZero, kShape));
  null_is_told_by_name(out);
  types_and_shapes_are_refused(out);
  boxes_and_names_are_refused(out);
  CHECK_OK(oc_arrays_close(out));  // nothing of it kept the rest from being finished
  opening_is_refused();
  a_reader_writes_nothing();
  a_closed_handle_is_told_so();
  a_child_gets_eperm();
  oc_arrays* in = open_container(OC_ARRAYS_READ);
  memset(box, 0, sizeof box);
  CHECK_OK(oc_arrays_load_whole(in, "u", "<f8", box, sizeof box));
  CHECK(box[0][0] == 7 && box[5][3] == 0);
  CHECK_OK(oc_arrays_close(in));
  return 0;
}
