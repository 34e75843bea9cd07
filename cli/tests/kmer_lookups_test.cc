// `outcore bench kmers --lookups`: k-mers that are looked up by themselves: what they are, that
// processes find as much as one, and that a damaged database is found.
#include <cstring>
#include <functional>
#include <map>

#include "bench/genomes.h"
#include "bench/kmer_builder.h"
#include "bench/lookup_answers.h"
#include "cli/tests/damaged_bench.h"

namespace outcore::cli {
namespace {

constexpr const char* kDatabase = "outcore-bench-kmers-hash-2097152-1.dat";

TEST(KmerLookup, IsMostOftenOfAStrainThatHasIt) {
  const bench::Genomes genomes = bench::KmerBuilder::genomes_for(uint64_t{1} << 20, 1);
  static constexpr uint64_t kLookups = 4000;
  uint64_t random = 0;
  std::map<bench::Taxon, uint64_t> by_strain;
  for (uint64_t i = 0; i < kLookups; ++i) {
    const bench::KmerLookup one = genomes.lookup(i);
    EXPECT_EQ(one.kmer, bench::canonical(one.kmer));
    EXPECT_EQ(one.kmer, genomes.lookup(i).kmer);
    random += one.truth == bench::kNoTaxon;
    ++by_strain[one.truth];
    if (one.truth == bench::kNoTaxon || i >= 100) continue;
    bool is_there = false;
    genomes.each_kmer(one.truth - genomes.taxonomy().strain(0),
                      [&](uint64_t kmer) { is_there = is_there || kmer == one.kmer; });
    EXPECT_TRUE(is_there) << i;
  }
  EXPECT_NEAR(static_cast<double>(random), kLookups / 8.0, kLookups / 40.0);
  EXPECT_EQ(by_strain.size(), genomes.taxonomy().strains() + 1);
}

TEST(KmerLookup, IsWrongIfItsTaxonIsNotAboveItsStrain) {
  static constexpr uint64_t kBytes = bench::KmerBuilder::kFileBytesMin, kLookups = 1000;
  const bench::Genomes genomes = bench::KmerBuilder::genomes_for(kBytes, 1);
  std::vector<uint64_t> file(kBytes / sizeof(uint64_t));
  auto header =
      bench::KmerBuilder(genomes, 2).lay_out_hash(std::as_writable_bytes(std::span(file)));
  ASSERT_TRUE(header.ok()) << header.message();
  const bench::KmerIndex index(header.value(), std::as_bytes(std::span(file)));
  const auto answers = [&] {
    bench::LookupAnswers all(genomes, index);
    for (uint64_t i = 0; i < kLookups; ++i) all.look_up(i);
    return all;
  };
  const bench::LookupAnswers right = answers();
  EXPECT_EQ(right.wrong(), 0U);
  EXPECT_NEAR(static_cast<double>(right.found()), kLookups * 7 / 8.0, kLookups / 20.0);
  const auto change = [&](const std::function<bench::Taxon(bench::Taxon)>& other) {
    for (uint64_t& word : file)
      if (word != 0) word = bench::entry_of(bench::kmer_of(word), other(bench::taxon_of(word)));
  };
  // What is above all is never wrong, and yet another answer.
  const std::vector<uint64_t> before = file;
  change([](bench::Taxon) { return bench::kRootTaxon; });
  EXPECT_EQ(answers().wrong(), 0U);
  EXPECT_NE(answers().checksum(), right.checksum());
  file = before;
  change([&](bench::Taxon) { return genomes.taxonomy().strain(0); });
  EXPECT_GT(answers().wrong(), right.found() * 9 / 10);
  // As in a damaged file, of none at all.
  change([](bench::Taxon taxon) { return taxon + 1'000'000; });
  EXPECT_EQ(answers().wrong(), right.found());
}

class KmerLookups : public DamagedBench {
 protected:
  std::string bytes() const {
    std::ifstream file(path(kDatabase), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
};

TEST_F(KmerLookups, OfSeveralProcessesFindAsMuchAsOne) {
  for (const char* index : {"hash", "two-level"}) {
    std::map<std::string, uint64_t> of_one;
    for (const char* more : {"--threads 3", "--processes 2", "--processes 3 --share off",
                             "--processes 2 --threads 1 --pin-top"}) {
      const bool is_pinned = std::string(more).find("pin") != std::string::npos;
      if (is_pinned && std::string(index) == "hash") continue;
      const Outcome outcome =
          run("bench kmers --lookups --touches 5001 --size 2M --budget 4M --json --keep --memory " +
              std::string("dram,mmap,mmap-random,outcore --dir ") + dir() + " --index " + index +
              " " + more);
      ASSERT_EQ(outcome.status, 0) << outcome.err;
      ASSERT_EQ(outcome.lines().size(), 4U);
      for (const auto& line : outcome.lines()) {
        EXPECT_EQ(line["checked"], true);
        EXPECT_EQ(line["unit"], "lookups/s");
        EXPECT_EQ(line["wrong"], 0);
        EXPECT_NE(line.value("variant", "").find("look-ups"), std::string::npos);
        EXPECT_NEAR(line.value("rate", 0.0) * line.value("seconds", 0.0), 5001, 60) << "rounded";
        for (const char* key : {"answers", "found"}) {
          const auto value = line.value(key, uint64_t{0});
          EXPECT_NE(value, 0U) << key;
          EXPECT_EQ(of_one.emplace(key, value).first->second, value) << key << " " << more;
        }
      }
    }
  }
}

TEST_F(KmerLookups, FindADamagedDatabase) {
  for (const std::string index : {"hash", "two-level"}) {
    const std::string work = "kmers --lookups --size 2M --touches 3000 --index " + index;
    ASSERT_EQ(bench(work).status, 0);
    damage("outcore-bench-kmers-" + index + "-2097152-1.dat");
    const Outcome outcome = bench(work);
    EXPECT_EQ(outcome.status, 1);
    EXPECT_EQ(outcome.error_lines(), 1U) << outcome.err;
    EXPECT_NE(outcome.err.find("a taxon that they cannot have"), std::string::npos) << outcome.err;
    const Outcome other = bench("kmers --lookups --size 2M --touches 3001 --index " + index);
    EXPECT_EQ(other.status, 1);
    EXPECT_NE(other.err.find("has been changed"), std::string::npos) << other.err;
  }
}

// Taxa that are true, and not the lowest: the checksum finds them.
TEST_F(KmerLookups, FindADatabaseThatTellsLess) {
  const std::string work = "kmers --lookups --size 2M --touches 3000";
  ASSERT_EQ(bench(work).status, 0);
  std::string file = bytes();
  for (size_t at = 4096; at < file.size(); at += 8) {
    uint64_t word = 0;
    std::memcpy(&word, &file[at], sizeof word);
    if (word != 0) word = bench::entry_of(bench::kmer_of(word), bench::kRootTaxon);
    std::memcpy(&file[at], &word, sizeof word);
  }
  std::fstream(path(kDatabase), std::ios::in | std::ios::out | std::ios::binary) << file;
  const Outcome outcome = bench(work);
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.err.find("plain memory"), std::string::npos) << outcome.err;
}

// The answers to as many reads are not those to look-ups: both lie in the file, which stays.
TEST_F(KmerLookups, HaveTheDatabaseOfReads) {
  ASSERT_EQ(bench("kmers --size 2M --reads 300").status, 0);
  const std::string before = bytes();
  for (const char* work : {"--lookups --touches 300", "--reads 300", "--lookups --touches 300",
                           "--lookups --touches 301", "--reads 301"}) {
    const Outcome outcome = bench(std::string("kmers --size 2M ") + work);
    EXPECT_EQ(outcome.status, 0) << work << outcome.err;
  }
  EXPECT_EQ(bytes().substr(4096), before.substr(4096));
}

TEST_F(KmerLookups, RefuseWhatIsOfReads) {
  for (const char* more : {"--prefetch-lists", "--export sample", "--pin-top"}) {
    const Outcome outcome = bench(std::string("kmers --size 2M --lookups ") + more);
    EXPECT_EQ(outcome.status, 2) << more;
    EXPECT_EQ(outcome.error_lines(), 1U) << outcome.err;
  }
}

}  // namespace
}  // namespace outcore::cli
