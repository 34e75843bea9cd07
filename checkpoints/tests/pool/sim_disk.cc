#include "checkpoints/tests/pool/sim_disk.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace outcore::versioned_test {

class SimFile final : public File {
 public:
  SimFile(SimDisk& disk, std::shared_ptr<SimInode> inode, bool is_heap, bool is_writable)
      : disk_(disk), inode_(std::move(inode)), is_heap_(is_heap), is_writable_(is_writable) {}

  int read(uint64_t offset, std::span<std::byte> into) override {
    if (offset + into.size() > size_bytes()) return -EIO;
    for (size_t i = 0; i < into.size();) {
      const uint64_t at = offset + i;
      const size_t size = std::min<size_t>(into.size() - i, 512 - at % 512);
      const auto found = inode_->sectors.find(at / 512);
      if (found == inode_->sectors.end())
        std::memset(into.data() + i, 0, size);
      else
        std::memcpy(into.data() + i, found->second.back().data() + at % 512, size);
      i += size;
    }
    return 0;
  }
  int write(uint64_t offset, std::span<const std::byte> from) override {
    EXPECT_TRUE_(is_writable_);
    disk_.changing();
    size_t count = from.size();
    int error = 0;
    // A write that fails may have written a part.
    if (disk_.random_.chance(disk_.faults.eio_permille)) error = -EIO;
    // What a journal has allocated takes its records; a heap may have been punched.
    const bool needs_space = is_heap_ || offset + from.size() > size_bytes();
    if (error == 0 && needs_space && disk_.random_.chance(disk_.faults.enospc_permille))
      error = -ENOSPC;
    if (error == 0) error = disk_.take_space(*inode_, offset, from.size());
    if (error != 0) count = disk_.random_.below(count + 1);
    put(offset, from.first(count));
    return error;
  }
  int sync() override {
    disk_.changing();
    const bool is_dropped =
        is_heap_ ? disk_.faults.drops_data_sync : disk_.faults.drops_journal_sync;
    if (is_dropped) return 0;
    if (disk_.random_.chance(disk_.faults.sync_eio_permille)) {
      inode_->dirty.clear();
      return -EIO;
    }
    for (const uint64_t number : inode_->dirty) {
      auto& versions = inode_->sectors[number];
      if (versions.size() > 1) versions = {versions.back()};
    }
    inode_->dirty.clear();
    inode_->sizes = {inode_->sizes.back()};
    return 0;
  }
  int allocate(uint64_t offset, uint64_t size) override {
    disk_.changing();
    if (disk_.random_.chance(disk_.faults.enospc_permille)) return -ENOSPC;
    if (const int error = disk_.take_space(*inode_, offset, size); error != 0) return error;
    if (offset + size > size_bytes()) inode_->sizes.push_back(offset + size);
    return 0;
  }
  void punch(uint64_t offset, uint64_t size) override {
    disk_.is_punching = true;
    disk_.changing();
    disk_.is_punching = false;
    const std::vector<std::byte> zeros(size);
    const uint64_t end = std::min(offset + size, size_bytes());
    if (offset < end) put(offset, std::span(zeros).first(end - offset));
    for (uint64_t piece = (offset + kPiece - 1) / kPiece; piece < (offset + size) / kPiece; ++piece)
      inode_->space.erase(piece);
  }
  uint64_t size_bytes() const override { return inode_->sizes.back(); }

 private:
  static void EXPECT_TRUE_(bool is) {
    if (!is) std::abort();
  }
  void put(uint64_t offset, std::span<const std::byte> from) {
    for (size_t i = 0; i < from.size();) {
      const uint64_t at = offset + i;
      const size_t size = std::min<size_t>(from.size() - i, 512 - at % 512);
      auto& versions = inode_->sectors[at / 512];
      inode_->dirty.insert(at / 512);
      if (versions.empty()) versions.push_back({});
      versions.push_back(versions.back());
      std::memcpy(versions.back().data() + at % 512, from.data() + i, size);
      i += size;
    }
    if (offset + from.size() > size_bytes()) inode_->sizes.push_back(offset + from.size());
  }

  SimDisk& disk_;
  const std::shared_ptr<SimInode> inode_;
  const bool is_heap_, is_writable_;
};

// All of it, or nothing and -ENOSPC.
int SimDisk::take_space(SimInode& inode, uint64_t offset, uint64_t size_bytes) const {
  if (size_bytes == 0 || capacity_bytes == UINT64_MAX) return 0;
  const uint64_t first = offset / kPiece, end = (offset + size_bytes - 1) / kPiece + 1;
  uint64_t more = 0;
  for (uint64_t piece = first; piece < end; ++piece) more += !inode.space.contains(piece);
  if (more * kPiece > capacity_bytes - std::min(capacity_bytes, used_bytes())) return -ENOSPC;
  for (uint64_t piece = first; piece < end; ++piece) inode.space.insert(piece);
  return 0;
}

uint64_t SimDisk::used_bytes() const {
  uint64_t pieces = 0;
  for (const auto& [name, inode] : names_) pieces += inode->space.size();
  return pieces * kPiece;
}

void SimDisk::carry_out(Names& names, const NameChange& change) {
  if (!change.from.empty()) names.erase(change.from);
  if (!change.to.empty()) names[change.to] = change.inode;
}

Result<std::unique_ptr<File>> SimDisk::open(const std::string& file, Mode mode, bool is_heap) {
  auto found = names_.find(file);
  if (mode == Mode::kCreateNew && found != names_.end())
    return Error{EEXIST, "make " + file + ": it exists"};
  if (mode == Mode::kCreate || mode == Mode::kCreateNew) {
    changing();
    if (faults.enospc_permille != 0 && random_.chance(faults.enospc_permille))
      return Error{ENOSPC, "make " + file + ": full"};
    const auto inode = std::make_shared<SimInode>();
    pending_.push_back({"", file, inode});
    carry_out(names_, pending_.back());
    found = names_.find(file);
  }
  if (found == names_.end()) return Error{ENOENT, "open " + file + ": there is none"};
  return std::unique_ptr<File>(new SimFile(*this, found->second, is_heap, mode != Mode::kRead));
}

Result<std::vector<std::string>> SimDisk::list() {
  if (cannot_list) return Error{EMFILE, "list: too many files"};
  std::vector<std::string> all;
  for (const auto& [name, inode] : names_) all.push_back(name);
  return all;
}

int SimDisk::rename(const std::string& from, const std::string& to) {
  changing();
  const auto found = names_.find(from);
  if (found == names_.end()) return -ENOENT;
  if (names_.contains(to)) return -EEXIST;
  if (random_.chance(faults.eio_permille)) return -EIO;
  pending_.push_back({from, to, found->second});
  carry_out(names_, pending_.back());
  return 0;
}

int SimDisk::unlink(const std::string& file) {
  changing();
  if (!names_.contains(file)) return -ENOENT;
  pending_.push_back({file, "", nullptr});
  carry_out(names_, pending_.back());
  return 0;
}

int SimDisk::sync_folder() {
  changing();
  if (faults.drops_folder_sync) return 0;
  if (random_.chance(faults.sync_eio_permille)) return -EIO;
  durable_names_ = names_;
  pending_.clear();
  return 0;
}

int SimDisk::hold(uint32_t commit) {
  held_.insert(commit);
  return 0;
}

std::shared_ptr<SimDisk> SimDisk::after_power_loss(uint64_t seed) const {
  sim::Random random(seed);
  auto found = std::make_shared<SimDisk>(seed);
  // A journaling filesystem carries changes of names out in order; one without, in any.
  const bool is_in_order = random.chance(500);
  const size_t prefix = random.below(pending_.size() + 1);
  Names names = durable_names_;
  for (size_t i = 0; i < pending_.size(); ++i)
    if (is_in_order ? i < prefix : random.chance(500)) carry_out(names, pending_[i]);
  const uint64_t luck = random.below(1001);  // how much of what was written got there
  std::map<const SimInode*, std::shared_ptr<SimInode>> copies;
  for (const auto& [name, inode] : names) {
    auto& copy = copies[inode.get()];
    if (copy == nullptr) {
      copy = std::make_shared<SimInode>();
      for (const auto& [number, versions] : inode->sectors) {
        const bool is_last = versions.size() == 1 || random.chance(luck);
        copy->sectors[number] = {is_last ? versions.back()
                                         : versions[random.below(versions.size())]};
      }
      const bool is_last = random.chance(luck);
      copy->sizes = {is_last ? inode->sizes.back()
                             : inode->sizes[random.below(inode->sizes.size())]};
      // What is behind the end is not there.
      std::erase_if(copy->sectors, [&](const auto& s) { return s.first * 512 >= copy->sizes[0]; });
    }
    found->names_[name] = copy;
  }
  found->durable_names_ = found->names_;
  return found;
}

std::shared_ptr<SimDisk> SimDisk::after_kill() const {
  auto found = std::make_shared<SimDisk>(operation_count);
  found->operation_count = operation_count;
  found->capacity_bytes = capacity_bytes;
  std::map<const SimInode*, std::shared_ptr<SimInode>> copies;
  const auto copy_of = [&](const std::shared_ptr<SimInode>& inode) -> std::shared_ptr<SimInode> {
    if (inode == nullptr) return nullptr;
    auto& copy = copies[inode.get()];
    if (copy == nullptr) copy = std::make_shared<SimInode>(*inode);
    return copy;
  };
  for (const auto& [name, inode] : names_) found->names_[name] = copy_of(inode);
  for (const auto& [name, inode] : durable_names_) found->durable_names_[name] = copy_of(inode);
  for (const NameChange& change : pending_)
    found->pending_.push_back({change.from, change.to, copy_of(change.inode)});
  return found;
}

bool SimDisk::flip_bit(const std::string& file, uint64_t seed) {
  const auto found = names_.find(file);
  if (found == names_.end() || found->second->sectors.empty()) return false;
  sim::Random random(seed);
  auto sector = found->second->sectors.begin();
  std::advance(sector, static_cast<ptrdiff_t>(random.below(found->second->sectors.size())));
  sector->second.back()[random.below(512)] ^= static_cast<std::byte>(1u << random.below(8));
  return true;
}

uint64_t SimDisk::size_of(const std::string& file) const {
  const auto found = names_.find(file);
  return found == names_.end() ? 0 : found->second->sizes.back();
}

}  // namespace outcore::versioned_test
