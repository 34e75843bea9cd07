// What `outcore bench kmers` is made of: k-mers, the tree of organisms, the database, how a read is
// told, and which pages are asked for; that processes tell as much as one, and that a damaged
// database is found.
#include <sys/mman.h>

#include <algorithm>
#include <map>

#include "bench/anonymous_memory.h"
#include "bench/genomes.h"
#include "bench/kmer.h"
#include "bench/kmer_builder.h"
#include "bench/page_lists.h"
#include "bench/read_classifier.h"
#include "bench/taxonomy.h"
#include "cli/tests/damaged_bench.h"

namespace outcore::cli {
namespace {

using bench::kNoTaxon;
using bench::kRootTaxon;
using bench::Taxon;

uint64_t kmer_of_letters(const std::string& letters) {
  uint64_t kmer = 0;
  for (const char letter : letters) kmer = kmer << 2 | std::string("ACGT").find(letter);
  return kmer;
}

TEST(Kmer, TheReverseComplementIsTheOtherStrandReadBackwards) {
  EXPECT_EQ(bench::reverse_complement(kmer_of_letters("AAAACCCCGGGGTTTTACGT")),
            kmer_of_letters("ACGTAAAACCCCGGGGTTTT"));
  EXPECT_EQ(bench::reverse_complement(kmer_of_letters("AAAAAAAAAAAAAAAAAAAC")),
            kmer_of_letters("GTTTTTTTTTTTTTTTTTTT"));
  bench::Random random(1);
  for (int i = 0; i < 1000; ++i) {
    const uint64_t kmer = random.next() & bench::kKmerMask;
    const uint64_t other = bench::reverse_complement(kmer);
    EXPECT_EQ(bench::reverse_complement(other), kmer);
    EXPECT_EQ(bench::canonical(kmer), bench::canonical(other));
    EXPECT_EQ(bench::canonical(kmer), std::min(kmer, other));
  }
}

TEST(Kmer, AWindowGivesTheCanonicalKmersOfASequenceAndOfItsOtherStrand) {
  bench::Random random(2);
  std::vector<uint8_t> bases(60);
  for (uint8_t& base : bases) base = static_cast<uint8_t>(random.below(4));
  std::vector<uint8_t> other(bases.rbegin(), bases.rend());
  for (uint8_t& base : other) base = bench::complement(base);
  const auto kmers_of = [](const std::vector<uint8_t>& sequence) {
    bench::KmerWindow window;
    std::vector<uint64_t> all;
    for (const uint8_t base : sequence)
      if (window.push(base)) all.push_back(window.canonical());
    return all;
  };
  std::vector<uint64_t> forward = kmers_of(bases), backward = kmers_of(other);
  std::reverse(backward.begin(), backward.end());
  EXPECT_EQ(forward, backward);
  ASSERT_EQ(forward.size(), bases.size() - bench::kKmerBases + 1);
  for (size_t first = 0; first < forward.size(); ++first) {
    uint64_t kmer = 0;
    for (size_t i = 0; i < bench::kKmerBases; ++i) kmer = kmer << 2 | bases[first + i];
    EXPECT_EQ(forward[first], bench::canonical(kmer));
  }
}

TEST(Taxonomy, TheCommonAncestorIsTheLowestTaxonOfBoth) {
  const bench::Taxonomy tree(3);
  ASSERT_EQ(bench::kStrainsASpecies, 2U);
  ASSERT_EQ(bench::kSpeciesAGenus, 4U);
  const Taxon strain = tree.strain(8), species = tree.parent(strain), genus = tree.parent(species);
  EXPECT_EQ(tree.parent(genus), kRootTaxon);
  EXPECT_EQ(tree.parent(kRootTaxon), kNoTaxon);
  EXPECT_EQ(tree.species_of(strain), species);
  EXPECT_EQ(tree.species_of(species), species);
  EXPECT_EQ(tree.species_of(genus), kNoTaxon);
  EXPECT_EQ(tree.common_ancestor(strain, strain), strain);
  EXPECT_EQ(tree.common_ancestor(strain, tree.strain(9)), species);
  EXPECT_EQ(tree.common_ancestor(tree.strain(15), strain), genus);
  EXPECT_EQ(tree.common_ancestor(strain, tree.strain(7)), kRootTaxon);
  EXPECT_EQ(tree.common_ancestor(genus, strain), genus);
  EXPECT_EQ(tree.common_ancestor(species, kRootTaxon), kRootTaxon);
  EXPECT_EQ(tree.common_ancestor(kNoTaxon, strain), strain);
  EXPECT_EQ(tree.common_ancestor(strain, kNoTaxon), strain);
  EXPECT_TRUE(tree.has(tree.strain(23)));
  EXPECT_FALSE(tree.has(tree.strain(23) + 1));
  EXPECT_FALSE(tree.has(kNoTaxon));
}

Taxon chosen(const bench::Taxonomy& tree, const std::vector<std::pair<Taxon, int>>& votes) {
  bench::TaxonVotes all;
  for (const auto& [taxon, count] : votes)
    for (int i = 0; i < count; ++i) all.add(taxon);
  return all.choose(tree);
}

TEST(TaxonVotes, TheHeaviestPathFromTheRootWins) {
  const bench::Taxonomy tree(3);
  const Taxon a = tree.strain(0), b = tree.strain(1), far = tree.strain(16);
  const Taxon species = tree.parent(a);
  EXPECT_EQ(chosen(tree, {}), kNoTaxon);
  EXPECT_EQ(chosen(tree, {{species, 90}, {a, 1}}), a);
  EXPECT_EQ(chosen(tree, {{species, 3}, {a, 4}, {far, 6}}), a);
  EXPECT_EQ(chosen(tree, {{species, 3}, {a, 4}, {far, 8}}), far);
  EXPECT_EQ(chosen(tree, {{kRootTaxon, 50}, {far, 1}}), far);
  // Two strains that have as many say no more than what they have in common.
  EXPECT_EQ(chosen(tree, {{a, 5}, {b, 5}}), species);
  EXPECT_EQ(chosen(tree, {{species, 2}, {a, 5}, {b, 5}, {far, 7}}), kRootTaxon);
}

class KmerDatabase : public testing::TestWithParam<bool> {
 protected:
  static constexpr uint64_t kBytes = bench::KmerBuilder::kFileBytesMin;

  void SetUp() override {
    const bench::KmerBuilder builder(genomes_, 2);
    auto header = builder.lay_out_hash(std::as_writable_bytes(std::span(table_)));
    ASSERT_TRUE(header.ok()) << header.message();
    header_ = header.value();
    file_ = table_;
    if (!GetParam()) return;
    header_ = bench::KmerBuilder::two_level_header(header_);
    file_.assign(header_.size_bytes / sizeof(uint64_t), 0);
    builder.lay_out_two_level(std::as_bytes(std::span(table_)), header_,
                              std::as_writable_bytes(std::span(file_)));
  }
  bench::KmerIndex index() const { return {header_, std::as_bytes(std::span(file_))}; }

  const bench::Genomes genomes_ = bench::KmerBuilder::genomes_for(kBytes, 1);
  std::vector<uint64_t> table_ = std::vector<uint64_t>(kBytes / sizeof(uint64_t));
  std::vector<uint64_t> file_;
  bench::KmerHeader header_;
};

TEST_P(KmerDatabase, HasTheCommonAncestorOfAllStrainsWithAKmer) {
  std::map<uint64_t, Taxon> expected;
  const bench::Taxonomy& tree = genomes_.taxonomy();
  for (uint32_t strain = 0; strain < tree.strains(); ++strain) {
    const bench::Sequence genome = genomes_.sequence(strain);
    bench::KmerWindow window;
    for (uint64_t i = 0; i < genomes_.bases_of(strain); ++i) {
      if (!window.push(genome.base(i))) continue;
      Taxon& taxon = expected[window.canonical()];
      taxon = tree.common_ancestor(taxon, tree.strain(strain));
    }
  }
  EXPECT_EQ(header_.kmers, expected.size());
  const bench::KmerIndex found = index();
  size_t wrong = 0;
  for (const auto& [kmer, taxon] : expected) wrong += found.find(kmer) != taxon;
  EXPECT_EQ(wrong, 0U);
  bench::Random random(3);
  for (int i = 0; i < 10'000; ++i) {
    const uint64_t kmer = bench::canonical(random.next() & bench::kKmerMask);
    if (!expected.contains(kmer)) wrong += found.find(kmer) != kNoTaxon;
  }
  EXPECT_EQ(wrong, 0U);
}

TEST_P(KmerDatabase, IsTheSameWhateverTheNumberOfThreads) {
  std::vector<uint64_t> table(table_.size());
  const bench::KmerBuilder builder(genomes_, 5);
  ASSERT_TRUE(builder.lay_out_hash(std::as_writable_bytes(std::span(table))).ok());
  EXPECT_EQ(table, table_);
  const auto bytes = std::as_bytes(std::span(file_));
  EXPECT_EQ(builder.hash_content(bytes), bench::KmerBuilder(genomes_, 1).hash_content(bytes));
  if (!GetParam()) return;
  std::vector<uint64_t> file(file_.size());
  builder.lay_out_two_level(std::as_bytes(std::span(table)), header_,
                            std::as_writable_bytes(std::span(file)));
  EXPECT_EQ(file, file_);
}

TEST_P(KmerDatabase, TellsOfWhichSpeciesNearlyAllReadsAre) {
  static constexpr uint64_t kReads = 2000;
  const bench::KmerIndex found = index();
  bench::SampleAnswers answers(genomes_, found);
  for (uint64_t i = 0; i < kReads; ++i) answers.classify_read(i);
  EXPECT_GE(answers.right(), kReads * 99 / 100);
  // One whose taxa are those of other k-mers tells next to none.
  for (uint64_t& word : file_)
    if (const Taxon taxon = bench::taxon_of(word); genomes_.taxonomy().has(taxon))
      word = bench::entry_of(bench::kmer_of(word),
                             genomes_.taxonomy().strain(static_cast<uint32_t>(
                                 bench::mix(word) % genomes_.taxonomy().strains())));
  bench::SampleAnswers wrong(genomes_, found);
  for (uint64_t i = 0; i < kReads; ++i) wrong.classify_read(i);
  EXPECT_LT(wrong.right(), kReads / 2);
  EXPECT_NE(wrong.checksum(), answers.checksum());
}

// The database can be touched only where a page was asked for: any other touch ends the test.
TEST_P(KmerDatabase, HasAllPagesThatAReadTouchesInItsLists) {
  const bench::AnonymousMemory memory(nullptr, header_.size_bytes);
  const std::span<std::byte> bytes = memory.bytes();
  ASSERT_FALSE(bytes.empty());
  std::ranges::copy(std::as_bytes(std::span(file_)), bytes.begin());
  const uint64_t top_bytes = GetParam() ? header_.entries_at : 0;
  const bench::KmerIndex mapped(header_, bytes), plain = index();
  for (const bool is_top_pinned : {false, true})
    for (const uint64_t page_bytes : {uint64_t{4096}, uint64_t{16384}}) {
      size_t lists = 0;
      bench::PageLists ahead(mapped, page_bytes, is_top_pinned, [&](auto pages) {
        ++lists;
        for (const uint64_t page : pages) {
          const uint64_t at = page * page_bytes;
          ASSERT_LT(at, bytes.size());
          ASSERT_TRUE(!is_top_pinned || at + page_bytes > top_bytes);
          const uint64_t size = std::min(page_bytes, bytes.size() - at);
          ASSERT_EQ(::mprotect(bytes.data() + at, size, PROT_READ), 0);
        }
      });
      for (uint64_t number = 0; number < 50; ++number) {
        ASSERT_EQ(::mprotect(bytes.data(), bytes.size(), PROT_NONE), 0);
        ASSERT_EQ(::mprotect(bytes.data(), is_top_pinned ? top_bytes : 0, PROT_READ), 0);
        const bench::Read read = genomes_.read(number);
        ahead.ask_for(read);
        EXPECT_EQ(bench::classify(read, mapped, genomes_.taxonomy()),
                  bench::classify(read, plain, genomes_.taxonomy()));
      }
      // A read of an unknown organism may have no list of entries.
      EXPECT_GE(lists, 50U - 10);
      EXPECT_LE(lists, GetParam() && !is_top_pinned ? 100U : 50U);
    }
}

INSTANTIATE_TEST_SUITE_P(Layouts, KmerDatabase, testing::Bool(), [](const auto& tested) {
  return tested.param ? std::string("two_level") : std::string("hash");
});

class KmersRun : public CommandTest {
 protected:
  Outcome bench(const std::string& more) const {
    return run("bench kmers --size 2M --reads 301 --index two-level --json --keep --dir " + dir() +
               " " + more);
  }
};

TEST_F(KmersRun, OfSeveralProcessesHasTheAnswersOfOneHoweverPagesCome) {
  std::map<std::string, uint64_t> of_one;
  for (const char* processes : {"1", "2", "3"})
    for (const char* more :
         {"", "--pin-top", "--prefetch-lists --share off", "--pin-top --prefetch-lists"}) {
      const Outcome outcome = bench(std::string("--memory dram,mmap,mmap-random,outcore --budget "
                                                "4M --threads 2 --processes ") +
                                    processes + " " + more);
      ASSERT_EQ(outcome.status, 0) << outcome.err;
      ASSERT_EQ(outcome.lines().size(), 4U);
      for (const auto& line : outcome.lines()) {
        EXPECT_EQ(line["checked"], true);
        for (const char* key : {"answers", "right", "kmers", "strains"}) {
          const auto value = line.value(key, uint64_t{0});
          EXPECT_NE(value, 0U) << key;
          EXPECT_EQ(of_one.emplace(key, value).first->second, value) << key << " " << more;
        }
        EXPECT_NEAR(line.value("rate", 0.0) * line.value("seconds", 0.0), 301, 3) << "rounded";
        EXPECT_EQ(line.value("shared", false),
                  line["memory"] == "outcore" && std::string(processes) != "1" &&
                      std::string(more).find("off") == std::string::npos);
      }
    }
}

TEST_F(KmersRun, BringsInPagesOfListsAheadOfTheirFaults) {
  for (const char* more : {"--budget 1M", "--budget 1M --pin-top"}) {
    const Outcome outcome =
        bench("--memory outcore --advice random --prefetch-lists " + std::string(more));
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    const auto line = outcome.lines().front();
    EXPECT_GT(line.value("prefetch_fills", uint64_t{0}), 0U) << more;
    EXPECT_NE(line.value("variant", "").find("prefetch lists"), std::string::npos);
  }
}

TEST_F(KmersRun, RefusesToPinMoreThanHalfOfTheBudgetOfAProcess) {
  for (const char* more : {"--memory mmap --budget 32k", "--memory outcore --budget 32k",
                           "--memory mmap --budget 64k --processes 2 --share off"}) {
    const Outcome outcome = bench(std::string("--pin-top ") + more);
    EXPECT_EQ(outcome.status, 2) << more;
    EXPECT_EQ(outcome.error_lines(), 1U) << outcome.err;
  }
  const Outcome outcome = bench("--memory mmap --budget 32k --pin-top");
  EXPECT_NE(outcome.err.find("use a larger --budget"), std::string::npos) << outcome.err;
  EXPECT_EQ(bench("--memory mmap --budget 32k --unlimited").status, 0);
}

class KmersFile : public DamagedBench {};

TEST_F(KmersFile, ThatWasDamagedIsFound) {
  for (const std::string index : {"hash", "two-level"}) {
    const std::string work = "kmers --size 2M --reads 300 --index " + index;
    ASSERT_EQ(bench(work).status, 0);
    damage("outcore-bench-kmers-" + index + "-2097152-1.dat");
    const Outcome outcome = bench(work);
    EXPECT_EQ(outcome.status, 1);
    EXPECT_EQ(outcome.error_lines(), 1U) << outcome.err;
    EXPECT_NE(outcome.err.find("reads were classified correctly"), std::string::npos)
        << outcome.err;
    // Right answers to another sample are not to be had from it.
    const Outcome other = bench("kmers --size 2M --reads 301 --index " + index);
    EXPECT_EQ(other.status, 1);
    EXPECT_NE(other.err.find("has been changed"), std::string::npos) << other.err;
  }
}

// A few lost pages leave most reads right; the checksum finds them.
TEST_F(KmersFile, ThatLostSomePagesIsFound) {
  const std::string work = "kmers --size 2M --reads 1000";
  ASSERT_EQ(bench(work).status, 0);
  const std::string name = path("outcore-bench-kmers-hash-2097152-1.dat");
  std::fstream file(name, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(200 * 4096);
  file << std::string(5 * 4096, '\0');
  file.close();
  for (const char* more : {"", " --processes 2 --share off"}) {
    const Outcome outcome = bench(work + more);
    EXPECT_EQ(outcome.status, 1);
    EXPECT_NE(outcome.err.find("plain memory"), std::string::npos) << outcome.err;
  }
}

TEST_F(KmersFile, HasTheSameDatabaseForEverySample) {
  ASSERT_EQ(bench("kmers --size 2M --reads 300").status, 0);
  const std::string name = path("outcore-bench-kmers-hash-2097152-1.dat");
  const auto read = [&] {
    std::ifstream file(name, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {}).substr(4096);
  };
  const std::string before = read();
  EXPECT_EQ(bench("kmers --size 2M --reads 200").status, 0);
  EXPECT_EQ(read(), before);
}

}  // namespace
}  // namespace outcore::cli
