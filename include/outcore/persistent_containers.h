// Containers that are stored in a persistent heap: those of Boost.Container and Boost.Unordered,
// with the heap's allocator. Nested containers get it automatically:
//
//   namespace kept = outcore::persistent;
//   using Graph = kept::unordered_map<uint64_t, kept::vector<uint64_t>>;
//   Graph* graph = heap.find_or_construct<Graph>("graph").value();
//   (*graph)[1].push_back(2);
//
// They behave like the standard containers. Those of std:: cannot be used, because most of them
// keep plain pointers, which are valid at one address only. If the heap is full they throw
// PersistentHeapFull. Threads: as standard containers, but several threads may allocate at a time.
#pragma once

#include <boost/container/deque.hpp>
#include <boost/container/flat_map.hpp>
#include <boost/container/flat_set.hpp>
#include <boost/container/list.hpp>
#include <boost/container/map.hpp>
#include <boost/container/scoped_allocator.hpp>
#include <boost/container/set.hpp>
#include <boost/container/string.hpp>
#include <boost/container/vector.hpp>
#include <boost/functional/hash.hpp>
#include <boost/unordered_map.hpp>
#include <boost/unordered_set.hpp>
#include <functional>
#include <utility>

#include "outcore/persistent_allocator.h"
#include "outcore/persistent_hash_map.h"

namespace outcore::persistent {

template <typename T>
using scoped = boost::container::scoped_allocator_adaptor<PersistentAllocator<T>>;

using string =
    boost::container::basic_string<char, std::char_traits<char>, PersistentAllocator<char>>;
// Its capacity doubles when it is full, as in libstdc++.
template <typename T>
using vector =
    boost::container::vector<T, scoped<T>,
                             boost::container::vector_options_t<boost::container::growth_factor<
                                 boost::container::growth_factor_100>>>;
template <typename T>
using deque = boost::container::deque<T, scoped<T>>;
template <typename T>
using list = boost::container::list<T, scoped<T>>;
template <typename K, typename V, typename Less = std::less<K>>
using map = boost::container::map<K, V, Less, scoped<std::pair<const K, V>>>;
template <typename K, typename V, typename Less = std::less<K>>
using multimap = boost::container::multimap<K, V, Less, scoped<std::pair<const K, V>>>;
template <typename K, typename Less = std::less<K>>
using set = boost::container::set<K, Less, scoped<K>>;
template <typename K, typename V, typename Less = std::less<K>>
using flat_map = boost::container::flat_map<K, V, Less, scoped<std::pair<K, V>>>;
template <typename K, typename Less = std::less<K>>
using flat_set = boost::container::flat_set<K, Less, scoped<K>>;
// Pointers to entries stay valid until the entries are erased. hash_map (persistent_hash_map.h) is
// two to three times as fast, and touches fewer pages. boost::hash is the same in every process.
template <typename K, typename V, typename Hash = boost::hash<K>, typename Equal = std::equal_to<K>>
using unordered_map = boost::unordered_map<K, V, Hash, Equal, scoped<std::pair<const K, V>>>;
template <typename K, typename Hash = boost::hash<K>, typename Equal = std::equal_to<K>>
using unordered_set = boost::unordered_set<K, Hash, Equal, scoped<K>>;

}  // namespace outcore::persistent
