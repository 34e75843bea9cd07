# Programs under `outcore run` and without it must agree, in every delivery. Included by
# tests/CMakeLists.txt where the preload library is built.
add_subdirectory(${CMAKE_SOURCE_DIR}/run/tests/preload/programs run_programs)

set(OUTCORE_AGREE ${CMAKE_SOURCE_DIR}/run/tests/preload/agree.sh ${CMAKE_BINARY_DIR}/bin/outcore)

# agree(NAME PROGRAM OPTIONS [ARGUMENT…])
function(agree name program options)
  add_test(NAME preload.${name}
    COMMAND ${OUTCORE_AGREE} $<TARGET_FILE:preload_${program}> ${options} ${ARGN})
  set_tests_properties(preload.${name} PROPERTIES TIMEOUT 300 LABELS "preload;nosan")
endfunction()

set(small "--budget 512k --min-size 4k")
foreach(delivery messages in-thread)
  foreach(program sigbus_handler fds fork_threads dlopen_map second_opener
      shared_memory_children squatted changed_by_others ending kill_oneself fork_handlers
      blocking small_stack no_memory no_descriptors cancel fork_mappings fork_past_end
      grow_reopened written_by_calls guarded_heap hooked_mappings file_times mapped_again
      one_position go_note go_section)
    agree(${program}.${delivery} ${program} "${small} --delivery ${delivery}" FOLDER)
  endforeach()
  agree(raw_calls.${delivery} raw_calls "${small} --delivery ${delivery}" FOLDER)
  agree(ring_after.${delivery} ring_after "${small} --delivery ${delivery}" FOLDER)
  agree(ring_plugin.${delivery} ring_plugin "${small} --delivery ${delivery}" FOLDER)
  agree(leaving.${delivery} leaving "${small} --delivery ${delivery}" FOLDER)
  agree(leaving.bare.${delivery} leaving "${small} --delivery ${delivery} --map leaving"
    FOLDER 1048576 bare)
  agree(daemon.${delivery} daemon "${small} --delivery ${delivery}" FOLDER FOLDER/answer)
endforeach()

# Forked children of a process that has its pages in a buffer.
foreach(delivery messages in-thread)
  agree(fork_shared.${delivery} fork_shared
    "--budget 4M --min-size 4k --buffer fork_shared.${delivery} --delivery ${delivery}" FOLDER
    6291456)
endforeach()
agree(fork_shared.auto fork_shared "--budget 4M --min-size 4k --buffer fork_shared.auto" FOLDER)

# Files that are mapped again and again.
foreach(delivery messages in-thread)
  agree(mapped_again.shared.${delivery} mapped_again
    "--budget 4M --min-size 4k --buffer mapped_again.${delivery} --delivery ${delivery}" FOLDER)
  foreach(buffer none mapped_again.figures.${delivery})
    add_test(NAME preload.mapped_again.figures.${delivery}.${buffer}
      COMMAND ${CMAKE_SOURCE_DIR}/run/tests/preload/mapped_again.sh
        ${CMAKE_BINARY_DIR}/bin/outcore $<TARGET_FILE:preload_mapped_again>
        "--budget 16M --delivery ${delivery} --buffer ${buffer}")
    set_tests_properties(preload.mapped_again.figures.${delivery}.${buffer} PROPERTIES TIMEOUT 120
      SKIP_RETURN_CODE 77 LABELS "preload;nosan")
  endforeach()
endforeach()

# Processes that write one file.
foreach(delivery messages in-thread)
  agree(written_together.${delivery} written_together
    "--budget 4M --min-size 4k --share-writes --delivery ${delivery}" FOLDER)
  agree(written_together.off.${delivery} written_together "${small} --delivery ${delivery}" FOLDER)
  set(share "--budget 4M --min-size 4k --share-writes --delivery ${delivery}")
  agree(used_otherwise.${delivery} used_otherwise "${share}" FOLDER)
  agree(used_otherwise.named.${delivery} used_otherwise "${share} --map together" FOLDER)
  agree(used_otherwise.off.${delivery} used_otherwise "${small} --delivery ${delivery}" FOLDER)
endforeach()
add_test(NAME preload.written_together.shared
  COMMAND ${CMAKE_SOURCE_DIR}/run/tests/preload/written_together.sh ${CMAKE_BINARY_DIR}/bin/outcore
    $<TARGET_FILE:preload_written_together>)
set_tests_properties(preload.written_together.shared PROPERTIES TIMEOUT 120 SKIP_RETURN_CODE 77
  LABELS "preload;nosan")

# What `auto` takes.
foreach(program sigbus_handler fork_threads blocking cancel small_stack raw_calls
    fork_mappings shared_memory_children kill_oneself guarded_heap hooked_mappings file_times)
  agree(${program}.auto ${program} "${small}" FOLDER)
endforeach()
# What the window must not do to a program: signals, masks, waits, sandboxes and calls on a mapping.
set(window_programs window_signals window_masks window_constructor window_sandbox window_calls
  window_worker window_waits window_contexts window_requests)
foreach(program ${window_programs})
  # By messages a wait is the kernel's own, and is lost with the frames (docs/internals/state.md).
  if(NOT program STREQUAL window_waits)
    agree(${program}.messages ${program} "${small} --delivery messages" FOLDER)
  endif()
  agree(${program}.in-thread ${program} "${small} --delivery in-thread" FOLDER)
  agree(${program}.auto ${program} "${small}" FOLDER)
endforeach()
add_test(NAME preload.window
  COMMAND ${CMAKE_SOURCE_DIR}/run/tests/preload/window.sh ${CMAKE_BINARY_DIR}/bin/outcore
    $<TARGET_FILE_DIR:preload_raw_calls>)
set_tests_properties(preload.window PROPERTIES TIMEOUT 120 SKIP_RETURN_CODE 77
  LABELS "preload;nosan")

# Two containers with one network: the files are named, as nobody would tell of others there.
foreach(delivery messages in-thread)
  agree(pid_namespace.${delivery} pid_namespace
    "${small} --map one --map two --delivery ${delivery}" FOLDER)
endforeach()

# A system call finds its arguments in absent pages where there are messages or a window.
agree(file_times.mprotect file_times "${small} --delivery mprotect" FOLDER 1048576 bare)

foreach(delivery messages in-thread mprotect)
  agree(file_calls.${delivery} file_calls "${small} --delivery ${delivery}" FOLDER)
  agree(later_writes.${delivery} later_writes "--budget 12M --alloc 64k --delivery ${delivery}"
    FOLDER)
  agree(limited_files.${delivery} limited_files
    "--budget 2M --min-size 4k --alloc 64k --delivery ${delivery}" FOLDER)
  agree(given_stacks.${delivery} given_stacks
    "--budget 4M --min-size 4k --alloc 64k --delivery ${delivery}" FOLDER)
  agree(heap_calls.${delivery} heap_calls "--budget 4M --alloc 64k --delivery ${delivery}" FOLDER)
  foreach(memory "4M" "64M" "64M --page 64k")  # with nearly no room for what is stale; with some
    string(MAKE_C_IDENTIFIER "${memory}" id)
    foreach(program heap_reuse heap_edges)
      agree(${program}.${id}.${delivery} ${program}
        "--budget ${memory} --alloc 64k --delivery ${delivery}" FOLDER)
    endforeach()
  endforeach()
  foreach(program seldom_calls socket_calls)
    agree(${program}.${delivery} ${program}
      "--budget 4M --min-size 4k --alloc 64k --delivery ${delivery}" FOLDER)
  endforeach()
  agree(fork_first_malloc.${delivery} fork_first_malloc
    "--budget 4M --alloc 64k --delivery ${delivery}" FOLDER)
  agree(no_heap_memory.${delivery} no_heap_memory
    "--budget 4M --min-size 4k --alloc 64k --delivery ${delivery}" FOLDER)
  agree(heap_fork.${delivery} heap_fork "--budget 4M --alloc 64k --delivery ${delivery}" FOLDER)
  foreach(program heap_fork_again fork_late_child)
    agree(${program}.${delivery} ${program} "--budget 4M --alloc 64k --delivery ${delivery}" FOLDER)
  endforeach()
endforeach()

# Parts of the library by themselves.
foreach(part own_threads cache_room)
  add_executable(preload_${part} ${CMAKE_SOURCE_DIR}/run/tests/preload/parts/${part}.cc
    ${CMAKE_SOURCE_DIR}/run/preload/${part}.cc ${CMAKE_SOURCE_DIR}/run/preload/real.cc)
  target_include_directories(preload_${part} PRIVATE include ${CMAKE_SOURCE_DIR})
  target_link_libraries(preload_${part} PRIVATE outcore outcore_flags ${CMAKE_DL_LIBS})
  add_test(NAME preload.${part} COMMAND preload_${part})
  set_tests_properties(preload.${part} PROPERTIES TIMEOUT 60 LABELS "preload;nosan")
endforeach()

add_executable(preload_listener ${CMAKE_SOURCE_DIR}/run/tests/preload/parts/listener.cc)
foreach(source listener change_group real)
  target_sources(preload_listener PRIVATE ${CMAKE_SOURCE_DIR}/run/preload/${source}.cc)
endforeach()
target_include_directories(preload_listener PRIVATE include ${CMAKE_SOURCE_DIR})
target_link_libraries(preload_listener PRIVATE outcore outcore_flags ${CMAKE_DL_LIBS})
add_test(NAME preload.listener COMMAND preload_listener)
set_tests_properties(preload.listener PROPERTIES TIMEOUT 60 SKIP_RETURN_CODE 77
  LABELS "preload;nosan")

add_test(NAME preload.explains_refusal
  COMMAND ${CMAKE_SOURCE_DIR}/run/tests/preload/explains_refusal.sh ${CMAKE_BINARY_DIR}/bin/outcore)
set_tests_properties(preload.explains_refusal PROPERTIES TIMEOUT 120 LABELS "preload;nosan")

add_test(NAME preload.table_names
  COMMAND ${CMAKE_SOURCE_DIR}/run/tests/preload/table_names.sh ${CMAKE_BINARY_DIR}/bin/outcore
    $<TARGET_FILE:preload_fds>)
set_tests_properties(preload.table_names PROPERTIES TIMEOUT 120 LABELS "preload;nosan")

# What needs a cgroup or a disk of its own; 77: it cannot be had here.
foreach(name small_cgroup greedy_neighbour full_disk stuck_end)
  add_test(NAME preload.${name} COMMAND ${CMAKE_SOURCE_DIR}/run/tests/preload/${name}.sh
    ${CMAKE_BINARY_DIR}/bin/outcore ${CMAKE_BINARY_DIR}/bin)
  set_tests_properties(preload.${name} PROPERTIES TIMEOUT 300 SKIP_RETURN_CODE 77
    LABELS "preload;nosan")
endforeach()

add_test(NAME preload.later_writes.refused
  COMMAND sh -c "folder=$(mktemp -d -p \"\${TMPDIR:-/var/tmp}\") && \
${CMAKE_BINARY_DIR}/bin/outcore run --quiet --budget 12M --alloc 64k -- \
$<TARGET_FILE:preload_later_writes> \"$folder\" refused; \
status=$?; rm -r \"$folder\"; exit $status")
set_tests_properties(preload.later_writes.refused PROPERTIES TIMEOUT 60 LABELS "preload;nosan")

# What a small budget keeps resident is not for mincore to expect.
set(few --steps 150 --not mincore)
# sequences(NAME FIRST LAST OPTIONS [ARGUMENT…]): seeds, ten a test.
function(sequences name first last options)
  foreach(from RANGE ${first} ${last} 10)
    math(EXPR to "${from} + 9")
    agree(sequence.${name}.${from} sequence "${options}" --dir FOLDER ${ARGN})
    set_tests_properties(preload.sequence.${name}.${from} PROPERTIES
      ENVIRONMENT SEEDS=${from}:${to})
  endforeach()
endfunction()
sequences(messages 1 91 "--budget 1M --min-size 4k --delivery messages" ${few})
sequences(in-thread 1001 1091 "--budget 1M --min-size 4k --delivery in-thread" ${few})
sequences(mprotect 2001 2021 "--budget 4M --min-size 4k --delivery mprotect" ${few})
sequences(pages-64k 3001 3031 "--budget 8M --page 64k --min-size 4k" ${few})
sequences(pages-16k 4001 4031 "--budget 4M --page 16k --min-size 4k --delivery in-thread"
  ${few})
sequences(threads 5001 5031 "--budget 1M --min-size 4k" --steps 200 --threads 4 --not mincore)
foreach(options "--budget 4M" "--budget 4M --delivery messages" "--budget 4M --buffer seldom"
    "--budget 512k --page 16k")
  string(MAKE_C_IDENTIFIER "${options}" name)
  agree(mapped_seldom.${name} mapped_seldom "${options} --min-size 4k" FOLDER)
  set_tests_properties(preload.mapped_seldom.${name} PROPERTIES ENVIRONMENT "SEEDS=1:8")
endforeach()
sequences(ample 6001 6021 "--budget 64M --min-size 4k" --steps 150)
