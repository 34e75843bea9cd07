#include "bench/lookup_data.h"

#include <algorithm>
#include <cerrno>
#include <map>
#include <new>
#include <unordered_map>
#include <utility>

#include "bench/anonymous_memory.h"
#include "bench/check.h"
#include "bench/medium.h"
#include "cli/text.h"

namespace outcore::bench {
namespace {

// Memory that is handed out once, from its beginning. Lies in the data itself.
struct Arena {
  std::byte* next;
  std::byte* end;
};

template <typename T>
struct ArenaAllocator {
  using value_type = T;
  explicit ArenaAllocator(Arena* a) : arena(a) {}
  template <typename U>
  ArenaAllocator(const ArenaAllocator<U>& other)
      : arena(other.arena) {}  // NOLINT(google-explicit-*)
  T* allocate(size_t count) {
    if (count > static_cast<size_t>(arena->end - arena->next) / sizeof(T)) throw std::bad_alloc();
    return reinterpret_cast<T*>(std::exchange(arena->next, arena->next + count * sizeof(T)));
  }
  void deallocate(T*, size_t) {}
  template <typename U>
  bool operator==(const ArenaAllocator<U>& other) const {
    return arena == other.arena;
  }
  Arena* arena;
};

using Pair = std::pair<uint64_t, uint64_t>;
using Allocate = ArenaAllocator<std::pair<const uint64_t, uint64_t>>;
using Map = std::map<uint64_t, uint64_t, std::less<>, Allocate>;
using Hash = std::unordered_map<uint64_t, uint64_t, std::hash<uint64_t>, std::equal_to<>, Allocate>;
using Vector = std::vector<Pair, ArenaAllocator<Pair>>;

constexpr uint64_t kStructureAt = 512;  // behind the catalogue, in the first unit

// A key's share of the data: a node of the map; a node and somewhat more than a bucket; a pair.
uint64_t key_bytes(const std::string& structure) {
  if (structure == "map") return 48;
  return structure == "hash" ? 24 + 12 : sizeof(Pair);
}

}  // namespace

struct Catalogue {
  Arena arena;
  uint64_t count;
  const Map* map;  // one of the three
  const Hash* hash;
  const Vector* vector;
};

namespace {

const Catalogue& catalogue_of(std::span<const std::byte> mapped) {
  BENCH_CHECK(mapped.size() > kStructureAt);
  return *reinterpret_cast<const Catalogue*>(mapped.data());
}

}  // namespace

const std::vector<std::string>& structure_names() {
  static const std::vector<std::string> names = {"map", "hash", "vector"};
  return names;
}

// What it holds is the memory of this build's standard library.
LookupData::LookupData(const Options& options)
    : structure_(options.structure),
      size_bytes_(options.size_bytes),
      seed_(options.seed),
      file_(options, cli::format("outcore-bench-lookup-%s-%llu-%llu.dat", options.structure.c_str(),
                                 static_cast<unsigned long long>(options.size_bytes),
                                 static_cast<unsigned long long>(options.seed))),
      tag_(cli::format("lookup %s %llu seed %llu built by %s", options.structure.c_str(),
                       static_cast<unsigned long long>(options.size_bytes),
                       static_cast<unsigned long long>(options.seed), __VERSION__)) {}

Status LookupData::build(std::span<std::byte> memory) const {
  BENCH_CHECK(memory.size() > kUnitBytes);
  auto* const all = new (memory.data()) Catalogue{};
  all->arena = {memory.data() + kUnitBytes, memory.data() + memory.size()};
  all->count = (memory.size() - kUnitBytes) / key_bytes(structure_);
  static_assert(sizeof(Catalogue) <= kStructureAt);
  static_assert(kStructureAt + std::max({sizeof(Map), sizeof(Hash), sizeof(Vector)}) <= kUnitBytes);
  std::byte* const place = memory.data() + kStructureAt;
  try {
    if (structure_ == "map") {
      auto* const map = new (place) Map(Allocate(&all->arena));
      for (uint64_t i = 0; i < all->count; ++i) map->emplace(key_of(i), i);
      all->map = map;
    } else if (structure_ == "hash") {
      auto* const hash = new (place) Hash(0, Allocate(&all->arena));
      hash->reserve(all->count);
      for (uint64_t i = 0; i < all->count; ++i) hash->emplace(key_of(i), i);
      all->hash = hash;
    } else {
      auto* const vector = new (place) Vector(ArenaAllocator<Pair>(&all->arena));
      vector->reserve(all->count);
      for (uint64_t i = 0; i < all->count; ++i) vector->emplace_back(key_of(i), i);
      std::sort(vector->begin(), vector->end());
      all->vector = vector;
    }
  } catch (const std::bad_alloc&) {
    return cli::failure(ENOMEM,
                        "lay out a " + structure_ + " in " + cli::format_bytes(memory.size()),
                        "use a larger --size");
  }
  return {};
}

Status LookupData::make() {
  if (Status s = file_.claim(); !s) return s;
  if (file_.is_clean(tag_)) return {};
  const AnonymousMemory memory(address(), size_bytes_);
  if (memory.bytes().empty())
    return cli::failure(EEXIST, cli::format("map %s at %p", cli::format_bytes(size_bytes_).c_str(),
                                            static_cast<void*>(address())));
  if (Status s = build(memory.bytes()); !s) return s;
  file_.mark_changed();
  auto medium = open_medium(file_.uri(), size_bytes_, true);
  if (!medium) return medium.error();
  if (Status s = write_all(**medium, memory.bytes()); !s) return s;
  if (Status s = (*medium)->sync(); !s) return s;
  file_.mark_clean(tag_);
  return {};
}

uint64_t LookupData::count_of(std::span<const std::byte> mapped) {
  return catalogue_of(mapped).count;
}

uint64_t LookupData::find(std::span<const std::byte> mapped, uint64_t key) {
  const Catalogue& all = catalogue_of(mapped);
  if (all.map != nullptr) {
    const auto found = all.map->find(key);
    return found == all.map->end() ? UINT64_MAX : found->second;
  }
  if (all.hash != nullptr) {
    const auto found = all.hash->find(key);
    return found == all.hash->end() ? UINT64_MAX : found->second;
  }
  const auto found = std::lower_bound(all.vector->begin(), all.vector->end(), Pair{key, 0});
  return found == all.vector->end() || found->first != key ? UINT64_MAX : found->second;
}

}  // namespace outcore::bench
