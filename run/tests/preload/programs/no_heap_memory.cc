// no_heap_memory DIR [BYTES]: a program with large allocations has used up the addresses that it
// may have (RLIMIT_AS), allocates until malloc() says no, and goes on: it frees, unmaps, grows,
// moves, writes to its file, stores and becomes another program. Each call does what it says or
// fails with ENOMEM, no process ends for want of memory, and no bytes are lost.
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/uio.h>

#include <initializer_list>

#include "program.h"

using namespace program;

namespace {

constexpr uint64_t kBlockBytes = 256 << 10, kBlockWords = kBlockBytes / 8;
constexpr uint64_t kHolesBytes = 64 << 20;
constexpr int kBlocks = 8;

struct State {
  int number = -1;           // of the file
  uint64_t* file = nullptr;  // mapped
  uint64_t file_bytes = 0;
  uint64_t* blocks[kBlocks] = {};
  uint64_t *mapping = nullptr, *another = nullptr;  // anonymous, of kBlockBytes
  char* holes = nullptr;                            // anonymous, of kHolesBytes
  void* last = nullptr;  // of those that were allocated when little was left
};

// Mappings of so many bytes, until there is no room for another.
void use_up_mappings(size_t bytes) {
  while (::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED) {
  }
}

void use_up_addresses(State& s) {
  char text[64] = "";
  const int number = ::open("/proc/self/statm", O_RDONLY);
  require(::read(number, text, sizeof text - 1) > 0, "statm");
  ::close(number);
  const rlim_t used = std::strtoull(text, nullptr, 10) * kPageBytes;
  const rlimit limit{used + (1 << 20), RLIM_INFINITY};
  require(::setrlimit(RLIMIT_AS, &limit) == 0, "setrlimit");
  for (size_t bytes = 1 << 20; bytes >= kPageBytes; bytes /= 2) use_up_mappings(bytes);
  for (size_t bytes = 1 << 15; bytes >= 16;)
    if (std::malloc(bytes) == nullptr) bytes /= 2;
  // What is to be known of memory in pieces needs memory, too: pages of a mapping, and allocations,
  // each of which begins with the address of the one before.
  bool is_cut = true, is_allocated = true;
  for (uint64_t at = 0; (is_cut || is_allocated) && at < kHolesBytes; at += 2 * kPageBytes) {
    if (is_cut) is_cut = ::munmap(s.holes + at, kPageBytes) == 0;
    require(is_cut || errno == ENOMEM, "munmap says why");
    if (!is_allocated || at % (16 * kPageBytes) != 0) continue;
    void* p = std::malloc(64 << 10);
    require(p != nullptr || errno == ENOMEM, "malloc says why");
    is_allocated = p != nullptr;
    if (!is_allocated) continue;
    std::memcpy(p, &s.last, sizeof s.last);
    s.last = p;
  }
}

void check(const State& s) {
  for (int i = 0; i < kBlocks; ++i)
    if (s.blocks[i] != nullptr)
      require(is_filled(s.blocks[i], kBlockWords, 10 + i), "the bytes of an allocation");
}

bool may_be(bool is_done) { return is_done || errno == ENOMEM; }

void free_all(State& s) {
  for (void* p = s.last; p != nullptr;) {
    void* before = nullptr;
    std::memcpy(&before, p, sizeof before);
    std::free(p);
    p = before;
  }
  s.last = nullptr;
  for (uint64_t*& block : s.blocks) {
    std::free(block);
    block = nullptr;
  }
}

constexpr struct {
  const char* name;
  void (*live)(State& s);
} kWays[] = {
    {"realloc",
     [](State& s) {
       for (int i = 0; i < kBlocks; ++i) {
         void* p = std::realloc(s.blocks[i], 2 * kBlockBytes);
         require(may_be(p != nullptr), "realloc");
         if (p != nullptr) s.blocks[i] = static_cast<uint64_t*>(p);
       }
       check(s);
       for (uint64_t*& block : s.blocks)
         if (void* p = std::realloc(block, kBlockBytes)) block = static_cast<uint64_t*>(p);
     }},
    {"calloc and posix_memalign",
     [](State& s) {
       require(may_be(std::calloc(2, kBlockBytes) != nullptr), "calloc");
       void* p = nullptr;
       const int error = ::posix_memalign(&p, 4096, kBlockBytes);
       require(error == 0 || error == ENOMEM, "posix_memalign");
       check(s);
     }},
    {"munmap of a part",
     [](State& s) {
       for (uint64_t at = kPageBytes; at + kPageBytes < kBlockBytes; at += 2 * kPageBytes)
         require(may_be(::munmap(s.mapping + at / 8, kPageBytes) == 0), "munmap");
       require(s.mapping[0] == word_at(30, 0), "what is left of the mapping");
       s.mapping = s.another;
     }},
    {"mremap",
     [](State& s) {
       void* p = ::mremap(s.mapping, kBlockBytes, 4 * kBlockBytes, MREMAP_MAYMOVE);
       require(may_be(p != MAP_FAILED), "mremap");
       if (p != MAP_FAILED) s.mapping = static_cast<uint64_t*>(p);
       require(is_filled(s.mapping, kBlockWords, 30), "the bytes of the mapping");
     }},
    {"mprotect and madvise",
     [](State& s) {
       for (uint64_t at = 0; at < kBlockBytes; at += 2 * kPageBytes)
         require(may_be(::mprotect(s.mapping + at / 8, kPageBytes, PROT_READ) == 0), "mprotect");
       require(is_filled(s.mapping, kBlockWords, 30), "the bytes of the mapping");
       require(may_be(::madvise(s.mapping, kBlockBytes, MADV_DONTNEED) == 0), "madvise");
     }},
    {"mlock",
     [](State& s) {
       for (uint64_t at = 0; at < kBlockBytes; at += 2 * kPageBytes)
         require(::mlock(s.mapping + at / 8, kPageBytes) == 0 || errno == ENOMEM ||
                     errno == EAGAIN || errno == EPERM,
                 "mlock");
       for (uint64_t at = 0; at < kBlockBytes; at += 4 * kPageBytes)
         require(may_be(::munlock(s.mapping + at / 8, kPageBytes) == 0), "munlock");
     }},
    {"pwrite and msync",
     [](State& s) {
       fill(s.blocks[0], kBlockWords, 2);
       const ssize_t n = ::pwrite(s.number, s.blocks[0], kBlockBytes, 0);
       require(may_be(n == static_cast<ssize_t>(kBlockBytes)), "pwrite");
       require(::msync(s.file, s.file_bytes, MS_SYNC) == 0, "msync");
       require(may_be(::fsync(s.number) == 0), "fsync");
       fill(s.blocks[0], kBlockWords, 10);
     }},
    {"pwritev and sendfile",
     [](State& s) {
       fill(s.blocks[0], kBlockWords, 2);
       iovec list[] = {{s.blocks[0], kBlockBytes / 2},
                       {s.blocks[0] + kBlockWords / 2, kBlockBytes / 2}};
       require(may_be(::pwritev(s.number, list, 2, 0) > 0), "pwritev");
       int ends[2];
       require(::pipe(ends) == 0, "pipe");
       off_t at = 0;
       require(may_be(::sendfile(ends[1], s.number, &at, kPageBytes) > 0), "sendfile");
       fill(s.blocks[0], kBlockWords, 10);
     }},
    {"copies of a descriptor",
     [](State& s) {
       for (int i = 0; i < 100; ++i) require(may_be(::dup(s.number) >= 0), "dup");
       require(may_be(::dup2(s.number, 500) >= 0), "dup2");
       require(may_be(::close_range(400, 600, 0) == 0), "close_range");
       require(may_be(::ftruncate(s.number, static_cast<off_t>(s.file_bytes) + 4096) == 0),
               "ftruncate");
       require(may_be(::ftruncate(s.number, static_cast<off_t>(s.file_bytes)) == 0), "ftruncate");
       require(may_be(::posix_fallocate(s.number, 0, kPageBytes) == 0), "posix_fallocate");
     }},
    {"truncate",
     [](State& s) {
       const auto bytes = static_cast<off_t>(s.file_bytes);
       require(may_be(::truncate("no_heap_memory", bytes) == 0), "truncate");
     }},
    {"fdopen", [](State& s) { require(may_be(::fdopen(s.number, "r+") != nullptr), "fdopen"); }},
    {"a child",
     [](State& s) {
       use_up_mappings(kPageBytes);
       const pid_t child = ::fork();
       require(may_be(child >= 0), "fork");
       if (child == 0) ::_exit(s.blocks[0][0] == word_at(10, 0) ? 0 : 3);
       if (child > 0) require(code_of(child) == 0, "the child has the bytes");
     }},
    {"free and malloc",
     [](State& s) {
       for (int i = 0; i < kBlocks; i += 2) {
         std::free(s.blocks[i]);
         s.blocks[i] = static_cast<uint64_t*>(std::malloc(kBlockBytes));
         if (s.blocks[i] != nullptr) fill(s.blocks[i], kBlockWords, 10 + i);
       }
       check(s);
       free_all(s);
     }},
    {"free", free_all}};

[[noreturn]] void be_child(uint64_t bytes, bool becomes_another) {
  State s;
  s.file_bytes = bytes;
  s.number = ::open("no_heap_memory", O_RDWR);
  s.file = map(s.number, bytes, PROT_READ | PROT_WRITE);
  for (int i = 0; i < kBlocks; ++i) {
    s.blocks[i] = static_cast<uint64_t*>(std::malloc(kBlockBytes));
    fill(s.blocks[i], kBlockWords, 10 + i);
  }
  for (uint64_t** p : {&s.mapping, &s.another}) {
    *p = map(-1, kBlockBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
    fill(*p, kBlockWords, 30);
  }
  s.holes = reinterpret_cast<char*>(
      map(-1, kHolesBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS));
  fill(s.file, bytes / 8, 2);
  use_up_addresses(s);
  for (uint64_t i = 0; i < bytes / 8; i += 512) s.file[i] = word_at(2, i);
  for (const auto& way : kWays) {
    check(s);
    way.live(s);
    std::printf("%s without memory\n", way.name);
  }
  if (!becomes_another) ::_exit(0);
  ::execl("/bin/sh", "sh", "-c", "exit 0", nullptr);
  require(errno == ENOMEM, "exec");
  ::_exit(0);
}

}  // namespace

int main(int count, char** arguments) {
  const uint64_t bytes = begin(count, arguments, 1 << 20);
  for (const bool becomes_another : {false, true}) {
    ::close(make_file("no_heap_memory", bytes, 1));
    const pid_t child = ::fork();
    if (child == 0) be_child(bytes, becomes_another);
    if (const int code = code_of(child); code != 0) fail("it ended with %d", code);
    const int number = ::open("no_heap_memory", O_RDONLY);
    uint64_t back[512];
    for (uint64_t at = 0; at < bytes; at += sizeof back) {
      require(::pread(number, back, sizeof back, static_cast<off_t>(at)) == sizeof back, "pread");
      if (!is_filled(back, 512, 2, at / 8)) fail("bytes are lost");
    }
    ::close(number);
    std::printf("%s without memory\n", becomes_another ? "exec" : "end");
  }
  return 0;
}
