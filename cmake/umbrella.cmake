# The library `outcore`: all products. Static, or shared with BUILD_SHARED_LIBS.
set(OUTCORE_OBJECTS "")
foreach(product ${OUTCORE_PRODUCTS})
  list(APPEND OUTCORE_OBJECTS $<TARGET_OBJECTS:outcore_${product}_objects>)
endforeach()
add_library(outcore ${OUTCORE_OBJECTS} umbrella/products.cc)
add_library(outcore::outcore ALIAS outcore)
set_target_properties(outcore PROPERTIES LINKER_LANGUAGE CXX)
target_include_directories(outcore
  PUBLIC $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_include_directories(outcore PRIVATE ${CMAKE_SOURCE_DIR})
target_link_libraries(outcore PUBLIC Threads::Threads
  PRIVATE $<BUILD_INTERFACE:outcore_flags> PkgConfig::URING ${CMAKE_DL_LIBS})
if(BUILD_SHARED_LIBS)  # the C functions by release; C++ symbols stay as they are
  set(OUTCORE_SYMBOLS ${CMAKE_SOURCE_DIR}/core/c/outcore.map)
  target_link_options(outcore PRIVATE LINKER:--version-script=${OUTCORE_SYMBOLS})
  set_target_properties(outcore PROPERTIES LINK_DEPENDS ${OUTCORE_SYMBOLS})
endif()
