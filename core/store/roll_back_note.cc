#include "core/store/roll_back_note.h"

#include <map>

namespace outcore::store {

// The note begins with whose it is: copies of a store have its notes, too.
int find_roll_back(Store& store, std::string* to) {
  std::map<std::string, std::string> notes;
  const int error = store.snapshots()->list_notes(kRollingBackNote, &notes);
  const auto found = notes.find(kRollingBackNote);
  if (error != 0 || found == notes.end()) return error;
  const size_t end = found->second.find('\n');
  if (found->second.substr(0, end) == store.identity() && end != std::string::npos)
    *to = found->second.substr(end + 1);
  return 0;
}

}  // namespace outcore::store
