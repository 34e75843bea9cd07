// A persistent heap in a checkpoint: its metadata lie in ordinary memory, and are written to its
// region before the moment of the cut; the header that says "closed" is only ever in the store,
// from when all of the cut is there until the commit has it.
#include "base/assert.h"
#include "heap/persistent_core_impl.h"

namespace outcore {

using heap::persistent::State;

Status PersistentCore::Impl::begin_cut() {
  names_lock.lock();
  Status s = check_writable("checkpoint");
  if (s.ok()) s = lost_sync;
  if (s.ok()) {
    allocator->hand_back();
    if (cut_draft_) take_back(*cut_draft_);  // of an attempt before
    cut_draft_.reset();
    Result<Draft> d = draft();
    s = d.status();
    if (d) {
      cut_draft_ = std::move(d).value();
      cut_header_ = header_with(*cut_draft_);
      s = region.write(cut_header_.metadata_offset, cut_draft_->bytes);
      cut_draft_->bytes = {};
    }
  }
  if (!s.ok()) names_lock.unlock();
  return s;
}

void PersistentCore::Impl::leave_cut() { names_lock.unlock(); }

std::vector<std::byte> PersistentCore::Impl::closed_header() const {
  OC_CHECK(cut_draft_.has_value());
  Header closed = cut_header_;
  closed.state = static_cast<uint32_t>(State::kConsistent);
  return heap::persistent::encode(closed);
}

std::vector<std::byte> PersistentCore::Impl::open_header(bool is_stored) const {
  OC_CHECK(cut_draft_.has_value());
  if (!is_stored) return heap::persistent::encode(header);
  Header open = cut_header_;
  ++open.sequence;
  return heap::persistent::encode(open);
}

Status PersistentCore::Impl::end_cut(bool is_stored) {
  if (!cut_draft_) return {};
  const std::lock_guard<std::recursive_mutex> guard(names_lock);
  Status s;
  if (is_stored) {
    // The store may say so already: the page that is in memory has to follow.
    s = region.write(0, open_header(true));
    header = cut_header_;
    ++header.sequence;
    settle(*cut_draft_);
  } else {
    take_back(*cut_draft_, true);
  }
  cut_draft_.reset();
  return s;
}

}  // namespace outcore
