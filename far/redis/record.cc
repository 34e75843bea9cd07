#include "far/redis/record.h"

#include <algorithm>
#include <charconv>

#include "core/base/units.h"

namespace outcore::redis {
namespace {

constexpr uint64_t kTokenMax = (uint64_t{1} << 43) - 1;  // with its 20 bits of chance still a word
constexpr uint64_t kReplicasMax = 16;
constexpr size_t kShownBytes = 40, kPackingBytesMax = 40;

bool is_plain_text(const std::string& text) {
  return std::none_of(text.begin(), text.end(),
                      [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 127; });
}

// The text as a short line for a message.
std::string shown(const std::string& text) {
  std::string line = text.substr(0, kShownBytes);
  for (char& c : line)
    if (static_cast<unsigned char>(c) < ' ' || static_cast<unsigned char>(c) > 126) c = '?';
  return "'" + line + "'" + (text.size() > kShownBytes ? "…" : "");
}

// Reader: reads the fields of one record, and remembers the first one that is wrong.
class Reader {
 public:
  explicit Reader(const Value& value) : value_(value) {}

  const std::string& text(const char* field) {
    const std::string& found = value_.field(field);
    if (!is_plain_text(found)) refuse(field, "has control characters");
    return found;
  }
  // A number. If the field is missing and `is_optional`, it is 0.
  uint64_t count(const char* field, uint64_t most = kCountMax, bool is_optional = false) {
    const std::string& found = value_.field(field);
    if (found.empty() && is_optional) return 0;
    const std::optional<uint64_t> number = read_count(found, most);
    if (!number) refuse(field, "is not a number from 0 to " + std::to_string(most));
    return number.value_or(0);
  }
  uint64_t power(const char* field, uint64_t least, uint64_t most) {
    const uint64_t number = count(field);
    if (number < least || number > most || !base::is_power_of_two(number))
      refuse(field,
             "is not a power of two from " + std::to_string(least) + " to " + std::to_string(most));
    return number;
  }
  int64_t until_ms(const char* field) {
    return static_cast<int64_t>(count(field, kCountMax, true)) - static_cast<int64_t>(count("now"));
  }
  void refuse(const std::string& field, const std::string& why) {
    if (!damage_.empty()) return;
    const std::string& found = value_.field(field);
    damage_ = found.empty() ? "field '" + field + "' is missing or empty"
                            : "field '" + field + "' is " + shown(found) + ", which " + why;
  }
  const std::string& damage() const { return damage_; }

 private:
  const Value& value_;
  std::string damage_;
};

bool is_id(const std::string& text) {
  return text.size() == 16 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

}  // namespace

std::optional<uint64_t> read_count(std::string_view text, uint64_t most) {
  uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stopped != end || number > most) return std::nullopt;
  return number;
}

uint64_t fence_token_of(uint64_t token, uint64_t chance) { return token << 20 | chance; }

Record read_record(const Value& value, const std::string& name) {
  Record record;
  Reader reader(value);
  record.name = name;
  if (value.field("name") != name) reader.refuse("name", "is not the one it is listed by");
  record.id = value.field("id");
  if (!is_id(record.id)) reader.refuse("id", "is not made of 16 hexadecimal digits");
  record.size_bytes = reader.count("size");
  record.chunk_bytes = reader.power("chunk", kChunkBytesMin, kChunkBytesMax);
  record.part_count = static_cast<uint32_t>(reader.power("parts", 1, kPartsMax));
  record.replicas = static_cast<uint32_t>(reader.count("replicas", kReplicasMax));
  record.booked_bytes = reader.count("booked", kCountMax, true);
  record.token = reader.count("token", kTokenMax);
  record.fence_token = fence_token_of(record.token, reader.count("chance", kChanceMax, true));
  record.owner = reader.text("owner");
  record.lease_ms = reader.until_ms("lease");
  record.lifetime_ms = reader.count("lifetime", kCountMax, true);
  record.left_ms = reader.until_ms("deadline");
  record.is_new = reader.text("state") == "new";
  record.packing = reader.text("packing");
  if (record.packing.size() > kPackingBytesMax) reader.refuse("packing", "is too long");
  record.checksum = reader.text("checksum");
  const std::string& incomplete = value.field("incomplete");
  record.is_incomplete = !incomplete.empty() && incomplete == value.field("token");
  record.damage = reader.damage();
  return record;
}

std::string explain_damage(const std::string& name, const std::string& damage) {
  return "its record is damaged: " + damage +
         ": write the field as it was, or give the store up: remove the key oc:{catalog}:" + name +
         " and the name from the set oc:{catalog}";
}

}  // namespace outcore::redis
