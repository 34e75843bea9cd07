// sequence --seed N --steps N --dir DIR [--threads T] [--file-size BYTES] [--only NAME,…]
//          [--not NAME,…] | --list
//
// Random steps on mapped files, the same for the same seed. Each prints a line: its number, its
// kind, its arguments, what the calls returned, and a hash of memory and files afterwards. Nothing
// in it depends on addresses, time or scheduling, so that two runs may be compared. It keeps a
// model of every byte beside, and ends with a line MISMATCH and code 1 where the two differ.
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "sequence_kinds.h"
#include "sequence_pick.h"

namespace sequence {
namespace {

struct Kind {
  const char* name;
  unsigned weight;
  void (*run)();
};

constexpr Kind kKinds[] = {
    {"mmap", 14, step_mmap},
    {"mmap_fixed", 10, step_mmap_fixed},
    {"mmap_noreplace", 4, step_mmap_noreplace},
    {"mmap_wrong", 1, step_mmap_wrong},
    {"reserve", 4, step_reserve},
    {"munmap", 8, step_munmap},
    {"munmap_twice", 2, step_munmap_twice},
    {"mremap", 8, step_mremap},
    {"mremap_fixed", 3, step_mremap_fixed},
    {"mprotect", 9, step_mprotect},
    {"msync", 4, step_msync},
    {"madvise", 8, step_madvise},
    {"posix_madvise", 2, step_posix_madvise},
    {"mincore", 2, step_mincore},
    {"mlock", 2, step_mlock},
    {"munlock", 3, step_munlock},
    {"read_memory", 14, step_read_memory},
    {"write_memory", 20, step_write_memory},
    {"touch", 8, step_touch},
    {"touch_behind_end", 3, step_touch_behind_end},
    {"masked", 3, step_masked},
    {"usr1", 3, step_usr1},
    {"sigaltstack", 2, step_sigaltstack},
    {"threads", 4, step_threads},
    {"open", 6, step_open},
    {"close", 5, step_close},
    {"dup", 4, step_dup},
    {"lseek", 2, step_lseek},
    {"read", 5, step_read},
    {"readv", 3, step_readv},
    {"pread", 5, step_pread},
    {"preadv", 3, step_preadv},
    {"write", 6, step_write},
    {"writev", 3, step_writev},
    {"pwrite", 8, step_pwrite},
    {"pwritev", 3, step_pwritev},
    {"ftruncate", 6, step_ftruncate},
    {"fallocate", 5, step_fallocate},
    {"fsync", 1, step_fsync},
    {"fadvise", 2, step_fadvise},
    {"copy_file_range", 4, step_copy_file_range},
    {"sendfile", 3, step_sendfile},
    {"pipe", 4, step_pipe},
    {"socket", 3, step_socket},
    {"big_write", 1, step_big_write},
    {"wrong_buffer", 3, step_wrong_buffer},
    {"stdio_read", 4, step_stdio_read},
    {"stdio_write", 4, step_stdio_write},
    {"path", 2, step_path},
    {"fork_read", 3, step_fork_read},
    {"fork_write", 3, step_fork_write},
    {"fork_map", 2, step_fork_map},
    {"fork_exec", 1, step_fork_exec},
    {"vfork", 1, step_vfork},
    {"spawn", 1, step_spawn},
    {"poke", 2, step_poke},
    {"peek", 2, step_peek},
    {"exec", 1, step_exec},
};

// Whether a list of names, with commas between, has this one.
bool has_name(const char* list, const char* name) {
  const size_t length = std::strlen(name);
  for (const char* at = list; at != nullptr && *at != 0;) {
    const char* end = std::strchr(at, ',');
    const size_t n = end != nullptr ? static_cast<size_t>(end - at) : std::strlen(at);
    if (n == length && std::strncmp(at, name, n) == 0) return true;
    at = end != nullptr ? end + 1 : nullptr;
  }
  return false;
}

bool is_chosen(const Kind& kind) {
  if (options.only != nullptr && !has_name(options.only, kind.name)) return false;
  return options.without == nullptr || !has_name(options.without, kind.name);
}

const Kind* pick_kind() {
  unsigned sum = 0;
  for (const Kind& kind : kKinds) sum += is_chosen(kind) ? kind.weight : 0;
  if (sum == 0) return nullptr;
  uint64_t at = random.below(sum);
  for (const Kind& kind : kKinds) {
    if (!is_chosen(kind)) continue;
    if (at < kind.weight) return &kind;
    at -= kind.weight;
  }
  return nullptr;
}

[[noreturn]] void end_with_usage(const char* what) {
  std::fprintf(stderr,
               "sequence: %s\nusage: sequence --seed N --steps N --dir DIR [--threads T] "
               "[--file-size BYTES] [--only NAME,...] [--not NAME,...] | --list\n",
               what);
  std::exit(2);
}

uint64_t number_of(const char* text) {
  char* end;
  errno = 0;
  const uint64_t value = std::strtoull(text, &end, 0);
  if (errno != 0 || end == text || *end != 0) end_with_usage("that is no number");
  return value;
}

void check_names(const char* list) {
  for (const char* at = list; at != nullptr && *at != 0;) {
    const char* end = std::strchr(at, ',');
    char name[64];
    const size_t n = end != nullptr ? static_cast<size_t>(end - at) : std::strlen(at);
    std::snprintf(name, sizeof name, "%.*s", static_cast<int>(n), at);
    bool is_known = false;
    for (const Kind& kind : kKinds) is_known |= std::strcmp(kind.name, name) == 0;
    if (!is_known) end_with_usage("there is no such kind: see --list");
    at = end != nullptr ? end + 1 : nullptr;
  }
}

void read_options(int count, char** arguments) {
  for (int i = 1; i < count; ++i) {
    const char* name = arguments[i];
    const auto is = [name](const char* option) { return std::strcmp(name, option) == 0; };
    if (is("--list")) {
      for (const Kind& kind : kKinds) std::puts(kind.name);
      std::exit(0);
    }
    if (i + 1 == count) end_with_usage("an option lacks its value");
    const char* value = arguments[++i];
    if (is("--dir"))
      options.folder = value;
    else if (is("--only"))
      options.only = value;
    else if (is("--not"))
      options.without = value;
    else if (is("--state"))
      options.state = value;
    else if (is("--seed"))
      options.seed = number_of(value);
    else if (is("--steps"))
      options.steps = number_of(value);
    else if (is("--from"))
      options.from = number_of(value);
    else if (is("--file-size"))
      options.file_bytes = number_of(value);
    else if (is("--threads"))
      options.threads = static_cast<unsigned>(number_of(value));
    else
      end_with_usage("there is no such option");
  }
  if (options.folder == nullptr) end_with_usage("--dir is missing");
  if (options.file_bytes < 2 * kPageBytes) end_with_usage("--file-size is less than two pages");
  check_names(options.only);
  check_names(options.without);
}

// Files of their own sizes, one of which does not end at a page.
void make_files() {
  for (unsigned i = 0; i < kFilesMax; ++i) {
    File& f = model.files[i];
    Random numbers(options.seed, ~uint64_t{0}, i);
    const uint64_t size = i == 0 ? options.file_bytes : numbers.size(options.file_bytes);
    numbers.fill(f.bytes, size);
    f.size = size;
    const int number = ::open(f.path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (number < 0) end_with_usage("no file can be made in --dir");
    for (uint64_t done = 0; done < size;) {
      const ssize_t n = ::write(number, f.bytes + done, size - done);
      if (n <= 0) mismatch("writing f%u: errno %d", i, errno);
      done += static_cast<uint64_t>(n);
    }
    ::close(number);
  }
}

void run_step() {
  random = Random(options.seed, step_number);
  const Kind* kind = pick_kind();
  if (kind == nullptr) end_with_usage("nothing is left to do");
  begin_line(kind->name);
  kind->run();
  observe();
  end_line();
}

// All memory and all files; then the files alone, when nothing is mapped or open any more.
void end_run() {
  begin_line("all");
  check_everything();
  end_line();
  for (Descriptor& d : model.descriptors)
    if (d.number >= 0) close_descriptor(d);
  for (unsigned a = 0; a < kAreasMax; ++a)
    for (uint64_t i = 0; model.areas[a].is_used && i < model.areas[a].count; ++i) {
      if (page_at(a, i).kind == PageKind::kGone) continue;
      uint64_t end = i;
      while (end < model.areas[a].count && page_at(a, end).kind != PageKind::kGone) ++end;
      if (::munmap(address_of({a, i, end - i}), (end - i) * kPageBytes) != 0)
        mismatch("munmap at the end: errno %d", errno);
      i = end;
    }
  for (Area& area : model.areas) area.is_used = false;
  begin_line("files");
  check_everything();
  end_line();
}

}  // namespace
}  // namespace sequence

int main(int count, char** arguments) {
  using namespace sequence;
  if (count > 1 &&
      (std::strcmp(arguments[1], "--poke") == 0 || std::strcmp(arguments[1], "--pwrite") == 0 ||
       std::strcmp(arguments[1], "--peek") == 0))
    return be_other_process(count, arguments);
  read_options(count, arguments);
  // Paths are relative, so that what is printed does not depend on where the files are.
  if (::chdir(options.folder) != 0) end_with_usage("--dir is no folder");
  const uint64_t pages = (options.file_bytes + kPageBytes - 1) / kPageBytes;
  make_model(2 * pages * kPageBytes);
  install_handlers(0);
  step_number = options.from;
  if (options.state != nullptr)
    resume();
  else
    make_files();
  for (; step_number < options.steps; ++step_number) run_step();
  end_run();
  return 0;
}
