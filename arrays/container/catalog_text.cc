#include "arrays/container/catalog_text.h"

#include <algorithm>
#include <cerrno>

#include "arrays/container/block_sums.h"
#include "arrays/container/packed_tiles.h"
#include "core/base/json_fields.h"
#include "core/base/units.h"
#include "core/packing/packer.h"

namespace outcore::arrays {
namespace {

using base::Json;
using base::JsonFields;

// Names and texts may contain any bytes.
Json binary(const std::string& text) { return Json::binary({text.begin(), text.end()}); }
std::string text(const Json::Bytes& bytes) { return {bytes.begin(), bytes.end()}; }

Json encode_attributes(const std::map<std::string, std::string>& attributes) {
  Json all = Json::array();
  for (const auto& [key, value] : attributes)
    all.push_back(Json::array({binary(key), binary(value)}));
  return all;
}
std::map<std::string, std::string> decode_attributes(JsonFields& fields) {
  std::map<std::string, std::string> all;
  for (const Json& one : fields.items("attributes")) {
    const auto key = one[0].as<Json::Bytes>(), value = one[1].as<Json::Bytes>();
    if (key && value)
      all[text(*key)] = text(*value);
    else
      fields.refuse("attributes", "pairs of bytes");
  }
  return all;
}

Json encode_entry(const Entry& entry) {
  Json one = {{"id", entry.id},           {"name", binary(entry.name)},
              {"type", entry.type.name},  {"dims", entry.dims},
              {"offset", entry.offset},   {"bytes", entry.size_bytes},
              {"session", entry.session}, {"column", entry.order == Order::kColumn}};
  if (!entry.tiles.empty()) one["tiles"] = entry.tiles;
  if (entry.stamp != 0) one["stamp"] = entry.stamp;
  if (!entry.compress.empty()) one["compress"] = entry.compress;
  if (entry.block_bytes != 0) one["sums"] = entry.block_bytes;
  if (entry.are_sums_open) one["sums_open"] = true;
  if (!entry.value.empty()) one["value"] = Json::binary(entry.value);
  if (!entry.attributes.empty()) one["attributes"] = encode_attributes(entry.attributes);
  return one;
}

Result<Entry> decode_entry(const Json& from) {
  JsonFields fields(from);
  Entry entry;
  entry.id = fields.get<uint64_t>("id");
  entry.name = text(fields.get<Json::Bytes>("name"));
  auto type = ArrayType::parse(fields.get<std::string>("type"));
  entry.dims = fields.get<Dims>("dims");
  entry.offset = fields.get<uint64_t>("offset");
  entry.size_bytes = fields.get<uint64_t>("bytes");
  entry.session = fields.get<uint64_t>("session");
  entry.order = fields.get<bool>("column") ? Order::kColumn : Order::kRow;
  entry.tiles = fields.get("tiles", Dims());
  entry.stamp = fields.get("stamp", uint64_t{0});
  entry.block_bytes = fields.get("sums", uint64_t{0});
  entry.are_sums_open = fields.get("sums_open", false);
  entry.compress = fields.get("compress", std::string());
  entry.value = fields.get("value", Json::Bytes());
  if (fields.contains("attributes")) entry.attributes = decode_attributes(fields);
  if (!fields.ok()) return fields.error();
  if (!type) return type.error();
  entry.type = std::move(type).value();
  if (!is_sound(entry)) return Error{EINVAL, "an array that cannot be"};
  return entry;
}

bool has_room_for_sums(const Entry& entry) {
  if (entry.block_bytes == 0) return true;
  const uint64_t bytes = bytes_of(entry);
  if (!entry.compress.empty() || bytes > kBytesMax || entry.block_bytes != block_bytes_for(bytes))
    return false;
  return sums_offset(entry) - entry.offset + sums_bytes(block_count(entry)) <= entry.size_bytes;
}

bool is_packing(const std::string& compress) {
  const auto packing = packing::Packing::parse(compress);
  return packing.ok() && packing->kind != packing::Packing::Kind::kNone;
}

}  // namespace

uint64_t bytes_of_tile(const Entry& entry) {
  const auto count = count_of(entry.tiles, entry.type.size_bytes);
  return count ? count.value() * entry.type.size_bytes : kBytesMax + 1;
}

uint64_t bytes_of(const Entry& entry) {
  if (!entry.compress.empty()) {
    const uint64_t tile = bytes_of_tile(entry);
    uint64_t bytes = tile > kPackedTileBytesMax ? kBytesMax + 1 : slot_bytes(tile);
    for (size_t d = 0; d < entry.dims.size(); ++d) {
      const uint64_t across =
          entry.dims[d] / entry.tiles[d] + (entry.dims[d] % entry.tiles[d] != 0 ? 1 : 0);
      if (__builtin_mul_overflow(bytes, across, &bytes)) return kBytesMax + 1;
    }
    return std::min(bytes, kBytesMax + 1);
  }
  Dims kept = entry.dims;
  for (size_t d = 0; d < entry.tiles.size(); ++d) kept[d] = base::round_up(kept[d], entry.tiles[d]);
  const auto count = count_of(kept, entry.type.size_bytes);
  return count ? count.value() * entry.type.size_bytes : kBytesMax + 1;
}

bool has_right_rank(const ArrayType& type, const Dims& dims) {
  return (type.name != "text" && type.name != "object") || dims.size() == 1;
}

bool is_sound(const Entry& entry) {
  if (!has_right_rank(entry.type, entry.dims)) return false;
  if (!entry.tiles.empty() && entry.tiles.size() != entry.dims.size()) return false;
  for (const uint64_t tile : entry.tiles)
    if (tile == 0 || tile > kBytesMax) return false;
  if (!entry.compress.empty() &&
      (entry.tiles.empty() || !is_packing(entry.compress) || !entry.value.empty()))
    return false;
  const auto count = count_of(entry.dims, entry.type.size_bytes);
  if (entry.name.empty() || entry.name.size() > 255) return false;
  for (const char c : entry.name)
    if (static_cast<unsigned char>(c) < 32 || c == 127) return false;
  if (entry.id == 0 || entry.id > kBytesMax) return false;
  if (!count || entry.offset > kBytesMax || entry.size_bytes > kBytesMax) return false;
  if (entry.is_inline())
    return entry.block_bytes == 0 && entry.value.size() == count.value() * entry.type.size_bytes;
  if (count.value() == 0) return false;  // what has no elements has no place either
  if (!has_room_for_sums(entry)) return false;
  return entry.size_bytes >= bytes_of(entry) && entry.offset % base::kSystemPage == 0;
}

std::vector<uint8_t> encode(const Change& change) {
  Json record = Json::object();
  for (const Entry& entry : change.put) record["put"].push_back(encode_entry(entry));
  if (!change.remove.empty()) record["remove"] = change.remove;
  if (change.has_session)
    record["session"] = {
        {"number", change.session.number},     {"size", change.session.size},
        {"joined", change.session.joined},     {"closed", change.session.closed},
        {"failed", change.session.has_failed}, {"in_place", change.session.is_in_place}};
  if (change.has_attributes) record["attributes"] = encode_attributes(change.attributes);
  return record.to_cbor();
}

Result<Change> decode(std::span<const uint8_t> record) {
  const auto from = Json::from_cbor(record.data(), record.size());
  if (!from) return from.error();
  JsonFields fields(from.value());
  Change change;
  if (fields.contains("put"))
    for (const Json& one : fields.items("put")) {
      auto entry = decode_entry(one);
      if (!entry) return entry.error();
      change.put.push_back(std::move(entry).value());
    }
  change.remove = fields.get("remove", std::vector<uint64_t>());
  change.has_attributes = fields.contains("attributes");
  if (change.has_attributes) change.attributes = decode_attributes(fields);
  change.has_session = fields.contains("session");
  if (!fields.ok()) return fields.error();
  if (!change.has_session) return change;
  JsonFields session(from.value()["session"]);
  change.session = {session.get<uint64_t>("number"), session.get<unsigned>("size"),
                    session.get<unsigned>("joined"), session.get<unsigned>("closed"),
                    session.get<bool>("failed"),     session.get<bool>("in_place")};
  if (change.session.number > kBytesMax)
    session.refuse("number", JsonFields::whole_number(0, kBytesMax));
  if (!session.ok()) return session.error();
  return change;
}

}  // namespace outcore::arrays
