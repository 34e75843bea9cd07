#include "store/registry.h"

#include <algorithm>
#include <cerrno>

#include "store/far_store.h"
#include "store/file_store.h"
#include "store/memory_store.h"
#include "store/rbd_open.h"
#include "store/redis_catalog.h"
#include "store/redis_store.h"
#include "store/redis_writers.h"
#include "store/scratch_store.h"
#include "store/sparse_store.h"
#include "store/versioned_store.h"

namespace outcore::store {
namespace {

constexpr std::string_view kUnnamed[] = {"scratch:", "memory:", "far:"};

using Opened = Result<std::shared_ptr<Store>>;

Error refuse(const Uri& uri, const std::string& why) {
  return {EINVAL, "store '" + uri.text + "': " + why};
}

Opened open_file(const Uri& uri, const OpenOptions& options, const CommonParameters& common) {
  if (uri.path.empty()) return refuse(uri, "no path: write " + uri.scheme + ":PATH");
  FileStoreOptions file{uri.path,
                        uri.text,
                        options,
                        DirectMode::kAuto,
                        common.read_concurrency,
                        common.write_concurrency};
  if (const std::string* direct = uri.find("direct")) {
    const std::vector<std::string_view> values = {"auto", "on", "off"};
    const auto value = std::find(values.begin(), values.end(), *direct);
    if (value == values.end())
      return refuse(uri, "direct=" + *direct + " is unknown" + did_you_mean(*direct, values) +
                             ": write " + one_of(values));
    file.direct = static_cast<DirectMode>(value - values.begin());
  }
  return FileStore::open(file);
}

Opened open_sparse(const Uri& uri, const OpenOptions& options, const CommonParameters& common) {
  if (uri.path.empty()) return refuse(uri, "no folder: write sparse:FOLDER");
  const auto segment_bytes = uri.bytes_of("segment", 0);
  if (!segment_bytes) return segment_bytes.error();
  if (uri.find("segment") != nullptr)
    if (Status s = check_metadata({0, segment_bytes.value()}, "store '" + uri.text + "'"); !s)
      return s.error();
  return SparseStore::open({uri.path, uri.text, options, segment_bytes.value(),
                            common.read_concurrency, common.write_concurrency});
}

Opened open_scratch(const Uri& uri, const OpenOptions& options, const CommonParameters& common) {
  const std::string* reserve = uri.find("reserve");
  if (reserve != nullptr && *reserve != "yes" && *reserve != "no")
    return refuse(uri, "reserve=" + *reserve + " is unknown: write yes or no");
  return ScratchStore::open({uri.path.empty() ? options.scratch_dir : uri.path, options.size_bytes,
                             common.read_concurrency, common.write_concurrency,
                             reserve == nullptr || *reserve == "yes"});
}

Opened open_memory(const Uri& uri, const OpenOptions& options, const CommonParameters& common) {
  if (!uri.path.empty()) return refuse(uri, "memory has no name: write memory:");
  return MemoryStore::open({options.size_bytes, common.read_concurrency, common.write_concurrency});
}

Opened open_rbd_image(const Uri& uri, const OpenOptions& options, const CommonParameters& common) {
  return open_rbd(uri, options, common.read_concurrency, common.write_concurrency);
}

Opened open_redis(const Uri& uri, const OpenOptions& options, const CommonParameters& common) {
  auto redis = read_redis_options(uri);
  if (!redis) return redis.error();
  return RedisStore::open(redis.value(), options, common);
}

Status check_authority(const Uri& uri, const StoreKind& kind) {
  if (kind.has_authority || uri.authority.empty()) return {};
  return refuse(uri, "a host has no meaning here: write " + uri.scheme + ":/path or " + uri.scheme +
                         ":///path");
}

Status check_parameters(const Uri& uri, const StoreKind& kind) {
  std::vector<std::string_view> known = kind.parameters;
  known.insert(known.end(), {"read_concurrency", "write_concurrency"});
  for (const auto& [key, value] : uri.parameters)
    if (std::find(known.begin(), known.end(), key) == known.end())
      return refuse(uri, "parameter '" + key + "' is unknown" + did_you_mean(key, known) + ": " +
                             std::string(kind.scheme) + " takes " + one_of(known));
  return {};
}

Error refuse_scheme(const Uri& uri) {
  std::vector<std::string_view> schemes;
  for (const StoreKind& kind : store_kinds()) schemes.push_back(kind.scheme);
  return refuse(uri, "scheme '" + uri.scheme + "' is unknown" + did_you_mean(uri.scheme, schemes) +
                         ": write " + one_of(schemes) + ", or file:" + uri.text +
                         " if that is a file's name");
}

}  // namespace

const std::vector<StoreKind>& store_kinds() {
  static const std::vector<StoreKind> kinds = {
      {"file",
       "PATH or file:PATH?direct=auto|on|off",
       "a file or block device",
       {"direct"},
       open_file},
      {"pmem",
       "pmem:PATH?direct=auto|on|off",
       "a file; for named arrays on a DAX mount the persistent memory itself",
       {"direct"},
       open_file},
      {"sparse",
       "sparse:FOLDER?segment=64M",
       "segment files, made on first write",
       {"segment"},
       open_sparse},
      {"scratch",
       "scratch:[FOLDER]?reserve=yes|no",
       "unnamed space that dies with the process",
       {"reserve"},
       open_scratch},
      {"memory", "memory:", "memory outside of the budget, for tests", {}, open_memory},
      {"versioned",
       "versioned:FOLDER?object=NAME&chunk=4k&at=CHECKPOINT&direct=auto|on|off",
       "objects with checkpoints that are never overwritten",
       {"object", "chunk", "at", "direct"},
       open_versioned},
      {"rbd",
       "rbd://POOL/IMAGE?size=1T&lifetime=2h",
       "an image on the disks of a Ceph cluster",
       {"size", "order", "thick", "timeout", "conf", "mon", "keyring", "keyfile", "id",
        "interrupted", "lifetime"},
       open_rbd_image,
       true,
       list_rbd,
       nullptr,
       nullptr,
       remove_rbd},
      {"redis",
       "redis://[[USER]:PASSWORD@]HOST:PORT[,HOST:PORT…]/NAME?replicas=1&chunk=64k"
       "&compress=lz4|zstd|zstd:LEVEL&timeout=30s&lifetime=2h&lines=4&tls=1&tls_ca=FILE&tls_cert="
       "FILE&tls_key=FILE",
       "memory of Redis or Valkey servers",
       {"replicas", "chunk", "compress", "timeout", "lifetime", "lines", "tls", "tls_ca",
        "tls_cert", "tls_key"},
       open_redis,
       true,
       list_redis,
       stored_in_redis,
       note_checksum_in_redis,
       remove_from_redis,
       open_redis_shared},
      {"far",
       "far://[[USER]:PASSWORD@]HOST:PORT[+HOST:PORT][,HOST:PORT…]?replicas=0&chunk=64k"
       "&compress=lz4|zstd|zstd:LEVEL&timeout=30s&reserve=yes|no",
       "unnamed space in the memory of Redis or Valkey servers that dies with the process",
       {"replicas", "chunk", "compress", "timeout", "lines", "reserve", "tls", "tls_ca", "tls_cert",
        "tls_key"},
       open_far,
       true},
  };
  return kinds;
}

bool dies_with_process(const std::string& uri) {
  return std::any_of(std::begin(kUnnamed), std::end(kUnnamed),
                     [&](std::string_view scheme) { return uri.starts_with(scheme); });
}

Result<const StoreKind*> find_kind(const Uri& uri) {
  const auto& kinds = store_kinds();
  const auto kind = std::find_if(kinds.begin(), kinds.end(),
                                 [&](const StoreKind& k) { return k.scheme == uri.scheme; });
  if (kind == kinds.end()) return refuse_scheme(uri);
  if (Status s = check_authority(uri, *kind); !s) return s.error();
  if (Status s = check_parameters(uri, *kind); !s) return s.error();
  return &*kind;
}

Result<std::shared_ptr<SharedWriters>> open_shared(const std::string& text,
                                                   const OpenOptions& options) {
  const auto uri = parse_uri(text);
  if (!uri) return uri.error();
  const auto kind = find_kind(uri.value());
  if (!kind) return kind.error();
  if (kind.value()->open_shared == nullptr)
    return Error{ENOTSUP, "store '" + uri->text + "': it has one writer: take redis://"};
  return kind.value()->open_shared(uri.value(), options);
}

bool can_be_shared(const std::string& text) {
  const auto uri = parse_uri(text);
  if (!uri) return false;
  const auto kind = find_kind(uri.value());
  return kind.ok() && kind.value()->open_shared != nullptr;
}

}  // namespace outcore::store

namespace outcore {

Result<std::shared_ptr<Store>> open_store(const std::string& text, const OpenOptions& options) {
  const auto uri = store::parse_uri(text);
  if (!uri) return uri.error();
  const auto kind = store::find_kind(uri.value());
  if (!kind) return kind.error();
  const auto reads = uri.value().count_of("read_concurrency", 0);
  if (!reads) return reads.error();
  const auto writes = uri.value().count_of("write_concurrency", 0);
  if (!writes) return writes.error();
  return kind.value()->open(uri.value(), options, {reads.value(), writes.value()});
}

}  // namespace outcore
