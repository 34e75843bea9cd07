# Several sources compiled as one, unless OUTCORE_UNITY is OFF. As CMake's own unity builds, but by
# paths from the top: theirs have the folder of the checkout in them, so that the compiler cache
# could not give one checkout what it has from another.
#
# outcore_batches(VARIABLE NAME SIZE): of the list that VARIABLE has each SIZE become one. Where
# batches are not wanted it stays as it is. The target must find includes from the top.
#
# outcore_batches_but(VARIABLE NAME SIZE REGEX): the same, but that sources in which a line matches
# stay by themselves.
function(outcore_batches variable name size)
  if(NOT OUTCORE_UNITY)
    return()
  endif()
  set(batches "")
  set(batch "")
  set(count 0)
  list(LENGTH ${variable} left)
  foreach(source ${${variable}})
    get_filename_component(path ${source} ABSOLUTE)
    file(RELATIVE_PATH path ${CMAKE_SOURCE_DIR} ${path})
    string(APPEND batch "#include \"${path}\"\n")
    math(EXPR count "${count} + 1")
    math(EXPR left "${left} - 1")
    if(count EQUAL size OR left EQUAL 0)
      list(LENGTH batches number)
      set(file ${CMAKE_BINARY_DIR}/batches/${name}_${number}.cc)
      file(CONFIGURE OUTPUT ${file} CONTENT "${batch}" @ONLY)  # written if it differs
      list(APPEND batches ${file})
      set(batch "")
      set(count 0)
    endif()
  endforeach()
  set(${variable} ${batches} PARENT_SCOPE)
endfunction()

function(outcore_batches_but variable name size regex)
  set(alone "")
  set(others "")
  foreach(source ${${variable}})
    file(STRINGS ${source} found REGEX "${regex}" LIMIT_COUNT 1)
    if(found)
      list(APPEND alone ${source})
    else()
      list(APPEND others ${source})
    endif()
  endforeach()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${${variable}})
  outcore_batches(others ${name} ${size})
  set(${variable} ${alone} ${others} PARENT_SCOPE)
endfunction()
