# What `make install` puts where: library, headers, command, man page, completion, and how others
# find us.
include(CMakePackageConfigHelpers)
set(OUTCORE_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/outcore)

set_target_properties(outcore PROPERTIES
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
install(TARGETS outcore EXPORT outcoreTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/outcore DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN *.h)
install(DIRECTORY include/umap DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN *.h PATTERN *.hpp)
install(EXPORT outcoreTargets NAMESPACE outcore:: DESTINATION ${OUTCORE_CMAKE_DIR})

get_target_property(OUTCORE_KIND outcore TYPE)

configure_package_config_file(cmake/outcoreConfig.cmake.in ${CMAKE_BINARY_DIR}/outcoreConfig.cmake
  INSTALL_DESTINATION ${OUTCORE_CMAKE_DIR})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/outcoreConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/outcoreConfig.cmake ${CMAKE_BINARY_DIR}/outcoreConfigVersion.cmake
  DESTINATION ${OUTCORE_CMAKE_DIR})

# pkg-config. A static library needs the libraries it uses named in every link; a shared one names
# them itself.
if(OUTCORE_KIND STREQUAL "STATIC_LIBRARY")
  set(OUTCORE_PC_REQUIRES "Requires: liburing")
  set(OUTCORE_PC_LIBS "-loutcore -lstdc++ -lm -pthread")
else()
  set(OUTCORE_PC_REQUIRES "Requires.private: liburing")
  set(OUTCORE_PC_LIBS "-loutcore")
endif()
# Relative to where outcore.pc lies, so that `cmake --install --prefix` may choose another place.
file(RELATIVE_PATH OUTCORE_PC_UP /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(cmake/outcore.pc.in ${CMAKE_BINARY_DIR}/outcore.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/outcore.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

install(FILES docs/man/outcore.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES docs/completion/outcore.bash
  DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME outcore)
install(FILES docs/completion/_outcore DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
# The documents as they lie in the source, so that their links hold.
install(FILES LICENSE README.md ARCHITECTURE.md CONTRIBUTING.md CHANGELOG.md
  DESTINATION ${CMAKE_INSTALL_DOCDIR})
foreach(product ${OUTCORE_HOUSE})
  install(FILES ${product}/README.md DESTINATION ${CMAKE_INSTALL_DOCDIR}/${product})
endforeach()
install(FILES bench/rivals/example_hdf5.cc DESTINATION ${CMAKE_INSTALL_DOCDIR}/bench/rivals)
install(DIRECTORY docs/concepts docs/guides docs/internals docs/papers docs/reference docs/use-cases
  DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs FILES_MATCHING PATTERN *.md PATTERN papers/*.png)
install(FILES docs/comparison.md docs/newcomers.md DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs)
install(DIRECTORY docs/pictures DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs
  FILES_MATCHING PATTERN *.png)
install(FILES docs/dashboards/outcore.json DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs/dashboards)
install(DIRECTORY examples DESTINATION ${CMAKE_INSTALL_DOCDIR})

if(TARGET outcore_preload)  # beside the library; the command finds it there
  install(TARGETS outcore_preload LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
if(TARGET occ)
  install(TARGETS occ RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  install(FILES docs/man/occ.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
  install(FILES ${CMAKE_BINARY_DIR}/bin/occ++ DESTINATION ${CMAKE_INSTALL_BINDIR})
  install(FILES ${OCC_BUILT_FILES} DESTINATION ${CMAKE_INSTALL_LIBDIR}/outcore)
  install(FILES ${CMAKE_BINARY_DIR}/occ_places DESTINATION ${CMAKE_INSTALL_LIBDIR}/outcore
    RENAME places)
endif()
if(TARGET outcore_cli)
  set_target_properties(outcore_cli PROPERTIES INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
  install(TARGETS outcore_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  if(OUTCORE_FORMATS)  # the command finds them there
    install(TARGETS ${OUTCORE_FORMATS} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/outcore)
  endif()
  # What --help names: as tools/… of this folder.
  install(PROGRAMS tools/package_graph.py tools/fast_device.sh
    DESTINATION ${CMAKE_INSTALL_DATADIR}/outcore/tools)
endif()

# All that is installed of the build folder: what `make build` builds. A test compares it with what
# `cmake --install` looks for.
add_custom_target(installable)
add_dependencies(installable outcore)
foreach(target outcore_preload occ occ_parts outcore_cli ${OUTCORE_FORMATS})
  if(TARGET ${target})
    add_dependencies(installable ${target})
  endif()
endforeach()
