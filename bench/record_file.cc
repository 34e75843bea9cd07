#include "bench/record_file.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <vector>

#include "bench/anonymous_memory.h"
#include "bench/check.h"
#include "bench/medium.h"
#include "bench/threads.h"
#include "cli/text.h"

namespace outcore::bench {
namespace {

constexpr uint64_t kStepRecords = 16 * 1024, kStepPages = 1024;

// Its part of [0, count), for each of some threads.
void on_parts(uint64_t count, const std::function<void(uint64_t first, uint64_t last)>& work) {
  const unsigned threads = making_threads();
  on_threads(threads,
             [&](unsigned i) { work(count * i / threads, count * (uint64_t{i} + 1) / threads); });
}

}  // namespace

RecordFile::RecordFile(const Options& options, uint64_t room)
    : size_bytes_(options.size_bytes),
      seed_(options.seed),
      layout_(options.size_bytes),
      loaded_(layout_.slots - room),
      file_(options, cli::format("outcore-bench-ycsb-%llu-%llu.dat",
                                 static_cast<unsigned long long>(options.size_bytes),
                                 static_cast<unsigned long long>(options.seed))),
      tag_(cli::format("ycsb %llu seed %llu records %llu",
                       static_cast<unsigned long long>(options.size_bytes),
                       static_cast<unsigned long long>(options.seed),
                       static_cast<unsigned long long>(loaded_))) {
  BENCH_CHECK(room < layout_.slots);
}

Status RecordFile::make() {
  if (Status s = file_.claim(); !s) return s;
  if (file_.is_clean(tag_)) return {};
  file_.mark_changed();
  auto medium = open_medium(file_.uri(), size_bytes_, true);
  if (!medium) return medium.error();
  if (Status s = write_index(**medium); !s) return s;
  if (Status s = write_records(**medium); !s) return s;
  if (Status s = (*medium)->sync(); !s) return s;
  file_.mark_clean(tag_);
  return {};
}

// Each thread has some of the pages, and looks for keys that stand on them.
Status RecordFile::write_index(Medium& medium) const {
  const AnonymousMemory memory(nullptr, layout_.index_pages * sizeof(IndexPage));
  if (memory.bytes().empty()) return cli::failure(ENOMEM, "lay out the index", "use less --size");
  auto* const pages = reinterpret_cast<IndexPage*>(memory.bytes().data());
  std::atomic<bool> is_full{false};
  on_parts(layout_.index_pages, [&](uint64_t first, uint64_t last) {
    for (uint64_t number = 0; number < loaded_; ++number) {
      const uint64_t key = key_of(seed_, number);
      const uint64_t page = index_page_of(key, layout_.index_pages);
      if (page < first || page >= last) continue;
      if (!pages[page].insert(key, static_cast<uint32_t>(number))) is_full = true;
    }
  });
  if (is_full) return Error{ENOSPC, "a page of the index is full: use another --seed"};
  return write_all(medium, memory.bytes());
}

Status RecordFile::write_records(Medium& medium) const {
  std::vector<Record> records(std::min(kStepRecords, layout_.slots));
  for (uint64_t at = 0; at < layout_.slots; at += kStepRecords) {
    const uint64_t count = std::min(kStepRecords, layout_.slots - at);
    on_parts(count, [&](uint64_t first, uint64_t last) {
      for (uint64_t i = first; i < last; ++i) {
        records[i] = Record{};
        if (at + i < loaded_) records[i].write(key_of(seed_, at + i), 0);
      }
    });
    const auto step = std::as_bytes(std::span(records).first(count));
    if (Status s = medium.write(layout_.record_at(at), step); !s) return s;
  }
  return {};
}

Result<RecordFile::Found> RecordFile::audit(uint64_t records) const {
  BENCH_CHECK(records <= layout_.slots);
  auto medium = open_medium(file_.uri(), size_bytes_, false);
  if (!medium) return medium.error();
  Found found;
  if (Status s = audit_index(**medium, records, found); !s) return s.error();
  if (Status s = audit_records(**medium, records, found); !s) return s.error();
  return found;
}

Status RecordFile::audit_index(Medium& medium, uint64_t records, Found& found) const {
  std::vector<IndexPage> pages(std::min(kStepPages, layout_.index_pages));
  for (uint64_t at = 0; at < layout_.index_pages; at += kStepPages) {
    const auto step = std::span(pages).first(std::min(kStepPages, layout_.index_pages - at));
    if (Status s = medium.read(at * sizeof(IndexPage), std::as_writable_bytes(step)); !s) return s;
    for (uint64_t i = 0; i < step.size(); ++i) {
      const std::span<const uint64_t> keys = step[i].keys();
      for (uint64_t k = 0; k < keys.size(); ++k) {
        const uint64_t slot = step[i].slot(k);
        const bool is_right = slot < records && keys[k] == key_of(seed_, slot) &&
                              index_page_of(keys[k], layout_.index_pages) == at + i &&
                              (k == 0 || keys[k - 1] < keys[k]);
        found.wrong_entries += !is_right;
      }
      found.entries += keys.size();
    }
  }
  return {};
}

Status RecordFile::audit_records(Medium& medium, uint64_t records, Found& found) const {
  std::vector<Record> step(std::min(kStepRecords, layout_.slots));
  std::atomic<uint64_t> updates{0}, wrong{0};
  for (uint64_t at = 0; at < records; at += kStepRecords) {
    const uint64_t count = std::min(kStepRecords, records - at);
    const auto bytes = std::as_writable_bytes(std::span(step).first(count));
    if (Status s = medium.read(layout_.record_at(at), bytes); !s) return s;
    on_parts(count, [&](uint64_t first, uint64_t last) {
      uint64_t updates_here = 0, wrong_here = 0;
      for (uint64_t i = first; i < last; ++i) {
        updates_here += step[i].version();
        wrong_here += !step[i].is_whole(key_of(seed_, at + i));
      }
      updates += updates_here;
      wrong += wrong_here;
    });
  }
  found.updates = updates;
  found.wrong_records = wrong;
  return {};
}

}  // namespace outcore::bench
