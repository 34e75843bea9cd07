# A product: a folder of rooms, which are folders of sources. Its objects are compiled once, for the
# product's own library (outcore_NAME, to link and test it alone) and for the umbrella `outcore`.
#
# outcore_product(NAME ROOM…), in the product's folder. OUTCORE_PRODUCT_WITHOUT: a regular
# expression of sources that are not compiled here.
function(outcore_product name)
  set(sources "")
  foreach(room ${ARGN})
    file(GLOB in_room CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${room}/*.cc)
    list(APPEND sources ${in_room})
  endforeach()
  if(OUTCORE_PRODUCT_WITHOUT)
    list(FILTER sources EXCLUDE REGEX "${OUTCORE_PRODUCT_WITHOUT}")
  endif()
  outcore_batches(sources ${name} 12)
  add_library(outcore_${name}_objects OBJECT ${sources})
  target_include_directories(outcore_${name}_objects PRIVATE
    ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/include)
  target_link_libraries(outcore_${name}_objects PRIVATE Threads::Threads outcore_flags
    PkgConfig::URING)
  if(name STREQUAL core)
    target_link_libraries(outcore_core_objects PRIVATE nlohmann_json::nlohmann_json)
  endif()
  target_compile_definitions(outcore_${name}_objects PRIVATE OUTCORE_VERSION="${PROJECT_VERSION}")
  # Precompiled, they save a third of the time of a build; ccache cannot share such objects between
  # builds, and the library's are shared with the wheel's unless they are sanitized.
  if(OUTCORE_SANITIZE AND NOT CMAKE_DISABLE_PRECOMPILE_HEADERS)
    if(name STREQUAL core)
      target_precompile_headers(outcore_core_objects PRIVATE ${OUTCORE_STANDARD_HEADERS})
    else()
      target_precompile_headers(outcore_${name}_objects REUSE_FROM outcore_core_objects)
    endif()
  endif()
  # The product as a library of its own, with what it stands on.
  add_library(outcore_${name} STATIC $<TARGET_OBJECTS:outcore_${name}_objects>)
  set_target_properties(outcore_${name} PROPERTIES LINKER_LANGUAGE CXX EXCLUDE_FROM_ALL ON)
  target_include_directories(outcore_${name} PUBLIC ${CMAKE_SOURCE_DIR}/include)
  if(name STREQUAL core)
    target_link_libraries(outcore_core PUBLIC Threads::Threads PkgConfig::URING ${CMAKE_DL_LIBS})
  else()
    target_link_libraries(outcore_${name} PUBLIC outcore_core)
  endif()
endfunction()
