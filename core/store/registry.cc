#include "core/store/registry.h"

#include <algorithm>
#include <cerrno>
#include <deque>
#include <mutex>

#include "core/base/assert.h"
#include "core/base/products.h"
#include "core/os/process_lock.h"
#include "core/os/wait.h"
#include "core/store/core_kinds.h"

namespace outcore::store {
namespace {

// Kinds are never removed or moved: pointers to them stay valid.
class Kinds {
 public:
  static Kinds& instance() {
    static Kinds* const kinds = new Kinds;  // outlives every static store
    return *kinds;
  }

  Status add(StoreKind kind) {
    const std::string what = "register the store kind '" + kind.scheme + "'";
    const auto may_be = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.';
    };
    const std::string& scheme = kind.scheme;
    if (scheme.size() < 2 || scheme[0] < 'a' || scheme[0] > 'z' ||
        !std::all_of(scheme.begin(), scheme.end(), may_be))
      return Error{EINVAL, what +
                               ": a scheme has two characters or more of a-z, 0-9, +, - and ., "
                               "and begins with a letter"};
    if (!kind.open) return Error{EINVAL, what + ": it has no function that opens a store"};
    const os::SignalBlock block;  // whose handler might fork
    const std::lock_guard<os::ProcessLock> guard(lock_);
    if (find_locked(scheme) != nullptr)
      return Error{EEXIST, what + ": there is one of that scheme: take another"};
    kinds_.push_back(std::move(kind));
    return {};
  }

  const StoreKind* find(std::string_view scheme) {
    const os::SignalBlock block;  // whose handler might fork
    const std::lock_guard<os::ProcessLock> guard(lock_);
    return find_locked(scheme);
  }

  std::vector<const StoreKind*> all() {
    const os::SignalBlock block;  // whose handler might fork
    const std::lock_guard<os::ProcessLock> guard(lock_);
    std::vector<const StoreKind*> all;
    for (const StoreKind& kind : kinds_) all.push_back(&kind);
    return all;
  }

 private:
  const StoreKind* find_locked(std::string_view scheme) const {
    const auto kind = std::find_if(kinds_.begin(), kinds_.end(),
                                   [&](const StoreKind& one) { return one.scheme == scheme; });
    return kind == kinds_.end() ? nullptr : &*kind;
  }

  os::ProcessLock lock_;
  std::deque<StoreKind> kinds_;
};

// The registry, after the built-in kinds have registered themselves.
Kinds& kinds() {
  static const bool are_there = [] {
    add_core_kinds();
    base::register_products();
    return true;
  }();
  static_cast<void>(are_there);
  return Kinds::instance();
}

const StoreKind* kind_of(const Uri& uri) { return kinds().find(uri.scheme); }

Status check_authority(const Uri& uri, const StoreKind& kind) {
  if (kind.has_authority || uri.authority.empty()) return {};
  return refuse(uri, "a host has no meaning here: write " + uri.scheme + ":/path or " + uri.scheme +
                         ":///path");
}

Status check_parameters(const Uri& uri, const StoreKind& kind) {
  std::vector<std::string_view> known(kind.parameters.begin(), kind.parameters.end());
  known.insert(known.end(), {"read_concurrency", "write_concurrency"});
  for (const auto& [key, value] : uri.parameters)
    if (std::find(known.begin(), known.end(), key) == known.end())
      return refuse(uri, "parameter '" + key + "' is unknown" + did_you_mean(key, known) + ": " +
                             kind.scheme + " takes " + one_of(known));
  return {};
}

Status check_values(const Uri& uri, const StoreKind& kind) {
  for (const char* key : {"read_concurrency", "write_concurrency"})
    if (const auto count = uri.count_of(key, 0); !count) return count.error();
  return kind.check ? kind.check(uri) : Status();
}

Error refuse_scheme(const Uri& uri) {
  std::vector<std::string_view> schemes;
  for (const StoreKind* kind : kinds().all()) schemes.push_back(kind->scheme);
  return refuse(uri, "scheme '" + uri.scheme + "' is unknown" + did_you_mean(uri.scheme, schemes) +
                         ": write " + one_of(schemes) + ", or file:" + uri.text +
                         " if that is a file's name");
}

}  // namespace

void add_kind(StoreKind kind) {
  const Status added = Kinds::instance().add(std::move(kind));
  OC_CHECK(added.ok() || added.code() == EEXIST);  // again, if there was no memory for them all
}

bool dies_with_process(const std::string& text) {
  const auto uri = parse_uri(text);
  const StoreKind* const kind = uri ? kind_of(uri.value()) : nullptr;
  return kind != nullptr && kind->dies_with_process;
}

StoreKind::Checkpoints checkpoints_of(const Uri& uri) {
  const StoreKind* const kind = kind_of(uri);
  return kind == nullptr ? StoreKind::Checkpoints::kNone : kind->checkpoints;
}

std::string why_no_pool(const std::string& text) {
  const StoreKind* const its = kind_of_scheme(text);
  std::string known;
  for (const StoreKind* kind : kinds().all()) {
    if (kind->checkpoints != StoreKind::Checkpoints::kInPool) continue;
    if (kind == its && text.size() > kind->scheme.size() + 1) return "";
    known += (known.empty() ? "" : " or ") + kind->syntax.substr(0, kind->syntax.find('?'));
  }
  return known.empty() ? "" : "checkpoints are kept in " + known;
}

bool is_plain_file(const Uri& uri) {
  const StoreKind* const kind = kind_of(uri);
  return kind != nullptr && kind->place == StoreKind::Place::kFile && !kind->is_persistent_memory &&
         uri.parameters.empty();
}

bool is_persistent_memory(const Uri& uri) {
  const StoreKind* const kind = kind_of(uri);
  return kind != nullptr && kind->is_persistent_memory;
}

std::string lockable_path(const Uri& uri) {
  const StoreKind* const kind = kind_of(uri);
  const bool is_lockable = kind != nullptr && kind->place != StoreKind::Place::kElsewhere &&
                           !kind->dies_with_process &&
                           kind->checkpoints == StoreKind::Checkpoints::kNone;
  return is_lockable && uri.authority.empty() ? uri.path : std::string();
}

}  // namespace outcore::store

namespace outcore {

Status register_store_kind(StoreKind kind) {
  if (kind.checkpoints == StoreKind::Checkpoints::kInPool)
    return Error{EINVAL, "register the store kind '" + kind.scheme +
                             "': pools are folders that Outcore writes: give it kBySnapshots, and "
                             "its stores Store::snapshots()"};
  return store::kinds().add(std::move(kind));
}

std::vector<const StoreKind*> store_kinds() { return store::kinds().all(); }

const StoreKind* kind_of_scheme(const std::string& text) {
  return store::kinds().find(store::scheme_of(text));
}

Result<const StoreKind*> find_store_kind(const StoreUri& uri) {
  const StoreKind* const kind = store::kind_of(uri);
  if (kind == nullptr) return store::refuse_scheme(uri);
  if (Status s = store::check_authority(uri, *kind); !s) return s.error();
  if (Status s = store::check_parameters(uri, *kind); !s) return s.error();
  if (Status s = store::check_values(uri, *kind); !s) return s.error();
  return kind;
}

Result<std::shared_ptr<SharedWriters>> open_shared_store(const std::string& text,
                                                         const OpenOptions& options) {
  const auto uri = parse_store_uri(text);
  if (!uri) return uri.error();
  const auto kind = find_store_kind(uri.value());
  if (!kind) return kind.error();
  if (!kind.value()->open_shared)
    return Error{ENOTSUP, "store '" + uri->text + "': it has one writer: take redis://"};
  return kind.value()->open_shared(uri.value(), options);
}

bool can_be_shared(const std::string& text) {
  const auto uri = parse_store_uri(text);
  if (!uri) return false;
  const auto kind = find_store_kind(uri.value());
  return kind.ok() && kind.value()->open_shared != nullptr;
}

Result<std::shared_ptr<Store>> open_store(const std::string& text, const OpenOptions& options) {
  const auto uri = parse_store_uri(text);
  if (!uri) return uri.error();
  const auto kind = find_store_kind(uri.value());
  if (!kind) return kind.error();
  const auto reads = uri.value().count_of("read_concurrency", 0);
  if (!reads) return reads.error();
  const auto writes = uri.value().count_of("write_concurrency", 0);
  if (!writes) return writes.error();
  return kind.value()->open(uri.value(), options, {reads.value(), writes.value()});
}

}  // namespace outcore
