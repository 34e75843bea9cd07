// A persistent heap, in a region, in a checkpoint. Its metadata is in ordinary memory, and is
// written to the region before the moment of the cut. The header that says "closed" is only in the
// store, from the time when the whole cut is there until the commit contains it.
#include <cerrno>
#include <new>

#include "core/base/assert.h"
#include "heaps/persistent/persistent_core_impl.h"
#include "heaps/persistent/persistent_sizes.h"

namespace outcore {

using heap::persistent::kTileBytes;
using heap::persistent::Owner;
using heap::persistent::State;

Status PersistentCore::Impl::check_no_cut(const char* what) const {
  if (!cut_draft_) return {};
  return Error{EBUSY, std::string(what) + " the heap " + place.uri +
                          ": a checkpoint of it is being made: try again when it is there"};
}

Status PersistentCore::Impl::begin_cut() {
  std::unique_lock<std::recursive_mutex> names_held(names_lock);
  if (Status s = check_writable("checkpoint"); !s) return s;
  if (Status s = check_no_cut("checkpoint"); !s) return s;
  if (!lost_sync.ok()) return lost_sync;
  allocator->hand_back();
  try {
    Result<Draft> d = draft();
    if (!d) return d.status();
    cut_draft_ = std::move(d).value();
  } catch (const std::bad_alloc&) {  // what it took is free again when the heap is opened
    if (header.metadata_bytes != 0)
      allocator->tiles().set_owner(header.metadata_offset / kTileBytes,
                                   (header.metadata_bytes + kTileBytes - 1) / kTileBytes,
                                   Owner(Owner::Kind::kMetadata, header.metadata_bytes));
    return Error{ENOMEM, "checkpoint the heap " + place.uri + ": no memory for its metadata"};
  }
  cut_header_ = header_with(*cut_draft_);
  if (Status s = mapping->write(cut_header_.metadata_offset, cut_draft_->bytes); !s) {
    free_draft(*cut_draft_);
    cut_draft_.reset();
    return s;
  }
  cut_draft_->bytes = {};
  names_held.release();  // held until leave_cut()
  return {};
}

void PersistentCore::Impl::leave_cut(bool is_found) {
  if (!is_found) {
    free_draft(*cut_draft_);
    cut_draft_.reset();
  }
  names_lock.unlock();
}

std::vector<std::byte> PersistentCore::Impl::closed_header() const {
  OC_CHECK(cut_draft_.has_value());
  Header closed = cut_header_;
  closed.state = static_cast<uint32_t>(State::kConsistent);
  return heap::persistent::encode(closed);
}

std::vector<std::byte> PersistentCore::Impl::open_header(bool is_adopted) const {
  OC_CHECK(cut_draft_.has_value());
  if (!is_adopted) return heap::persistent::encode(header);
  Header open = cut_header_;
  ++open.sequence;
  return heap::persistent::encode(open);
}

Status PersistentCore::Impl::end_cut(bool is_adopted, bool may_be_named) {
  const std::lock_guard<std::recursive_mutex> guard(names_lock);
  if (!cut_draft_) return {};
  Status s;
  if (is_adopted) {
    // The store contains this already; the page in memory must follow.
    s = mapping->write(0, open_header(true));
    header = cut_header_;
    ++header.sequence;
    settle(*cut_draft_);
  } else {
    free_draft(*cut_draft_, may_be_named);
  }
  cut_draft_.reset();
  return s;
}

}  // namespace outcore
