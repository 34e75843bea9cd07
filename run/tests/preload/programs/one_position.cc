// one_position FOLDER : threads that share a descriptor of a file that is mapped and written, too.
// What they read and write by its position, each byte once, is what the mapping has.
#include <sched.h>
#include <sys/uio.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "program.h"

namespace {

using program::fail;
using program::kPageBytes;
using program::require;

constexpr uint64_t kPages = 192, kWords = kPageBytes / 8;
constexpr int kThreads = 4, kRounds = 20;

struct Page {
  uint64_t number, round, writer;
  uint64_t rest[kWords - 3];
};

int file = -1;
Page* mapped = nullptr;

// By the mapping: the pages are in memory alone until somebody reads them.
void write_all(uint64_t round) {
  for (uint64_t i = 0; i < kPages; ++i) {
    mapped[i].number = i;
    mapped[i].writer = 0;
    mapped[i].rest[kWords - 4] = round;
    mapped[i].round = round;
  }
}

void go_to(uint64_t page) {
  require(::lseek(file, static_cast<off_t>(page * kPageBytes), SEEK_SET) >= 0, "lseek");
}

template <typename Work>
void in_threads(const Work& work) {
  std::atomic<int> waiting{kThreads};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&, i] {
      waiting.fetch_sub(1);
      while (waiting.load() > 0) ::sched_yield();
      work(i);
    });
  for (std::thread& thread : threads) thread.join();
}

// One page at the position, by either call. False: there is none.
bool read_page(Page* page, bool is_vector) {
  const iovec halves[] = {{page, kPageBytes / 2},
                          {reinterpret_cast<char*>(page) + kPageBytes / 2, kPageBytes / 2}};
  const ssize_t n = is_vector ? ::readv(file, halves, 2) : ::read(file, page, kPageBytes);
  require(n == 0 || n == static_cast<ssize_t>(kPageBytes), "a read of a page");
  return n != 0;
}

void expect(const Page& page, uint64_t round) {
  if (page.round != round || page.rest[kWords - 4] != round)
    fail("page %llu is of rounds %llu and %llu, written in %llu",
         static_cast<unsigned long long>(page.number), static_cast<unsigned long long>(page.round),
         static_cast<unsigned long long>(page.rest[kWords - 4]),
         static_cast<unsigned long long>(round));
}

void readers_have_each_page_once() {
  for (uint64_t round = 1; round <= kRounds; ++round) {
    write_all(round);
    go_to(0);
    std::atomic<uint64_t> pages{0}, numbers{0};
    in_threads([&](int) {
      Page page;
      for (int i = 0; read_page(&page, i % 2 != 0); ++i) {
        expect(page, round);
        pages.fetch_add(1);
        numbers.fetch_add(page.number);
      }
    });
    require(pages == kPages && numbers == kPages * (kPages - 1) / 2, "each page is read once");
    require(::lseek(file, 0, SEEK_CUR) == static_cast<off_t>(kPages * kPageBytes), "at the end");
  }
  std::printf("readers: right\n");
}

void writers_write_each_page_once() {
  for (uint64_t round = 1; round <= kRounds; ++round) {
    write_all(0);
    go_to(0);
    in_threads([&](int thread) {
      Page page{};
      for (uint64_t i = 0; i < kPages / kThreads; ++i) {
        page.writer = static_cast<uint64_t>(thread) * kPages + i + 1;
        page.round = page.rest[kWords - 4] = round;
        const iovec all{&page, kPageBytes};
        const ssize_t n = i % 2 != 0 ? ::writev(file, &all, 1) : ::write(file, &page, kPageBytes);
        require(n == static_cast<ssize_t>(kPageBytes), "a write of a page");
      }
    });
    uint64_t writers = 0, wanted = 0;
    for (uint64_t i = 0; i < kPages; ++i) {
      expect(mapped[i], round);
      writers += mapped[i].writer;
      wanted += i % kThreads * kPages + i / kThreads + 1;
      Page read;
      require(::pread(file, &read, kPageBytes, static_cast<off_t>(i * kPageBytes)) ==
                  static_cast<ssize_t>(kPageBytes),
              "pread");
      require(std::memcmp(&read, &mapped[i], kPageBytes) == 0, "read as it is mapped");
    }
    require(writers == wanted, "each page is written once");
  }
  std::printf("writers: right\n");
}

// Half of them read, half write; nobody reads what somebody else writes.
void both_take_turns() {
  for (uint64_t round = 1; round <= kRounds; ++round) {
    write_all(round);
    go_to(0);
    std::atomic<uint64_t> read{0};
    in_threads([&](int thread) {
      Page page{};
      for (uint64_t i = 0; i < kPages / kThreads; ++i) {
        if (thread % 2 == 0) {
          require(read_page(&page, i % 2 != 0), "a page is left");
          expect(page, round);
          read.fetch_add(page.number);
          continue;
        }
        page.writer = 1;
        page.round = page.rest[kWords - 4] = round;
        require(::write(file, &page, kPageBytes) == static_cast<ssize_t>(kPageBytes), "a write");
      }
    });
    uint64_t rest = kPages * (kPages - 1) / 2, written = 0;
    for (uint64_t i = 0; i < kPages; ++i) {
      expect(mapped[i], round);
      written += mapped[i].writer;
      if (mapped[i].writer != 0) rest -= i;
    }
    require(written == kPages / 2 && rest == read, "each page is read or written, once");
  }
  std::printf("readers beside writers: right\n");
}

// One thread moves the position, the others read wherever it is.
void seekers_do_no_harm() {
  for (uint64_t round = 1; round <= kRounds; ++round) {
    write_all(round);
    std::atomic<int> readers{kThreads - 1};
    in_threads([&](int thread) {
      if (thread == 0) {
        for (uint64_t i = 1; readers.load() > 0; ++i) go_to(i * 37 % (kPages / 2));
        return;
      }
      Page page;
      for (int i = 0; i < 100; ++i)
        if (read_page(&page, false)) expect(page, round);
      readers.fetch_sub(1);
    });
  }
  std::printf("readers beside one that seeks: right\n");
}

// Whoever reads at the end gets nothing, and leaves the position where it is for those who write.
void readers_at_the_end_leave_no_holes(const char* path) {
  constexpr int kRecords = 300, kBytes = 700;
  file = program::make_file(path, kPages * kPageBytes, 2);
  void* const shown = ::mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  require(shown != MAP_FAILED, "mmap");
  const off_t begin = ::lseek(file, 0, SEEK_END);
  std::atomic<bool> is_over{false};
  in_threads([&](int thread) {
    char bytes[kBytes];
    if (thread == 0) {
      for (int i = 0; i < kRecords; ++i) {
        std::memset(bytes, 'a' + i % 26, kBytes);
        require(::write(file, bytes, kBytes) == kBytes, "a record is written");
        static_cast<volatile char*>(shown)[i] = 'x';
      }
      is_over = true;
    }
    std::vector<char> much(65536);
    while (!is_over) require(::read(file, much.data(), much.size()) == 0, "nothing is there");
  });
  require(::lseek(file, 0, SEEK_END) == begin + kRecords * kBytes, "as long as what was written");
  for (int i = 0; i < kRecords; ++i) {
    char bytes[kBytes];
    require(::pread(file, bytes, kBytes, begin + i * kBytes) == kBytes, "a record is read");
    for (const char byte : bytes) require(byte == 'a' + i % 26, "a record is whole");
  }
  std::printf("readers at the end: right\n");
}

// One reads to the end, the other seeks: one after the other.
void a_seek_is_before_a_read_or_after_it() {
  constexpr off_t kTo = 32 * kPageBytes, kEnd = kPages * kPageBytes;
  std::vector<char> much(2 * kEnd);
  for (uint64_t round = 1; round <= kRounds; ++round) {
    write_all(round);
    go_to(kPages - 64);
    in_threads([&](int thread) {
      if (thread == 0) require(::read(file, much.data(), much.size()) >= 0, "a read");
      if (thread == 1) go_to(kTo / kPageBytes);
    });
    const off_t at = ::lseek(file, 0, SEEK_CUR);
    require(at == kTo || at == kEnd, "the position is one of both");
  }
  std::printf("a seek beside a read: right\n");
}

}  // namespace

int main(int count, char** words) {
  require(count == 2, "one_position FOLDER");
  file = program::make_file((std::string(words[1]) + "/shared").c_str(), kPages * kPageBytes, 1);
  void* p = ::mmap(nullptr, kPages * kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  require(p != MAP_FAILED, "mmap");
  mapped = static_cast<Page*>(p);
  readers_have_each_page_once();
  writers_write_each_page_once();
  both_take_turns();
  seekers_do_no_harm();
  a_seek_is_before_a_read_or_after_it();
  std::memset(mapped, 0, kPages * kPageBytes);
  readers_at_the_end_leave_no_holes((std::string(words[1]) + "/grown").c_str());
  return 0;
}
