# What `make bench-far` measures beside the command: the limits of network and client, and writes of
# single bytes. Without libhiredis-dev the first is left out.
add_executable(far_byte_writes bench/far/byte_writes.cc)
target_include_directories(far_byte_writes PRIVATE ${CMAKE_SOURCE_DIR})
target_link_libraries(far_byte_writes PRIVATE outcore outcore_flags)
add_executable(far_touches bench/far/touches.cc)
target_include_directories(far_touches PRIVATE ${CMAKE_SOURCE_DIR})
target_link_libraries(far_touches PRIVATE outcore outcore_flags)

find_path(HIREDIS_HEADERS hiredis/hiredis.h)
find_library(HIREDIS_LIBRARY hiredis)
if(HIREDIS_HEADERS AND HIREDIS_LIBRARY)
  add_executable(far_floor bench/far/floor.cc)
  target_include_directories(far_floor PRIVATE ${CMAKE_SOURCE_DIR})
  target_link_libraries(far_floor PRIVATE outcore_flags ${HIREDIS_LIBRARY})
endif()
