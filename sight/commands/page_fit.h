// PageFit: makes records small enough for a page that can be mailed and opens at once. Where runs
// have too many files and processes for that, maps and timelines become coarser, then maps, places
// in the code, files and processes are left out; what waited least comes first. Records say what is
// missing. Any thread.
#pragma once

#include <cstddef>
#include <vector>

#include "cli/json.h"

namespace outcore::cli {

// Of the page as a whole.
constexpr size_t kPageBytesMax = 1'000'000;

// How many bytes the text of a record takes in a script of the page.
size_t script_bytes(const Json& json);

// Names of functions and modules, settings and all other texts have an end that a page can show;
// commands are whole, or left out. As all of the page has them.
void shorten_texts(Json* record);

// Until they take at most so many bytes of the page, or one record with one file is left. A record
// that lost something has `left_out`: `is_coarser`, `files`, `touched_bytes` (of those files); a
// file without its map `is_map_left_out`. Returns how many records are gone.
size_t fit_records(size_t bytes_max, std::vector<Json>* records);

}  // namespace outcore::cli
