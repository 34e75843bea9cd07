// RbdReclaim: finds images of a pool whose lifetime is over, and removes them.
//
// First an image is retired: under its lock, while nobody watches it, it is marked as going and
// renamed to outcore.going.ID. Then its bytes are removed, step by step; if that is interrupted,
// the next caller removes the rest. Images without a lifetime are never touched. All functions
// return 0 or -errno. Any thread but the fault path.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "far/store/rbd_connection.h"
#include "far/store/rbd_lifetime.h"

namespace outcore::store {

class RbdReclaim {
 public:
  // REQUIRES: both outlive this object.
  RbdReclaim(const RbdLibrary& library, const RbdConnection& connection)
      : library_(library), connection_(connection) {}

  struct Image {
    std::string name, id;
  };
  int list(std::vector<Image>* images) const;

  // When the word is set, the call ends before the next step, with -EINTR.
  using Word = const std::atomic<uint32_t>&;
  struct Outcome {
    std::vector<std::string> given_back;
    bool has_others = false;  // others are removing some of them, or have them open
  };
  // Removes all images whose lifetime is over and that nobody needs. Those that cannot be removed
  // now stay. -EALREADY: another thread of this process is doing this for the pool.
  int run(Word is_stopped, Outcome* outcome) const;
  // True at most once a minute for each process and pool.
  bool is_due() const;
  // Removes one of them. -ENOENT: its lifetime is not over, or it does not exist; -EBUSY: somebody
  // has it open; -ENOTEMPTY: it has snapshots of others, or of checkpoints whose anchor still
  // exists.
  int give_back(const std::string& name) const;
  // Retires the image, so that its name is free; others remove its bytes later. Errors: as
  // give_back().
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
