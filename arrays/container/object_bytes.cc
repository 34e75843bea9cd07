#include "outcore/object_bytes.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cerrno>
#include <cstring>

namespace outcore::arrays {
namespace {

constexpr char kObjectMagic[8] = {'O', 'U', 'T', 'C', 'O', 'B', 'J', '\n'};
constexpr uint32_t kObjectVersion = 1;
constexpr size_t kTypeBytesMax = 64 << 10;

// The bytes begin with it; little-endian. The name of the type follows, then the archive.
struct Head {
  char magic[8];
  uint32_t version;
  uint32_t type_bytes;
  uint64_t shape;
  uint64_t sum;  // of everything before it and behind it
};
static_assert(sizeof(Head) == 32);

uint64_t sum_of(const Head& head, std::string_view rest) {
  return XXH3_64bits_withSeed(rest.data(), rest.size(), XXH3_64bits(&head, offsetof(Head, sum)));
}

Error wrong(const std::string& name, const std::string& why, int code = EINVAL) {
  return {code, "load '" + name + "': " + why};
}

Error damaged(const std::string& name, const std::string& why) {
  return wrong(name, "the object is damaged (" + why + "): go back to a copy of the container",
               EIO);
}

}  // namespace

std::string one_line(std::string_view text) {
  std::string line(text);
  for (char& c : line)
    if (static_cast<unsigned char>(c) < 32 || c == 127) c = ' ';
  return line;
}

std::string object_head(std::string_view type) {
  Head head{};
  std::memcpy(head.magic, kObjectMagic, sizeof kObjectMagic);
  head.version = kObjectVersion;
  head.type_bytes = static_cast<uint32_t>(type.size());
  return std::string(reinterpret_cast<const char*>(&head), sizeof head).append(type);
}

Status store_object_bytes(Arrays& arrays, const std::string& name, std::string* bytes,
                          uint64_t shape) {
  Head head{};
  std::memcpy(&head, bytes->data(), sizeof head);
  if (head.type_bytes > kTypeBytesMax)
    return Error{EINVAL, "store '" + name +
                             "': the name of its type has more than 64 KiB: give it a shorter one "
                             "by outcore::ObjectName"};
  head.shape = shape;
  head.sum = sum_of(head, std::string_view(*bytes).substr(sizeof head));
  std::memcpy(bytes->data(), &head, sizeof head);
  return arrays.store_whole(name, {"object", 1}, {bytes->size()}, bytes->data());
}

Result<ObjectBytes> load_object_bytes(const Arrays& arrays, const std::string& name,
                                      std::string_view type) {
  const auto kept = arrays.type_of(name);
  if (!kept) return Error{kept.code(), "load '" + name + "': " + kept.message()};
  if (kept->name != "object")
    return wrong(name, "it holds " + kept->name + ", not an object: load it as what it is");
  auto bytes = arrays.load<std::string>(name);
  if (!bytes) return bytes.error();
  ObjectBytes object;
  object.bytes = std::move(bytes).value();
  Head head{};
  if (object.bytes.size() < sizeof head) return damaged(name, "it has no head");
  std::memcpy(&head, object.bytes.data(), sizeof head);
  if (std::memcmp(head.magic, kObjectMagic, sizeof kObjectMagic) != 0)
    return wrong(name, "it is not an object of outcore::store_object: load it as text");
  if (head.version > kObjectVersion)
    return wrong(name, "it has version " + std::to_string(head.version) +
                           " of the format, newer than this Outcore's " +
                           std::to_string(kObjectVersion) + ": take a newer one");
  const std::string_view rest = std::string_view(object.bytes).substr(sizeof head);
  if (head.sum != sum_of(head, rest)) return damaged(name, "its checksum differs");
  if (head.type_bytes > rest.size()) return damaged(name, "it ends within its type's name");
  const std::string_view its_type = rest.substr(0, head.type_bytes);
  if (its_type != type)
    return wrong(name, "it holds " + one_line(its_type) + ", not " + std::string(type));
  object.archive_at = sizeof head + head.type_bytes;
  object.shape = head.shape;
  return object;
}

}  // namespace outcore::arrays
