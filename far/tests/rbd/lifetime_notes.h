// LifetimeNotes: deadlines of images as tests want them, without waiting for them.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>

#include "far/tests/rbd/ceph.h"
#include "outcore/snapshots.h"
#include "outcore/store.h"

namespace outcore::rbd_test {

inline std::string lifetime_of(Store& store) {
  std::map<std::string, std::string> notes;
  EXPECT_EQ(store.snapshots()->list_notes("lifetime", &notes), 0);
  return notes["lifetime"];
}

// The same with a deadline that is long past.
inline std::string expired(const std::string& note) {
  const size_t from = note.find("until="), to = note.find(",image=");
  if (from == std::string::npos || to == std::string::npos) {
    ADD_FAILURE() << "'" << note << "' has no deadline";
    return note;
  }
  return note.substr(0, from) + "until=1" + note.substr(to);
}

// Of an image that nobody has open.
inline void set_lifetime(const std::string& image, const std::string& note) {
  EXPECT_EQ(Ceph::instance().tell("rbd image-meta set " + image + " outcore.lifetime " + note), "");
}
inline void expire(const std::string& uri, const std::string& image) {
  auto store = open_store(uri);
  ASSERT_TRUE(store.ok()) << store.message();
  const std::string note = lifetime_of(*store.value());
  store.value().reset();
  set_lifetime(image, expired(note));
}

}  // namespace outcore::rbd_test
