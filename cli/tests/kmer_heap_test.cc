// `outcore bench kmers --table heap`: the index of two levels in each heap, after it was closed and
// opened again; that damaged lists and wrong answers are found, that all memories have the answers
// of a file, and wrong input.
#include <cerrno>
#include <set>

#include "bench/kmer_builder.h"
#include "bench/kmer_heap_index.h"
#include "bench/mapped_heap.h"
#include "bench/read_classifier.h"
#include "bench/sample_check.h"
#include "cli/tests/command_line.h"
#include "outcore/persistent_heap.h"
#include "tests/folder.h"

namespace outcore::cli {
namespace {

using bench::KmerHeapIndex;
using bench::kNoTaxon;
using bench::Taxon;

// Each makes lists in its heap, closes it, and shows what is there when it is opened again.
struct InMemory {
  using List = std::vector<uint64_t>;
  template <typename Make, typename See>
  static void keep(const std::string&, uint64_t count, const Make& make, const See& see) {
    std::vector<List> lists(count);
    make(std::span(lists));
    see(std::span<const List>(lists));
  }
};
struct InMappedFile {
  using List = boost::container::vector<uint64_t, bench::InMappedHeap<uint64_t>>;
  template <typename Make, typename See>
  static void keep(const std::string& path, uint64_t count, const Make& make, const See& see) {
    {
      auto heap = bench::make_mapped_heap(path, 4 << 20);
      ASSERT_TRUE(heap.ok()) << heap.message();
      make(std::span(
          heap->construct<List>("lists")[count](List::allocator_type(heap->get_segment_manager())),
          count));
    }
    auto heap = bench::open_mapped_heap(path, false, "mmap-random");
    ASSERT_TRUE(heap.ok()) << heap.message();
    const auto [first, found] = heap->find_no_lock<List>("lists");
    ASSERT_EQ(found, count);
    see(std::span<const List>(first, found));
  }
};
struct InOutcore {
  using List = persistent::vector<uint64_t>;
  template <typename Make, typename See>
  static void keep(const std::string& path, uint64_t count, const Make& make, const See& see) {
    auto runtime = Runtime::start({.budget_bytes = 1 << 20, .ignore_environment = true});
    ASSERT_TRUE(runtime.ok()) << runtime.message();
    auto heap = PersistentHeap::create(*runtime, path);
    ASSERT_TRUE(heap.ok()) << heap.message();
    auto lists = heap->construct_array<List>("lists", count);
    ASSERT_TRUE(lists.ok()) << lists.message();
    make(lists.value());
    ASSERT_TRUE(heap->close().ok());
    auto again = PersistentHeap::open_read_only(*runtime, path);
    ASSERT_TRUE(again.ok()) << again.message();
    const auto found = again->find_array<List>("lists");
    ASSERT_TRUE(found.ok()) << found.message();
    see(std::span<const List>(found.value()));
  }
};

template <typename Heap>
class KmerHeap : public testing::Test {
 protected:
  using List = typename Heap::List;
  using Index = KmerHeapIndex<List>;
  static constexpr uint64_t kBytes = bench::KmerBuilder::kFileBytesMin;

  void SetUp() override {
    std::vector<uint64_t> table(kBytes / sizeof(uint64_t));
    const bench::KmerBuilder builder(genomes_, 2);
    const auto hash = builder.lay_out_hash(std::as_writable_bytes(std::span(table)));
    ASSERT_TRUE(hash.ok()) << hash.message();
    header_ = bench::KmerBuilder::two_level_header(hash.value());
    file_.assign(header_.size_bytes / sizeof(uint64_t), 0);
    builder.lay_out_two_level(std::as_bytes(std::span(table)), header_,
                              std::as_writable_bytes(std::span(file_)));
  }
  // All entries of the file.
  std::span<const uint64_t> entries() const {
    return std::span(file_).subspan(header_.entries_at / sizeof(uint64_t), header_.kmers);
  }
  std::span<const std::byte> bytes() const { return std::as_bytes(std::span(file_)); }
  template <typename Change, typename See>
  void keep(const Change& change, const See& see) const {
    bool is_seen = false;
    Heap::keep(
        folder_ / "heap", Index::lists_of(header_),
        [&](std::span<List> lists) {
          Index::load(lists, header_, bytes());
          change(lists);
        },
        [&](std::span<const List> lists) {
          see(Index(lists));
          is_seen = true;
        });
    EXPECT_TRUE(is_seen);
  }
  template <typename Index>
  bench::SampleAnswers<Index> answers_of(const Index& index) const {
    bench::SampleAnswers answers(genomes_, index);
    for (uint64_t i = 0; i < kReads; ++i) answers.classify_read(i);
    return answers;
  }

  static constexpr uint64_t kReads = 300;
  const bench::Genomes genomes_ = bench::KmerBuilder::genomes_for(kBytes, 1);
  const scene::Folder folder_;
  bench::KmerHeader header_;
  std::vector<uint64_t> file_;
};

using Heaps = testing::Types<InMemory, InMappedFile, InOutcore>;
TYPED_TEST_SUITE(KmerHeap, Heaps);

TYPED_TEST(KmerHeap, FindsEachKmerAndNoOther) {
  this->keep([](auto) {},
             [&](const auto& index) {
               std::set<uint64_t> kmers;
               size_t wrong = 0;
               for (const uint64_t entry : this->entries()) {
                 kmers.insert(bench::kmer_of(entry));
                 wrong += index.find(bench::kmer_of(entry)) != bench::taxon_of(entry);
               }
               EXPECT_EQ(kmers.size(), this->header_.kmers);
               EXPECT_EQ(wrong, 0U);
               bench::Random random(3);
               for (int i = 0; i < 10'000; ++i) {
                 const uint64_t kmer = bench::canonical(random.next() & bench::kKmerMask);
                 if (!kmers.contains(kmer)) wrong += index.find(kmer) != kNoTaxon;
               }
               // Beside each that is there, too: in the same list.
               for (const uint64_t kmer : kmers)
                 for (const uint64_t other : {kmer - 1, (kmer + 1) & bench::kKmerMask})
                   if (!kmers.contains(other) && other <= bench::kKmerMask)
                     wrong += index.find(other) != kNoTaxon;
               EXPECT_EQ(wrong, 0U);
               EXPECT_EQ(index.look_through().entries, this->header_.kmers);
               EXPECT_EQ(index.look_through().misplaced, 0U);
             });
}

TYPED_TEST(KmerHeap, TellsReadsAsTheFileDoes) {
  const bench::KmerIndex file(this->header_, this->bytes());
  this->keep([](auto) {},
             [&](const auto& index) {
               const auto expected = this->answers_of(file);
               const auto found = this->answers_of(index);
               EXPECT_EQ(found.checksum(), expected.checksum());
               EXPECT_EQ(found.right(), expected.right());
               EXPECT_GE(found.right(), this->kReads * 99 / 100);
             });
}

TYPED_TEST(KmerHeap, ListsThatAreNotAsTheyWereAreFound) {
  const bench::KmerIndex file(this->header_, this->bytes());
  this->keep(
      [](auto lists) {
        for (size_t i = 0; i < lists.size(); i += 2) lists[i].clear();  // every second
        auto& swapped = lists[1];
        ASSERT_GE(swapped.size(), 2U);
        std::swap(swapped[0], swapped[1]);
        lists[3].push_back(lists[5].front());
      },
      [&](const auto& index) {
        EXPECT_LT(index.look_through().entries, this->header_.kmers);
        EXPECT_EQ(index.look_through().misplaced, 2U);
        EXPECT_NE(this->answers_of(index).checksum(), this->answers_of(file).checksum());
      });
}

TEST(SampleCheck, FindsWrongAnswersAndTooFewThatAreRight) {
  bench::RunResult result;
  result.extra["right"] = uint64_t{96};
  result.extra["answers"] = uint64_t{7};
  EXPECT_TRUE(bench::check_sample(result, 100, 1, 7).ok());
  EXPECT_EQ(bench::check_sample(result, 100, 1, 8).code(), EILSEQ);
  EXPECT_EQ(bench::check_sample(result, 200, 1, 7).code(), EILSEQ);
}

TEST(SampleCheck, OfRealGenomesAsksForWhatTheyCanTellAndForTheTruth) {
  bench::RunResult result;
  result.extra["right"] = uint64_t{5000};
  result.extra["above"] = uint64_t{4600};
  EXPECT_TRUE(bench::check_sample(result, 10000, 0.5, 0).ok());
  EXPECT_EQ(bench::check_sample(result, 10000, 0.6, 0).code(), EILSEQ);
  result.extra["above"] = uint64_t{4400};
  EXPECT_EQ(bench::check_sample(result, 10000, 0.5, 0).code(), EILSEQ);
}

class KmersInAHeap : public CommandTest {
 protected:
  void SetUp() override {
    CommandTest::SetUp();
    std::filesystem::create_directory(path("data"));
  }
  Outcome bench(const std::string& words, const std::string& budget = "512k") const {
    return run("bench kmers --json --size 2M --budget " + budget + " --reads 301 --dir " +
               path("data") + " " + words);
  }
  void expect_empty() const { EXPECT_TRUE(std::filesystem::is_empty(path("data"))); }
};

// mmap has room for all: in a quarter of it its readahead may need more than there is, so that the
// kernel ends it, which is no failure.
TEST_F(KmersInAHeap, EachMemoryHasTheAnswersOfAFileInAQuarterOfIt) {
  const Outcome file = bench("--index two-level --memory dram");
  ASSERT_EQ(file.status, 0) << file.err;
  for (const char* more : {"--threads 1", "--threads 3 --index two-level", "--threads 4 --warm"}) {
    const std::string words = std::string("--table heap --repeat 2 ") + more;
    const Outcome mmaps = bench(words + " --memory mmap,mmap-random", "8M");
    const Outcome ours = bench(words + " --memory malloc,outcore");
    ASSERT_EQ(mmaps.status, 0) << mmaps.err;
    ASSERT_EQ(ours.status, 0) << ours.err;
    auto lines = mmaps.lines();
    for (const auto& line : ours.lines()) lines.push_back(line);
    ASSERT_EQ(lines.size(), 8U);
    for (const auto& line : lines) {
      EXPECT_EQ(line["checked"], true) << line;
      EXPECT_EQ(line.value("variant", "").rfind("two-level, table in a heap", 0), 0U);
      for (const char* key : {"answers", "right", "kmers", "strains"}) {
        const auto value = line.value(key, uint64_t{0});
        EXPECT_NE(value, 0U) << key;
        EXPECT_EQ(value, file.lines().front().value(key, uint64_t{1})) << key << " " << more;
      }
    }
    EXPECT_EQ(lines.back()["memory"], "outcore");
    EXPECT_GT(lines.back().value("fills", uint64_t{0}), 0U);
    for (const char* key : {"heap_bytes", "open_seconds"})
      EXPECT_TRUE(lines.back().contains(key)) << key;
    expect_empty();
  }
}

// Outcore's heap over the kernel's mapping, in turns with its own, of one file.
TEST_F(KmersInAHeap, OurHeapOverMmapHasTheSameAnswers) {
  const Outcome outcome = bench(
      "--table heap --allocator own --repeat 2 --threads 3 --memory "
      "mmap,mmap-random,outcore,malloc",
      "8M");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const auto lines = outcome.lines();
  ASSERT_EQ(lines.size(), 8U);
  for (const auto& line : lines) {
    EXPECT_EQ(line["checked"], true) << line;
    EXPECT_EQ(line.value("answers", uint64_t{0}), lines[0].value("answers", uint64_t{1}));
    EXPECT_EQ(line.contains("heap_bytes"), line["memory"] != "malloc") << line;
  }
  expect_empty();
}

TEST_F(KmersInAHeap, AnInterruptedRunLeavesNothing) {
  const Outcome outcome = outcome_of(
      "timeout --preserve-status -s INT 2 " + command_path() +
      " bench kmers --table heap --size 2M --reads 300 --repeat 1000000 --memory mmap,outcore" +
      " --dir " + path("data"));
  EXPECT_EQ(outcome.status, 1) << outcome.err;
  expect_empty();
}

TEST_F(KmersInAHeap, RefusesWrongInput) {
  for (const char* words :
       {"--table tree", "--table heap --index hash", "--table heap --index tree",
        "--table heap --processes 2", "--table heap --pin-top", "--table heap --prefetch-lists",
        "--table heap --export x", "--table heap --memory dram", "--table heap --memory swap",
        "--table heap --memory outcore-random", "--table heap --keep", "--table heap --store x",
        "--table heap --advice random", "--table heap --frames shared",
        "--table heap --delivery messages", "--table heap --share on", "--table", "--allocator own",
        "--table heap --allocator boost"}) {
    const Outcome refused = bench(words);
    EXPECT_EQ(refused.status, 2) << words;
    EXPECT_EQ(refused.error_lines(), 1U) << words << ": " << refused.err;
  }
  const Outcome hash = bench("--table heap --index hash");
  EXPECT_NE(hash.err.find("--index hash is not for --table heap"), std::string::npos) << hash.err;
  const Outcome nowhere = run("bench kmers --table heap --size 2M --dir " + path("none"));
  EXPECT_EQ(nowhere.status, 1);
  EXPECT_EQ(nowhere.error_lines(), 1U) << nowhere.err;
  expect_empty();
}

}  // namespace
}  // namespace outcore::cli
