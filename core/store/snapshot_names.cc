#include "core/store/snapshot_names.h"

#include <cstdio>
#include <map>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace outcore::store {
namespace {

constexpr size_t kPlainBytesMax = 64;

}  // namespace

std::string snapshot_prefix(const std::string& anchor_identity) {
  char hash[16];
  std::snprintf(hash, sizeof hash, "%08x",
                XXH32(anchor_identity.data(), anchor_identity.size(), 0));
  return std::string("outcore.") + hash + ".";
}

std::string plain_name(const std::string& name) {
  std::string text;
  for (const char c : name) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
    text += is_plain ? c : '_';
  }
  if (text == name && name.size() <= kPlainBytesMax) return text;
  char hash[24];
  std::snprintf(hash, sizeof hash, "_%016llx",
                static_cast<unsigned long long>(XXH3_64bits(name.data(), name.size())));
  return text.substr(0, kPlainBytesMax - 20) + hash;
}

// The note begins with the identity of its store, because copies of a store contain its notes, too.
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
