// Report: a page about recorded runs: their records (docs/reference/run-format.md) with places in
// the code by name, a verdict, and all that draws them, in one file that needs no other.
#pragma once

#include <string>
#include <vector>

#include "cli/json.h"
#include "outcore/result.h"
#include "sight/commands/symbols.h"
#include "sight/commands/verdict.h"

namespace outcore::cli {

// The records in a file, one a line. Lines that are not records are reported on standard error, and
// left out. Errors: those of the file; EINVAL (it has no record: an empty file, one cut short,
// another format or version).
Result<std::vector<Json>> read_records(const std::string& path);
// Adds functions, lines and the verdict.
void complete_record(Json* record, Symbols* symbols);
// The text of the page, as large as kPageBytesMax at most (page_fit.h).
std::string page_of(std::vector<Json> records);
// Reads the records and writes the page. Says where it is on standard error, and what was not
// known. `is_temporary`: the records are removed then, and the page has no word of their file.
Status write_report(const std::string& records_path, const std::string& page_path,
                    bool is_temporary = false);

}  // namespace outcore::cli
