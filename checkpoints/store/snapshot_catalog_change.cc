// Checkpoints are removed, renamed, rolled back to and read. See snapshot_catalog.h.
#include <algorithm>
#include <cerrno>

#include "checkpoints/store/snapshot_catalog.h"
#include "core/base/assert.h"
#include "core/base/error.h"
#include "core/store/uri.h"

namespace outcore::store {
namespace {

constexpr uint64_t kReadBytes = 4 << 20;
constexpr size_t kDamagedMax = 1000;

}  // namespace

// The notes are changed first: from then on the checkpoints are absent.
Status SnapshotCatalog::remove(const std::vector<std::string>& names) {
  const std::lock_guard<std::mutex> changing(SnapshotState::of(*anchor_).changing);
  std::vector<SnapshotEntry> going;
  for (const std::string& name : names) {
    auto entry = find(name);
    if (!entry) return entry.status();
    for (const SnapshotObject& object : entry->objects) {
      const auto store = open_place(object.place, false);
      std::string to;
      const int error = store ? find_roll_back(*store.value(), &to) : 0;
      if (error == 0 && to != mark_of(entry.value())) continue;
      return Error{EBUSY, what() + ": " + object.place + " is being rolled back to '" + name +
                              "': roll it back to the end first"};
    }
    going.push_back(std::move(entry).value());
  }
  for (SnapshotEntry& entry : going) {
    entry.state = SnapshotEntry::State::kRemoved;
    if (Status s = write(entry); !s) return s;
  }
  Status first;
  for (const SnapshotEntry& entry : going)
    if (Status s = drop(entry); !s && first.ok()) first = s;
  return first;
}

Status SnapshotCatalog::rename(const std::string& from, const std::string& to) {
  const std::lock_guard<std::mutex> changing(SnapshotState::of(*anchor_).changing);
  auto entry = find(from);
  if (!entry) return entry.status();
  if (to.empty() || to.size() > 255) return Error{EINVAL, what() + ": a name has 1 to 255 bytes"};
  if (from == to) return {};
  const auto there = find(to);
  if (!there && there.code() != ENOENT) return there.status();
  if (there) return Error{EEXIST, what() + ": there is a '" + to + "': remove it first"};
  entry->name = to;
  return write(entry.value());
}

// The note that others find during a roll-back.
std::string SnapshotCatalog::mark_of(const SnapshotEntry& entry) const {
  return snapshots().place() + " " + std::to_string(entry.number) + " ('" +
         encode_percents(entry.name) + "')";
}

// Opens all stores of the checkpoint for writing. Each must have its snapshot, and must not be in
// use in this process.
Status SnapshotCatalog::open_all(const SnapshotEntry& entry,
                                 std::vector<std::shared_ptr<Store>>* stores) const {
  const std::string wanted = snapshot_name(entry.number);
  for (const SnapshotObject& object : entry.objects) {
    auto opened = open_place(object.place, true);
    if (!opened) return opened.status();
    std::shared_ptr<Store> store = std::move(opened).value();
    std::vector<std::string> names;
    if (const int error = store->snapshots()->list_snapshots(&names); error != 0)
      return failed(error, "list the snapshots of " + object.place);
    if (std::find(names.begin(), names.end(), wanted) == names.end())
      return Error{EIO, what() + ": '" + entry.name + "': the snapshot '" + wanted + "' of " +
                            object.place + " is gone: take another checkpoint"};
    if (std::find(stores->begin(), stores->end(), store) == stores->end())
      stores->push_back(std::move(store));
  }
  return check_unused(*stores);
}

Status SnapshotCatalog::check_unused(const std::vector<std::shared_ptr<Store>>& stores) const {
  for (const auto& store : stores) {
    OC_CHECK(store != nullptr && store.use_count() > 0);
    const long ours = store == anchor_ ? 2 : 1;
    if (store.use_count() > ours)
      return Error{EBUSY, what() + ": this process has " + store->snapshots()->place() +
                              " open: unmap its regions, whose pages would be of another time, and "
                              "end periodic checkpoints"};
  }
  return {};
}

Status SnapshotCatalog::roll_back(const std::string& name) {
  SnapshotState& shared = SnapshotState::of(*anchor_);
  const std::lock_guard<std::mutex> changing(shared.changing);
  {
    const std::lock_guard<std::mutex> guard(shared.mutex);
    shared.copies.clear();
  }
  const auto entry = find(name);
  if (!entry) return entry.status();
  std::vector<std::shared_ptr<Store>> stores;
  if (Status s = open_all(entry.value(), &stores); !s) return s;
  OC_CHECK(entry->state == SnapshotEntry::State::kWhole);
  OC_CHECK(stores.size() <= entry->objects.size());
  const std::string snapshot = snapshot_name(entry->number);
  constexpr const char* kAgain =
      "do it again, to the end: until then the stores that it has come to refuse to be opened";
  for (const auto& store : stores) {
    const int error = store->snapshots()->note(kRollingBackNote,
                                               store->identity() + "\n" + mark_of(entry.value()));
    if (error != 0) return failed(error, "mark " + store->snapshots()->place(), kAgain);
  }
  // From now on nobody can open them. A process that has just opened one is seen here.
  if (Status s = check_unused(stores); !s) {
    for (const auto& store : stores)
      static_cast<void>(store->snapshots()->remove_note(kRollingBackNote));
    return s;
  }
  for (const auto& store : stores)
    if (const int error = store->snapshots()->roll_back(snapshot); error != 0)
      return failed(error, "roll " + store->snapshots()->place() + " back to '" + name + "'",
                    kAgain);
  for (const auto& store : stores) {
    const int error = store->snapshots()->remove_note(kRollingBackNote);
    if (error != 0 && error != -ENOENT)
      return failed(error, "take the mark from " + store->snapshots()->place(), kAgain);
    SnapshotState& state = SnapshotState::of(*store);
    const std::lock_guard<std::mutex> guard(state.mutex);
    state.refused = {};
  }
  return {};
}

Status SnapshotCatalog::clone(const std::string& name, const std::string& object,
                              const std::string& place) {
  const auto entry = find(name);
  if (!entry) return entry.status();
  const SnapshotObject* const found = find_object(entry.value(), object);
  if (found == nullptr)
    return Error{ENOENT, what() + ": '" + name + "' has no object '" + object + "'"};
  const auto store = open_place(found->place, false);
  if (!store) return store.status();
  const int error = store.value()->snapshots()->clone(snapshot_name(entry->number), place);
  if (error == -EXDEV)
    return Error{EXDEV, what() + ": '" + place + "' is not of the same pool: clone into " +
                            found->place.substr(0, found->place.rfind('/')) +
                            "/NAME, or export it"};
  return error == 0 ? Status() : failed(error, "clone '" + name + "' to " + place);
}

Result<std::vector<DamagedChunk>> SnapshotCatalog::verify() const {
  const auto entries = list();
  if (!entries) return entries.error();
  std::vector<DamagedChunk> damaged;
  std::vector<std::byte> bytes(kReadBytes);
  for (const SnapshotEntry& entry : entries.value())
    for (const SnapshotObject& object : entry.objects) {
      const auto told = [&](uint64_t at, const std::string& why) {
        if (damaged.size() < kDamagedMax) damaged.push_back({object.name, entry.name, at, why});
      };
      const auto store = open_(uri_of(entry, object), {});
      if (!store && store.code() != ENOENT) return store.error();
      if (!store) {
        told(0, "the snapshot " + object.place + "@" + snapshot_name(entry.number) + " is gone");
        continue;
      }
      const uint64_t size = store.value()->size_bytes();
      if (size != object.size_bytes)
        told(0,
             "it has " + std::to_string(size) + " bytes, not " + std::to_string(object.size_bytes));
      for (uint64_t at = 0; at < size; at += kReadBytes) {
        const std::span<std::byte> piece(bytes.data(), std::min(kReadBytes, size - at));
        OC_CHECK(!piece.empty() && piece.size() <= bytes.size());
        if (const int error = store.value()->read(at, piece); error != 0)
          told(at, base::system_error(error, "read").message);
      }
    }
  return damaged;
}

}  // namespace outcore::store
