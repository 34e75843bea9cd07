// Arrays of one process: what is stored is loaded and viewed, in every order and type, by boxes and
// as a whole; names and attributes; a runtime that is lent.
#define _GNU_SOURCE
#include <fcntl.h>
#include <unistd.h>

#include "core/tests/c/check.h"
#include "core/tests/c/folder.h"
// After folder.h, which it needs.
#include "arrays/tests/c/container.h"

enum { kRows = 300, kColumns = 40 };
static const uint64_t kShape[] = {kRows, kColumns};
static double whole[kRows][kColumns];

// Two boxes of it, one of which has rows that are not next to each other.
static void store_u(oc_arrays* out, const char* name, const oc_array_options* options) {
  static double left[kRows][10], right[kRows][kColumns - 10];
  const int is_column = options != NULL && options->order == OC_ORDER_COLUMN;
  for (uint64_t i = 0; i < kRows; ++i)
    for (uint64_t j = 0; j < kColumns; ++j) {
      double* const into = j < 10      ? is_column ? &left[0][0] + j * kRows + i : &left[i][j]
                                : is_column ? &right[0][0] + (j - 10) * kRows + i
                                       : &right[i][j - 10];
      *into = value_at(i, j);
    }
  const uint64_t zero[] = {0, 0}, ten[] = {0, 10};
  const uint64_t of_left[] = {kRows, 10}, of_right[] = {kRows, kColumns - 10};
  CHECK_OK(oc_arrays_alloc(out, name, OC_TYPE_DOUBLE, 2, kShape, options));
  CHECK_OK(oc_arrays_store(out, name, OC_TYPE_OF(left[0][0]), left, 2, zero, of_left));
  CHECK_OK(oc_arrays_store(out, name, OC_TYPE_DOUBLE, right, 2, ten, of_right));
}

static void every_order_holds_the_same(void) {
  oc_arrays* out = open_container(OC_ARRAYS_WRITE);
  oc_array_options column, tiled;
  oc_array_options_init(&column);
  column.order = OC_ORDER_COLUMN;
  const uint64_t tiles[] = {64, 16};
  oc_array_options_init(&tiled);
  tiled.tiles = tiles;
  store_u(out, "rows", NULL);
  store_u(out, "columns", &column);
  store_u(out, "tiles", &tiled);
  CHECK_OK(oc_arrays_close(out));

  oc_arrays* in = open_container(OC_ARRAYS_READ);
  CHECK_OK(oc_arrays_load_whole(in, "rows", OC_TYPE_DOUBLE, whole, sizeof whole));
  for (uint64_t i = 0; i < kRows; ++i)
    for (uint64_t j = 0; j < kColumns; ++j) CHECK(whole[i][j] == value_at(i, j));
  memset(whole, 0, sizeof whole);
  CHECK_OK(oc_arrays_load_whole(in, "tiles", OC_TYPE_DOUBLE, whole, sizeof whole));
  for (uint64_t i = 0; i < kRows; ++i)
    for (uint64_t j = 0; j < kColumns; ++j) CHECK(whole[i][j] == value_at(i, j));
  double part[7][3], by_columns[3][7];
  const uint64_t at[] = {60, 9}, box[] = {7, 3};
  CHECK_OK(oc_arrays_load(in, "tiles", OC_TYPE_DOUBLE, part, 2, at, box));
  CHECK_OK(oc_arrays_load(in, "columns", OC_TYPE_DOUBLE, by_columns, 2, at, box));
  for (uint64_t i = 0; i < 7; ++i)
    for (uint64_t j = 0; j < 3; ++j)
      CHECK(part[i][j] == value_at(60 + i, 9 + j) && by_columns[j][i] == part[i][j]);

  const oc_array_info info = info_of(in, "columns"), of_tiles = info_of(in, "tiles");
  CHECK(strcmp(info.name, "columns") == 0 && strcmp(info.type, "<f8") == 0);
  CHECK(info.dim_count == 2 && info.dims[0] == kRows && info.dims[1] == kColumns);
  CHECK(info.dims[2] == 0 && info.element_bytes == 8 && info.size_bytes == sizeof whole);
  CHECK(info.stored_bytes >= info.size_bytes && info.order == OC_ORDER_COLUMN && !info.is_tiled);
  CHECK(of_tiles.is_tiled == 1 && of_tiles.tiles[0] == 64 && of_tiles.tiles[1] == 16);
  CHECK(of_tiles.order == OC_ORDER_ROW && of_tiles.size_bytes == sizeof whole);
  CHECK_OK(oc_arrays_close(in));
}

// By boxes that share tiles; programs that were built before the field came go on.
static void tiles_are_compressed(void) {
  oc_array_options how;
  oc_array_options_init(&how);
  how.compress = "zstd:7";
  oc_arrays* out = open_container(OC_ARRAYS_UPDATE);
  store_u(out, "packed", &how);
  how.order = OC_ORDER_COLUMN;
  how.compress = "lz4";
  const uint64_t tiles[] = {64, 16};
  how.tiles = tiles;
  store_u(out, "packed columns", &how);
  how.struct_bytes = offsetof(oc_array_options, compress);  // a program that does not know it
  store_u(out, "as it is", &how);
  CHECK_OK(oc_arrays_close(out));

  oc_arrays* in = open_container(OC_ARRAYS_READ);
  const oc_array_info info = info_of(in, "packed"), columns = info_of(in, "packed columns");
  CHECK(strcmp(info.compress, "zstd:7") == 0 && info.is_tiled == 1);
  CHECK(info.tiles[0] == kRows && info.tiles[1] == kColumns && info.size_bytes == sizeof whole);
  CHECK(strcmp(columns.compress, "lz4") == 0 && columns.tiles[0] == 64);
  CHECK(*info_of(in, "as it is").compress == 0 && *info_of(in, "rows").compress == 0);
  oc_array_info older;
  memset(&older, '?', sizeof older);
  older.struct_bytes = offsetof(oc_array_info, compress);
  CHECK_OK(oc_arrays_info(in, "packed", &older));
  CHECK(strcmp(older.name, "packed") == 0 && older.compress[0] == '?');
  memset(whole, 0, sizeof whole);
  CHECK_OK(oc_arrays_load_whole(in, "packed", OC_TYPE_DOUBLE, whole, sizeof whole));
  double column[kRows];
  const uint64_t at[] = {0, 9}, box[] = {kRows, 1};
  CHECK_OK(oc_arrays_load(in, "packed columns", OC_TYPE_DOUBLE, column, 2, at, box));
  for (uint64_t i = 0; i < kRows; ++i)
    for (uint64_t j = 0; j < kColumns; ++j)
      CHECK(whole[i][j] == value_at(i, j) && column[i] == value_at(i, 9));
  const oc_array_view* view;
  CHECK_IS(-ENOTSUP, oc_arrays_view(in, "packed", OC_TYPE_DOUBLE, 0, NULL, NULL, &view));
  CHECK_OK(oc_arrays_close(in));
}

// Finished, it is replaced as a whole; by boxes, too, where the options say so.
static void what_is_compressed_is_replaced(void) {
  const uint64_t at[] = {0, 0}, one[] = {1, 1}, few[] = {3, 40};
  const double seven = 7;
  oc_array_options how;
  oc_array_options_init(&how);
  how.compress = "lz4";
  oc_arrays* out = open_container(OC_ARRAYS_UPDATE);
  CHECK_IS(-ENOTSUP, oc_arrays_store(out, "packed", OC_TYPE_DOUBLE, &seven, 2, at, one));
  CHECK_SAYS("it is compressed and finished");
  CHECK_IS(-EEXIST, oc_arrays_alloc(out, "packed", OC_TYPE_DOUBLE, 2, few, &how));
  how.may_replace = 1;
  CHECK_OK(oc_arrays_alloc(out, "packed", OC_TYPE_DOUBLE, 2, few, &how));
  CHECK_OK(oc_arrays_store(out, "packed", OC_TYPE_DOUBLE, &seven, 2, at, one));
  CHECK_OK(oc_arrays_close(out));
  oc_arrays* in = open_container(OC_ARRAYS_READ);
  const oc_array_info info = info_of(in, "packed");
  CHECK(info.dims[0] == 3 && strcmp(info.compress, "lz4") == 0);
  CHECK_OK(oc_arrays_load_whole(in, "packed", OC_TYPE_DOUBLE, whole, 3 * 40 * sizeof(double)));
  CHECK(whole[0][0] == 7 && whole[0][1] == 0 && whole[2][39] == 0);
  CHECK_OK(oc_arrays_close(in));
}

// Views outlive the container.
static void views_show_elements_where_they_are(void) {
  const oc_array_view *rows, *columns, *part, *value;
  const uint64_t at[] = {60, 9}, box[] = {7, 3};
  oc_arrays* in = open_container(OC_ARRAYS_READ);
  CHECK_OK(oc_arrays_view(in, "rows", OC_TYPE_DOUBLE, 0, NULL, NULL, &rows));
  CHECK_OK(oc_arrays_view(in, "columns", OC_TYPE_DOUBLE, 0, NULL, NULL, &columns));
  CHECK_OK(oc_arrays_view(in, "rows", OC_TYPE_DOUBLE, 2, at, box, &part));
  CHECK_IS(-ENOTSUP, oc_arrays_view(in, "tiles", OC_TYPE_DOUBLE, 0, NULL, NULL, &value));
  CHECK_SAYS("load it");
  CHECK(value == NULL);
  CHECK_OK(oc_arrays_close(in));
  CHECK(rows->struct_bytes == sizeof *rows && rows->dim_count == 2);
  CHECK(rows->dims[0] == kRows && rows->strides[0] == kColumns && rows->strides[1] == 1);
  CHECK(rows->count == kRows * kColumns && rows->is_dense == 1);
  CHECK(columns->strides[0] == 1 && columns->strides[1] == kRows && columns->is_dense == 0);
  CHECK(part->count == 21 && part->is_dense == 0 && part->dims[1] == 3);
  const double *r = rows->data, *c = columns->data, *p = part->data;
  for (uint64_t i = 0; i < kRows; ++i)
    for (uint64_t j = 0; j < kColumns; ++j) {
      CHECK(r[i * rows->strides[0] + j * rows->strides[1]] == value_at(i, j));
      CHECK(c[i * columns->strides[0] + j * columns->strides[1]] == value_at(i, j));
    }
  CHECK(p[6 * part->strides[0] + 2] == value_at(66, 11));
  oc_array_view_free(rows);
  oc_array_view_free(columns);
  oc_array_view_free(part);
  oc_array_view_free(NULL);
}

struct particle {
  double position[3];
  int32_t kind, charge;
};

static void every_type_comes_back(void) {
  oc_arrays* out = open_container(OC_ARRAYS_WRITE);
  const int32_t step = 12;
  const unsigned char flags[] = {1, 0, 1};
  const double _Complex z = 3.5;
  const struct particle some[2] = {{{1, 2, 3}, 4, 5}, {{6, 7, 8}, 9, -1}};
  const char names[2][5] = {"one", "three"};
  const oc_type_name particle = oc_struct_type(sizeof(struct particle));
  const oc_type_name word = oc_fixed_text_type(sizeof names[0]);
  const uint64_t three = 3, two = 2, none[] = {0, 5};
  CHECK(strcmp(particle.text, "V32") == 0 && strcmp(word.text, "S5") == 0);
  CHECK_OK(oc_arrays_store_whole(out, "step", OC_TYPE_OF(step), &step, 0, NULL, NULL));
  CHECK_OK(oc_arrays_store_whole(out, "flags", OC_TYPE_BOOL, flags, 1, &three, NULL));
  CHECK_OK(oc_arrays_store_whole(out, "z", OC_TYPE_OF(z), &z, 0, NULL, NULL));
  CHECK_OK(oc_arrays_store_whole(out, "particles", particle.text, some, 1, &two, NULL));
  CHECK_OK(oc_arrays_store_whole(out, "names", word.text, names, 1, &two, NULL));
  CHECK_OK(oc_arrays_store_whole(out, "none", OC_TYPE_LONG, NULL, 2, none, NULL));
  CHECK_OK(oc_arrays_store_text(out, "title", "a flame"));
  CHECK_OK(oc_arrays_store_text(out, "empty", ""));
  CHECK_OK(oc_arrays_store_whole(out, "zeros", OC_TYPE_TEXT, "a\0b", 1, &three, NULL));
  CHECK_OK(oc_arrays_flush(out));

  oc_arrays* in = open_container(OC_ARRAYS_READ);  // while the writer goes on
  int32_t step_there = 0;
  unsigned char flags_there[3];
  double _Complex z_there = 0;
  struct particle some_there[2];
  char names_there[2][5], text[16];
  size_t needed = 0;
  CHECK_OK(oc_arrays_load_whole(in, "step", OC_TYPE_INT, &step_there, sizeof step_there));
  CHECK(step_there == step);
  CHECK_OK(oc_arrays_load(in, "step", OC_TYPE_INT, &step_there, 0, NULL, NULL));
  CHECK_OK(oc_arrays_load_whole(in, "flags", OC_TYPE_BOOL, flags_there, sizeof flags_there));
  CHECK(memcmp(flags, flags_there, sizeof flags) == 0);
  CHECK_OK(oc_arrays_load_whole(in, "z", OC_TYPE_DOUBLE_COMPLEX, &z_there, sizeof z_there));
  CHECK(z_there == z);
  CHECK_OK(oc_arrays_load_whole(in, "particles", particle.text, some_there, sizeof some_there));
  CHECK(some_there[1].kind == 9 && some_there[1].charge == -1);
  CHECK_OK(oc_arrays_load_whole(in, "names", word.text, names_there, sizeof names_there));
  CHECK(memcmp(names, names_there, sizeof names) == 0);
  CHECK_OK(oc_arrays_load_whole(in, "none", OC_TYPE_INT64, NULL, 0));
  CHECK_OK(oc_arrays_load_text(in, "title", text, sizeof text, &needed));
  CHECK(strcmp(text, "a flame") == 0 && needed == 8);
  CHECK_OK(oc_arrays_load_text(in, "title", NULL, 0, &needed));
  CHECK_IS(-ERANGE, oc_arrays_load_text(in, "title", text, 7, NULL));
  CHECK_OK(oc_arrays_load_text(in, "empty", text, 1, &needed));
  CHECK(*text == 0 && needed == 1);
  CHECK_OK(oc_arrays_load_text(in, "zeros", text, sizeof text, &needed));
  CHECK(memcmp(text, "a\0b", 4) == 0 && needed == 4);
  const oc_array_view* value;
  CHECK_OK(oc_arrays_view(in, "step", OC_TYPE_INT, 0, NULL, NULL, &value));
  CHECK(*(const int32_t*)value->data == 12 && value->count == 1 && value->dim_count == 0);
  oc_array_view_free(value);
  CHECK_OK(oc_arrays_view(in, "none", OC_TYPE_INT64, 0, NULL, NULL, &value));
  CHECK(value->count == 0 && value->dims[1] == 5);
  oc_array_view_free(value);
  CHECK_OK(oc_arrays_close(in));
  CHECK_OK(oc_arrays_close(out));
}

static void names_and_attributes(void) {
  oc_arrays* out = open_container(OC_ARRAYS_UPDATE);
  char text[16];
  size_t needed;
  oc_names* names;
  CHECK_OK(oc_arrays_remove(out, "zeros"));
  CHECK_OK(oc_arrays_remove(out, "empty"));
  CHECK_OK(oc_arrays_rename(out, "flags", "signs"));
  CHECK_IS(-EEXIST, oc_arrays_rename(out, "signs", "step"));
  CHECK_OK(oc_arrays_set_attribute(out, "step", "unit", "1"));
  CHECK_OK(oc_arrays_set_attribute(out, "step", "note", "gone soon"));
  CHECK_OK(oc_arrays_set_attribute(out, "step", "note", NULL));
  CHECK_OK(oc_arrays_set_attribute(out, NULL, "made by", "arrays.c"));
  CHECK_OK(oc_arrays_close(out));
  oc_arrays* in = open_container(OC_ARRAYS_READ);
  CHECK_OK(oc_arrays_list(in, &names));
  const char* const wanted[] = {"names", "none", "particles", "signs", "step", "title", "z"};
  CHECK(oc_names_count(names) == 7 && oc_names_at(names, 7) == NULL);
  for (size_t i = 0; i < 7; ++i) CHECK(strcmp(oc_names_at(names, i), wanted[i]) == 0);
  oc_names_free(names);
  CHECK(oc_arrays_has(in, "signs") == 1 && oc_arrays_has(in, "flags") == 0);
  CHECK_OK(oc_arrays_attribute(in, "step", "unit", text, sizeof text, &needed));
  CHECK(strcmp(text, "1") == 0 && needed == 2);
  CHECK_OK(oc_arrays_attribute(in, "step", "note", text, sizeof text, &needed));
  CHECK(*text == 0 && needed == 1);
  CHECK_OK(oc_arrays_attribute(in, "", "made by", text, sizeof text, NULL));
  CHECK(strcmp(text, "arrays.c") == 0);
  CHECK_OK(oc_arrays_attributes(in, "step", &names));
  CHECK(oc_names_count(names) == 1 && strcmp(oc_names_at(names, 0), "unit") == 0);
  oc_names_free(names);
  CHECK_OK(oc_arrays_attributes(in, NULL, &names));
  CHECK(oc_names_count(names) == 1 && strcmp(oc_names_at(names, 0), "made by") == 0);
  oc_names_free(names);
  CHECK(strstr(oc_arrays_uri(in), "a.oca") != NULL);
  char about[256];
  CHECK_OK(oc_arrays_describe(in, about, sizeof about, NULL));
  CHECK(*about != 0);
  CHECK_OK(oc_arrays_close(in));
}

// It pages within the budget of the runtime, which stays for as long as somebody has it.
static void a_lent_runtime(void) {
  enum { kCount = 1 << 20 };  // 8 MiB through 2 MiB
  static uint64_t words[kCount];
  const uint64_t count = kCount;
  for (uint64_t i = 0; i < count; ++i) words[i] = word_of(i);
  oc_arrays* out = open_container(OC_ARRAYS_WRITE);
  CHECK_OK(oc_arrays_store_whole(out, "words", OC_TYPE_UINT64, words, 1, &count, NULL));
  CHECK_OK(oc_arrays_close(out));
  oc_arrays_options options;
  oc_arrays_options_init(&options);
  options.runtime = start(2 << 20);
  oc_arrays* in;
  const oc_array_view* view;
  CHECK_OK(oc_arrays_open(container_path, OC_ARRAYS_READ, NULL, &options, &in));
  CHECK_OK(oc_arrays_view(in, "words", OC_TYPE_UINT64, 0, NULL, NULL, &view));
  CHECK_IS(-EBUSY, oc_stop(options.runtime));
  CHECK_SAYS("oc_arrays_close, oc_array_view_free them first");
  CHECK_OK(oc_arrays_close(in));
  const uint64_t* seen = view->data;
  for (uint64_t i = 0; i < count; ++i) CHECK(seen[i] == word_of(i));
  oc_metric_values values;
  oc_metric_values_init(&values);
  CHECK_OK(oc_metrics(options.runtime, &values));
  CHECK(values.evictions > 0 && values.used_bytes_max <= 2 << 20);
  CHECK_IS(-EBUSY, oc_stop(options.runtime));
  oc_array_view_free(view);
  CHECK_OK(oc_stop(options.runtime));
}

// Another store, and a container in it that is made larger.
static void any_store(void) {
  char uri[700];
  snprintf(uri, sizeof uri, "versioned:%s/pool?object=run", folder_path);
  oc_arrays *out, *in;
  CHECK_OK(oc_arrays_open(uri, OC_ARRAYS_WRITE, NULL, NULL, &out));
  store_u(out, "u", NULL);
  CHECK_OK(oc_arrays_close(out));
  memset(whole, 0, sizeof whole);
  CHECK_OK(oc_arrays_open(uri, OC_ARRAYS_READ, NULL, NULL, &in));
  CHECK_OK(oc_arrays_load_whole(in, "u", OC_TYPE_DOUBLE, whole, sizeof whole));
  CHECK(whole[299][39] == value_at(299, 39) && whole[0][1] == value_at(0, 1));
  CHECK_OK(oc_arrays_close(in));
}

// One byte of the first array, which begins behind the journal.
static void damage_is_called_damage(void) {
  oc_arrays* out = open_container(OC_ARRAYS_WRITE);
  store_u(out, "u", NULL);
  CHECK_OK(oc_arrays_store_text(out, "title", "a flame"));
  CHECK_OK(oc_arrays_close(out));
  uint64_t damages = 9;
  oc_arrays* in = open_container(OC_ARRAYS_READ);
  CHECK_OK(oc_arrays_verify(in, NULL, &damages));
  CHECK(damages == 0);
  const int file = open(container_path, O_RDWR);
  unsigned char byte;
  CHECK(pread(file, &byte, 1, (256 << 10) + 77) == 1);
  byte ^= 1;
  CHECK(pwrite(file, &byte, 1, (256 << 10) + 77) == 1);
  close(file);
  CHECK_IS(-EIO, oc_arrays_verify(in, "u", &damages));
  CHECK_SAYS("'u' is damaged: bytes 0 to 95999, at 262144 of ");
  CHECK(damages == 1);
  CHECK_OK(oc_arrays_verify(in, "title", NULL));
  CHECK_OK(oc_arrays_close(in));
}

int main(void) {
  setenv("OUTCORE_BUDGET", "16M", 1);
  make_container_path();
  every_order_holds_the_same();
  tiles_are_compressed();
  what_is_compressed_is_replaced();
  views_show_elements_where_they_are();
  every_type_comes_back();
  names_and_attributes();
  a_lent_runtime();
  any_store();
  damage_is_called_damage();
  return 0;
}
