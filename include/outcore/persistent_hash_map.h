// hash_map: a hash map stored in a persistent heap. A look-up touches little memory: one group of
// 16 tags and usually (127 of 128 times) only the entry that it finds. The entries lie in one
// array. When the array doubles, they move in order, so that a map larger than memory is written
// once, from beginning to end.
//
// After Abseil's Swiss tables (Kulukundis 2017). Unlike in unordered_map, entries move when the map
// grows: keep no pointers to them. Threads: as standard containers. x86-64.
// grows: hold no pointers to them. Threads: as standard containers. x86-64.
#pragma once

#include <emmintrin.h>

#include <algorithm>
#include <bit>
#include <boost/functional/hash.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <iterator>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "outcore/persistent_allocator.h"

namespace outcore::persistent {

// K and V: types that may be stored in the heap and can be moved without throwing. Hash must be the
// same in every process. If the heap is full: PersistentHeapFull, and the map is unchanged.
template <typename K, typename V, typename Hash = boost::hash<K>, typename Equal = std::equal_to<K>>
class hash_map {
  static_assert(std::is_nothrow_move_constructible_v<K> && std::is_nothrow_move_constructible_v<V>);
  static_assert(alignof(K) <= 16 && alignof(V) <= 16);
  struct Slot {
    K key;
    V value;
  };
  static constexpr uint64_t kGroup = 16;
  static constexpr uint8_t kEmpty = 0x80, kGone = 0xFE;  // tags of entries are below 0x80

 public:
  using key_type = K;
  using mapped_type = V;
  using allocator_type = PersistentAllocator<std::byte>;
  using size_type = std::size_t;

  // The value type of iterators.
  template <bool is_const>
  struct entry {
    const K& first;
    std::conditional_t<is_const, const V&, V&> second;
    entry* operator->() { return this; }
  };
  template <bool is_const>
  class basic_iterator {
   public:
    using value_type = entry<is_const>;
    using reference = entry<is_const>;
    using difference_type = std::ptrdiff_t;
    using iterator_category = std::input_iterator_tag;
    basic_iterator() = default;
    entry<is_const> operator*() const { return {slots_[at_].key, slots_[at_].value}; }
    entry<is_const> operator->() const { return **this; }
    basic_iterator& operator++() {
      for (++at_; at_ < end_ && tags_[at_] >= kEmpty;) ++at_;
      return *this;
    }
    bool operator==(const basic_iterator& other) const { return at_ == other.at_; }

   private:
    friend class hash_map;
    basic_iterator(const uint8_t* tags, Slot* slots, uint64_t at, uint64_t end)
        : tags_(tags), slots_(slots), at_(at), end_(end) {}
    const uint8_t* tags_ = nullptr;
    Slot* slots_ = nullptr;
    uint64_t at_ = 0, end_ = 0;
  };
  using iterator = basic_iterator<false>;
  using const_iterator = basic_iterator<true>;

  explicit hash_map(const allocator_type& allocator) : allocator_(allocator) {}
  hash_map(hash_map&& other) noexcept : allocator_(other.allocator_) { swap_with(other); }
  hash_map(hash_map&& other, const allocator_type&) noexcept : hash_map(std::move(other)) {}
  hash_map& operator=(hash_map&& other) noexcept {
    hash_map(std::move(other)).swap_with(*this);
    return *this;
  }
  ~hash_map() { free_all(); }

  size_type size() const { return size_; }
  bool empty() const { return size_ == 0; }
  allocator_type get_allocator() const { return allocator_; }

  iterator begin() { return first<iterator>(); }
  iterator end() { return at<iterator>(capacity_); }
  const_iterator begin() const { return first<const_iterator>(); }
  const_iterator end() const { return at<const_iterator>(capacity_); }

  template <typename Key>
  iterator find(const Key& key) {
    return at<iterator>(index_of(key));
  }
  template <typename Key>
  const_iterator find(const Key& key) const {
    return at<const_iterator>(index_of(key));
  }
  template <typename Key>
  bool contains(const Key& key) const {
    return index_of(key) != capacity_;
  }

  // Finds the entry of the key, or creates it with a value made from the arguments. K and V get the
  // heap's allocator if their constructors accept one.
  template <typename Key, typename... Args>
  std::pair<iterator, bool> try_emplace(Key&& key, Args&&... args) {
    const uint64_t hash = hash_of(key);
    if (const uint64_t found = index_of(key, hash); found != capacity_)
      return {at<iterator>(found), false};
    if (used_ >= capacity_ / 8 * 7) rehash(size_ >= capacity_ / 16 * 7 ? capacity_ * 2 : capacity_);
    const uint64_t index = free_index(hash);
    Slot* slot = slots() + index;
    make(&slot->key, std::forward<Key>(key));
    struct Begun {  // destroys the key if the value's constructor throws
      K* key;
      ~Begun() {
        if (key != nullptr) std::destroy_at(key);
      }
    } begun{&slot->key};
    make(&slot->value, std::forward<Args>(args)...);
    begun.key = nullptr;
    uint8_t& tag = tags()[index];
    used_ += tag == kEmpty;
    tag = tag_of(hash);
    ++size_;
    return {at<iterator>(index), true};
  }
  template <typename Key>
  V& operator[](Key&& key) {
    const auto [where, is_new] = try_emplace(std::forward<Key>(key));
    return slots()[where.at_].value;
  }
  template <typename Key>
  size_type erase(const Key& key) {
    const uint64_t index = index_of(key);
    if (index == capacity_) return 0;
    std::destroy_at(slots() + index);
    uint8_t* group = tags() + index / kGroup * kGroup;
    // A search stops at a group that has an empty slot. A search that went past this group, because
    // it was full, must go on doing so: then the slot becomes kGone.
    const bool has_end = matches(group, kEmpty) != 0;
    tags()[index] = has_end ? kEmpty : kGone;
    used_ -= has_end;
    --size_;
    return 1;
  }
  void clear() {
    free_all();
    memory_ = nullptr;
    capacity_ = size_ = used_ = 0;
  }
  // Makes room for `count` entries without growing.
  void reserve(size_type count) {
    const uint64_t wanted = std::bit_ceil(std::max<uint64_t>(count / 7 * 8 + 8, kGroup));
    if (wanted > capacity_) rehash(wanted);
  }

 private:
  struct alignas(16) Unit {
    std::byte bytes[16];
  };
  static uint64_t units_of(uint64_t capacity) {
    return capacity * (1 + sizeof(Slot)) / sizeof(Unit);
  }
  PersistentPointer<std::byte> new_memory(uint64_t capacity) {
    PersistentPointer<Unit> units =
        PersistentAllocator<Unit>(allocator_).allocate(units_of(capacity));
    return PersistentPointer<std::byte>(reinterpret_cast<std::byte*>(units.get()));
  }
  uint8_t* tags() const { return reinterpret_cast<uint8_t*>(memory_.get()); }
  Slot* slots() const { return reinterpret_cast<Slot*>(memory_.get() + capacity_); }

  // The upper bits choose the group, so that entries keep their order when the number of groups
  // doubles.
  template <typename Key>
  static uint64_t hash_of(const Key& key) {
    uint64_t x = static_cast<uint64_t>(Hash()(key)) * 0x9E3779B97F4A7C15u;
    x ^= x >> 32;
    return x * 0xD6E8FEB86659FD93u;
  }
  static uint8_t tag_of(uint64_t hash) { return static_cast<uint8_t>(hash >> 8 & 0x7F); }
  uint64_t group_of(uint64_t hash) const {
    return capacity_ == kGroup ? 0 : hash >> (64 - std::countr_zero(capacity_ / kGroup));
  }
  static uint32_t matches(const uint8_t* group, uint8_t tag) {
    const __m128i all = _mm_load_si128(reinterpret_cast<const __m128i*>(group));
    const __m128i same = _mm_cmpeq_epi8(all, _mm_set1_epi8(static_cast<char>(tag)));
    return static_cast<uint32_t>(_mm_movemask_epi8(same));
  }
  static uint32_t free_ones(const uint8_t* group) {  // empty or gone: the top bit is set
    const __m128i all = _mm_load_si128(reinterpret_cast<const __m128i*>(group));
    return static_cast<uint32_t>(_mm_movemask_epi8(all));
  }

  template <typename Key>
  uint64_t index_of(const Key& key) const {
    return index_of(key, hash_of(key));
  }
  // Returns capacity_ if the key is not there.
  template <typename Key>
  uint64_t index_of(const Key& key, uint64_t hash) const {
    if (capacity_ == 0) return 0;
    const uint8_t* const all = tags();
    const Slot* const slot = slots();
    const uint64_t mask = capacity_ / kGroup - 1;
    for (uint64_t group = group_of(hash);; group = (group + 1) & mask) {
      const uint8_t* const tag = all + group * kGroup;
      for (uint32_t hits = matches(tag, tag_of(hash)); hits != 0; hits &= hits - 1) {
        const uint64_t index = group * kGroup + static_cast<uint64_t>(std::countr_zero(hits));
        if (Equal()(slot[index].key, key)) return index;
      }
      if (matches(tag, kEmpty) != 0) return capacity_;
    }
  }
  uint64_t free_index(uint64_t hash) const {
    const uint64_t mask = capacity_ / kGroup - 1;
    for (uint64_t group = group_of(hash);; group = (group + 1) & mask)
      if (const uint32_t hits = free_ones(tags() + group * kGroup); hits != 0)
        return group * kGroup + static_cast<uint64_t>(std::countr_zero(hits));
  }

  template <typename T, typename... Args>
  void make(T* where, Args&&... args) {
    if constexpr (std::uses_allocator_v<T, allocator_type> &&
                  std::is_constructible_v<T, Args..., const allocator_type&>)
      ::new (static_cast<void*>(where)) T(std::forward<Args>(args)..., allocator_);
    else
      ::new (static_cast<void*>(where)) T(std::forward<Args>(args)...);
  }

  void rehash(uint64_t capacity) {
    hash_map larger(allocator_);
    capacity = std::max(capacity, kGroup);
    larger.memory_ = larger.new_memory(capacity);
    larger.capacity_ = capacity;
    std::memset(larger.tags(), kEmpty, capacity);
    Slot* const to = larger.slots();
    Slot* const from = capacity_ == 0 ? nullptr : slots();
    for (uint64_t i = 0; i < capacity_; ++i) {
      if (tags()[i] >= kEmpty) continue;
      const uint64_t hash = hash_of(from[i].key), index = larger.free_index(hash);
      ::new (static_cast<void*>(to + index)) Slot(std::move(from[i]));
      larger.tags()[index] = tag_of(hash);
    }
    larger.size_ = larger.used_ = size_;
    swap_with(larger);  // `larger` now destroys the moved-from entries
  }
  void swap_with(hash_map& other) noexcept {
    std::swap(allocator_, other.allocator_);
    std::swap(memory_, other.memory_);
    std::swap(capacity_, other.capacity_);
    std::swap(size_, other.size_);
    std::swap(used_, other.used_);
  }
  void free_all() noexcept {
    if (capacity_ == 0) return;
    if constexpr (!std::is_trivially_destructible_v<Slot>)
      for (uint64_t i = 0; i < capacity_; ++i)
        if (tags()[i] < kEmpty) std::destroy_at(slots() + i);
    using Units = PersistentAllocator<Unit>;
    Units(allocator_)
        .deallocate(PersistentPointer<Unit>(reinterpret_cast<Unit*>(memory_.get())),
                    units_of(capacity_));
  }
  template <typename I>
  I at(uint64_t index) const {
    if (capacity_ == 0) return I(nullptr, nullptr, 0, 0);
    return I(tags(), slots(), index, capacity_);
  }
  template <typename I>
  I first() const {
    I i = at<I>(0);
    if (capacity_ != 0 && tags()[0] >= kEmpty) ++i;
    return i;
  }

  allocator_type allocator_;
  PersistentPointer<std::byte> memory_;  // first a tag for each slot, then the slots
  uint64_t capacity_ = 0;                // slots: 0, or a power of two from 16 on
  uint64_t size_ = 0;
  uint64_t used_ = 0;  // entries, and slots of erased entries that are still kGone
};

}  // namespace outcore::persistent
