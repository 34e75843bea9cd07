// Which arrays a container has, and their names. See arrays.h.
#include <algorithm>
#include <cerrno>

#include "arrays/container/arrays_impl.h"
#include "arrays/container/drain_depth.h"
#include "core/os/cancel_block.h"

namespace outcore {

using arrays::Change;
using arrays::Entry;

namespace {

constexpr size_t kAttributeBytesMax = 64 << 10;

}  // namespace

Result<ArrayInfo> Arrays::info(const std::string& name) const {
  const os::CancelBlock uncancelled;
  const auto entry = impl_->find("look at '" + name + "'", name);
  if (entry.ok()) return arrays::info_of(entry.value());
  const auto there = impl_->elsewhere(name, entry.error());
  if (!there) return there.error();
  return there.value()->info(name);
}

Result<Dims> Arrays::load_dims(const std::string& name) const {
  const auto found = info(name);
  if (!found) return found.error();
  return found->dims;
}

Result<ArrayType> Arrays::type_of(const std::string& name) const {
  const auto found = info(name);
  if (!found) return found.error();
  return found->type;
}

bool Arrays::has(const std::string& name) const {
  const os::CancelBlock uncancelled;
  const auto entry = impl_->find("", name);
  return entry.ok() || impl_->elsewhere(name, entry.error()).ok();
}

std::vector<ArrayInfo> Arrays::list() const {
  const os::CancelBlock uncancelled;
  std::map<std::string, ArrayInfo> by_name;
  const arrays::DrainDepth depth;
  if (!depth.is_too_deep())
    for (const auto& one : impl_->open_beyond().there)
      for (const ArrayInfo& info : one->list()) by_name.emplace(info.name, info);
  const Impl::CatalogLock lock(*impl_);
  for (const auto& [id, entry] : impl_->catalog->entries())
    if (impl_->catalog->find(entry.name, impl_->session) == &entry)
      by_name[entry.name] = arrays::info_of(entry);
  std::vector<ArrayInfo> all;
  for (auto& [name, info] : by_name) all.push_back(std::move(info));
  return all;
}

Status Arrays::rename(const std::string& from, const std::string& to) {
  const os::CancelBlock uncancelled;
  const std::string attempted = "rename '" + from + "' to '" + to + "'";
  if (Status s = impl_->check_writable(attempted); !s) return s;
  if (Status s = arrays::check_name(attempted, to); !s) return s;
  const Impl::CatalogLock lock(*impl_);
  if (!lock.status().ok()) return lock.status();
  const Entry* const entry = impl_->catalog->find(from, impl_->session);
  if (entry == nullptr) return impl_->no_such(attempted, from);
  if (from == to) return {};
  if (impl_->catalog->find(to, impl_->session) != nullptr)
    return wrong(attempted, "there is one of that name: remove it first", EEXIST);
  Change change;
  bool is_finished = false;
  for (const auto& [id, one] : impl_->catalog->entries()) {  // finished, or written by this session
    if (one.name != from || (one.session != 0 && one.session != impl_->session)) continue;
    is_finished = is_finished || one.session == 0;
    change.put.push_back(one);
    change.put.back().name = to;
  }
  return impl_->catalog->append(change, is_finished);
}

Status Arrays::remove(const std::string& name) {
  const os::CancelBlock uncancelled;
  const std::string attempted = "remove '" + name + "'";
  if (Status s = impl_->check_writable(attempted); !s) return s;
  const std::unique_lock<std::shared_mutex> alone(impl_->traffic);
  const Impl::CatalogLock lock(*impl_);
  if (!lock.status().ok()) return lock.status();
  if (impl_->catalog->find(name, impl_->session) == nullptr) return impl_->no_such(attempted, name);
  Change change;
  std::vector<std::pair<uint64_t, uint64_t>> freed;
  bool was_finished = false;
  for (const auto& [id, entry] : impl_->catalog->entries()) {
    if (entry.name != name || (entry.session != 0 && entry.session != impl_->session)) continue;
    change.remove.push_back(id);
    was_finished = was_finished || entry.session == 0;
    if (!entry.is_inline()) freed.emplace_back(entry.offset, entry.size_bytes);
  }
  if (Status s = impl_->catalog->append(change, was_finished); !s) return s;
  if (impl_->may_free())
    for (const auto& [offset, size_bytes] : freed)
      static_cast<void>(impl_->storage->release(offset, size_bytes));
  return {};
}

Status Arrays::set_attribute(const std::string& name, const std::string& key,
                             const std::string& text) {
  const os::CancelBlock uncancelled;
  const std::string attempted = "set the attribute '" + key + "'";
  if (Status s = impl_->check_writable(attempted); !s) return s;
  if (Status s = arrays::check_name(attempted, key); !s) return s;
  if (text.size() > kAttributeBytesMax)
    return wrong(attempted, "its text has more than 64 KiB: store it as an array");
  const Impl::CatalogLock lock(*impl_);
  if (!lock.status().ok()) return lock.status();
  Change change;
  std::map<std::string, std::string>* into = &change.attributes;
  if (name.empty()) {
    change.has_attributes = true;
    change.attributes = impl_->catalog->attributes();
  } else {
    const Entry* const entry = impl_->catalog->find(name, impl_->session);
    if (entry == nullptr) return impl_->no_such(attempted, name);
    change.put.push_back(*entry);
    into = &change.put.back().attributes;
  }
  if (text.empty())
    into->erase(key);
  else
    (*into)[key] = text;
  return impl_->catalog->append(change, false);
}

Result<std::string> Arrays::attribute(const std::string& name, const std::string& key) const {
  const os::CancelBlock uncancelled;
  std::map<std::string, std::string> all;
  if (name.empty()) {
    const Impl::CatalogLock lock(*impl_);
    all = impl_->catalog->attributes();
  } else {
    const auto entry = impl_->find("read the attribute '" + key + "'", name);
    if (!entry) {
      const auto there = impl_->elsewhere(name, entry.error());
      if (!there) return there.error();
      return there.value()->attribute(name, key);
    }
    all = entry->attributes;
  }
  const auto found = all.find(key);
  return found == all.end() ? std::string() : found->second;
}

Result<std::vector<std::string>> Arrays::attributes(const std::string& name) const {
  const os::CancelBlock uncancelled;
  std::vector<std::string> keys;
  if (name.empty()) {
    const Impl::CatalogLock lock(*impl_);
    for (const auto& [key, text] : impl_->catalog->attributes()) keys.push_back(key);
    return keys;
  }
  const auto entry = impl_->find("read the attributes", name);
  if (!entry) {
    const auto there = impl_->elsewhere(name, entry.error());
    if (!there) return there.error();
    return there.value()->attributes(name);
  }
  for (const auto& [key, text] : entry->attributes) keys.push_back(key);
  return keys;
}

}  // namespace outcore
