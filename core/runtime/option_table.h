// Option table: the one list of options, from which the parser, the messages and the documentation
// are made. Any thread; not on the fault path.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/runtime/resolved_options.h"
#include "outcore/options.h"
#include "outcore/result.h"

namespace outcore::runtime {

// The surroundings in which a value is read.
struct OptionContext {
  const EnvironmentLookup& environment;
  const std::function<os::MemoryAvailable()>& available;
};

struct Option {
  std::string name;   // in the config file: "wait_max"; in the environment OUTCORE_WAIT_MAX
  std::string field;  // of RuntimeOptions: "wait_ms_max"
  // As it would be written; or in angle brackets, "<…>", how it is found.
  std::string default_text;
  std::string values;  // what is accepted
  std::string help;

  // Reads a text from the environment or the config file. EINVAL: the text is not a valid value;
  // the message does not say where it was. `remark` says how the value was found, if there is
  // something to say.
  std::function<Status(const std::string& text, const OptionContext&, ResolvedOptions*,
                       std::string* remark)>
      read;
  // Copies the value that the program has set; false if there is none. `remark` as in read().
  std::function<bool(const RuntimeOptions&, const OptionContext&, ResolvedOptions*,
                     std::string* remark)>
      copy_from_program;
  // The value as a text that read() accepts.
  std::function<std::string(const ResolvedOptions&)> write;
  // Why the value is out of range; empty if it is in range.
  std::function<std::string(const ResolvedOptions&)> refuse;

  std::string variable() const;  // "OUTCORE_WAIT_MAX"
};

const std::vector<Option>& option_table();
// nullptr if there is none.
const Option* find_option(std::string_view name);
// The option with the most similar name, which was probably meant; empty if none is similar.
std::string nearest_option(std::string_view name);

// The whole text of docs/reference/options.md.
std::string option_table_markdown();

}  // namespace outcore::runtime
