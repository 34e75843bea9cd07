# Storms: random programs of processes and threads agree under `outcore run` and without it.
# Included by tests/CMakeLists.txt after preload_tests.cmake, whose agree() it uses. A few
# seeds here; `run.sh` takes as many as one likes, and `shrink.sh` makes a storm that fails shorter.
file(GLOB parts CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/run/tests/storm/*.cc)
outcore_batches(parts preload_storm 12)
add_executable(preload_storm ${parts})
target_compile_features(preload_storm PRIVATE cxx_std_20)
target_include_directories(preload_storm PRIVATE ${CMAKE_SOURCE_DIR})
target_compile_options(preload_storm PRIVATE -O1 -g1 -Wall -Wextra -Wshadow -fno-exceptions
  -fno-rtti -fno-builtin-malloc -Wno-missing-field-initializers)
target_link_options(preload_storm PRIVATE LINKER:--as-needed)
target_link_libraries(preload_storm PRIVATE pthread)

# storms(NAME FIRST LAST OPTIONS [ARGUMENT…]): seeds, all in one test.
function(storms name first last options)
  agree(storm.${name} storm "${options}" --dir FOLDER ${ARGN})
  set_tests_properties(preload.storm.${name} PROPERTIES ENVIRONMENT SEEDS=${first}:${last}
    LABELS "preload;storm;nosan")
endfunction()
storms(messages 1 14 "--budget 1M --min-size 4k --alloc 64k --delivery messages")
storms(in-thread 1001 1014 "--budget 1M --min-size 4k --alloc 64k --delivery in-thread")
storms(threads 2001 2012 "--budget 1M --min-size 64k --alloc 256k" --threads 3)
storms(pages-64k 3001 3010 "--budget 8M --page 64k --min-size 64k --alloc 1M")
