// small_stack DIR [BYTES]: threads with small stacks for their signal handlers touch a mapping. No
// byte below such a stack changes; handlers run, and sigaltstack() tells what the program has set.
#include <pthread.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include "program.h"

using namespace program;

namespace {

constexpr size_t kBelowBytes = 64 << 10;

struct Scene {
  uint64_t* words = nullptr;
  uint64_t bytes = 0;
  size_t stack_bytes = 0;
};

thread_local bool has_run = false;

void expect_stack(const stack_t& wanted) {
  stack_t found{};
  require(::sigaltstack(nullptr, &found) == 0, "sigaltstack");
  require(found.ss_sp == wanted.ss_sp && found.ss_size == wanted.ss_size &&
              found.ss_flags == wanted.ss_flags,
          "sigaltstack tells what was set");
}

void* touch(void* argument) {
  const Scene& scene = *static_cast<Scene*>(argument);
  auto* memory = static_cast<unsigned char*>(::mmap(nullptr, kBelowBytes + scene.stack_bytes,
                                                    PROT_READ | PROT_WRITE,
                                                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  require(memory != MAP_FAILED, "mmap");
  std::memset(memory, 0x5a, kBelowBytes);
  stack_t stack{};
  stack.ss_sp = memory + kBelowBytes;
  stack.ss_size = scene.stack_bytes;
  require(::sigaltstack(&stack, nullptr) == 0, "sigaltstack");
  expect_stack(stack);
  for (int pass = 0; pass < 2; ++pass)
    for (uint64_t i = 0; i < scene.bytes / kPageBytes; ++i) {
      const uint64_t at = i * 7919 % (scene.bytes / kPageBytes) * 512;
      require(scene.words[at] == word_at(1, at), "the mapping shows the file");
      scene.words[at + 1] = i;
    }
  ::raise(SIGUSR1);
  require(has_run, "the handler runs");
  expect_stack(stack);
  stack_t off{}, before{};
  off.ss_flags = SS_DISABLE;
  require(::sigaltstack(&off, &before) == 0 && before.ss_sp == stack.ss_sp, "sigaltstack");
  for (size_t i = 0; i < kBelowBytes; ++i)
    if (memory[i] != 0x5a) fail("a stack of %zu bytes was overrun", scene.stack_bytes);
  return nullptr;
}

}  // namespace

int main(int count, char** arguments) {
  Scene scene;
  scene.bytes = begin(count, arguments, 1 << 21);
  const int number = make_file("small_stack", scene.bytes, 1);
  scene.words = map(number, scene.bytes, PROT_READ | PROT_WRITE);
  struct sigaction action {};
  action.sa_handler = [](int) { has_run = true; };
  action.sa_flags = SA_ONSTACK;
  ::sigaction(SIGUSR1, &action, nullptr);
  const size_t least = ::getauxval(AT_MINSIGSTKSZ);
  stack_t too_small{};
  too_small.ss_sp = &scene;
  too_small.ss_size = 1024;
  require(::sigaltstack(&too_small, nullptr) == -1 && errno == ENOMEM, "1 KiB is refused");
  const size_t sizes[] = {least + 512, least + 1024, least + 3072, least + 5120, 65536};
  for (const size_t bytes : sizes)
    for (int i = 0; i < 3; ++i) {
      scene.stack_bytes = bytes;
      pthread_t thread;
      require(::pthread_create(&thread, nullptr, touch, &scene) == 0, "pthread_create");
      ::pthread_join(thread, nullptr);
    }
  std::printf("no byte below a signal stack changes\n");
  return 0;
}
