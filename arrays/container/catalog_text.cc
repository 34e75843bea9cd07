#include "arrays/container/catalog_text.h"

#include <cerrno>

#include "arrays/container/block_sums.h"
#include "core/base/units.h"
#include "core/packing/packer.h"

namespace outcore::arrays {
namespace {

using nlohmann::json;

// Names and texts may hold any bytes.
json binary(const std::string& text) {
  return json::binary(std::vector<uint8_t>(text.begin(), text.end()));
}
std::string text(const json& from) {
  const auto& bytes = from.get_binary();
  return {bytes.begin(), bytes.end()};
}

json encode_attributes(const std::map<std::string, std::string>& attributes) {
  json all = json::array();
  for (const auto& [key, value] : attributes) all.push_back({binary(key), binary(value)});
  return all;
}
std::map<std::string, std::string> decode_attributes(const json& from) {
  std::map<std::string, std::string> all;
  for (const json& one : from) all[text(one.at(0))] = text(one.at(1));
  return all;
}

json encode_entry(const Entry& entry) {
  json one = {{"id", entry.id},           {"name", binary(entry.name)},
              {"type", entry.type.name},  {"dims", entry.dims},
              {"offset", entry.offset},   {"bytes", entry.size_bytes},
              {"session", entry.session}, {"column", entry.order == Order::kColumn}};
  if (!entry.tiles.empty()) one["tiles"] = entry.tiles;
  if (entry.stamp != 0) one["stamp"] = entry.stamp;
  if (!entry.compress.empty()) one["compress"] = entry.compress;
  if (entry.block_bytes != 0) one["sums"] = entry.block_bytes;
  if (entry.are_sums_open) one["sums_open"] = true;
  if (!entry.value.empty()) one["value"] = json::binary(entry.value);
  if (!entry.attributes.empty()) one["attributes"] = encode_attributes(entry.attributes);
  return one;
}

// What is not of the right kind throws, as the library does; what makes no sense is !*is_good.
Entry decode_entry(const json& one, bool* is_good) {
  Entry entry;
  entry.id = one.at("id").get<uint64_t>();
  entry.name = text(one.at("name"));
  auto type = ArrayType::parse(one.at("type").get<std::string>());
  if (!type) {
    *is_good = false;
    return entry;
  }
  entry.type = std::move(type).value();
  entry.dims = one.at("dims").get<Dims>();
  entry.offset = one.at("offset").get<uint64_t>();
  entry.size_bytes = one.at("bytes").get<uint64_t>();
  entry.session = one.at("session").get<uint64_t>();
  entry.order = one.at("column").get<bool>() ? Order::kColumn : Order::kRow;
  if (one.contains("tiles")) entry.tiles = one.at("tiles").get<Dims>();
  if (one.contains("stamp")) entry.stamp = one.at("stamp").get<uint64_t>();
  if (one.contains("sums")) entry.block_bytes = one.at("sums").get<uint64_t>();
  if (one.contains("sums_open")) entry.are_sums_open = one.at("sums_open").get<bool>();
  if (one.contains("compress")) entry.compress = one.at("compress").get<std::string>();
  if (one.contains("value")) entry.value = one.at("value").get_binary();
  if (one.contains("attributes")) entry.attributes = decode_attributes(one.at("attributes"));
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

bool is_sound(const Entry& entry) {
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
  if (!has_room_for_sums(entry)) return false;
  return entry.size_bytes >= bytes_of(entry) && entry.offset % base::kSystemPage == 0;
}

namespace {

// The library reads what is nested by calling itself: forged depths would use up the stack.
class Depth : public nlohmann::json_sax<json> {
 public:
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return ++depth_ <= kDepthMax; }
  bool key(string_t&) override { return true; }
  bool end_object() override { return --depth_ >= 0; }
  bool start_array(std::size_t) override { return ++depth_ <= kDepthMax; }
  bool end_array() override { return --depth_ >= 0; }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }

 private:
  static constexpr int kDepthMax = 8;
  int depth_ = 0;
};

}  // namespace

std::vector<uint8_t> encode(const Change& change) {
  json record = json::object();
  for (const Entry& entry : change.put) record["put"].push_back(encode_entry(entry));
  if (!change.remove.empty()) record["remove"] = change.remove;
  if (change.has_session)
    record["session"] = {
        {"number", change.session.number},     {"size", change.session.size},
        {"joined", change.session.joined},     {"closed", change.session.closed},
        {"failed", change.session.has_failed}, {"in_place", change.session.is_in_place}};
  if (change.has_attributes) record["attributes"] = encode_attributes(change.attributes);
  return json::to_cbor(record);
}

Result<Change> decode(std::span<const uint8_t> record) try {
  Depth depth;
  if (!json::sax_parse(record.begin(), record.end(), &depth, json::input_format_t::cbor))
    return Error{EINVAL, "it cannot be read"};
  const json from = json::from_cbor(record.begin(), record.end());
  Change change;
  bool is_good = from.is_object();
  if (from.contains("put"))
    for (const json& one : from.at("put")) {
      change.put.push_back(decode_entry(one, &is_good));
      is_good = is_good && is_sound(change.put.back());
    }
  if (from.contains("remove")) change.remove = from.at("remove").get<std::vector<uint64_t>>();
  if (from.contains("session")) {
    const json& session = from.at("session");
    change.has_session = true;
    is_good = is_good && session.at("number").get<uint64_t>() <= kBytesMax;
    change.session = {session.at("number").get<uint64_t>(), session.at("size").get<unsigned>(),
                      session.at("joined").get<unsigned>(), session.at("closed").get<unsigned>(),
                      session.at("failed").get<bool>(),     session.at("in_place").get<bool>()};
  }
  if (from.contains("attributes")) {
    change.has_attributes = true;
    change.attributes = decode_attributes(from.at("attributes"));
  }
  if (!is_good) return Error{EINVAL, "an array that cannot be"};
  return change;
} catch (const std::exception& why) {
  return Error{EINVAL, why.what()};
}

}  // namespace outcore::arrays
