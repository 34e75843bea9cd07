// Kinds: that the library has those of all products, in the order in which messages name them.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "outcore/store.h"
#include "outcore/store_kind.h"

namespace outcore {
namespace {

TEST(Kinds, TheLibraryHasThoseOfAllProducts) {
  std::vector<std::string> schemes;
  for (const StoreKind* kind : store_kinds()) schemes.push_back(kind->scheme);
  const std::vector<std::string> expected = {"file",      "pmem", "sparse", "scratch", "memory",
                                             "versioned", "rbd",  "redis",  "far"};
  EXPECT_EQ(schemes, expected);
}

TEST(Kinds, AnUnknownSchemeNamesThemAll) {
  const std::string message = open_store("vresioned:x").message();
  EXPECT_NE(message.find("did you mean 'versioned'?"), std::string::npos) << message;
  EXPECT_NE(message.find("file, pmem, sparse, scratch, memory, versioned, rbd, redis or far"),
            std::string::npos)
      << message;
}

TEST(Kinds, EachSaysHowItsCheckpointsAreKept) {
  for (const StoreKind* kind : store_kinds()) {
    const auto expected = kind->scheme == "versioned" ? StoreKind::Checkpoints::kInPool
                          : kind->scheme == "rbd"     ? StoreKind::Checkpoints::kBySnapshots
                                                      : StoreKind::Checkpoints::kNone;
    EXPECT_EQ(kind->checkpoints, expected) << kind->scheme;
    EXPECT_FALSE(kind->summary.empty()) << kind->scheme;
  }
}

}  // namespace
}  // namespace outcore
