#include "checkpoints/store/snapshot_catalog.h"

#include <algorithm>

#include <cerrno>
#include <ctime>
#include <map>

#include "core/base/assert.h"
#include "core/base/error.h"
#include "core/base/json_fields.h"
#include "core/store/uri.h"

namespace outcore::store {
namespace {

constexpr const char* kEntryNotes = "checkpoint.";
constexpr size_t kNameBytesMax = 255, kCommentBytesMax = 4096;

constexpr const char* kStates[] = {"making", "whole", "removed"};

// Names may contain any bytes, JSON may not.
std::string text_of(const SnapshotEntry& entry, const std::string& anchor) {
  OC_CHECK(static_cast<size_t>(entry.state) < std::size(kStates));
  base::Json objects = base::Json::array();
  for (const SnapshotObject& one : entry.objects)
    objects.push_back({{"name", encode_percents(one.name)},
                       {"place", encode_percents(one.place)},
                       {"size_bytes", one.size_bytes}});
  return base::Json{{"version", 1},
                    {"anchor", encode_percents(anchor)},
                    {"state", kStates[static_cast<size_t>(entry.state)]},
                    {"number", entry.number},
                    {"name", encode_percents(entry.name)},
                    {"comment", encode_percents(entry.comment)},
                    {"time_s", entry.time_s},
                    {"objects", objects}}
      .dump();
}

// An entry without a number: the note is a copy from another anchor.
Result<SnapshotEntry> entry_of(const std::string& text, const std::string& anchor) {
  const Error damaged{EIO, "its note is damaged"};
  const base::Json json = base::Json::parse_or_null(text);
  base::JsonFields fields(json);
  if (fields.get<uint64_t>("version") != 1 && fields.ok())
    return Error{ENOTSUP, "a newer version of Outcore has made it: take that one"};
  bool is_text = true;
  const auto string = [&](base::JsonFields& of, const char* key) {
    std::string decoded;
    is_text = decode_percents(of.get<std::string>(key), decoded) && is_text;
    return decoded;
  };
  SnapshotEntry entry;
  if (string(fields, "anchor") != anchor && fields.ok()) return entry;
  entry.number = fields.get<uint32_t>("number");
  entry.name = string(fields, "name");
  entry.comment = string(fields, "comment");
  entry.time_s = fields.get<int64_t>("time_s");
  for (const base::Json& one : fields.items("objects")) {
    base::JsonFields of(one);
    entry.objects.push_back(
        {string(of, "name"), string(of, "place"), of.get<uint64_t>("size_bytes")});
    if (!of.ok()) return damaged;
  }
  const auto state = std::find(std::begin(kStates), std::end(kStates), string(fields, "state"));
  if (!fields.ok() || !is_text || state == std::end(kStates) || entry.number == 0) return damaged;
  entry.state = static_cast<SnapshotEntry::State>(state - std::begin(kStates));
  return entry;
}

}  // namespace

SnapshotState& SnapshotState::of(Store& store) {
  static std::mutex making;
  const std::lock_guard<std::mutex> guard(making);
  OC_CHECK(store.snapshots() != nullptr);
  std::shared_ptr<void>& state = store.snapshots()->catalog_state;
  if (state == nullptr) state = std::make_shared<SnapshotState>();
  return *static_cast<SnapshotState*>(state.get());
}

CheckpointInfo info_of(const SnapshotEntry& entry) {
  CheckpointInfo info;
  info.name = entry.name;
  info.comment = entry.comment;
  info.number = entry.number;
  info.time_s = entry.time_s;
  for (const SnapshotObject& one : entry.objects) info.size_bytes += one.size_bytes;
  return info;
}

Result<std::shared_ptr<Store>> SnapshotCatalog::open_by_uri(const std::string& uri,
                                                            const OpenOptions& options) {
  const auto parsed = parse_uri(uri);
  if (!parsed || parsed->find("interrupted") != nullptr) return open_store(uri, options);
  return open_store(uri + (parsed->parameters.empty() ? "?" : "&") + "interrupted=yes", options);
}

SnapshotCatalog::SnapshotCatalog(std::shared_ptr<Store> anchor, Open open)
    : anchor_(std::move(anchor)), open_(std::move(open)) {
  OC_CHECK(anchor_ != nullptr && anchor_->snapshots() != nullptr);
  OC_CHECK(open_ != nullptr);
  prefix_ = snapshot_prefix(anchor_->identity());
}

Result<SnapshotCatalog> SnapshotCatalog::open(const std::string& uri, bool is_writable, Open open) {
  OpenOptions options;
  options.is_writable = is_writable;
  auto anchor = open(uri, options);
  if (!anchor) return anchor.error();
  if (anchor.value()->snapshots() == nullptr)
    return Error{EINVAL, "'" + uri + "' has no checkpoints: its store has no snapshots"};
  return SnapshotCatalog(std::move(anchor).value(), std::move(open));
}

Error SnapshotCatalog::failed(int error, const std::string& attempted,
                              const std::string& remedy) const {
  return base::system_error(error, what() + ": " + attempted, remedy);
}

std::string SnapshotCatalog::uri_at(const std::string& place) const {
  const std::string parameters = snapshots().parameters();
  return place + (parameters.empty() ? "" : "?" + parameters);
}

std::string SnapshotCatalog::uri_of(const SnapshotObject& object) const {
  return uri_at(object.place);
}

std::string SnapshotCatalog::uri_of(const SnapshotEntry& entry,
                                    const SnapshotObject& object) const {
  return uri_at(object.place + "@" + snapshot_name(entry.number));
}

std::string SnapshotCatalog::snapshot_name(uint32_t number) const {
  return prefix_ + std::to_string(number);
}

Result<std::shared_ptr<Store>> SnapshotCatalog::open_place(const std::string& place,
                                                           bool is_writable) const {
  if (place == snapshots().place()) return std::shared_ptr<Store>(anchor_);
  OpenOptions options;
  options.is_writable = is_writable;
  return open_(uri_at(place), options);
}

// A store of this name that belongs to somebody else is not touched.
Result<std::shared_ptr<Store>> SnapshotCatalog::open_copy(const std::string& place,
                                                          const std::string& object,
                                                          uint64_t size_bytes) const {
  const std::string whose = anchor_->identity() + " " + encode_percents(object);
  const std::string parameters = snapshots().copy_parameters();
  const std::string uri = place + (parameters.empty() ? "" : "?" + parameters);
  OpenOptions options;
  options.is_writable = true;
  auto opened = open_(uri, options);
  if (opened.code() == ENOENT) {
    options.may_create = true;
    options.size_bytes = size_bytes;
    opened = open_(uri, options);
    if (!opened) return opened.error();
    if (const int error = opened.value()->snapshots()->note(kCopyNote, whose); error != 0)
      return failed(error, "note what " + place + " is for");
    return opened;
  }
  if (!opened) return opened.error();
  std::map<std::string, std::string> notes;
  if (const int error = opened.value()->snapshots()->list_notes(kCopyNote, &notes); error != 0)
    return failed(error, "look at " + place);
  if (notes[kCopyNote] == whose) return opened;
  return Error{EEXIST, what() + ": '" + object + "' would be copied into " + place +
                           ", which is there and no copy of it: give the part another name, or "
                           "remove that store"};
}

std::string SnapshotCatalog::key_of(const SnapshotEntry& entry) {
  return kEntryNotes + std::to_string(entry.number);
}

Result<std::vector<SnapshotEntry>> SnapshotCatalog::list_all() const {
  std::map<std::string, std::string> notes;
  if (const int error = snapshots().list_notes(kEntryNotes, &notes); error != 0)
    return failed(error, "read the notes");
  std::vector<SnapshotEntry> entries;
  for (const auto& [key, text] : notes) {
    auto entry = entry_of(text, anchor_->identity());
    if (!entry) return Error{entry.code(), what() + ": '" + key + "': " + entry.message()};
    if (entry->number != 0) entries.push_back(std::move(entry).value());
  }
  std::sort(entries.begin(), entries.end(),
            [](const auto& a, const auto& b) { return a.number < b.number; });
  return entries;
}

Result<std::vector<SnapshotEntry>> SnapshotCatalog::list() const {
  auto entries = list_all();
  if (entries)
    std::erase_if(entries.value(), [](const SnapshotEntry& entry) {
      return entry.state != SnapshotEntry::State::kWhole;
    });
  return entries;
}

Result<SnapshotEntry> SnapshotCatalog::find(const std::string& name) const {
  auto entries = list();
  if (!entries) return entries.error();
  std::vector<std::string_view> names;
  for (const SnapshotEntry& entry : entries.value()) {
    if (entry.name == name) return entry;
    names.push_back(entry.name);
  }
  return Error{ENOENT, what() + ": there is no '" + name + "'" + did_you_mean(name, names)};
}

const SnapshotObject* SnapshotCatalog::find_object(const SnapshotEntry& entry,
                                                   const std::string& object) const {
  for (const SnapshotObject& one : entry.objects)
    if (one.name == object) return &one;
  return nullptr;
}

Status SnapshotCatalog::write(const SnapshotEntry& entry) {
  const int error = snapshots().note(key_of(entry), text_of(entry, anchor_->identity()));
  return error == 0 ? Status() : failed(error, "note '" + entry.name + "'");
}

// Removes its snapshots, and then its note. REQUIRES: the note says that it is not complete.
Status SnapshotCatalog::drop(const SnapshotEntry& entry) {
  OC_CHECK(entry.state != SnapshotEntry::State::kWhole);
  Status first;
  for (const SnapshotObject& object : entry.objects) {
    const auto store = open_place(object.place, true);
    if (store.code() == ENOENT) continue;  // the store itself does not exist any more
    const std::string snapshot = snapshot_name(entry.number);
    const int error = store ? store.value()->snapshots()->remove_snapshot(snapshot) : 0;
    if (store && (error == 0 || error == -ENOENT)) continue;
    if (!first.ok()) continue;
    const std::string why =
        store ? base::system_error(error, "remove '" + snapshot + "'").message : store.message();
    first = Error{store ? -error : store.code(),
                  what() + ": '" + entry.name + "' is removed, but its snapshot of " +
                      object.place + " waits for the next change: " + why};
  }
  if (!first.ok()) return first;
  const int error = snapshots().remove_note(key_of(entry));
  return error == 0 || error == -ENOENT ? Status() : failed(error, "remove '" + entry.name + "'");
}

// Removes what is left of makers that died, and of removals that did not reach all stores. What
// cannot be reached now is left for later.
void SnapshotCatalog::drop_left_over(const std::vector<SnapshotEntry>& entries) {
  for (const SnapshotEntry& entry : entries)
    if (entry.state != SnapshotEntry::State::kWhole) static_cast<void>(drop(entry));
}

Status SnapshotCatalog::check_members(std::span<const Member> members) const {
  for (const Member& member : members) {
    OC_CHECK(member.store != nullptr && member.store->snapshots() != nullptr);
    const std::string place = member.store->snapshots()->place();
    SnapshotState& state = SnapshotState::of(*member.store);
    {
      const std::lock_guard<std::mutex> guard(state.mutex);
      if (!state.refused.ok()) return state.refused;
    }
    std::string to;
    if (const int error = find_roll_back(*member.store, &to); error != 0)
      return failed(error, "ask whether " + place + " is whole");
    if (!to.empty())
      return Error{EBUSY, what() + ": " + place + " is not whole: roll it back to " + to +
                              " again, to the end (outcore checkpoint rollback)"};
  }
  return {};
}

Status SnapshotCatalog::take_snapshots(SnapshotEntry& entry, std::span<const Member> members) {
  OC_CHECK(entry.objects.size() == members.size());
  const std::string snapshot = snapshot_name(entry.number);
  std::vector<Store*> stores;
  for (size_t i = 0; i < members.size(); ++i) {
    Store* const store = members[i].store;
    if (std::find(stores.begin(), stores.end(), store) == stores.end()) {
      stores.push_back(store);
      int error = store->sync();
      if (error == 0) error = store->snapshots()->snapshot(snapshot);
      if (error != 0) return failed(error, "make a snapshot of " + store->snapshots()->place());
    }
    entry.objects[i].size_bytes = store->size_bytes();
  }
  return {};
}

Result<uint32_t> SnapshotCatalog::add(const std::string& name, const std::string& comment,
                                      std::span<const Member> members) {
  if (name.empty() || name.size() > kNameBytesMax || comment.size() > kCommentBytesMax)
    return Error{EINVAL, what() + ": a name has 1 to 255 bytes, a comment at most 4096"};
  const std::lock_guard<std::mutex> changing(SnapshotState::of(*anchor_).changing);
  const auto entries = list_all();
  if (!entries) return entries.error();
  for (const SnapshotEntry& one : entries.value())
    if (one.name == name && one.state == SnapshotEntry::State::kWhole)
      return Error{EEXIST,
                   what() + ": there is a '" + name + "': take another name, or remove it first"};
  if (Status s = check_members(members); !s) return s.error();
  drop_left_over(entries.value());
  SnapshotEntry entry;
  entry.number = entries->empty() ? 1 : entries->back().number + 1;
  entry.name = name;
  entry.comment = comment;
  entry.time_s = std::time(nullptr);
  entry.state = SnapshotEntry::State::kMaking;
  for (const Member& member : members)
    entry.objects.push_back({member.name, member.store->snapshots()->place(), 0});
  if (Status s = write(entry); !s) return s.error();
  Status s = take_snapshots(entry, members);
  entry.state = SnapshotEntry::State::kWhole;
  if (s.ok()) s = write(entry);
  if (s.ok()) return entry.number;
  // The note may say already that it is complete. Its snapshots are removed only after the note
  // says otherwise.
  entry.state = SnapshotEntry::State::kRemoved;
  if (write(entry)) static_cast<void>(drop(entry));
  return s.error();
}

}  // namespace outcore::store
