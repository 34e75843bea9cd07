// What `outcore bench kmers` is made of: k-mers, the tree of organisms, the database, and how a
// read is told; and that a damaged database is found.
#include <map>

#include "bench/genomes.h"
#include "bench/kmer.h"
#include "bench/kmer_builder.h"
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
    for (uint64_t i = 0; i < genomes_.genome_bases(); ++i) {
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

INSTANTIATE_TEST_SUITE_P(Layouts, KmerDatabase, testing::Bool(), [](const auto& tested) {
  return tested.param ? std::string("two_level") : std::string("hash");
});

class KmersFile : public DamagedBench {};

TEST_F(KmersFile, ThatWasDamagedIsFound) {
  for (const std::string index : {"hash", "two-level"}) {
    const std::string work = "kmers --size 2M --reads 300 --index " + index;
    ASSERT_EQ(bench(work).status, 0);
    damage("outcore-bench-kmers-" + index + "-2097152-1.dat");
    const Outcome outcome = bench(work);
    EXPECT_EQ(outcome.status, 1);
    EXPECT_EQ(outcome.error_lines(), 1U) << outcome.err;
    EXPECT_NE(outcome.err.find("reads were told right"), std::string::npos) << outcome.err;
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
  const Outcome outcome = bench(work);
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.err.find("plain memory"), std::string::npos) << outcome.err;
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
