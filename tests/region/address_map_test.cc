#include "region/address_map.h"

#include <gtest/gtest.h>

#include <deque>
#include <thread>

#include "region/view_pool.h"

namespace outcore::region {
namespace {

constexpr uint64_t kPage = 4096;

// Addresses that nothing maps: the map only compares them.
std::byte* at(uint64_t n) { return reinterpret_cast<std::byte*>(uint64_t{1} << 40) + n * kPage; }

// The map of the process is one, and views never go: each test puts its own in and takes them out.
class AddressMapTest : public testing::Test {
 protected:
  ~AddressMapTest() override {
    for (View* view : views_) map().remove(view), ViewPool::instance().give_back(view);
  }
  static AddressMap& map() { return AddressMap::instance(); }
  View* add(uint64_t page, uint64_t pages, uint64_t reserved_pages = 0) {
    View* view = ViewPool::instance().take();
    view->address = at(page);
    view->page_bytes = kPage;
    view->size_bytes = pages * kPage;
    view->reserved_bytes = (reserved_pages != 0 ? reserved_pages : pages) * kPage;
    EXPECT_TRUE(map().add(view).ok());
    views_.push_back(view);
    return view;
  }
  void remove(View* view) {
    map().remove(view);
    std::erase(views_, view);
    ViewPool::instance().give_back(view);
  }
  static View* find(std::byte* address) {
    View* view = map().find_and_hold(address);
    if (view != nullptr) AddressMap::let_go(view);
    return view;
  }
  std::deque<View*> views_;
};

TEST_F(AddressMapTest, FindsTheViewOfAnAddress) {
  View* b = add(20, 10);
  View* a = add(0, 10);
  View* c = add(30, 1);
  EXPECT_EQ(find(at(0)), a);
  EXPECT_EQ(find(at(10) - 1), a);
  EXPECT_EQ(find(at(10)), nullptr);
  EXPECT_EQ(find(at(20) - 1), nullptr);
  EXPECT_EQ(find(at(29)), b);
  EXPECT_EQ(find(at(30)), c);
  EXPECT_EQ(find(at(31)), nullptr);
  EXPECT_TRUE(map().is_valid());
}

TEST_F(AddressMapTest, ReservedAddressesAreNobodysUntilTheViewGrows) {
  View* view = add(0, 2, 8);
  EXPECT_EQ(find(at(2)), nullptr);
  EXPECT_TRUE(map().overlaps(at(7), kPage));
  EXPECT_FALSE(map().overlaps(at(8), kPage));
  view->size_bytes = 5 * kPage;
  EXPECT_EQ(find(at(4)), view);
}

TEST_F(AddressMapTest, ARangeThatTouchesAViewOverlaps) {
  add(10, 10);
  EXPECT_TRUE(map().overlaps(at(9), 2 * kPage));
  EXPECT_TRUE(map().overlaps(at(0), 100 * kPage));
  EXPECT_TRUE(map().overlaps(at(19), kPage));
  EXPECT_FALSE(map().overlaps(at(9), kPage));
  EXPECT_FALSE(map().overlaps(at(20), kPage));
}

TEST_F(AddressMapTest, ARemovedViewIsNotFound) {
  View* a = add(0, 1);
  View* b = add(1, 1);
  remove(a);
  EXPECT_EQ(find(at(0)), nullptr);
  EXPECT_EQ(find(at(1)), b);
}

TEST_F(AddressMapTest, RemoveWaitsForWhoeverHoldsTheView) {
  View* view = add(0, 1);
  ASSERT_EQ(map().find_and_hold(at(0)), view);
  std::atomic<bool> is_removed = false;
  std::thread remover([&] {
    map().remove(view);
    is_removed = true;
  });
  while (find(at(0)) != nullptr) std::this_thread::yield();
  EXPECT_FALSE(is_removed);
  AddressMap::let_go(view);
  remover.join();
  EXPECT_TRUE(is_removed);
  std::erase(views_, view);
  ViewPool::instance().give_back(view);
}

TEST_F(AddressMapTest, ReadersSeeEveryViewThatStaysWhileOthersComeAndGo) {
  View* stays = add(500, 1);
  std::atomic<bool> is_done = false;
  std::atomic<uint64_t> lost = 0;
  std::thread reader([&] {
    while (!is_done) lost += find(at(500)) != stays;
  });
  for (int round = 0; round < 300; ++round) {
    View* before = add(round % 400, 1);
    View* after = add(600 + round % 400, 1);
    remove(before);
    remove(after);
  }
  is_done = true;
  reader.join();
  EXPECT_EQ(lost, 0u);
}

}  // namespace
}  // namespace outcore::region
