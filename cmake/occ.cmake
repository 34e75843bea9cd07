# occ, the compiler's wrapper, and what it links programs with. In the build folder and installed it
# finds its parts relative to itself: a folder with start.o, dlm.ld and `places`, which names the
# rest.
file(RELATIVE_PATH OCC_UP /${CMAKE_INSTALL_BINDIR} /)
set(OCC_PARTS ${OCC_UP}${CMAKE_INSTALL_LIBDIR}/outcore)
set(OCC_BUILT_PARTS ${CMAKE_BINARY_DIR}/${CMAKE_INSTALL_LIBDIR}/outcore)

file(GLOB OCC_SOURCES CONFIGURE_DEPENDS heaps/occ/*.cc)
list(APPEND OCC_SOURCES ${CMAKE_SOURCE_DIR}/cli/elf_reader.cc)
outcore_batches(OCC_SOURCES occ 12)
add_executable(occ ${OCC_SOURCES})
target_include_directories(occ PRIVATE ${CMAKE_SOURCE_DIR})
target_link_libraries(occ PRIVATE outcore_flags)
target_compile_definitions(occ PRIVATE OUTCORE_VERSION="${PROJECT_VERSION}"
  OCC_PARTS="${OCC_PARTS}")

# Linked into programs that are no position-independent executables.
set(OCC_BUILT_FILES ${OCC_BUILT_PARTS}/dlm.ld)
add_custom_command(OUTPUT ${OCC_BUILT_PARTS}/dlm.ld
  COMMAND ${CMAKE_COMMAND} -E make_directory ${OCC_BUILT_PARTS}
  COMMAND ${CMAKE_COMMAND} -E copy ${CMAKE_SOURCE_DIR}/heaps/occ/dlm.ld ${OCC_BUILT_PARTS}/dlm.ld
  COMMAND ${CMAKE_COMMAND} -E create_symlink occ ${CMAKE_BINARY_DIR}/bin/occ++
  DEPENDS ${CMAKE_SOURCE_DIR}/heaps/occ/dlm.ld VERBATIM)
foreach(part start start_thread transfers)
  add_library(occ_${part} OBJECT heaps/occ/${part}.c)
  set_target_properties(occ_${part} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_include_directories(occ_${part} PRIVATE include)
  target_compile_options(occ_${part} PRIVATE -Wall -Wextra -O2 -fno-pie -mcmodel=medium
    $<$<C_COMPILER_ID:GNU>:-Wno-prio-ctor-dtor>)
  add_custom_command(OUTPUT ${OCC_BUILT_PARTS}/${part}.o
    COMMAND ${CMAKE_COMMAND} -E copy $<TARGET_OBJECTS:occ_${part}> ${OCC_BUILT_PARTS}/${part}.o
    DEPENDS occ_${part} $<TARGET_OBJECTS:occ_${part}> ${OCC_BUILT_PARTS}/dlm.ld VERBATIM)
  list(APPEND OCC_BUILT_FILES ${OCC_BUILT_PARTS}/${part}.o)
endforeach()
add_custom_target(occ_parts ALL DEPENDS ${OCC_BUILT_FILES})
add_dependencies(occ occ_parts outcore)

# What a program is linked with, behind the library itself.
get_target_property(OCC_LIBRARY_KIND outcore TYPE)
set(OCC_LIBRARIES -lstdc++ -lm -pthread)
if(OCC_LIBRARY_KIND STREQUAL "STATIC_LIBRARY")
  list(TRANSFORM URING_LIBRARY_DIRS PREPEND -L OUTPUT_VARIABLE OCC_URING)
  list(APPEND OCC_LIBRARIES ${OCC_URING} -luring)
  set(OCC_INSTALLED_LIBRARIES -lstdc++ -lm -pthread -luring)
  set(OCC_INSTALLED "link ../$<TARGET_FILE_NAME:outcore>\n")
else()
  set(OCC_INSTALLED_LIBRARIES -lstdc++ -lm -pthread)
  set(OCC_INSTALLED "link ../$<TARGET_FILE_NAME:outcore>\nrunpath ../\n")
endif()
list(JOIN OCC_LIBRARIES " " OCC_LIBRARIES)
list(JOIN OCC_INSTALLED_LIBRARIES " " OCC_INSTALLED_LIBRARIES)

set(OCC_BUILT "link $<TARGET_FILE:outcore>\n")
if(OCC_LIBRARY_KIND STREQUAL "SHARED_LIBRARY")
  string(APPEND OCC_BUILT "runpath $<TARGET_FILE_DIR:outcore>\n")
endif()
file(GENERATE OUTPUT ${OCC_BUILT_PARTS}/places
  CONTENT "include ${CMAKE_SOURCE_DIR}/include\n${OCC_BUILT}link ${OCC_LIBRARIES}\n")
file(RELATIVE_PATH OCC_INCLUDE_UP /${CMAKE_INSTALL_LIBDIR}/outcore /)
file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/occ_places
  CONTENT "include ${OCC_INCLUDE_UP}${CMAKE_INSTALL_INCLUDEDIR}
${OCC_INSTALLED}link ${OCC_INSTALLED_LIBRARIES}\n")
