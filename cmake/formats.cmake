# The formats of `outcore arrays`: a module each, loaded when it is needed, so that the command
# starts without their libraries, and does without those that are not there.
set(OUTCORE_FORMATS "")
set(OUTCORE_FORMATS_WITHOUT "" CACHE STRING "formats to leave out, though their libraries are here")
set(OUTCORE_BOX_SOURCES arrays/commands/array_box.cc arrays/commands/array_pieces.cc)
set(OUTCORE_FORMAT_SOURCES ${OUTCORE_BOX_SOURCES} arrays/commands/npy_header.cc
  arrays/commands/python_literal.cc)

function(outcore_add_format name package library) # SOURCE…
  if(name IN_LIST OUTCORE_FORMATS_WITHOUT)
    return()
  endif()
  if(NOT TARGET ${library})
    message(STATUS "without ${package}: `outcore arrays` does without ${name}")
    return()
  endif()
  set(sources ${ARGN})
  if(NOT name STREQUAL zarr)  # its sources have small names of the same kind, each its own
    outcore_batches(sources ${name} 12)
  endif()
  add_library(outcore_${name} MODULE ${sources})
  target_include_directories(outcore_${name} PRIVATE
    ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/include)
  target_link_libraries(outcore_${name} PRIVATE
    ${library} outcore_flags)
  if(NOT OUTCORE_SANITIZE)  # nothing of the command's or the library's is there when it is loaded
    target_link_options(outcore_${name} PRIVATE LINKER:-z,defs)
  endif()
  set_target_properties(outcore_${name} PROPERTIES PREFIX ""
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
  add_dependencies(outcore_cli outcore_${name})
  set(OUTCORE_FORMATS ${OUTCORE_FORMATS} outcore_${name} PARENT_SCOPE)
endfunction()

if(TARGET outcore_cli)
  pkg_check_modules(LIBZIP IMPORTED_TARGET libzip>=1.7)
  pkg_check_modules(HDF5_SERIAL IMPORTED_TARGET hdf5-serial)  # Debian's name: hdf5.pc may be MPI's
  if(NOT HDF5_SERIAL_FOUND)
    pkg_check_modules(HDF5_SERIAL IMPORTED_TARGET hdf5)
  endif()
  pkg_check_modules(NETCDF IMPORTED_TARGET netcdf)
  pkg_check_modules(LIBPNG IMPORTED_TARGET libpng>=1.6)
  pkg_check_modules(ZLIB_OF_ZARR IMPORTED_TARGET zlib)
  pkg_check_modules(ZSTD_OF_ZARR IMPORTED_TARGET libzstd)
  pkg_check_modules(BLOSC_OF_ZARR IMPORTED_TARGET blosc)
  outcore_add_format(npz libzip-dev PkgConfig::LIBZIP arrays/formats/npz.cc
    ${OUTCORE_FORMAT_SOURCES})
  outcore_add_format(hdf5 libhdf5-dev PkgConfig::HDF5_SERIAL arrays/formats/hdf5.cc
    arrays/formats/hdf5_handles.cc ${OUTCORE_BOX_SOURCES})
  outcore_add_format(netcdf libnetcdf-dev PkgConfig::NETCDF arrays/formats/netcdf.cc
    arrays/formats/netcdf_attributes.cc ${OUTCORE_BOX_SOURCES})
  outcore_add_format(png libpng-dev PkgConfig::LIBPNG arrays/formats/png.cc)
  outcore_add_format(zarr zlib1g-dev PkgConfig::ZLIB_OF_ZARR arrays/formats/zarr.cc
    arrays/formats/zarr_codecs.cc arrays/formats/zarr_metadata.cc arrays/formats/crc32c.cc
    ${OUTCORE_FORMAT_SOURCES}
    core/base/json.cc core/base/assert.cc)
  if(TARGET outcore_zarr)
    target_link_libraries(outcore_zarr PRIVATE nlohmann_json::nlohmann_json)
  endif()
  if(TARGET outcore_zarr AND ZSTD_OF_ZARR_FOUND)
    target_link_libraries(outcore_zarr PRIVATE PkgConfig::ZSTD_OF_ZARR)
    target_compile_definitions(outcore_zarr PRIVATE OUTCORE_ZSTD)
  endif()
  if(TARGET outcore_zarr AND BLOSC_OF_ZARR_FOUND)
    target_link_libraries(outcore_zarr PRIVATE PkgConfig::BLOSC_OF_ZARR)
    target_compile_definitions(outcore_zarr PRIVATE OUTCORE_BLOSC)
  endif()
endif()
