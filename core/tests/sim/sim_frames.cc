#include "core/tests/sim/sim_frames.h"

#include <cerrno>
#include <cstring>

namespace outcore::sim {

using base::kSystemPage;
using os::Piece;
using os::SubpageSet;

SimFrames::~SimFrames() {
  for (uint64_t i = 0; i < page_.size(); ++i)
    if (page_[i].bytes != nullptr) drop(i * kSystemPage);
}

SimFrames::SystemPage& SimFrames::page_at(uint64_t offset) {
  kernel_.fibers.require(offset / kSystemPage < page_.size(), "an offset past the frames' end",
                         offset);
  return page_[offset / kSystemPage];
}

void SimFrames::check(const Piece& piece, const char* call) {
  kernel_.fibers.require(piece.size_bytes % kSystemPage == 0, call, piece.size_bytes);
  kernel_.fibers.require(piece.size_bytes > 0, call, piece.offset);
}

void SimFrames::put(uint64_t offset, const std::byte* bytes) {
  SystemPage& page = page_at(offset);
  if (page.bytes == nullptr) {
    page.bytes = std::make_unique<std::array<std::byte, kSystemPage>>();
    ++pages_held_;
    kernel_.memory_changed(kSystemPage);
  }
  if (bytes != nullptr && defect_ != Defect::kInstallsZeros)
    std::memcpy(page.bytes->data(), bytes, kSystemPage);
  else
    page.bytes->fill(std::byte{0});
  page.is_failed_install = false;
}

void SimFrames::drop(uint64_t offset) {
  SystemPage& page = page_at(offset);
  page.is_failed_install = false;
  if (page.bytes == nullptr) return;
  page.bytes = nullptr;
  --pages_held_;
  kernel_.memory_changed(-static_cast<int64_t>(kSystemPage));
}

std::byte* SimFrames::bytes_at(uint64_t offset) {
  SystemPage& page = page_at(offset);
  if (page.bytes == nullptr && model_ == FramesModel::kProtected) put(offset, nullptr);
  kernel_.fibers.require(page.bytes != nullptr, "a page is shown that has no bytes", offset);
  return page.bytes->data() + offset % kSystemPage;
}

std::byte* SimFrames::touch(PageEntry& entry, uint64_t offset, bool is_write) {
  if (!entry.is_present) return nullptr;
  if (is_write && entry.is_protected) {
    if (!is_async()) return nullptr;
    entry.is_protected = false;
  }
  return bytes_at(offset);
}

os::MappingHeadroom SimFrames::mapping_headroom() const {
  if (pages_held_ >= pages_max_) return os::MappingHeadroom::kNone;
  return pages_held_ >= pages_max_ / 16 * 15 ? os::MappingHeadroom::kLittle
                                             : os::MappingHeadroom::kAmple;
}

Status SimFrames::attach(const Piece& piece) {
  check(piece, "attach of an empty piece");
  kernel_.map({piece.address, piece.offset, piece.size_bytes, piece.is_writable, this, false, {}});
  step("attach", piece.offset, piece.size_bytes);
  return {};
}

void SimFrames::detach(const Piece& piece) {
  kernel_.unmap(piece.address, piece.size_bytes);
  step("detach", piece.offset, piece.size_bytes);
}

int SimFrames::resize(uint64_t size_bytes) {
  page_.resize(size_bytes / kSystemPage);
  return 0;
}

int SimFrames::put_and_show(const Piece& piece, const std::byte* bytes, bool is_written) {
  check(piece, "install of an empty piece");
  const bool is_refused = kernel_.fibers.random().chance(kernel_.refusals.install);
  const uint64_t refused_at =
      is_refused ? kernel_.fibers.random().below(piece.size_bytes / kSystemPage) : UINT64_MAX;
  for (uint64_t i = 0; i < piece.size_bytes / kSystemPage; ++i) {
    const uint64_t at = i * kSystemPage;
    step("install", piece.offset + at, is_written);
    if (i == refused_at) {
      for (uint64_t done = 0; done < at; done += kSystemPage)
        page_at(piece.offset + done).is_failed_install = true;
      return -ENOMEM;
    }
    PageEntry& entry = entry_of(piece, at);
    kernel_.fibers.require(!entry.is_present, "install over a page that is shown",
                           piece.offset + at);
    kernel_.fibers.require(page_at(piece.offset + at).bytes == nullptr,
                           "install over bytes that are in", piece.offset + at);
    if (model_ != FramesModel::kProtected || bytes != nullptr)
      put(piece.offset + at, bytes == nullptr ? nullptr : bytes + at);
    entry = {true, !is_written && (piece.is_writable || !is_private())};
  }
  return 0;
}

int SimFrames::install(const Piece& piece, const std::byte* bytes, bool is_written) {
  return put_and_show(piece, bytes, is_written);
}

int SimFrames::install_zeros(const Piece& piece, bool is_written) {
  return put_and_show(piece, nullptr, is_written);
}

int SimFrames::overwrite(const Piece& piece, const std::byte* bytes) {
  if (defect_ == Defect::kForgetsToOverwrite) return 0;
  if (is_private()) {
    check(piece, "overwrite of an empty piece");
    if (const int result = free({&piece, 1}); result != 0) return result;
    return install(piece, bytes, false);
  }
  for (uint64_t at = 0; at < piece.size_bytes; at += kSystemPage) {
    step("overwrite", piece.offset + at);
    put(piece.offset + at, bytes + at);
  }
  return 0;
}

int SimFrames::deposit(uint64_t offset, std::span<const std::byte> bytes) {
  kernel_.fibers.require(can_share(), "deposit into private frames");
  for (uint64_t at = 0; at < bytes.size(); at += kSystemPage) {
    step("deposit", offset + at);
    kernel_.for_each_entry(this, offset + at, [&](const Mapping& m, const PageEntry& entry) {
      kernel_.fibers.require(m.is_ending || !entry.is_present, "deposit into a page that is shown",
                             offset + at);
    });
    put(offset + at, bytes.data() + at);
  }
  return 0;
}

int SimFrames::show(const Piece& piece, const SubpageSet& written) {
  kernel_.fibers.require(can_share(), "show of private frames");
  check(piece, "show of an empty piece");
  for (uint64_t i = 0; i < piece.size_bytes / kSystemPage; ++i) {
    const uint64_t offset = piece.offset + i * kSystemPage;
    step("show", offset, written.has(piece.first_subpage + i));
    PageEntry& entry = entry_of(piece, i * kSystemPage);
    if (model_ == FramesModel::kProtected) {
      entry = {true, !(written.has(piece.first_subpage) && piece.is_writable)};
      continue;
    }
    kernel_.fibers.require(page_at(offset).bytes != nullptr, "CONTINUE of bytes that are not in",
                           offset);
    // CONTINUE on a present page returns EEXIST, and changes nothing.
    if (!entry.is_present) entry = {true, !written.has(piece.first_subpage + i)};
  }
  return 0;
}

int SimFrames::allow_write(const Piece& piece) {
  SubpageSet all;
  all.add_range(0, SubpageSet::kCount);
  check(piece, "allow_write of an empty piece");
  kernel_.fibers.require(piece.is_writable, "a write is allowed in a read-only view");
  for (uint64_t at = 0; at < piece.size_bytes; at += kSystemPage)
    kernel_.fibers.require(entry_of(piece, at).is_present,
                           "a write is allowed to a page that is not shown", piece.offset + at);
  set_protection(piece, all, false);
  return 0;
}

void SimFrames::set_protection(const Piece& piece, const SubpageSet& set, bool is_protected) {
  for (uint64_t i = 0; i < piece.size_bytes / kSystemPage; ++i) {
    if (!set.has(piece.first_subpage + i)) continue;
    step(is_protected ? "protect" : "unprotect", piece.offset + i * kSystemPage);
    entry_of(piece, i * kSystemPage).is_protected = is_protected;
  }
}

int SimFrames::unmap(std::span<const Piece> pieces) {
  if (is_private()) return 0;
  const std::byte* end = nullptr;
  for (const Piece& piece : pieces) {
    check(piece, "unmap of an empty piece");
    kernel_.fibers.require(piece.address >= end, "unmap of pieces that are not sorted");
    end = piece.address + piece.size_bytes;
    if (kernel_.fibers.random().chance(kernel_.refusals.unmap)) return -ENOMEM;
    for (uint64_t at = 0; at < piece.size_bytes; at += kSystemPage) {
      step("unmap", piece.offset + at);
      PageEntry& entry = entry_of(piece, at);
      entry.is_present = false;
      if (defect_ == Defect::kForgetsWrittenAtUnmap) entry.is_protected = true;
    }
  }
  return 0;
}

int SimFrames::collect(const Piece& piece, bool clear, SubpageSet* written) {
  check(piece, "collect of an empty piece");
  if (is_private() && !piece.is_writable) return 0;
  SubpageSet found;
  const uint64_t pages = piece.size_bytes / kSystemPage;
  const bool is_refused = kernel_.fibers.random().chance(kernel_.refusals.collect);
  const uint64_t refused_at = is_refused ? kernel_.fibers.random().below(pages) : UINT64_MAX;
  for (uint64_t i = 0; i < pages; ++i) {
    if (i == refused_at) return -ENOMEM;
    step("collect", piece.offset + i * kSystemPage, clear);
    PageEntry& entry = entry_of(piece, i * kSystemPage);
    if (model_ == FramesModel::kProtected) {
      if (clear) entry.is_protected = true;
      continue;
    }
    if (entry.is_protected || (is_private() && !entry.is_present)) continue;
    found.add(piece.first_subpage + i);
    written->add(piece.first_subpage + i);
    if (clear && is_async()) entry.is_protected = true;
  }
  // Private frames scan first and protect afterwards.
  if (clear && is_private() && defect_ != Defect::kForgetsToProtect)
    set_protection(piece, found, true);
  return 0;
}

// Pages may change during the scan: each is a step of its own.
int SimFrames::find_written(const Piece& piece, std::span<os::WrittenRun> runs,
                            uint64_t* scanned_bytes) {
  check(piece, "find_written of an empty piece");
  kernel_.fibers.require(is_async() && piece.is_writable, "find_written without write tracking");
  if (kernel_.fibers.random().chance(kernel_.refusals.collect)) return -ENOMEM;
  size_t count = 0;
  uint64_t at = 0;
  for (; at < piece.size_bytes; at += kSystemPage) {
    step("find_written", piece.offset + at);
    const Mapping* mapping = kernel_.find(piece.address + at);
    if (mapping == nullptr || mapping->owner != this) continue;  // frames are being replaced
    if (entry_of(piece, at).is_protected) continue;
    if (defect_ == Defect::kOverlooksWritten && kernel_.fibers.random().chance(200)) continue;
    const uint64_t offset = piece.offset + at;
    if (count != 0 && runs[count - 1].to == offset) {
      runs[count - 1].to += kSystemPage;
      continue;
    }
    if (count == runs.size()) break;
    runs[count++] = {offset, offset + kSystemPage};
  }
  *scanned_bytes = at;
  return static_cast<int>(count);
}

int SimFrames::restore(const Piece& piece, const SubpageSet& written) {
  check(piece, "restore of an empty piece");
  if (model_ != FramesModel::kProtected) set_protection(piece, written, false);
  return 0;
}

int SimFrames::copy_out(const Piece& piece, std::byte* into) {
  check(piece, "copy_out of an empty piece");
  for (uint64_t at = 0; at < piece.size_bytes; at += kSystemPage) {
    step("copy_out", piece.offset + at);
    if (kernel_.fibers.random().chance(kernel_.refusals.copy_out)) {
      std::memset(into, 0xBD, piece.size_bytes);  // poison value: nobody may store this
      return -EIO;
    }
    if (is_private())
      kernel_.fibers.require(entry_of(piece, at).is_present, "copy_out of an absent page",
                             piece.offset + at);
    const SystemPage& page = page_at(piece.offset + at);
    kernel_.fibers.require(page.bytes != nullptr || model_ == FramesModel::kProtected,
                           "copy_out of bytes that are not in", piece.offset + at);
    if (page.bytes == nullptr)
      std::memset(into + at, 0, kSystemPage);
    else
      std::memcpy(into + at, page.bytes->data(), kSystemPage);
  }
  return 0;
}

// Memory that the program locked is not freed. Memory that a failed fill undoes was never locked.
bool SimFrames::is_refused(const Piece& piece) {
  if (!is_private() || !kernel_.fibers.random().chance(kernel_.refusals.free)) return false;
  for (uint64_t at = 0; at < piece.size_bytes; at += kSystemPage)
    if (!entry_of(piece, at).is_present || page_at(piece.offset + at).is_failed_install)
      return false;
  return true;
}

int SimFrames::free(std::span<const Piece> pieces) {
  uint64_t end = 0;
  for (const Piece& piece : pieces) {
    check(piece, "free of an empty piece");
    kernel_.fibers.require(piece.offset >= end, "free of pieces that are not sorted");
    end = piece.offset + piece.size_bytes;
    // As madvise on locked memory: the pieces before it are freed.
    if (is_refused(piece)) return -EINVAL;
    for (uint64_t at = 0; at < piece.size_bytes; at += kSystemPage) {
      step("free", piece.offset + at);
      const bool may_be_shown = is_private() || page_at(piece.offset + at).is_failed_install;
      if (is_private()) entry_of(piece, at) = {};
      kernel_.for_each_entry(this, piece.offset + at, [&](const Mapping& m, PageEntry& entry) {
        kernel_.fibers.require(may_be_shown || m.is_ending || !entry.is_present,
                               "a page is freed that is shown", piece.offset + at);
        entry.is_present = false;
      });
      drop(piece.offset + at);
    }
  }
  return 0;
}

void SimFrames::wake(const Piece& piece) { step("wake", piece.offset); }

}  // namespace outcore::sim
