#include "core/region/view.h"

#include <gtest/gtest.h>

namespace outcore::region {
namespace {

// Shows bytes 4096 … 4096 + 150000 of a cache with pages of 64 KiB: it starts and ends inside a
// page.
class ViewTest : public testing::Test {
 protected:
  static constexpr uint64_t kPage = 65536, kSystemPage = 4096;
  ViewTest() {
    view_.address = base_;
    view_.offset = kSystemPage;
    view_.size_bytes = 150'000;
    view_.reserved_bytes = 1 << 20;
    view_.page_bytes = kPage;
    view_.is_writable = true;
  }
  std::byte* const base_ = reinterpret_cast<std::byte*>(uint64_t{1} << 40);
  View view_;
};

TEST_F(ViewTest, EndsWithItsLastSystemPage) {
  EXPECT_EQ(view_.mapped_bytes(), 37u * kSystemPage);
  EXPECT_TRUE(view_.contains(base_));
  EXPECT_TRUE(view_.contains(base_ + 150'000));
  EXPECT_FALSE(view_.contains(base_ + 37 * kSystemPage));
  EXPECT_FALSE(view_.contains(base_ - 1));
}

// A part behind the bytes shown so far: it begins within a page, and shows none of it.
TEST_F(ViewTest, ShowsNoPageWhileItIsEmpty) {
  view_.size_bytes = 0;
  EXPECT_EQ(view_.first_page(), 0u);
  EXPECT_EQ(view_.end_page(), 0u);
  EXPECT_EQ(view_.piece_of(0).size_bytes, 0u);
  EXPECT_FALSE(view_.contains(base_));
}

TEST_F(ViewTest, NumbersPagesByTheCache) {
  EXPECT_EQ(view_.first_page(), 0u);
  EXPECT_EQ(view_.end_page(), 3u);
  EXPECT_EQ(view_.page_of(base_), 0u);
  EXPECT_EQ(view_.page_of(base_ + kPage - kSystemPage - 1), 0u);
  EXPECT_EQ(view_.page_of(base_ + kPage - kSystemPage), 1u);
}

TEST_F(ViewTest, APieceIsThePartOfAPageThatItShows) {
  const os::Piece first = view_.piece_of(0);
  EXPECT_EQ(first.address, base_);
  EXPECT_EQ(first.offset, kSystemPage);
  EXPECT_EQ(first.size_bytes, kPage - kSystemPage);
  EXPECT_EQ(first.first_subpage, 1u);
  EXPECT_TRUE(first.is_writable);
  const os::Piece whole = view_.piece_of(1);
  EXPECT_EQ(whole.address, base_ + kPage - kSystemPage);
  EXPECT_EQ(whole.size_bytes, kPage);
  EXPECT_EQ(whole.first_subpage, 0u);
  const os::Piece last = view_.piece_of(2);
  EXPECT_EQ(last.offset, 2 * kPage);
  EXPECT_EQ(last.size_bytes, 38 * kSystemPage - 2 * kPage);
  EXPECT_EQ(view_.piece_of(3).size_bytes, 0u);
}

TEST_F(ViewTest, PiecesOfNeighboursAreOne) {
  const os::Piece all = view_.pieces_of(0, 3);
  EXPECT_EQ(all.address, base_);
  EXPECT_EQ(all.size_bytes, view_.mapped_bytes());
}

TEST_F(ViewTest, RemembersWhatItShows) {
  view_.offset = 10 * kPage;
  ASSERT_TRUE(view_.shown.allocate(4).ok());
  EXPECT_FALSE(view_.is_shown(10));
  view_.set_shown(10, true);
  view_.set_shown(10 + 64, true);
  EXPECT_TRUE(view_.is_shown(10));
  EXPECT_TRUE(view_.is_shown(74));
  EXPECT_FALSE(view_.is_shown(11));
  view_.set_shown(10, false);
  EXPECT_FALSE(view_.is_shown(10));
  EXPECT_TRUE(view_.is_shown(74));
}

}  // namespace
}  // namespace outcore::region
