# The library that `outcore run` preloads: the runtime, and functions that take over the program's
# calls. It brings everything with it but the C library, and shows nothing but those functions.

# What the runtime calls itself goes past the functions that are taken over (run/preload/inside.cc).
set(OUTCORE_WRAPPED
  __cxa_thread_atexit _exit abort accept4 aligned_alloc calloc close eventfd fallocate fcntl
  fdatasync fclose fopen fopen64 free fsync ftruncate ioctl lseek madvise malloc memalign
  memfd_create mincore mkostemp mmap mprotect mremap msync munlock munmap open openat
  posix_memalign pread pthread_create pthread_sigmask pwrite raise read realloc send sigaction
  socket syscall write writev)
set(OUTCORE_WRAP_OPTIONS ${OUTCORE_WRAPPED})
list(TRANSFORM OUTCORE_WRAP_OPTIONS PREPEND "LINKER:--wrap=")

if(BUILD_SHARED_LIBS)
  add_library(outcore_inside STATIC ${OUTCORE_OBJECTS} umbrella/products.cc)
  target_include_directories(outcore_inside PRIVATE include ${CMAKE_SOURCE_DIR})
  target_link_libraries(outcore_inside PRIVATE outcore_flags)
  set_target_properties(outcore_inside PROPERTIES LINKER_LANGUAGE CXX)
else()
  add_library(outcore_inside ALIAS outcore)
endif()

find_library(OUTCORE_URING_STATIC NAMES liburing.a REQUIRED)
file(GLOB OUTCORE_PRELOAD_SOURCES CONFIGURE_DEPENDS run/preload/*.cc)
# Functions that are taken over never in batches: --wrap changes calls of what another object
# defines, and what is called within the object that defines it would be taken over.
outcore_batches_but(OUTCORE_PRELOAD_SOURCES preload 12
  "OUTCORE_EXPORT|OUTCORE_ALIAS|extern \"C\"")
add_library(outcore_preload MODULE ${OUTCORE_PRELOAD_SOURCES})
set(OUTCORE_PRELOAD_SYMBOLS ${CMAKE_SOURCE_DIR}/run/preload/preload.map)
set_target_properties(outcore_preload PROPERTIES
  LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin LINK_DEPENDS ${OUTCORE_PRELOAD_SYMBOLS})
target_include_directories(outcore_preload PRIVATE include ${CMAKE_SOURCE_DIR})
target_compile_options(outcore_preload PRIVATE -fvisibility=hidden -ftls-model=initial-exec)
target_link_libraries(outcore_preload PRIVATE $<TARGET_FILE:outcore_inside> outcore_flags
  ${OUTCORE_URING_STATIC} ${CMAKE_DL_LIBS} Threads::Threads)
add_dependencies(outcore_preload outcore_inside)
# The set-up calls of liburing are taken over, too: the copy in here has them as well, unused.
target_link_options(outcore_preload PRIVATE -static-libstdc++ -static-libgcc LINKER:-z,muldefs
  LINKER:--version-script=${OUTCORE_PRELOAD_SYMBOLS} LINKER:-z,now LINKER:--gc-sections
  ${OUTCORE_WRAP_OPTIONS})
