// A Ceph pool as a pool of oc_ssd_malloc. Each name is an image, RUN.NAME, beside the image RUN.
// The image RUN is the anchor of the checkpoints; its notes list the names and the identities of
// their images, so that another image with such a name is neither used nor removed. Its lock gives
// the run to one process. See docs/internals/decisions/0030-lifetimes-on-rbd.md.
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <map>
#include <mutex>
#include <set>

#include "checkpoints/c/ssd_pool.h"
#include "checkpoints/store/snapshot_catalog.h"
#include "core/base/error.h"
#include "core/store/registry.h"
#include "core/store/uri.h"
#include "outcore/snapshots.h"
#include "outcore/store_catalog.h"

namespace outcore::c {
namespace {

constexpr const char* kDefaultRun = "ssd";
constexpr const char* kNotes = "memory.";  // before the name, encoded
constexpr uint64_t kAnchorBytes = 4096;    // none of them is written

// Stores whose locks are released when the process ends, because their memory is usually not freed
// then.
class OpenAtEnd {
 public:
  static OpenAtEnd& instance() {
    static OpenAtEnd* const all = new OpenAtEnd;
    return *all;
  }
  void add(const std::shared_ptr<Store>& store) {
    const std::lock_guard<std::mutex> guard(mutex_);
    std::erase_if(stores_, [](const auto& one) { return one.expired(); });
    if (!is_registered_) std::atexit([] { instance().give_up_locks(); });
    is_registered_ = true;
    stores_.push_back(store);
  }

 private:
  // Threads that still run may hold the mutex for long.
  void give_up_locks() {
    const std::unique_lock<std::mutex> guard(mutex_, std::try_to_lock);
    if (!guard.owns_lock()) return;
    for (const auto& one : stores_)
      if (const auto store = one.lock()) store->retire();
  }
  std::mutex mutex_;
  bool is_registered_ = false;
  std::vector<std::weak_ptr<Store>> stores_;
};

class SsdImages final : public SsdPool {
 public:
  // `place` is rbd://POOL/RUN; `parameters` is what follows, with its '?'.
  SsdImages(std::string place, const std::string& parameters)
      : SsdPool(place + parameters), place_(std::move(place)), parameters_(parameters) {}

  bool is_there() const override {
    return anchor_ != nullptr || list_checkpoints(found_at(place_)).ok();
  }
  Status prepare() override {
    if (anchor_ != nullptr) return {};
    OpenOptions options;
    options.is_writable = options.may_create = true;
    options.size_bytes = kAnchorBytes;
    auto opened = open_store(uri(), options);
    if (!opened) return opened.status();
    anchor_ = std::move(opened).value();
    OpenAtEnd::instance().add(anchor_);
    return {};
  }
  void rest() override { anchor_.reset(); }

  Result<uint64_t> size_of(const std::string& name) override {
    const auto found = look_at(name);
    if (!found) return found.error();
    if (found->is_there && !found->is_ours) return taken(name);
    return found->size_bytes;
  }
  Result<Region> map(Runtime& runtime, const std::string& name, uint64_t size_bytes) override {
    const auto before = look_at(name);
    if (!before) return before.error();
    if (before->is_there && !before->is_ours) return taken(name);
    OpenOptions how;
    how.is_writable = how.may_create = true;
    how.size_bytes = size_bytes;
    auto opened = open_store(place_of(name) + parameters_, how);
    if (!opened) return opened.error();
    std::shared_ptr<Store> store = std::move(opened).value();
    OpenAtEnd::instance().add(store);
    const int error = notes().note(key_of(name), store->identity());
    if (error != 0) {
      store.reset();
      if (!before->is_there) static_cast<void>(remove_store(found_at(place_of(name))));
      return failed(error, "note '" + name + "' with " + place_).error();
    }
    MapOptions options;
    options.access = Access::kReadWrite;
    options.size_bytes = size_bytes;
    auto region = runtime.map(std::move(store), options);
    if (!region && !before->is_there) static_cast<void>(remove(name));
    return region;
  }
  // An image that checkpoints hold becomes empty, and is kept for them.
  Status remove(const std::string& name) override {
    const auto found = look_at(name);
    if (!found) return found.status();
    if (found->is_ours) {
      const Status removed = remove_store(found_at(place_of(name)));
      if (removed.code() == ENOTEMPTY) {
        left_.insert(name);
        return make_empty(name);
      }
      if (!removed.ok() && removed.code() != ENOENT) return removed;
    }
    const int error = notes().remove_note(key_of(name));
    return error == 0 || error == -ENOENT
               ? Status()
               : failed(error, "remove the note of '" + name + "' from " + place_);
  }

  CheckpointPart part_of(const std::string& name, const Region& region) const override {
    return CheckpointPart(region, name);
  }
  Status forget_range(const std::string&) override { return {}; }  // they contain only parts
  void tidy() override {
    std::erase_if(left_, [this](const std::string& name) {
      const auto size = size_of(name);
      if (!size || size.value() != 0) return true;  // it is in use again
      if (!remove_store(found_at(place_of(name))).ok()) return false;
      static_cast<void>(notes().remove_note(key_of(name)));
      return true;
    });
  }
  Status keep_only(const std::vector<CheckpointObject>& objects) override {
    if (Status s = prepare(); !s) return s;
    std::map<std::string, std::string> noted;
    if (const int error = notes().list_notes(kNotes, &noted); error != 0)
      return failed(error, "read the notes of " + place_);
    for (const auto& [key, place] : noted) {
      std::string name;
      if (!store::decode_percents(key.substr(std::string(kNotes).size()), name)) continue;
      const bool is_kept = std::any_of(objects.begin(), objects.end(),
                                       [&](const auto& object) { return object.name == name; });
      if (is_kept) continue;
      if (Status s = remove(name); !s) return s;
    }
    return {};
  }

 private:
  static Status failed(int error, const std::string& attempted) {
    return base::system_error(error, attempted);
  }
  static std::string key_of(const std::string& name) {
    return kNotes + store::encode_percents(name);
  }
  std::string place_of(const std::string& name) const {
    return place_ + "." + store::plain_name(name);
  }
  // The URI without parameters for new images.
  std::string found_at(const std::string& place) const {
    std::string text;
    const auto parsed = store::parse_uri(uri());
    for (const auto& [key, value] : parsed->parameters)
      if (key != "thick" && key != "order")
        text += (text.empty() ? "?" : "&") + key + "=" + store::encode_percents(value);
    return place + text;
  }
  Snapshots& notes() const { return *anchor_->snapshots(); }
  struct Found {
    bool is_there = false;
    bool is_ours = false;  // its identity is the noted one
    uint64_t size_bytes = 0;
  };
  Result<Found> look_at(const std::string& name) const {
    std::map<std::string, std::string> noted;
    if (const int error = notes().list_notes(key_of(name), &noted); error != 0)
      return failed(error, "read the notes of " + place_).error();
    std::string place = found_at(place_of(name));  // it must also work during a roll-back
    place += (place.find('?') == std::string::npos ? "?" : "&") + std::string("interrupted=yes");
    const auto store = open_store(place);
    if (store.code() == ENOENT) return Found();
    if (!store) return store.error();
    const auto note = noted.find(key_of(name));
    return Found{true, note != noted.end() && note->second == store.value()->identity(),
                 store.value()->size_bytes()};
  }
  Error taken(const std::string& name) const {
    return {EEXIST, "the image " + place_of(name) +
                        " is there, and is not memory of oc_ssd_malloc: take another name"};
  }
  Status make_empty(const std::string& name) const {
    OpenOptions options;
    options.is_writable = true;
    const auto store = open_store(found_at(place_of(name)), options);
    if (!store) return store.status();
    const int error = store.value()->resize(0);
    return error == 0 ? Status() : failed(error, "make " + place_of(name) + " empty");
  }

  const std::string place_, parameters_;
  std::shared_ptr<Store> anchor_;  // open while there is memory
  std::set<std::string> left_;     // freed, but held by checkpoints
};

}  // namespace

Result<std::unique_ptr<SsdPool>> ssd_images(const std::string& text) {
  const auto refuse = [&](const std::string& why) {
    return Error{EINVAL, "OUTCORE_POOL='" + text + "': " + why};
  };
  const auto uri = store::parse_uri(text);
  if (!uri) return uri.error();
  if (const auto kind = find_store_kind(uri.value()); !kind) return kind.error();
  for (const char* key : {"size", "interrupted"})
    if (uri->find(key) != nullptr)
      return refuse(std::string(key) + "= has no meaning here: leave it out");
  std::string place = text.substr(0, text.rfind('?'));
  const std::string parameters = text.substr(place.size());
  while (place.ends_with('/') && place.size() > 6) place.pop_back();
  if (uri->authority.empty() || place.find('@') != std::string::npos)
    return refuse("write rbd://CEPHPOOL, or rbd://CEPHPOOL/RUN to tell runs apart");
  if (uri->path.size() <= 1) place += std::string("/") + kDefaultRun;
  return std::unique_ptr<SsdPool>(std::make_unique<SsdImages>(place, parameters));
}

}  // namespace outcore::c
