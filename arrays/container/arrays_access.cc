#include "arrays/container/arrays_access.h"

#include <cerrno>
#include <filesystem>
#include <sstream>

#include "arrays/container/drain_depth.h"
#include "core/store/registry.h"

namespace outcore {

using arrays::ArraysAccess;
using arrays::Change;
using arrays::Entry;

Result<Entry> ArraysAccess::find(const Arrays& in, const std::string& name) {
  return in.impl_->find("find '" + name + "'", name);
}

std::vector<std::pair<std::string, uint64_t>> ArraysAccess::own(const Arrays& in) {
  const Arrays::Impl::CatalogLock lock(*in.impl_);
  std::map<std::string, uint64_t> found;
  for (const auto& [id, entry] : in.impl_->catalog->entries()) {
    if (entry.session != 0) continue;
    const auto count = arrays::count_of(entry.dims, entry.type.size_bytes);
    found[entry.name] = count ? count.value() * entry.type.size_bytes : 0;
  }
  return {found.begin(), found.end()};
}

Status ArraysAccess::alloc_as(Arrays& out, const Entry& as) {
  Arrays::Impl& impl = *out.impl_;
  const std::string attempted = "make room for '" + as.name + "' in " + impl.storage->uri();
  if (Status s = impl.check_writable(attempted); !s) return s;
  Entry entry = as;
  entry.offset = entry.size_bytes = 0;
  entry.value.assign(as.value.size(), 0);
  const Arrays::Impl::CatalogLock lock(impl);
  if (!lock.status().ok()) return lock.status();
  return impl.make(attempted, &entry, as.is_inline() ? 0 : arrays::bytes_of(entry), {});
}

Status ArraysAccess::forget(Arrays& out, const std::string& name) {
  const auto entry = find(out, name);
  if (!entry) return entry.status();
  if (entry->is_inline()) return {};
  return out.impl_->storage->forget(entry->offset, entry->size_bytes);
}

Status ArraysAccess::leave_for(Arrays& out, const Arrays& gone,
                               const std::vector<std::string>& names, const std::string& uri) {
  Arrays::Impl& impl = *out.impl_;
  if (Status s = impl.check_writable("drain " + impl.storage->uri()); !s) return s;
  const std::unique_lock<std::shared_mutex> alone(impl.traffic);
  const Arrays::Impl::CatalogLock lock(impl);
  if (!lock.status().ok()) return lock.status();
  Change change;
  std::vector<std::pair<uint64_t, uint64_t>> freed;
  for (const std::string& name : names) {
    const Entry* const here = impl.catalog->find(name, 0);
    const auto there = find(gone, name);
    if (here == nullptr || !there || there->session != 0 || there->stamp != here->stamp) continue;
    change.remove.push_back(here->id);
    if (!here->is_inline()) freed.emplace_back(here->offset, here->size_bytes);
  }
  change.has_attributes = true;
  change.attributes = impl.catalog->attributes();
  std::string& where = change.attributes[kDrainedTo];
  std::istringstream lines(where);
  bool is_known = false;
  for (std::string line; std::getline(lines, line);) is_known = is_known || line == uri;
  if (!is_known) where = uri + (where.empty() ? "" : "\n" + where);
  if (Status s = impl.catalog->append(change, true); !s) return s;
  if (impl.may_free())
    for (const auto& [offset, size_bytes] : freed)
      static_cast<void>(impl.storage->release(offset, size_bytes));
  return {};
}

bool ArraysAccess::is_same(const Arrays& a, const Arrays& b) {
  const std::string of_a = a.impl_->storage->identity();
  return !of_a.empty() && of_a == b.impl_->storage->identity();
}

std::string ArraysAccess::absolute(const std::string& uri) {
  const auto parsed = store::parse_uri(uri);
  if (!parsed || !store::is_plain_file(parsed.value())) return uri;
  std::error_code error;
  const auto path = std::filesystem::absolute(parsed->path, error);
  return error ? uri : path.lexically_normal().string();
}

// The containers to which arrays were drained, opened when they are first needed; and the arrays
// there.
Result<std::shared_ptr<const Arrays>> Arrays::Impl::elsewhere(const std::string& name,
                                                              const Error& missing) const {
  if (missing.code != ENOENT) return missing;
  const arrays::DrainDepth depth;
  if (depth.is_too_deep()) return missing;
  // It is unknown whether the array exists there, which is another error than that it does not.
  const auto unknown = [&missing](const Error& why) {
    return Error{why.code == ENOENT ? ENOLINK : why.code, missing.message + "; " + why.message};
  };
  const Beyond beyond_this = open_beyond();
  for (const auto& one : beyond_this.there) {
    const auto found = one->info(name);
    if (found.ok()) return one;
    if (found.code() != ENOENT) return unknown(found.error());
  }
  if (beyond_this.away) return unknown(*beyond_this.away);
  return missing;
}

Arrays::Impl::Beyond Arrays::Impl::open_beyond() const {
  const std::lock_guard<std::mutex> opening(beyond_mutex);
  std::string where;
  {
    const std::lock_guard<std::mutex> guard(mutex);
    const auto found = catalog->attributes().find(arrays::kDrainedTo);
    if (found != catalog->attributes().end()) where = found->second;
  }
  Beyond found;
  std::istringstream lines(where);
  ArraysOptions how;
  how.runtime = runtime;
  for (std::string line; std::getline(lines, line);) {
    auto& known = beyond[line];
    if (known == nullptr) {
      auto one = Arrays::open(line, ArraysMode::kRead, {}, how);
      if (!one) {
        found.away = Error{one.code(), "arrays of " + storage->uri() + " were drained to " + line +
                                           ", which cannot be opened: " + one.message()};
        break;
      }
      known = std::make_shared<const Arrays>(std::move(one).value());
    }
    found.there.push_back(known);
  }
  return found;
}

}  // namespace outcore
