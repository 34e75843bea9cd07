// SnapshotSystem: stores with snapshots and notes in memory, which can die at any of their steps.
#pragma once

#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "outcore/snapshots.h"
#include "outcore/store.h"

namespace outcore::checkpoints_test {

class SnapshotSystem {
 public:
  using Bytes = std::vector<std::byte>;
  struct Image {
    Bytes bytes;
    std::map<std::string, Bytes> snapshots;
    std::map<std::string, std::string> notes;
  };

  std::map<std::string, Image> images;  // by place
  // So many steps succeed; then all fail, until it is set again.
  uint64_t steps_left = UINT64_MAX;
  // The step at which it dies is done all the same, and nobody hears of it.
  bool is_last_step_done = false;

  class View;
  Result<std::shared_ptr<Store>> open(const std::string& uri, const OpenOptions& options);

  // Whether the step is done, and what its caller is told.
  template <typename Do>
  int step(const Do& act) {
    if (steps_left == 0) return -EIO;
    if (--steps_left == 0) {
      if (is_last_step_done) act();
      return -EIO;
    }
    return act();
  }
};

class SnapshotSystem::View final : public Store, public Snapshots {
 public:
  View(SnapshotSystem& system, std::string place, std::string at)
      : system_(system), place_(std::move(place)), at_(std::move(at)) {}

  uint64_t size_bytes() const override { return bytes().size(); }
  int read(uint64_t offset, std::span<std::byte> into) override {
    std::memcpy(into.data(), bytes().data() + offset, into.size());
    return 0;
  }
  int write(uint64_t offset, std::span<const std::byte> from) override {
    std::memcpy(bytes().data() + offset, from.data(), from.size());
    return 0;
  }
  int resize(uint64_t size_bytes) override {
    bytes().resize(size_bytes);
    return 0;
  }
  std::string uri() const override { return place_; }
  std::string identity() const override { return place_; }
  Snapshots* snapshots() override { return this; }

  bool can_snapshot() const override { return at_.empty(); }
  std::string cluster() const override { return "test"; }
  std::string place() const override { return place_; }
  std::string parameters() const override { return {}; }
  int snapshot(const std::string& name) override {
    return system_.step(
        [&] { return image().snapshots.emplace(name, image().bytes).second ? 0 : -EEXIST; });
  }
  int remove_snapshot(const std::string& name) override {
    return system_.step([&] { return image().snapshots.erase(name) == 1 ? 0 : -ENOENT; });
  }
  int list_snapshots(std::vector<std::string>* names) override {
    for (const auto& [name, bytes] : image().snapshots) names->push_back(name);
    return 0;
  }
  // Half of it is done where it dies.
  int roll_back(const std::string& name) override {
    const Bytes& then = image().snapshots.at(name);
    const size_t half = then.size() / 2;
    image().bytes.resize(then.size());
    std::memcpy(image().bytes.data(), then.data(), half);
    return system_.step([&] {
      std::memcpy(image().bytes.data() + half, then.data() + half, then.size() - half);
      return 0;
    });
  }
  int clone(const std::string& name, const std::string& place) override {
    if (system_.images.contains(place)) return -EEXIST;
    system_.images[place].bytes = image().snapshots.at(name);
    return 0;  // without notes
  }
  int note(const std::string& key, const std::string& text) override {
    return system_.step([&] {
      image().notes[key] = text;
      return 0;
    });
  }
  int remove_note(const std::string& key) override {
    return system_.step([&] { return image().notes.erase(key) == 1 ? 0 : -ENOENT; });
  }
  int list_notes(const std::string& prefix, std::map<std::string, std::string>* notes) override {
    for (const auto& [key, text] : image().notes)
      if (key.starts_with(prefix)) (*notes)[key] = text;
    return 0;
  }

 private:
  Image& image() const { return system_.images.at(place_); }
  Bytes& bytes() const { return at_.empty() ? image().bytes : image().snapshots.at(at_); }

  SnapshotSystem& system_;
  const std::string place_, at_;
};

inline Result<std::shared_ptr<Store>> SnapshotSystem::open(const std::string& uri,
                                                           const OpenOptions& options) {
  const size_t mark = uri.find('@');
  const std::string place = uri.substr(0, mark);
  const std::string at = mark == std::string::npos ? "" : uri.substr(mark + 1);
  if (!images.contains(place) && options.may_create) images[place].bytes.resize(options.size_bytes);
  if (!images.contains(place) || (!at.empty() && !images[place].snapshots.contains(at)))
    return Error{ENOENT, "there is no " + uri};
  return std::shared_ptr<Store>(std::make_shared<View>(*this, place, at));
}

}  // namespace outcore::checkpoints_test
