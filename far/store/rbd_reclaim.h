// RbdReclaim: images of a pool whose lifetime is over, and their removal.
//
// First an image is retired: under its lock, with nobody watching it, it is noted as going, and
// renamed to outcore.going.ID. Then its bytes go, step by step; whoever is interrupted leaves the
// rest to the next. Images without a lifetime are never touched. All functions return 0 or -errno.
// Any thread but the fault path.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "far/store/rbd_connection.h"
#include "far/store/rbd_lifetime.h"

namespace outcore::store {

class RbdReclaim {
 public:
  // Both outlive it.
  RbdReclaim(const RbdLibrary& library, const RbdConnection& connection)
      : library_(library), connection_(connection) {}

  struct Image {
    std::string name, id;
  };
  int list(std::vector<Image>* images) const;

  // Set: stop at the next step, with -EINTR.
  using Word = const std::atomic<uint32_t>&;
  struct Outcome {
    std::vector<std::string> given_back;
    bool has_others = false;  // somebody is at some, or has them open
  };
  // All whose time is over and that nobody needs. What cannot be had now stays. -EALREADY: another
  // thread of this process is at this pool.
  int run(Word is_stopped, Outcome* outcome) const;
  // Not more often than once a minute in a process and pool.
  bool is_due() const;
  // One of them. -ENOENT: its time is not over, or there is none; -EBUSY: somebody has it open;
  // -ENOTEMPTY: it has snapshots of others, or of checkpoints whose anchor lives on.
  int give_back(const std::string& name) const;
  // So that its name is free; the rest is left to others. Errors: as give_back().
  int retire(const std::string& name, Word is_stopped, std::string* retired) const;

 private:
  class Opened;
  int finish(const std::string& retired, Word is_stopped) const;
  int is_held(const Opened& image, const std::vector<std::string>& snapshots, Word is_stopped,
              bool* is_held) const;
  int is_living(const std::string& anchor_prefix, const Opened& member, Word is_stopped,
                bool* is_living) const;
  int is_over(const Image& image, bool* is_over) const;

  const RbdLibrary& library_;
  const RbdConnection& connection_;
};

}  // namespace outcore::store
