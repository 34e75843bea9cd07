// The same program, which finds the library when it runs, as plug-ins and interpreters do. Linked
// with nothing of it. dlopen() has little memory for threads left to give.
#include <dlfcn.h>
#include <outcore/outcore.h>
#include <stdio.h>

#define FUNCTIONS(X) \
  X(oc_data) X(oc_last_error) X(oc_map) X(oc_start) X(oc_stop) X(oc_sync) X(oc_unmap) X(oc_version)
#define POINTER(name) static __typeof__(&(name)) p_##name;
FUNCTIONS(POINTER)

#define oc_data (*p_oc_data)
#define oc_last_error (*p_oc_last_error)
#define oc_map (*p_oc_map)
#define oc_start (*p_oc_start)
#define oc_stop (*p_oc_stop)
#define oc_sync (*p_oc_sync)
#define oc_unmap (*p_oc_unmap)
#define oc_version (*p_oc_version)
#define main consume
#include "../c/main.c"
#undef main

static void* find(void* library, const char* name) {
  void* at = dlsym(library, name);
  if (at == NULL) fprintf(stderr, "consumer: %s\n", dlerror());
  return at;
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;  // LIBRARY FILE
  void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    fprintf(stderr, "consumer: %s\n", dlerror());
    return 1;
  }
#define LOOK_UP(name) *(void**)&p_##name = find(library, #name);
  FUNCTIONS(LOOK_UP)
#define IS_MISSING(name) p_##name == NULL ||
  if (FUNCTIONS(IS_MISSING) 0) return 1;
  return consume(argc - 1, argv + 1);
}
