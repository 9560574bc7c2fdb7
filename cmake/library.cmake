# The library that others build on: one static and one shared libkvasir of the layers' own objects,
# and what is installed with them.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# kvasir_closure(OUT TARGET): TARGET and every kvasir_* library below it.
function(kvasir_closure out target)
  set(found ${target})
  set(open ${target})
  while(open)
    list(POP_FRONT open next)
    foreach(property LINK_LIBRARIES INTERFACE_LINK_LIBRARIES)
      get_target_property(links ${next} ${property})
      foreach(link IN LISTS links)
        if(link MATCHES "^kvasir_" AND NOT link STREQUAL "kvasir_flags" AND NOT link IN_LIST found)
          list(APPEND found ${link})
          list(APPEND open ${link})
        endif()
      endforeach()
    endforeach()
  endwhile()
  set(${out} ${found} PARENT_SCOPE)
endfunction()

kvasir_closure(layers kvasir_api)
set(objects)
foreach(layer IN LISTS layers)
  get_target_property(type ${layer} TYPE)
  if(type STREQUAL "STATIC_LIBRARY")
    list(APPEND objects $<TARGET_OBJECTS:${layer}>)
  endif()
endforeach()

# libkvasir.a: all layers. Whoever links it links what they use, too (kvasir-config.cmake).
add_library(kvasir_static STATIC ${objects})
# libkvasir.so: of the layers only what the API needs; its list of names holds no others.
add_library(kvasir_shared SHARED $<TARGET_OBJECTS:kvasir_api>)
foreach(layer IN LISTS layers)
  if(NOT layer STREQUAL "kvasir_api")
    target_link_libraries(kvasir_shared PRIVATE $<BUILD_INTERFACE:${layer}>)
  endif()
endforeach()
target_link_options(kvasir_shared PRIVATE
  -Wl,--version-script=${CMAKE_SOURCE_DIR}/packaging/exports.map -Wl,--no-undefined)
set_target_properties(kvasir_shared PROPERTIES
  LINK_DEPENDS ${CMAKE_SOURCE_DIR}/packaging/exports.map
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
  EXPORT_NAME kvasir)
foreach(library kvasir_static kvasir_shared)
  set_target_properties(${library} PROPERTIES OUTPUT_NAME kvasir LINKER_LANGUAGE CXX)
  target_compile_features(${library} INTERFACE cxx_std_20)
  target_include_directories(${library} INTERFACE $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include>
                                                  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
endforeach()

# What the static library asks of whoever links it. Names as the linker knows them, so that they
# mean the same on the machine it is installed on.
set(KVASIR_STATIC_LINKS xxhash utf8proc hwy)
if("kvasir_store" IN_LIST layers)
  list(APPEND KVASIR_STATIC_LINKS lmdb hiredis zstd)
endif()
set(static_flags ${KVASIR_STATIC_LINKS})
list(TRANSFORM static_flags PREPEND "-l")
target_link_libraries(kvasir_static INTERFACE
  "$<INSTALL_INTERFACE:$<LINK_ONLY:fmt::fmt>>" "$<INSTALL_INTERFACE:$<LINK_ONLY:Threads::Threads>>")
foreach(flag IN LISTS static_flags)
  target_link_libraries(kvasir_static INTERFACE "$<INSTALL_INTERFACE:${flag}>")
endforeach()

install(TARGETS kvasir_static kvasir_shared EXPORT kvasir-targets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/kvasir DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
set(config_folder ${CMAKE_INSTALL_LIBDIR}/cmake/kvasir)
install(EXPORT kvasir-targets NAMESPACE kvasir:: DESTINATION ${config_folder})
configure_package_config_file(
  packaging/kvasir-config.cmake.in ${CMAKE_BINARY_DIR}/kvasir-config.cmake
  INSTALL_DESTINATION ${config_folder} PATH_VARS CMAKE_INSTALL_DATADIR)
# Below 1.0 a minor version may break what was there.
write_basic_package_version_file(${CMAKE_BINARY_DIR}/kvasir-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/kvasir-config.cmake
              ${CMAKE_BINARY_DIR}/kvasir-config-version.cmake
        DESTINATION ${config_folder})
file(RELATIVE_PATH KVASIR_PC_UP /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" KVASIR_PC_UP ${KVASIR_PC_UP})
list(JOIN static_flags " " KVASIR_STATIC_FLAGS)
configure_file(packaging/kvasir.pc.in ${CMAKE_BINARY_DIR}/kvasir.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/kvasir.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(DIRECTORY models/ DESTINATION ${CMAKE_INSTALL_DATADIR}/kvasir/models
        FILES_MATCHING PATTERN "*.gguf")
