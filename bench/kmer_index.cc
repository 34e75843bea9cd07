#include "bench/kmer_index.h"

#include <algorithm>

#include "bench/check.h"

namespace outcore::bench {

const std::vector<std::string>& index_names() {
  static const std::vector<std::string> names = {"hash", "two-level"};
  return names;
}

KmerIndex::KmerIndex(const KmerHeader& header, std::span<const std::byte> bytes)
    : file_(bytes.data()),
      entries_(reinterpret_cast<const uint64_t*>(bytes.data() + header.entries_at)),
      lists_(header.is_two_level()
                 ? reinterpret_cast<const uint64_t*>(bytes.data() + KmerHeader::kBytes)
                 : nullptr),
      buckets_((header.size_bytes - header.entries_at) / sizeof(uint64_t) /
               KmerHeader::kBucketEntries),
      kmers_(header.kmers),
      prefix_shift_(kKmerBits - static_cast<unsigned>(header.prefix_bits)) {
  BENCH_CHECK(bytes.size() == header.size_bytes && header.prefix_bits < kKmerBits);
  BENCH_CHECK(header.kmers <= buckets_ * KmerHeader::kBucketEntries);
}

Taxon KmerIndex::find(uint64_t kmer) const {
  return lists_ == nullptr ? find_in_bucket(kmer) : find_in_list(kmer);
}

ByteRange KmerIndex::first_step(uint64_t kmer) const {
  if (is_two_level()) return bytes_of(lists_ + (kmer >> prefix_shift_), 2);
  const KmerSlot slot = slot_of(kmer, buckets_);
  return bytes_of(entries_ + slot.bucket * KmerHeader::kBucketEntries + slot.entry, 1);
}

ByteRange KmerIndex::second_step(uint64_t kmer) const {
  BENCH_CHECK(is_two_level());
  const std::span<const uint64_t> list = list_of(kmer);
  return list.empty() ? ByteRange{} : bytes_of(list.data(), list.size());
}

// Empty: there is none, or the file was damaged.
std::span<const uint64_t> KmerIndex::list_of(uint64_t kmer) const {
  const uint64_t* const words = lists_ + (kmer >> prefix_shift_);
  const uint64_t first = words[0], last = words[1];
  if (first >= last || last > kmers_) return {};
  return {entries_ + first, last - first};
}

ByteRange KmerIndex::bytes_of(const uint64_t* words, uint64_t count) const {
  const auto first = static_cast<uint64_t>(reinterpret_cast<const std::byte*>(words) - file_);
  return {first, first + count * sizeof(uint64_t)};
}

Taxon KmerIndex::find_in_bucket(uint64_t kmer) const {
  const KmerSlot slot = slot_of(kmer, buckets_);
  const uint64_t* const bucket = entries_ + slot.bucket * KmerHeader::kBucketEntries;
  for (uint64_t i = 0; i < KmerHeader::kBucketEntries; ++i) {
    const uint64_t entry = bucket[(slot.entry + i) % KmerHeader::kBucketEntries];
    if (entry == 0) return kNoTaxon;
    if (kmer_of(entry) == kmer) return taxon_of(entry);
  }
  return kNoTaxon;
}

Taxon KmerIndex::find_in_list(uint64_t kmer) const {
  const std::span<const uint64_t> list = list_of(kmer);
  const auto found = std::lower_bound(list.begin(), list.end(), entry_of(kmer, kNoTaxon));
  return found == list.end() || kmer_of(*found) != kmer ? kNoTaxon : taxon_of(*found);
}

}  // namespace outcore::bench
