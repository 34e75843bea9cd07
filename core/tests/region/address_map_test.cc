#include "core/region/address_map.h"

#include <gtest/gtest.h>

#include <deque>
#include <thread>
#include <vector>

#include "core/region/view_pool.h"

namespace outcore::region {
namespace {

constexpr uint64_t kPage = 4096;

// Unmapped addresses: the map only compares them.
std::byte* at(uint64_t n) { return reinterpret_cast<std::byte*>(uint64_t{1} << 40) + n * kPage; }

// The process has one map, and views are never freed: each test adds its own views and removes
// them.
class AddressMapTest : public testing::Test {
 protected:
  ~AddressMapTest() override {
    for (View* view : views_) map().remove(view), ViewPool::instance().free(view);
  }
  static AddressMap& map() { return AddressMap::instance(); }
  View* add(uint64_t page, uint64_t pages, uint64_t reserved_pages = 0) {
    View* view = ViewPool::instance().allocate();
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
    ViewPool::instance().free(view);
  }
  // Added to the map by replace() only.
  View* part(uint64_t page, uint64_t pages) {
    View* view = ViewPool::instance().allocate();
    view->address = at(page);
    view->page_bytes = kPage;
    view->size_bytes = pages * kPage;
    view->reserved_bytes = pages * kPage;
    return view;
  }
  void replace(View* old, std::vector<View*> parts) {
    ASSERT_TRUE(map().replace(old, parts).ok());
    std::erase(views_, old);
    views_.insert(views_.end(), parts.begin(), parts.end());
    ViewPool::instance().free(old);
  }
  static View* find(std::byte* address) {
    View* view = map().find_and_hold(address);
    if (view != nullptr) AddressMap::release(view);
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
  AddressMap::release(view);
  remover.join();
  EXPECT_TRUE(is_removed);
  std::erase(views_, view);
  ViewPool::instance().free(view);
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

TEST_F(AddressMapTest, PartsAreFoundInThePlaceOfTheWhole) {
  View* before = add(0, 10);
  View* whole = add(10, 20);
  View* after = add(30, 10);
  View* left = part(10, 5);
  View* middle = part(18, 2);
  View* right = part(25, 5);
  replace(whole, {left, middle, right});
  EXPECT_EQ(find(at(10) - 1), before);
  EXPECT_EQ(find(at(10)), left);
  EXPECT_EQ(find(at(15) - 1), left);
  EXPECT_EQ(find(at(15)), nullptr);
  EXPECT_EQ(find(at(18) - 1), nullptr);
  EXPECT_EQ(find(at(19)), middle);
  EXPECT_EQ(find(at(20)), nullptr);
  EXPECT_EQ(find(at(25)), right);
  EXPECT_EQ(find(at(30)), after);
  EXPECT_FALSE(map().overlaps(at(15), 3 * kPage));
  EXPECT_TRUE(map().is_valid());
}

TEST_F(AddressMapTest, OnePartOfAnEndTakesThePlaceOfTheWhole) {
  View* whole = add(10, 10);
  View* behind = add(20, 1);
  View* tail = part(14, 6);
  replace(whole, {tail});
  EXPECT_EQ(find(at(10)), nullptr);
  EXPECT_EQ(find(at(14)), tail);
  EXPECT_EQ(find(at(20)), behind);
  View* head = part(14, 1);
  replace(tail, {head});
  EXPECT_EQ(find(at(14)), head);
  EXPECT_EQ(find(at(15)), nullptr);
  EXPECT_TRUE(map().is_valid());
}

TEST_F(AddressMapTest, ReplaceWaitsForWhoeverHoldsTheWhole) {
  View* whole = add(0, 4);
  View* left = part(0, 2);
  View* right = part(2, 2);
  ASSERT_EQ(map().find_and_hold(at(3)), whole);
  std::atomic<bool> is_replaced = false;
  std::thread replacer([&] {
    View* const parts[] = {left, right};
    EXPECT_TRUE(map().replace(whole, parts).ok());
    is_replaced = true;
  });
  while (find(at(3)) != right) std::this_thread::yield();
  EXPECT_EQ(find(at(0)), left);
  EXPECT_FALSE(is_replaced);
  AddressMap::release(whole);
  replacer.join();
  EXPECT_TRUE(is_replaced);
  std::erase(views_, whole);
  views_.insert(views_.end(), {left, right});
  ViewPool::instance().free(whole);
}

TEST_F(AddressMapTest, ReadersAlwaysFindSomethingWhereAPartStays) {
  constexpr uint64_t kPages = 300;
  View* now = add(0, kPages);
  add(kPages, 1);
  std::atomic<bool> is_done = false;
  std::atomic<uint64_t> lost = 0, finds = 0;
  std::thread reader([&] {
    while (!is_done) {
      View* found = map().find_and_hold(at(kPages - 1));
      lost += found == nullptr || !found->contains(at(kPages - 1));
      if (found != nullptr) AddressMap::release(found);
      ++finds;
    }
  });
  // Cuts off its first page, or a page inside: then two parts replace the view.
  for (uint64_t first = 0; first + 4 < kPages; first += 3) {
    for (const uint64_t until = finds + 1; finds < until;) std::this_thread::yield();
    View* shorter = part(first + 1, kPages - first - 1);
    replace(now, {shorter});
    View* left = part(first + 1, 1);
    now = part(first + 3, kPages - first - 3);
    replace(shorter, {left, now});
  }
  is_done = true;
  reader.join();
  EXPECT_EQ(lost, 0u);
  EXPECT_TRUE(map().is_valid());
}

TEST_F(AddressMapTest, AChildForgetsViewsWhileItLooksAtThem) {
  View* a = add(0, 1);
  View* b = add(1, 1);
  View* c = add(2, 1);
  std::vector<View*> seen;
  map().for_each([&](View& view) {
    seen.push_back(&view);
    if (&view != b) map().forget_in_child(view);
  });
  EXPECT_EQ(seen, (std::vector<View*>{c, b, a}));
  EXPECT_EQ(find(at(0)), nullptr);
  EXPECT_EQ(find(at(1)), b);
  EXPECT_EQ(find(at(2)), nullptr);
  map().forget_in_child(*a);  // it is no longer there: nothing happens
  EXPECT_EQ(find(at(1)), b);
  EXPECT_TRUE(map().is_valid());
  for (View* view : {a, c}) {
    std::erase(views_, view);
    ViewPool::instance().free(view);
  }
}

}  // namespace
}  // namespace outcore::region
