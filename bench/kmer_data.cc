#include "bench/kmer_data.h"

#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "bench/anonymous_memory.h"
#include "bench/check.h"
#include "bench/kmer_builder.h"
#include "bench/kmer_export.h"
#include "bench/lookup_answers.h"
#include "bench/medium.h"
#include "bench/read_classifier.h"
#include "bench/threads.h"
#include "cli/text.h"

namespace outcore::bench {
namespace {

// A hash table is filled at random, which huge pages make faster; a kernel may have none.
// Errors: ENOMEM if there is no memory.
Status prefer_huge_pages(std::span<std::byte> memory, uint64_t size_bytes) {
  if (memory.empty())
    return cli::failure(ENOMEM, "map " + cli::format_bytes(size_bytes), "use a smaller --size");
  (void)madvise(memory.data(), memory.size(), MADV_HUGEPAGE);
  return {};
}

// What the k-mers are of.
std::string source_of(const Options& o) {
  if (o.genomes == nullptr) return std::to_string(o.size_bytes);
  return cli::format("genomes-%016llx", static_cast<unsigned long long>(o.genomes->hash()));
}

std::string kmer_name(const Options& o) {
  return cli::format("outcore-bench-kmers-%s-%s-%llu.dat", o.index.c_str(), source_of(o).c_str(),
                     static_cast<unsigned long long>(o.seed));
}

Genomes genomes_of(const Options& o) {
  if (o.genomes == nullptr) return KmerBuilder::genomes_for(o.size_bytes, o.seed);
  return {o.seed, o.genomes};
}

// The checksum of the answers to a sample, which some threads find together.
template <typename Answers>
uint64_t answers_of(const Genomes& genomes, const KmerIndex& index, uint64_t count,
                    void (Answers::*answer)(uint64_t)) {
  const unsigned threads = making_threads();
  std::atomic<uint64_t> checksum{0};
  on_threads(threads, [&](unsigned thread) {
    Answers answers(genomes, index);
    for (uint64_t i = thread; i < count; i += threads) (answers.*answer)(i);
    checksum += answers.checksum();
  });
  return checksum;
}

}  // namespace

KmerData::KmerData(const Options& options)
    : size_bytes_(options.size_bytes),
      is_two_level_(options.index == "two-level"),
      genomes_(genomes_of(options)),
      file_(options, kmer_name(options)),
      tag_(cli::format("kmers %s %s seed %llu", options.index.c_str(), source_of(options).c_str(),
                       static_cast<unsigned long long>(options.seed))) {}

const KmerHeader& KmerData::header() const {
  BENCH_CHECK(is_made_);
  return header_;
}

bool KmerData::has_answers(const KmerSample& sample) const {
  return sample.count == (sample.is_of_lookups ? header_.lookups : header_.reads);
}

uint64_t KmerData::right_answers(const KmerSample& sample) const {
  BENCH_CHECK(is_made_ && has_answers(sample));
  return sample.is_of_lookups ? header_.lookup_answers : header_.answers;
}

Status KmerData::make(const KmerSample& sample) {
  if (is_made_) return {};
  if (Status s = file_.claim(); !s) return s;
  Status made;
  if (!has_database())
    made = build(sample);
  else if (!has_answers(sample))
    made = renew_answers(sample);
  is_made_ = made.ok();
  return made;
}

bool KmerData::has_database() {
  if (!file_.is_clean(tag_)) return false;
  auto medium = open_medium(file_.uri(), 0, false);
  if (!medium || (*medium)->size_bytes() < KmerHeader::kBytes) return false;
  if (!(*medium)->read(0, std::as_writable_bytes(std::span(&header_, 1)))) return false;
  return header_.magic == KmerHeader::kMagic && header_.size_bytes == (*medium)->size_bytes() &&
         header_.genera == genomes_.taxonomy().genera() && header_.bases == genomes_.all_bases();
}

Status KmerData::build(const KmerSample& sample) {
  const KmerBuilder builder(genomes_, making_threads());
  const AnonymousMemory table(nullptr, size_bytes_);
  if (Status s = prefer_huge_pages(table.bytes(), size_bytes_); !s) return s;
  auto header = builder.lay_out_hash(table.bytes());
  if (!header) return header.status();
  header_ = header.value();
  if (!is_two_level_) return write(table.bytes(), sample);
  header_ = KmerBuilder::two_level_header(header_);
  const AnonymousMemory file(nullptr, header_.size_bytes);
  if (Status s = prefer_huge_pages(file.bytes(), header_.size_bytes); !s) return s;
  builder.lay_out_two_level(table.bytes(), header_, file.bytes());
  return write(file.bytes(), sample);
}

Status KmerData::write(std::span<std::byte> bytes, const KmerSample& sample) {
  header_.content_hash = KmerBuilder(genomes_, making_threads()).hash_content(bytes);
  add_answers(bytes, sample);
  std::memcpy(bytes.data(), &header_, sizeof header_);
  file_.mark_changed();
  auto medium = open_medium(file_.uri(), bytes.size(), true);
  if (!medium) return medium.error();
  if (Status s = write_all(**medium, bytes); !s) return s;
  if (Status s = (*medium)->sync(); !s) return s;
  file_.mark_clean(tag_);
  return {};
}

// The database was kept, and another sample is asked for.
Status KmerData::renew_answers(const KmerSample& sample) {
  const AnonymousMemory memory(nullptr, header_.size_bytes);
  const auto bytes = memory.bytes();
  if (Status s = prefer_huge_pages(bytes, header_.size_bytes); !s) return s;
  auto medium = open_medium(file_.uri(), header_.size_bytes, true);
  if (!medium) return medium.error();
  if (Status s = read_all(**medium, bytes); !s) return s;
  if (KmerBuilder(genomes_, making_threads()).hash_content(bytes) != header_.content_hash)
    return Error{EILSEQ, file_.path() + " has been changed since it was made: remove it"};
  add_answers(bytes, sample);
  file_.mark_changed();
  if (Status s = (*medium)->write(0, std::as_bytes(std::span(&header_, 1))); !s) return s;
  if (Status s = (*medium)->sync(); !s) return s;
  file_.mark_clean(tag_);
  return {};
}

Status KmerData::export_to(const std::string& folder, uint64_t reads) {
  const AnonymousMemory memory(nullptr, header().size_bytes);
  if (Status s = prefer_huge_pages(memory.bytes(), header_.size_bytes); !s) return s;
  auto medium = open_medium(file_.uri(), header_.size_bytes, false);
  if (!medium) return medium.error();
  if (Status s = read_all(**medium, memory.bytes()); !s) return s;
  return export_sample(genomes_, KmerIndex(header_, memory.bytes()), reads, folder);
}

void KmerData::add_answers(std::span<const std::byte> bytes, const KmerSample& sample) {
  const KmerIndex index(header_, bytes);
  if (sample.is_of_lookups) {
    header_.lookups = sample.count;
    header_.lookup_answers = answers_of(genomes_, index, sample.count, &LookupAnswers::look_up);
  } else {
    header_.reads = sample.count;
    header_.answers =
        answers_of(genomes_, index, sample.count, &SampleAnswers<KmerIndex>::classify_read);
  }
}

}  // namespace outcore::bench
