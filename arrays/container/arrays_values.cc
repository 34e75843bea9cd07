// Arrays by name: created, stored and loaded as a whole, examined, renamed, removed, described.
#include <algorithm>
#include <cerrno>
#include <charconv>

#include "arrays/container/arrays_impl.h"
#include "core/base/units.h"
#include "core/os/cancel_block.h"

namespace outcore {

using arrays::Entry;

namespace {

constexpr uint64_t kInlineBytesMax = 1024;
constexpr uint64_t kPackedBytesMin = 512;
constexpr size_t kNameBytesMax = 255;
constexpr uint32_t kElementBytesMax = 1 << 20;

struct OfValue final : arrays::Mapping {
  std::vector<uint8_t> bytes;
};

Status check_type(const std::string& attempted, const Entry& entry, const ArrayType& type) {
  if (entry.type == type) return {};
  return wrong(attempted, "it holds " + entry.type.name + ", not " + type.name);
}

Dims strides_of(const Entry& entry) {
  Dims strides(entry.dims.size());
  uint64_t stride = 1;
  for (size_t i = 0; i < strides.size(); ++i) {
    const size_t d = entry.order == Order::kRow ? strides.size() - 1 - i : i;
    strides[d] = stride;
    stride *= entry.dims[d];
  }
  return strides;
}

}  // namespace

Result<ArrayType> ArrayType::parse(std::string_view name) {
  const Error unknown{EINVAL,
                      "'" + std::string(name) +
                          "' is not a type of elements: write as NumPy does: <f8, <i4, |u1, "
                          "|b1, <c16, S12, V24"};
  if (name == "text" || name == "object") return ArrayType{std::string(name), 1};
  std::string_view rest = name;
  char order = '|';
  if (!rest.empty() && (rest[0] == '<' || rest[0] == '|' || rest[0] == '=')) {
    order = rest[0];
    rest.remove_prefix(1);
  }
  if (rest.size() < 2) return unknown;
  const char kind = rest[0];
  uint32_t size = 0;
  const auto [end, error] = std::from_chars(rest.data() + 1, rest.data() + rest.size(), size);
  if (error != std::errc() || end != rest.data() + rest.size() || size == 0) return unknown;
  const auto is_one_of = [size](std::initializer_list<uint32_t> sizes) {
    return std::find(sizes.begin(), sizes.end(), size) != sizes.end();
  };
  const bool is_known = kind == 'f'                  ? is_one_of({2, 4, 8, 16})
                        : kind == 'c'                ? is_one_of({8, 16, 32})
                        : kind == 'b'                ? size == 1
                        : kind == 'i' || kind == 'u' ? is_one_of({1, 2, 4, 8})
                        : kind == 'S' || kind == 'V' ? size <= kElementBytesMax
                                                     : false;
  if (!is_known) return unknown;
  const std::string text = std::string(1, kind) + std::to_string(size);
  if (kind == 'S' || kind == 'V') return ArrayType{text, size};
  if (order == '|' && size > 1) return unknown;  // the order of its bytes is not given
  return ArrayType{(size == 1 ? "|" : "<") + text, size};
}

namespace arrays {

Status check_name(const std::string& attempted, const std::string& name) {
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 32 || c == 127; };
  if (!name.empty() && name.size() <= kNameBytesMax &&
      std::none_of(name.begin(), name.end(), is_control))
    return {};
  return wrong(name.size() < kNameBytesMax ? "name an array" : attempted,
               "a name has 1 to 255 bytes, and no control characters");
}

}  // namespace arrays

namespace {

// Compressing tiles of a few bytes gains nothing, and a single value has no tiles.
Status compress_entry(const std::string& attempted, const std::string& compress, Entry* entry) {
  if (compress.empty()) return {};
  const auto packing = packing::Packing::parse(compress);
  if (!packing) return wrong(attempted, packing.message());
  if (packing->kind == packing::Packing::Kind::kNone || entry->dims.empty()) return {};
  const Dims tiles = entry->tiles.empty()
                         ? arrays::default_tiles(entry->dims, entry->type.size_bytes)
                         : entry->tiles;
  const auto in_tile = arrays::count_of(tiles, entry->type.size_bytes);
  if (in_tile && in_tile.value() * entry->type.size_bytes < kPackedBytesMin) return {};
  entry->tiles = tiles;
  if (arrays::bytes_of_tile(*entry) > arrays::kPackedTileBytesMax)
    return wrong(attempted, "tiles of " + arrays::text_of(entry->tiles) +
                                " are too large to be compressed: at most " +
                                base::format_bytes(arrays::kPackedTileBytesMax) + " each");
  entry->compress = packing->text();
  return {};
}

// Makes and checks an entry, except for its place.
Result<Entry> make_entry(const std::string& attempted, const std::string& name,
                         const ArrayType& type, const Dims& dims, const ArrayOptions& options) {
  if (Status s = arrays::check_name(attempted, name); !s) return s.error();
  const auto known = ArrayType::parse(type.name);
  if (!known) return wrong(attempted, known.message());
  if (known->size_bytes != type.size_bytes)
    return wrong(attempted, "an element of " + type.name + " has " +
                                std::to_string(known->size_bytes) + " bytes, not " +
                                std::to_string(type.size_bytes));
  if (!arrays::has_right_rank(known.value(), dims))
    return wrong(attempted, type.name +
                                " is one value of bytes: give it one dimension, how many they "
                                "are, not " +
                                std::to_string(dims.size()));
  Entry entry;
  entry.name = name;
  entry.type = known.value();
  entry.dims = dims;
  entry.order = options.order;
  entry.tiles = options.tiles;
  if (const auto count = arrays::count_of(dims, entry.type.size_bytes); !count)
    return wrong(attempted, count.message());
  if (!entry.tiles.empty()) {
    if (entry.tiles.size() != dims.size() ||
        std::count(entry.tiles.begin(), entry.tiles.end(), uint64_t{0}) != 0)
      return wrong(attempted, "tiles of " + arrays::text_of(entry.tiles) + " do not fit " +
                                  arrays::text_of(dims) + ": as many dimensions, each at least 1");
    for (size_t d = 0; d < dims.size(); ++d)
      entry.tiles[d] = std::max<uint64_t>(std::min(entry.tiles[d], dims[d]), 1);
  }
  if (Status s = compress_entry(attempted, options.compress, &entry); !s) return s.error();
  if (arrays::bytes_of(entry) > arrays::kBytesMax)
    return wrong(attempted, "its tiles are more than 4 EiB");
  return entry;
}

// The entry of an array that is to be written, for which there is a packer. `impl`: Arrays::Impl.
template <typename Impl>
Result<Entry> begin_new(const Impl& impl, const std::string& attempted, const std::string& name,
                        const ArrayType& type, const Dims& dims, const ArrayOptions& options) {
  if (Status s = impl.check_writable(attempted); !s) return s.error();
  auto made = make_entry(attempted, name, type, dims, options);
  if (!made) return made.error();
  if (Status s = impl.check_packer(attempted, made.value()); !s) return s.error();
  return made;
}

bool is_alike(const Entry& a, const Entry& b) {
  return a.type == b.type && a.dims == b.dims && a.order == b.order && a.tiles == b.tiles &&
         a.compress == b.compress;
}

}  // namespace

Status Arrays::alloc(const std::string& name, const ArrayType& type, const Dims& dims,
                     const ArrayOptions& options) {
  const os::CancelBlock uncancelled;
  const std::string attempted = "make room for '" + name + "'";
  auto made = begin_new(*impl_, attempted, name, type, dims, options);
  if (!made) return made.status();
  Entry& entry = made.value();
  const Impl::CatalogLock lock(*impl_);
  if (!lock.status().ok()) return impl_->noted(lock.status());
  const Entry* const there = impl_->catalog->find(name, impl_->session);
  if (there != nullptr && !(there->session == 0 && options.may_replace)) {
    if (there->session != 0 && is_alike(*there, entry)) return {};
    const std::string is = there->session != 0 ? " is being written" : " is there";
    return wrong(attempted,
                 "an array of " + arrays::text_of(there->dims) + " " + there->type.name + is +
                     (there->session != 0 ? ": all processes have to ask for the same"
                                          : ": store into it, remove it, or take another name"),
                 EEXIST);
  }
  return impl_->make(attempted, &entry, arrays::bytes_of(entry), {});
}

Status Arrays::store_box(const std::string& name, const ArrayType& type, const void* data,
                         const Dims& offsets, const Dims& dims) {
  const os::CancelBlock uncancelled;
  const std::string attempted = "store '" + name + "'";
  const std::shared_lock<std::shared_mutex> travelling(impl_->traffic);
  if (Status s = impl_->check_writable(attempted); !s) return s;
  const auto entry = impl_->find(attempted, name);
  if (!entry) return entry.status();
  if (Status s = check_type(attempted, entry.value(), type); !s) return s;
  return impl_->write_box(attempted, entry.value(), data, offsets, dims);
}

// A finished array of this name stays until the new one is finished; what this session has stored
// under the name before is removed.
Status Arrays::store_whole(const std::string& name, const ArrayType& type, const Dims& dims,
                           const void* data, const ArrayOptions& options) {
  const os::CancelBlock uncancelled;
  const std::string attempted = "store '" + name + "'";
  auto made = begin_new(*impl_, attempted, name, type, dims, options);
  if (!made) return made.status();
  Entry& entry = made.value();
  const uint64_t bytes = arrays::bytes_of(entry);
  const std::unique_lock<std::shared_mutex> alone(impl_->traffic);
  if (Status s = impl_->check_writable(attempted); !s) return s;
  {
    const Impl::CatalogLock lock(*impl_);
    if (!lock.status().ok()) return impl_->noted(lock.status());
    std::vector<uint64_t> gone;
    bool is_there = false;
    for (const auto& [id, there] : impl_->catalog->entries()) {
      if (there.name != name || there.session != impl_->session) continue;
      is_there = is_alike(there, entry) && !there.is_inline();
      if (is_there)
        entry = there;
      else
        gone.push_back(id);
    }
    if (bytes <= kInlineBytesMax && entry.tiles.empty() && !is_there) {
      const auto* const from = static_cast<const uint8_t*>(data);
      entry.value.assign(from, from + bytes);
      return impl_->make(attempted, &entry, 0, gone);
    }
    if (!is_there)
      if (Status s = impl_->make(attempted, &entry, bytes, gone); !s) return s;
    if (impl_->together.size == 1) impl_->forget_sums(entry.id);
  }
  return impl_->write_box(attempted, entry, data, Dims(dims.size(), 0), dims);
}

Status Arrays::store(const std::string& name, std::string_view text) {
  return store_whole(name, {"text", 1}, {text.size()}, text.data());
}

Result<std::string> Arrays::load_text(const std::string& name) const {
  std::string text;
  const Status s = load_whole(name, {}, [&](const ArrayInfo& info) -> Result<void*> {
    if (info.type.name != "text" && info.type.name != "object")
      return wrong("load '" + name + "'", "it holds " + info.type.name + ", not text");
    if (!arrays::has_right_rank(info.type, info.dims))
      return wrong("load '" + name + "'", "it is " + arrays::text_of(info.dims) + ", no text");
    text.resize(info.dims.front());
    return static_cast<void*>(text.data());
  });
  if (!s.ok()) return s.error();
  return text;
}

Status Arrays::load_whole(const std::string& name, const ArrayType& type,
                          const std::function<Result<void*>(const ArrayInfo& info)>& room) const {
  const os::CancelBlock uncancelled;
  const std::string attempted = "load '" + name + "'";
  const std::shared_lock<std::shared_mutex> travelling(impl_->traffic);
  const auto entry = impl_->find(attempted, name);
  if (!entry) {
    const auto there = impl_->elsewhere(name, entry.error());
    return there ? there.value()->load_whole(name, type, room) : there.status();
  }
  if (!type.name.empty())
    if (Status s = check_type(attempted, entry.value(), type); !s) return s;
  const auto into = room(arrays::info_of(entry.value()));
  if (!into) return into.status();
  if (std::count(entry->dims.begin(), entry->dims.end(), uint64_t{0}) != 0) return {};
  const Dims first(entry->dims.size(), 0);
  const Status s = impl_->read_box(entry.value(), into.value(), first, entry->dims);
  return s.ok() ? s : wrong(attempted, s.message(), s.code());
}

Status Arrays::load_box(const std::string& name, const ArrayType& type, void* into,
                        const Dims& offsets, const Dims& dims) const {
  const os::CancelBlock uncancelled;
  const std::string attempted = "load '" + name + "'";
  const std::shared_lock<std::shared_mutex> travelling(impl_->traffic);
  const auto entry = impl_->find(attempted, name);
  if (!entry) {
    const auto there = impl_->elsewhere(name, entry.error());
    return there ? there.value()->load_box(name, type, into, offsets, dims) : there.status();
  }
  if (Status s = check_type(attempted, entry.value(), type); !s) return s;
  if (Status s = arrays::check_box(attempted, entry->dims, offsets, dims); !s) return s;
  const auto count = arrays::count_of(dims, type.size_bytes);
  if (!count) return wrong(attempted, count.message());
  if (count.value() == 0) return {};
  const Status s = impl_->read_box(entry.value(), into, offsets, dims);
  return s.ok() ? s : wrong(attempted, s.message(), s.code());
}

Status Arrays::view_box(const std::string& name, const ArrayType& type, const Dims& offsets,
                        const Dims& dims, Dims* view_dims, std::vector<uint64_t>* strides,
                        const void** data, std::shared_ptr<arrays::Mapping>* mapping) const {
  const os::CancelBlock uncancelled;
  const std::string attempted = "view '" + name + "'";
  const std::shared_lock<std::shared_mutex> travelling(impl_->traffic);
  const auto found = impl_->find(attempted, name);
  if (!found) {
    const auto there = impl_->elsewhere(name, found.error());
    if (!there) return there.status();
    return there.value()->view_box(name, type, offsets, dims, view_dims, strides, data, mapping);
  }
  const Entry& entry = found.value();
  if (Status s = check_type(attempted, entry, type); !s) return s;
  const Dims at = offsets.empty() ? Dims(entry.dims.size(), 0) : offsets;
  *view_dims = dims.empty() && offsets.empty() ? entry.dims : dims;
  if (Status s = arrays::check_box(attempted, entry.dims, at, *view_dims); !s) return s;
  if (!entry.tiles.empty())
    return wrong(attempted, "it is kept in tiles, which no strides can show: load it", ENOTSUP);
  *strides = strides_of(entry);
  if (entry.is_inline()) {
    auto value = std::make_shared<OfValue>();
    value->bytes = entry.value;
    value->data = reinterpret_cast<const std::byte*>(value->bytes.data());
    *mapping = std::move(value);
  }
  uint64_t first = 0, count = 1;
  for (size_t d = 0; d < at.size(); ++d) {
    first += at[d] * (*strides)[d];
    count *= (*view_dims)[d];
  }
  uint64_t last = first;
  for (size_t d = 0; d < at.size() && count > 0; ++d) last += ((*view_dims)[d] - 1) * (*strides)[d];
  const uint64_t size = type.size_bytes;
  if (count == 0 && !entry.is_inline()) return {};
  if (entry.is_inline()) {
    *data = (*mapping)->data + (count == 0 ? 0 : first * size);
    return {};
  }
  const uint64_t from = base::round_down(entry.offset + first * size, base::kSystemPage);
  const uint64_t to = base::round_up(entry.offset + (last + 1) * size, base::kSystemPage);
  auto mapped = impl_->storage->map(impl_->storage, from, to - from);
  if (!mapped) return wrong(attempted, mapped.message(), mapped.code());
  *mapping = std::move(mapped).value();
  *data = (*mapping)->data + (entry.offset + first * size - from);
  return {};
}

}  // namespace outcore
