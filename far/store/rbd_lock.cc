#include "far/store/rbd_lock.h"

#include <errno.h>
#include <unistd.h>

#include <array>
#include <sstream>

#include "core/base/error.h"

namespace outcore::store {
namespace {

constexpr const char* kNoteKey = "outcore.owner";
constexpr size_t kWatchersMax = 64;

// The address of the lock's owner; empty: it has none, or that cannot be found out.
std::string owner_of(const RbdLibrary& library, rbd_image_t image) {
  rbd_lock_mode_t mode = RBD_LOCK_MODE_EXCLUSIVE;
  std::array<char*, 8> owners = {};
  size_t count = owners.size();
  if (library.rbd_lock_get_owners(image, &mode, owners.data(), &count) != 0 || count == 0)
    return {};
  const std::string owner = owners[0];
  library.rbd_lock_get_owners_cleanup(owners.data(), count);
  return owner;
}

// True also if that cannot be found out.
bool is_watching(const RbdLibrary& library, rbd_image_t image, const std::string& owner) {
  std::array<rbd_image_watcher_t, kWatchersMax> watchers = {};
  size_t count = watchers.size();
  if (library.rbd_watchers_list(image, watchers.data(), &count) != 0) return true;
  bool is_there = false;
  for (size_t i = 0; i < count; ++i) is_there = is_there || owner == watchers[i].addr;
  library.rbd_watchers_list_cleanup(watchers.data(), count);
  return is_there;
}

int read_note(const RbdLibrary& library, rbd_image_t image, std::string& note) {
  std::array<char, 1024> text = {};
  size_t size = text.size() - 1;
  const int error = library.rbd_metadata_get(image, kNoteKey, text.data(), &size);
  note = error == 0 ? text.data() : "";
  return error == -ENOENT ? 0 : error;
}

// "ADDRESS HOST PROCESS PROGRAM".
std::string own_note(const std::string& address) {
  std::array<char, 256> host = {};
  if (::gethostname(host.data(), host.size() - 1) != 0) host[0] = '?';
  return address + " " + host.data() + " " + std::to_string(::getpid()) + " " +
         program_invocation_short_name;
}

bool is_note_of(const std::string& note, const std::string& owner) {
  return note.starts_with(owner + " ");
}

Error refusal(const RbdLibrary& library, rbd_image_t image, const std::string& what) {
  std::string who = RbdLock::name_of_owner(library, image);
  if (who.empty()) who = "another client";
  return {EBUSY, what + ": " + who + " writes it: open it read-only, or end that one first"};
}

}  // namespace

std::string RbdLock::name_of_owner(const RbdLibrary& library, rbd_image_t image) {
  const std::string owner = owner_of(library, image);
  if (owner.empty()) return {};
  std::string note;
  static_cast<void>(read_note(library, image, note));
  std::string who = "the client at " + owner;
  if (is_note_of(note, owner)) {
    std::istringstream words(note.substr(owner.size()));
    std::string host, process, program;
    words >> host >> process;
    std::getline(words >> std::ws, program);
    who = "process " + process + " (" + program + ") on " + host + ", " + who;
  }
  return who;
}

Status RbdLock::lock(const RbdLibrary& library, rbd_image_t image, const std::string& what) {
  uint64_t features = 0;
  int error = library.rbd_get_features(image, &features);
  if (error != 0) return base::system_error(error, what + ": ask for its features");
  if ((features & RBD_FEATURE_EXCLUSIVE_LOCK) == 0)
    return Error{EINVAL, what +
                             ": the image has no exclusive lock: switch it on with rbd feature "
                             "enable POOL/IMAGE exclusive-lock, or open it read-only"};
  const std::string owner = owner_of(library, image);
  std::string note;
  static_cast<void>(read_note(library, image, note));
  // Clients other than Outcore give the lock up when they are asked, and write on when they get it
  // back, so they must not be asked.
  if (!owner.empty() && !is_note_of(note, owner) && is_watching(library, image, owner))
    return refusal(library, image, what);
  error = library.rbd_lock_acquire(image, RBD_LOCK_MODE_EXCLUSIVE);
  if (error == -EROFS || error == -EBUSY) return refusal(library, image, what);
  if (error != 0) return base::system_error(error, what + ": take its exclusive lock");
  note_ = own_note(owner_of(library, image));
  error = library.rbd_metadata_set(image, kNoteKey, note_.c_str());
  if (error != 0) return base::system_error(error, what + ": write the owner's name");
  return {};
}

int RbdLock::check(const RbdLibrary& library, rbd_image_t image) const {
  std::string note;
  const int error = read_note(library, image, note);
  if (error != 0) return error;
  return note == note_ ? 0 : -ESTALE;
}

}  // namespace outcore::store
