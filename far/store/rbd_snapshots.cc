// The snapshots and clones of an image, and notes in its metadata. See rbd_store.h.
#include <algorithm>
#include <cerrno>

#include "far/store/rbd_store.h"

namespace outcore::store {
namespace {

constexpr const char* kNotes = "outcore.";  // before our keys in the image's metadata
constexpr size_t kListBytesMin = 64 << 10, kListBytesMax = 64 << 20;
constexpr uint64_t kListAtOnce = 64;

// Lists the keys that begin with `prefix`.
int list_metadata(const RbdLibrary& library, rbd_image_t image, const std::string& prefix,
                  std::map<std::string, std::string>* found) {
  std::string after;
  std::vector<char> keys(kListBytesMin), values(kListBytesMin);
  for (;;) {
    size_t key_bytes = keys.size(), value_bytes = values.size();
    const int error = library.rbd_metadata_list(image, after.c_str(), kListAtOnce, keys.data(),
                                                &key_bytes, values.data(), &value_bytes);
    if (error == -ERANGE && std::max(key_bytes, value_bytes) <= kListBytesMax) {
      keys.resize(std::max(key_bytes, keys.size() * 2));
      values.resize(std::max(value_bytes, values.size() * 2));
      continue;
    }
    if (error < 0) return error;
    uint64_t count = 0;
    const char* value = values.data();
    for (const char* key = keys.data(); key < keys.data() + key_bytes; ++count) {
      after = key;
      if (after.starts_with(prefix)) (*found)[after] = value;
      key += after.size() + 1;
      value += std::string(value).size() + 1;
    }
    if (count < kListAtOnce) return 0;
  }
}

}  // namespace

int RbdStore::snapshot(const std::string& name) {
  if (const int error = refusal(true); error != 0) return error;
  return library_->rbd_snap_create(image_, name.c_str());
}

int RbdStore::remove_snapshot(const std::string& name) {
  if (const int error = refusal(true); error != 0) return error;
  return library_->rbd_snap_remove(image_, name.c_str());
}

int RbdStore::list_snapshots(std::vector<std::string>* names) {
  if (const int error = refusal(false); error != 0) return error;
  std::vector<rbd_snap_info_t> found(16);
  for (;;) {
    int room = static_cast<int>(found.size());
    const int count = library_->rbd_snap_list(image_, found.data(), &room);
    if (count == -ERANGE) {
      found.resize(std::max(static_cast<size_t>(room), found.size() * 2));
      continue;
    }
    if (count < 0) return count;
    for (int i = 0; i < count; ++i) names->emplace_back(found[static_cast<size_t>(i)].name);
    if (count > 0) library_->rbd_snap_list_end(found.data());
    return 0;
  }
}

int RbdStore::roll_back(const std::string& name) {
  if (const int error = refusal(true); error != 0) return error;
  watched_from_.store(UINT64_MAX, std::memory_order_release);  // what was written is unknown now
  if (const int error = library_->rbd_snap_rollback(image_, name.c_str()); error != 0) return error;
  rbd_image_info_t about;
  if (const int error = library_->rbd_stat(image_, &about, sizeof about); error != 0) return error;
  size_bytes_.store(about.size, std::memory_order_release);
  return 0;
}

// Clones of the second format: a snapshot needs no protection, and may be removed before its
// clones.
int RbdStore::clone(const std::string& name, const std::string& place) {
  if (const int error = refusal(false); error != 0) return error;
  const std::string before = place_.substr(0, place_.rfind('/') + 1);
  if (!place.starts_with(before) || place.size() == before.size() ||
      place.find_first_of("/@", before.size()) != std::string::npos)
    return -EXDEV;
  rbd_image_options_t options = nullptr;
  library_->rbd_image_options_create(&options);
  int error = library_->rbd_image_options_set_uint64(options, RBD_IMAGE_OPTION_CLONE_FORMAT, 2);
  if (error == 0)
    error = library_->rbd_image_options_set_uint64(options, RBD_IMAGE_OPTION_FEATURES, kFeatures);
  if (error == 0)
    error = library_->rbd_clone3(connection_->pool(), place_.substr(before.size()).c_str(),
                                 name.c_str(), connection_->pool(),
                                 place.substr(before.size()).c_str(), options);
  library_->rbd_image_options_destroy(options);
  if (error != 0) return error;
  // librbd copies the metadata, also notes about checkpoints and a roll-back, which do not concern
  // the clone.
  const std::string clone = place.substr(before.size());
  error = remove_notes_of(clone);
  if (error != 0) static_cast<void>(library_->rbd_remove(connection_->pool(), clone.c_str()));
  return error;
}

int RbdStore::remove_notes_of(const std::string& image) {
  rbd_image_t opened = nullptr;
  int error = library_->rbd_open(connection_->pool(), image.c_str(), &opened, nullptr);
  if (error != 0) return error;
  std::map<std::string, std::string> notes;
  error = list_metadata(*library_, opened, kNotes, &notes);
  for (const auto& [key, text] : notes)
    if (error == 0) error = library_->rbd_metadata_remove(opened, key.c_str());
  const int closed = library_->rbd_close(opened);
  return error != 0 ? error : closed;
}

int RbdStore::note(const std::string& key, const std::string& text) {
  if (const int error = refusal(true); error != 0) return error;
  return library_->rbd_metadata_set(image_, (kNotes + key).c_str(), text.c_str());
}

int RbdStore::remove_note(const std::string& key) {
  if (const int error = refusal(true); error != 0) return error;
  return library_->rbd_metadata_remove(image_, (kNotes + key).c_str());
}

int RbdStore::list_notes(const std::string& prefix, std::map<std::string, std::string>* notes) {
  if (const int error = refusal(false); error != 0) return error;
  std::map<std::string, std::string> found;
  const int error = list_metadata(*library_, image_, kNotes + prefix, &found);
  for (const auto& [key, text] : found) (*notes)[key.substr(std::string(kNotes).size())] = text;
  return error;
}

int RbdStore::changed_since(const std::string& name, const Visit& visit) {
  if (const int error = refusal(false); error != 0) return error;
  return library_->rbd_diff_iterate2(
      image_, name.empty() ? nullptr : name.c_str(), 0, size_bytes(), 1, 0,
      [](uint64_t offset, size_t size_bytes, int exists, void* with) {
        (*static_cast<const Visit*>(with))(offset, size_bytes, exists != 0);
        return 0;
      },
      const_cast<Visit*>(&visit));
}

}  // namespace outcore::store
