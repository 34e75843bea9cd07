// Option table: the one list of options, from which come the parser, the messages and the
// documentation. Any thread; not on the fault path.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/runtime/resolved_options.h"
#include "outcore/options.h"
#include "outcore/result.h"

namespace outcore::runtime {

// What a value is read against.
struct OptionContext {
  const EnvironmentLookup& environment;
  const std::function<os::MemoryAvailable()>& available;
};

struct Option {
  std::string name;   // in the config file: "wait_max"; in the environment OUTCORE_WAIT_MAX
  std::string field;  // of RuntimeOptions: "wait_ms_max"
  std::string
      default_text;  // as it would be written, but in the angle brackets of "<…>" how it is found
  std::string values;  // what is accepted
  std::string help;

  // Reads a text, as of the environment or the config file. EINVAL: the text is no value; the
  // message has no place. `remark` becomes what there is to say of how the value was found; mostly
  // nothing.
  std::function<Status(const std::string& text, const OptionContext&, ResolvedOptions*,
                       std::string* remark)>
      read;
  // Takes the program's value, if it has set one.
  std::function<bool(const RuntimeOptions&, ResolvedOptions*)> take;
  // The value as a text that read() takes.
  std::function<std::string(const ResolvedOptions&)> write;
  // Why the value is out of range; empty if it is in range.
  std::function<std::string(const ResolvedOptions&)> refuse;

  std::string variable() const;  // "OUTCORE_WAIT_MAX"
};

const std::vector<Option>& option_table();
// nullptr if there is none.
const Option* find_option(std::string_view name);
// The name that was perhaps meant; empty if none is near.
std::string nearest_option(std::string_view name);

// docs/reference/options.md, all of it.
std::string option_table_markdown();

}  // namespace outcore::runtime
