#include "bench/kmer_builder.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>

#include "bench/check.h"
#include "bench/options.h"
#include "bench/threads.h"
#include "cli/text.h"

namespace outcore::bench {
namespace {

constexpr double kTableFilled = 0.7;
constexpr uint64_t kGeneraWanted = 16, kGenomeBasesMin = 1024, kGenomeBasesMax = 128 << 10;
// So that a list is shorter than a page even where a prefix is thrice as frequent as on average:
// the smaller of two strands begins with A more often than with T, and relatives differ little.
constexpr uint64_t kListEntriesMeanMax = 128;

// Puts k-mers into the buckets of one part of a table, in the order in which they come. A bucket
// that is asked for is in the processor's cache only some k-mers later, so they wait in a ring.
class BucketFiller {
 public:
  BucketFiller(std::span<uint64_t> entries, uint64_t first_bucket, uint64_t last_bucket,
               const Taxonomy& taxonomy)
      : entries_(entries),
        buckets_(entries.size() / KmerHeader::kBucketEntries),
        first_bucket_(first_bucket),
        last_bucket_(last_bucket),
        taxonomy_(taxonomy) {}

  void add(uint64_t kmer, Taxon taxon) {
    const KmerSlot slot = slot_of(kmer, buckets_);
    if (slot.bucket < first_bucket_ || slot.bucket >= last_bucket_) return;
    Waiting& place = ring_[count_++ % kRingMax];
    if (count_ > kRingMax) insert(place);
    place = {slot, kmer, taxon};
    // Most k-mers find their entry within seven steps, which may be in the next line of the cache.
    const uint64_t* const bucket = &entries_[slot.bucket * KmerHeader::kBucketEntries];
    __builtin_prefetch(&bucket[slot.entry], 1);
    __builtin_prefetch(&bucket[(slot.entry + 7) % KmerHeader::kBucketEntries], 1);
  }
  // After the last k-mer.
  void finish() {
    const uint64_t waiting = std::min(count_, kRingMax);
    for (uint64_t i = count_ - waiting; i < count_; ++i) insert(ring_[i % kRingMax]);
  }
  uint64_t kmers() const { return kmers_; }
  bool is_overfull() const { return is_overfull_; }

 private:
  static constexpr uint64_t kRingMax = 32;
  struct Waiting {
    KmerSlot slot;
    uint64_t kmer;
    Taxon taxon;
  };

  void insert(const Waiting& one) {
    uint64_t* const bucket = &entries_[one.slot.bucket * KmerHeader::kBucketEntries];
    for (uint64_t i = 0; i < KmerHeader::kBucketEntries; ++i) {
      uint64_t& entry = bucket[(one.slot.entry + i) % KmerHeader::kBucketEntries];
      if (entry != 0 && kmer_of(entry) != one.kmer) continue;
      kmers_ += entry == 0;
      const Taxon before = entry == 0 ? kNoTaxon : taxon_of(entry);
      entry = entry_of(one.kmer, taxonomy_.common_ancestor(before, one.taxon));
      return;
    }
    is_overfull_ = true;
  }

  std::span<uint64_t> entries_;
  const uint64_t buckets_, first_bucket_, last_bucket_;
  const Taxonomy& taxonomy_;
  std::array<Waiting, kRingMax> ring_{};
  uint64_t count_ = 0, kmers_ = 0;
  bool is_overfull_ = false;
};

std::span<uint64_t> words_of(std::span<std::byte> bytes) {
  return {reinterpret_cast<uint64_t*>(bytes.data()), bytes.size() / sizeof(uint64_t)};
}
std::span<const uint64_t> words_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const uint64_t*>(bytes.data()), bytes.size() / sizeof(uint64_t)};
}

uint64_t in_units(uint64_t bytes) { return (bytes + kUnitBytes - 1) / kUnitBytes * kUnitBytes; }

}  // namespace

Genomes KmerBuilder::genomes_for(uint64_t file_bytes, uint64_t seed) {
  BENCH_CHECK(file_bytes >= kFileBytesMin);
  const uint64_t entries = (file_bytes - KmerHeader::kBytes) / sizeof(uint64_t);
  const double bases = kTableFilled * static_cast<double>(entries) / Genomes::kKmersABase;
  const auto all = static_cast<uint64_t>(bases);
  const uint64_t genome = std::clamp(all / kGeneraWanted, kGenomeBasesMin, kGenomeBasesMax);
  const uint64_t genera = std::clamp<uint64_t>(all / genome, 1, Taxonomy::kGeneraMax);
  return {seed, static_cast<uint32_t>(genera), genome};
}

uint64_t KmerBuilder::file_bytes_for(uint64_t kmers) {
  const auto entries = static_cast<uint64_t>(static_cast<double>(kmers) / kTableFilled);
  return std::max(kFileBytesMin, KmerHeader::kBytes + in_units(entries * sizeof(uint64_t)));
}

KmerBuilder::KmerBuilder(const Genomes& genomes, unsigned threads)
    : genomes_(genomes), threads_(threads) {
  BENCH_CHECK(threads != 0);
}

KmerBuilder::Part KmerBuilder::part_of(uint64_t count, unsigned thread) const {
  return {count * thread / threads_, count * (thread + 1) / threads_};
}

Result<KmerHeader> KmerBuilder::lay_out_hash(std::span<std::byte> file) const {
  BENCH_CHECK(file.size() >= kFileBytesMin && file.size() % kUnitBytes == 0);
  const auto entries = words_of(file.subspan(KmerHeader::kBytes));
  std::atomic<uint64_t> kmers{0};
  std::atomic<bool> is_overfull{false};
  // Each thread reads all genomes, which costs less than to hand k-mers over to others.
  on_threads(threads_, [&](unsigned thread) {
    const Taxonomy& taxonomy = genomes_.taxonomy();
    const Part part = part_of(entries.size() / KmerHeader::kBucketEntries, thread);
    BucketFiller filler(entries, part.first, part.last, taxonomy);
    for (uint32_t strain = 0; strain < taxonomy.strains(); ++strain) {
      const Taxon taxon = taxonomy.strain(strain);
      genomes_.each_kmer(strain, [&](uint64_t kmer) { filler.add(kmer, taxon); });
    }
    filler.finish();
    kmers += filler.kmers();
    if (filler.is_overfull()) is_overfull = true;
  });
  if (is_overfull)
    return cli::failure(ENOSPC, "lay out k-mers in " + cli::format_bytes(file.size()),
                        genomes_.is_real() ? "use other genomes" : "use another --seed or --size");
  KmerHeader header;
  header.size_bytes = file.size();
  header.kmers = kmers;
  header.genera = genomes_.taxonomy().genera();
  header.bases = genomes_.all_bases();
  return header;
}

KmerHeader KmerBuilder::two_level_header(const KmerHeader& hash) {
  BENCH_CHECK(!hash.is_two_level());
  KmerHeader header = hash;
  const uint64_t lists = std::max<uint64_t>(1, hash.kmers / kListEntriesMeanMax);
  header.prefix_bits = static_cast<uint64_t>(std::bit_width(lists));
  const uint64_t lists_bytes = ((uint64_t{1} << header.prefix_bits) + 1) * sizeof(uint64_t);
  header.entries_at = KmerHeader::kBytes + in_units(lists_bytes);
  header.size_bytes = header.entries_at + in_units(hash.kmers * sizeof(uint64_t));
  return header;
}

void KmerBuilder::lay_out_two_level(std::span<const std::byte> table, const KmerHeader& header,
                                    std::span<std::byte> file) const {
  BENCH_CHECK(file.size() == header.size_bytes && header.is_two_level());
  const auto from = words_of(table.subspan(KmerHeader::kBytes));
  const auto lists = words_of(file.subspan(KmerHeader::kBytes));
  const auto entries = words_of(file.subspan(header.entries_at));
  const uint64_t prefixes = uint64_t{1} << header.prefix_bits;
  const auto prefix_of = [&](uint64_t entry) { return entry >> (64 - header.prefix_bits); };
  // lists[p + 1] is the length of list p, then where it ends.
  on_threads(threads_, [&](unsigned thread) {
    const Part part = part_of(prefixes, thread);
    for (const uint64_t entry : from)
      if (const uint64_t p = prefix_of(entry); entry != 0 && p >= part.first && p < part.last)
        ++lists[p + 1];
  });
  for (uint64_t p = 0; p < prefixes; ++p) lists[p + 1] += lists[p];
  BENCH_CHECK(lists[prefixes] == header.kmers);
  on_threads(threads_, [&](unsigned thread) {
    const Part part = part_of(prefixes, thread);
    std::vector<uint64_t> ends(lists.begin() + static_cast<int64_t>(part.first),
                               lists.begin() + static_cast<int64_t>(part.last));
    for (const uint64_t entry : from)
      if (const uint64_t p = prefix_of(entry); entry != 0 && p >= part.first && p < part.last)
        entries[ends[p - part.first]++] = entry;
    for (uint64_t p = part.first; p < part.last; ++p)
      std::sort(entries.data() + lists[p], entries.data() + lists[p + 1]);
  });
}

uint64_t KmerBuilder::hash_content(std::span<const std::byte> file) const {
  const auto words = words_of(file.subspan(KmerHeader::kBytes));
  std::atomic<uint64_t> all{0};
  on_threads(threads_, [&](unsigned thread) {
    const Part part = part_of(words.size(), thread);
    uint64_t sum = 0;
    for (uint64_t i = part.first; i < part.last; ++i) sum += mix(words[i] + i * 0x9E3779B97F4A7C15);
    all += sum;
  });
  return all;
}

}  // namespace outcore::bench
