// The calls of a simulated program on ranges of pages, on the budget, and on views.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/tests/sim/app.h"

namespace outcore::sim {

using base::kSystemPage;

void App::flush_range(SimFile& file) {
  const uint64_t pages = file.cache->page_count();
  const bool is_all = random_.chance(300);
  const uint64_t first = is_all ? 0 : random_.below(pages);
  const uint64_t end = is_all ? pages : std::min(pages, first + random_.between(1, 40));
  static_cast<void>(sim_.flush(file, first, end));
}

void App::evict_range(SimFile& file) {
  const uint64_t pages = file.cache->page_count();
  const uint64_t first = random_.below(pages);
  const Status evicted =
      sim_.engine_->evict(*file.cache, first, std::min(pages, first + random_.between(1, 40)));
  sim_.fibers_.require(evicted.ok() || sim_.plan_.has_faults, "an eviction fails");
}

void App::cool_range(SimFile& file) {
  const uint64_t pages = file.cache->page_count();
  const uint64_t first = random_.below(pages);
  sim_.engine_->make_cold(*file.cache, first, std::min(pages, first + random_.between(1, 20)));
}

void App::prefetch_range(SimFile& file, SimView& view) {
  const uint64_t pages = file.cache->page_count();
  constexpr int64_t kStrides[] = {1, 1, 1, 3, -1, -2};
  const uint64_t count = random_.between(1, 60);
  if (random_.chance(300)) {
    const uint64_t begin = view.view->first_page(), end = view.view->end_page();
    if (begin == end) return;
    const uint64_t first = begin + random_.below(end - begin);
    return sim_.engine_->prepare(*view.view, first, std::min(end, first + count));
  }
  sim_.engine_->prefetch(*view.view, random_.below(pages), random_.one_of(kStrides), count);
}

void App::discard_range(SimFile& file, SimView& view) {
  const uint64_t page_bytes = file.plan.page_bytes;
  const uint64_t begin = (view.offset + page_bytes - 1) / page_bytes;
  const uint64_t limit = view.end() / page_bytes;
  if (begin >= limit || !view.is_writable) return;
  const uint64_t first = begin + random_.below(limit - begin);
  const uint64_t end = std::min(limit, first + random_.between(1, 6));
  Oracle& oracle = *file.oracle;
  for (uint64_t page = first; page < end; ++page) {
    const PageUse& use = oracle.use_of_page(page);
    if (use.writers != 0 || use.is_discarded || use.is_undefined) return;
  }
  const uint64_t cells = page_bytes / kSystemPage * Oracle::kCellsOfSystemPage;
  const uint64_t last_cell = std::min(end * cells, oracle.cell_count());
  for (uint64_t page = first; page < end; ++page) oracle.use_of_page(page).is_discarded = true;
  for (uint64_t i = first * cells; i < last_cell; ++i) {
    Cell& cell = oracle.cell(i);
    cell = {0, cell.value, ++sim_.events_};
  }
  const Status discarded =
      sim_.engine_->discard(*file.cache, first * page_bytes, (end - first) * page_bytes);
  for (uint64_t i = first * cells; i < last_cell; ++i) oracle.cell(i).changed_at = ++sim_.events_;
  for (uint64_t page = first; page < end; ++page) {
    oracle.use_of_page(page).is_discarded = false;
    oracle.use_of_page(page).is_undefined = !discarded.ok();
  }
  if (discarded.ok()) return;
  // A page that another program holds for a moment counts as pinned, too.
  if (!sim_.plan_.has_faults && discarded.code() != EBUSY)
    sim_.fibers_.fail("a discard fails though the store does not: " + discarded.message());
  rewrite(file, view, first, end);
}

// After a failed discard the contents are unknown: the program writes all of the range.
void App::rewrite(SimFile& file, SimView& view, uint64_t first, uint64_t end) {
  const uint64_t to = std::min(end * file.plan.page_bytes, file.plan.store_bytes);
  for (uint64_t at = first * file.plan.page_bytes; at < to; at += kSystemPage) {
    std::byte* bytes = nullptr;
    while (bytes == nullptr) {
      bytes = touch(file, view, address_of(view, at), true);
      if (bytes == nullptr) sim_.fibers_.let_pass(100'000);
    }
    std::memset(bytes, 0, std::min(kSystemPage, to - at));
  }
  for (uint64_t page = first; page < end; ++page)
    file.oracle->use_of_page(page).is_undefined = false;
  const uint64_t cells = file.plan.page_bytes / kSystemPage * Oracle::kCellsOfSystemPage;
  for (uint64_t i = first * cells; i < std::min(end * cells, file.oracle->cell_count()); ++i)
    file.oracle->cell(i).changed_at = ++sim_.events_;
}

void App::resize() {
  if (sim_.is_resizing_) return;
  sim_.is_resizing_ = true;
  const uint64_t room = sim_.budget_most_ - sim_.budget_least_;
  const uint64_t bytes = sim_.budget_least_ + (room == 0 ? 0 : random_.below(room + 1));
  static_cast<void>(sim_.engine_->resize_budget(bytes));
  sim_.is_resizing_ = false;
}

void App::change_views(SimFile& file) {
  if (file.is_handed_back) return;
  if (file.views.size() < 3) {
    const uint64_t system_pages = (file.plan.store_bytes + kSystemPage - 1) / kSystemPage;
    const uint64_t first = random_.below(system_pages);
    const uint64_t count = random_.between(1, system_pages - first);
    const uint64_t offset = first * kSystemPage;
    const uint64_t size = std::min(count * kSystemPage, file.plan.store_bytes - offset);
    const bool may_grow = sim_.plan_.has_reshapes && random_.chance(500);
    const uint64_t now = may_grow ? random_.below(size + 1) : size;
    const bool is_writable = !file.plan.is_read_only && random_.chance(700);
    static_cast<void>(sim_.map_view(file, offset, now, size, is_writable));
    return;
  }
  // The first view stays; a pinned view is not unmapped.
  const size_t index = 1 + random_.below(file.views.size() - 1);
  if (!file.views[index]->is_used()) sim_.unmap_view(file, file.views[index].get());
}

void App::reshape(SimFile& file) {
  SimView& view = *file.views[random_.below(file.views.size())];
  const uint64_t pages = file.cache->page_count(), dice = random_.below(100);
  if (file.is_handed_back) return;
  if (dice < (file.plan.is_read_only ? 20 : 50)) {
    const uint64_t system_pages = view.view->reserved_bytes / kSystemPage;
    const uint64_t from = random_.below(system_pages);
    const uint64_t to =
        std::min(system_pages, from + (random_.chance(400) ? 0 : random_.between(1, 40)));
    const uint64_t align = random_.chance(700) ? file.plan.page_bytes : kSystemPage;
    sim_.cut_view(file, view, from * kSystemPage / align * align, to * kSystemPage / align * align);
  } else if (dice < (file.plan.is_read_only ? 30 : 60)) {
    sim_.give_view(file, view);
  } else if (dice < (file.plan.is_read_only ? 40 : 75)) {
    sim_.extend_view(file, view, view.size_bytes + random_.below(20 * file.plan.page_bytes));
  } else if (dice < 97 || file.plan.is_read_only) {
    const uint64_t first = random_.below(pages);
    sim_.write_to_store(file, first, std::min(pages, first + random_.between(1, 30)), random_);
  } else {
    sim_.hand_back(file);
  }
}

}  // namespace outcore::sim
