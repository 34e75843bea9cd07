// file_calls DIR [BYTES]: calls on a file that is mapped for writing, other than read and write:
// what was written through the mapping is there for them, and what they write shows in it.
#include <aio.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <csignal>
#include <initializer_list>

#include "program.h"

using namespace program;

namespace {

uint64_t bytes = 0;
int file = -1;
uint64_t* words = nullptr;

// The kernel's own answer: no library sees this call.
uint64_t in_the_file(uint64_t index) {
  uint64_t word = 0;
  long result = SYS_pread64;
  register long at asm("r10") = static_cast<long>(index * 8);
  asm volatile("syscall"
               : "+a"(result)
               : "D"(file), "S"(&word), "d"(8L), "r"(at)
               : "rcx", "r11", "memory");
  require(result == 8, "pread");
  return word;
}

// A word that is in the mapping, and, as far as the file is concerned, may be nowhere else.
uint64_t mark(uint64_t index) {
  static uint64_t last = 0x5eed;
  return words[index] = ++last * 0x9e3779b97f4a7c15u;
}

void sync_stores() {
  uint64_t value = mark(77);
  ::sync();
  require(in_the_file(77) == value, "sync stores");
  value = mark(78);
  require(::syncfs(file) == 0 && in_the_file(78) == value, "syncfs stores");
  value = mark(1024);
  constexpr unsigned kAll =
      SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
  require(::sync_file_range(file, 0, 0, kAll) == 0 && in_the_file(1024) == value,
          "sync_file_range stores");
  std::printf("sync and its kin store\n");
}

void holes_are_where_nothing_was_written() {
  const int sparse = ::open("sparse", O_RDWR | O_CREAT | O_TRUNC, 0600);
  require(sparse >= 0 && ::ftruncate(sparse, static_cast<off_t>(bytes)) == 0, "a sparse file");
  uint64_t* holes = map(sparse, bytes, PROT_READ | PROT_WRITE);
  const off_t at = static_cast<off_t>(bytes / 2);
  holes[bytes / 16] = 1;
  require(::lseek(sparse, 0, SEEK_DATA) == at, "SEEK_DATA finds what was written");
  require(::lseek(sparse, at, SEEK_HOLE) == at + 4096, "SEEK_HOLE finds its end");
  alignas(fiemap) char room[sizeof(fiemap) + 2 * sizeof(fiemap_extent)] = {};
  auto* asked = reinterpret_cast<fiemap*>(room);
  asked->fm_length = ~0ULL;
  asked->fm_flags = FIEMAP_FLAG_SYNC;
  asked->fm_extent_count = 2;
  require(::ioctl(sparse, FS_IOC_FIEMAP, asked) == 0, "FIEMAP");
  const auto* first = reinterpret_cast<const fiemap_extent*>(room + sizeof(fiemap));
  require(asked->fm_mapped_extents == 1 && first->fe_logical == static_cast<uint64_t>(at),
          "FIEMAP shows it");
  ::munmap(holes, bytes);
  ::close(sparse);
  std::printf("holes are where nothing was written\n");
}

aiocb request_for(void* buffer, uint64_t index) {
  aiocb request{};
  request.aio_fildes = file;
  request.aio_buf = buffer;
  request.aio_nbytes = 8;
  request.aio_offset = static_cast<off_t>(index * 8);
  return request;
}

void wait_for(aiocb& request) {
  const aiocb* list[] = {&request};
  while (::aio_error(&request) == EINPROGRESS) ::aio_suspend(list, 1, nullptr);
  require(::aio_error(&request) == 0 && ::aio_return(&request) == 8, "aio");
}

volatile sig_atomic_t told = 0;
void on_end(int) { told = told + 1; }

void aio_sees_and_shows() {
  struct sigaction action {};
  action.sa_handler = on_end;
  ::sigaction(SIGRTMIN, &action, nullptr);
  const uint64_t value = mark(4096);
  uint64_t word = 0;
  aiocb read = request_for(&word, 4096);
  read.aio_sigevent.sigev_notify = SIGEV_SIGNAL;
  read.aio_sigevent.sigev_signo = SIGRTMIN;
  require(::aio_read(&read) == 0, "aio_read");
  wait_for(read);
  require(word == value, "aio_read reads what was written through the mapping");
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  ::sigprocmask(SIG_BLOCK, &all, nullptr);
  while (told == 0) ::sigsuspend(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  word = 42;
  require(words[5000] != 42, "another word");
  aiocb write = request_for(&word, 5000);
  require(::aio_write(&write) == 0, "aio_write");
  wait_for(write);
  require(words[5000] == 42, "the mapping shows what aio_write wrote");
  // Two at once, to be waited for.
  const uint64_t second = mark(6000);
  uint64_t into = 0, from = 43;
  aiocb both[2] = {request_for(&into, 6000), request_for(&from, 7000)};
  both[0].aio_lio_opcode = LIO_READ;
  both[1].aio_lio_opcode = LIO_WRITE;
  aiocb* list[] = {&both[0], nullptr, &both[1]};
  require(words[7000] != 43, "another word");
  require(::lio_listio(LIO_WAIT, list, 3, nullptr) == 0, "lio_listio");
  require(into == second && words[7000] == 43, "lio_listio reads and writes");
  const uint64_t third = mark(8000);
  aiocb sync = request_for(nullptr, 0);
  require(::aio_fsync(O_SYNC, &sync) == 0, "aio_fsync");
  const aiocb* one[] = {&sync};
  while (::aio_error(&sync) == EINPROGRESS) ::aio_suspend(one, 1, nullptr);
  require(in_the_file(8000) == third, "aio_fsync stores");
  std::printf("aio sees and shows\n");
}

// Linux appends whatever offset pwrite is given, and with RWF_APPEND whatever the descriptor says.
void appends_show() {
  struct stat about;
  const int tail = make_file("tail", bytes, 3);
  uint64_t* seen = map(tail, 2 * bytes, PROT_READ | PROT_WRITE);
  require(::ftruncate(tail, static_cast<off_t>(bytes - 4000)) == 0, "ftruncate");
  const uint64_t end = (bytes - 4000) / 8;
  require(seen[end] == 0, "behind the end is nothing");
  seen[end - 1] = 9;
  const uint64_t value = 44;
  const iovec one{const_cast<uint64_t*>(&value), 8};
  require(::pwritev2(tail, &one, 1, 0, RWF_APPEND) == 8, "pwritev2");
  require(seen[end] == 44 && seen[0] == word_at(3, 0) && seen[end - 1] == 9, "RWF_APPEND shows");
  const int appending = ::open("tail", O_RDWR | O_APPEND);
  require(seen[end + 1] == 0, "behind the end is nothing");
  require(::pwrite(appending, &value, 8, 0) == 8, "pwrite");
  require(seen[end + 1] == 44 && seen[0] == word_at(3, 0), "what was appended shows");
  uint64_t many[1024];
  fill(many, 1024, 5);
  require(::pwrite(appending, many, sizeof many, 0) == sizeof many, "pwrite");
  require(is_filled(seen + end + 2, 1024, 5), "a longer one shows");
  require(::fstat(tail, &about) == 0, "fstat");
  seen[end + 2 + 1023] = 45;
  require(::msync(seen, bytes, MS_SYNC) == 0, "msync");
  struct stat after;
  require(::fstat(tail, &after) == 0 && after.st_size == about.st_size, "the size stays");
  std::printf("appends show; the file has %lld bytes\n", static_cast<long long>(after.st_size));
  ::munmap(seen, 2 * bytes);
  ::close(appending);
  ::close(tail);
}

void copies_see_and_show() {
  const int other = make_file("other", bytes, 4);
  uint64_t value = mark(100);
  loff_t from = 800, to = 0;
  require(::copy_file_range(file, &from, other, &to, 8, 0) == 8, "copy_file_range");
  uint64_t word = 0;
  require(::pread(other, &word, 8, 0) == 8 && word == value, "it copies what was written");
  require(words[200] != word_at(4, 2), "another word");
  from = 16, to = 1600;
  require(::copy_file_range(other, &from, file, &to, 8, 0) == 8, "copy_file_range");
  require(words[200] == word_at(4, 2), "the mapping shows what was copied into its file");
  value = mark(300);
  if (::ioctl(other, FICLONE, file) == 0)
    require(::pread(other, &word, 8, 2400) == 8 && word == value, "FICLONE clones it");
  ::close(other);
  std::printf("copies see and show\n");
}

// Where no offset is given, from the position, which moves.
void transfers_move_the_position() {
  uint64_t got[kPageBytes / 8];
  int ends[2];
  require(::pipe(ends) == 0, "pipe");
  for (const bool is_spliced : {false, true}) {
    const uint64_t value = mark(512 + 7);
    require(::lseek(file, kPageBytes, SEEK_SET) == kPageBytes, "lseek");
    const ssize_t moved = is_spliced ? ::splice(file, nullptr, ends[1], nullptr, sizeof got, 0)
                                     : ::sendfile(ends[1], file, nullptr, sizeof got);
    require(moved == sizeof got && ::read(ends[0], got, sizeof got) == sizeof got, "a transfer");
    require(got[7] == value, "it has what was written through the mapping");
    require(::lseek(file, 0, SEEK_CUR) == 2 * kPageBytes, "the position is behind it");
  }
  ::close(ends[0]);
  ::close(ends[1]);
  std::printf("transfers move the position\n");
}

void what_only_the_kernel_does() {
  const uint64_t value = mark(900);
  // A range that is not shared cannot be wiped at fork.
  errno = 0;
  const int wiped = ::madvise(words, bytes, MADV_WIPEONFORK);
  std::printf("WIPEONFORK %d %s\n", wiped, std::strerror(errno));
  require(::remap_file_pages(words, 2 * kPageBytes, 0, 1, 0) == 0, "remap_file_pages");
  require(words[900 - kPageBytes / 8] == value, "pages are in another order");
  require(::pread(file, &words[0], 8, 7200) == 8 && words[0] == value, "the file has them as ever");
}

void refused_moves_cost_nothing() {
  const uint64_t value = mark(11);
  const auto tell = [](const char* what, void* result) {
    std::printf("mremap %s: %s\n", what, result == MAP_FAILED ? std::strerror(errno) : "done");
  };
  char* const begin = reinterpret_cast<char*>(words);
  tell("onto itself", ::mremap(words, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, words));
  tell("onto a part of itself",
       ::mremap(words, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, begin + bytes / 2));
  tell("to no page", ::mremap(words, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, begin + 8));
  tell("without leave to move", ::mremap(words, bytes, bytes, MREMAP_FIXED, begin + 2 * bytes));
  tell("by an unknown flag", ::mremap(words, bytes, bytes, 64, nullptr));
  tell("of nothing", ::mremap(words, bytes, 0, MREMAP_MAYMOVE, nullptr));
  require(words[11] == value && words[12] == word_at(1, 12), "the mapping is as it was");
  uint64_t word = 0;
  require(::pread(file, &word, 8, 88) == 8 && word == value, "the file has its bytes");
}

}  // namespace

int main(int count, char** arguments) {
  bytes = begin(count, arguments);
  file = make_file("calls", bytes, 1);
  words = map(file, bytes, PROT_READ | PROT_WRITE);
  sync_stores();
  holes_are_where_nothing_was_written();
  aio_sees_and_shows();
  appends_show();
  copies_see_and_show();
  refused_moves_cost_nothing();
  transfers_move_the_position();
  what_only_the_kernel_does();
  return 0;
}
