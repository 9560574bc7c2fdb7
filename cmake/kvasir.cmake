# Flags that every translation unit shares, and the helpers that turn a folder into a target.

find_package(Threads REQUIRED)
find_package(Boost 1.81 REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
if(KVASIR_TESTS)
  find_package(GTest REQUIRED)
  include(GoogleTest)
endif()

# Debian's packages of these ship pkg-config files only.
find_package(PkgConfig REQUIRED)
pkg_check_modules(PC_HWY REQUIRED libhwy)
add_library(hwy INTERFACE)
target_link_libraries(hwy INTERFACE ${PC_HWY_LINK_LIBRARIES})
pkg_check_modules(PC_UTF8PROC REQUIRED libutf8proc)
add_library(utf8proc INTERFACE)
target_link_libraries(utf8proc INTERFACE ${PC_UTF8PROC_LINK_LIBRARIES})
if(KVASIR_PROGRAM)
  foreach(library lmdb hiredis libzstd)
    pkg_check_modules(PC_${library} REQUIRED ${library})
    add_library(${library} INTERFACE)
    target_link_libraries(${library} INTERFACE ${PC_${library}_LINK_LIBRARIES})
  endforeach()
endif()

add_library(kvasir_flags INTERFACE)
target_include_directories(kvasir_flags INTERFACE ${CMAKE_SOURCE_DIR}/src)
# Contract rule R5: no contraction (a fused operation is written as one), no fast-math, no
# -march=native: Highway picks among targets with FMA at run time.
target_compile_options(kvasir_flags INTERFACE
  -ffp-contract=off -fno-math-errno -Wall -Wextra -Wshadow -Werror
  $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized -Wno-psabi>)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  target_compile_definitions(kvasir_flags INTERFACE
    HWY_BASELINE_TARGETS=HWY_AVX2
    "HWY_DISABLED_TARGETS=(HWY_SSSE3|HWY_SSE4|HWY_EMU128|HWY_SCALAR)")
else()
  # Highway 1.0.3 has one NEON target, which asks the compiler for AES; nothing here uses it.
  target_compile_options(kvasir_flags INTERFACE -march=armv8-a+crypto)
  target_compile_definitions(kvasir_flags INTERFACE
    "HWY_DISABLED_TARGETS=(HWY_SVE|HWY_SVE2|HWY_SVE_256|HWY_SVE2_128|HWY_EMU128|HWY_SCALAR)")
endif()
if(KVASIR_SANITIZE)
  target_compile_options(kvasir_flags INTERFACE -fsanitize=${KVASIR_SANITIZE}
    -fno-omit-frame-pointer -fno-sanitize-recover=all)
  # Asio has a fence that ThreadSanitizer does not follow; what it guards is locked as well.
  target_compile_options(kvasir_flags INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-tsan>)
  target_link_options(kvasir_flags INTERFACE -fsanitize=${KVASIR_SANITIZE})
endif()
# Lets a golden or end-to-end test find committed fixtures and the bundled model.
target_compile_definitions(kvasir_flags INTERFACE KVASIR_SOURCE_DIR="${CMAKE_SOURCE_DIR}")

# Makes a test program quicker to compile: what is tested is built as it is shipped, the tests' own
# code need not be fast, and GoogleTest is read once a program instead of once a file. Not with a
# compiler cache, which has no use for a header that a machine compiled; so both ways are used, and
# a file that forgot an include is found.
function(kvasir_quick_tests target)
  if(CMAKE_CXX_COMPILER_LAUNCHER)
    return()
  endif()
  # What GCC believes about strings at this level is often wrong; at -O2 it looks again.
  target_compile_options(${target} PRIVATE
    $<$<CONFIG:Release>:-O1> $<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds -Wno-restrict
    -Wno-stringop-overflow -Wno-stringop-overread>)
  target_precompile_headers(${target} PRIVATE <algorithm> <functional> <map> <memory> <optional>
    <string> <utility> <vector> <boost/outcome/basic_result.hpp> <boost/outcome/try.hpp>
    <fmt/format.h> <gmock/gmock.h> <gtest/gtest.h>)
endfunction()

# kvasir_layer(NAME DEPS …): src/NAME/*.cc becomes the static library kvasir_NAME, and
# src/NAME/*_test.cc the test program NAME_test, one ctest entry per GoogleTest case.
function(kvasir_layer name)
  cmake_parse_arguments(ARG "" "" "DEPS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/*.cc)
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "_(test|fuzz|bench)\\.cc$")
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  if(NOT sources)
    add_library(kvasir_${name} INTERFACE)
    target_link_libraries(kvasir_${name} INTERFACE ${ARG_DEPS})
    return()
  endif()
  add_library(kvasir_${name} STATIC ${sources})
  target_link_libraries(kvasir_${name} PUBLIC ${ARG_DEPS} PRIVATE kvasir_flags)
  # One set of objects for the program, the static library and the shared one, which shows only
  # what include/kvasir/ marks. Hidden functions are called as directly as without -fPIC. Messages
  # of KV_CHECK name files within the tree, so that where it lies changes no byte.
  set_target_properties(kvasir_${name} PROPERTIES POSITION_INDEPENDENT_CODE ON
                        CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  target_compile_options(kvasir_${name} PRIVATE -fmacro-prefix-map=${CMAKE_SOURCE_DIR}/=)
  if(KVASIR_TESTS AND tests)
    add_executable(${name}_test ${tests})
    target_link_libraries(${name}_test PRIVATE kvasir_${name} kvasir_flags GTest::gmock
                                              GTest::gtest_main)
    kvasir_quick_tests(${name}_test)
    gtest_discover_tests(${name}_test TEST_PREFIX "${name}." DISCOVERY_MODE PRE_TEST
                         PROPERTIES TIMEOUT 600)
  endif()
endfunction()

# kvasir_embed(TARGET FOLDER): the files of a folder become part of a library (embed.cmake).
function(kvasir_embed target folder)
  set(out ${CMAKE_BINARY_DIR}/embedded_${folder}.cc)
  file(GLOB files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${folder}/*.*)
  add_custom_command(OUTPUT ${out}
    COMMAND ${CMAKE_COMMAND} -DFOLDER=${CMAKE_SOURCE_DIR}/${folder} -DOUT=${out}
            -P ${CMAKE_SOURCE_DIR}/cmake/embed.cmake
    DEPENDS ${files} ${CMAKE_SOURCE_DIR}/cmake/embed.cmake)
  target_sources(${target} PRIVATE ${out})
endfunction()
