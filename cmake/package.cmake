# What is installed beside the library: the program, its manual, completions and service, and the
# Debian package of it all (`cpack -G DEB`, which `./dev package` calls).
install(TARGETS kvasir RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})

# The manual and the completions say what --help says, since they are made from it.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
set(pages ${CMAKE_BINARY_DIR}/pages)
set(page_files ${pages}/kvasir.1 ${pages}/kvasir.bash ${pages}/_kvasir)
add_custom_command(OUTPUT ${page_files}
  COMMAND Python3::Interpreter -B ${CMAKE_SOURCE_DIR}/tools/program_pages.py
          --program $<TARGET_FILE:kvasir> --out ${pages}
  DEPENDS kvasir ${CMAKE_SOURCE_DIR}/tools/program_pages.py)
add_custom_target(program_pages ALL DEPENDS ${page_files})
install(FILES ${pages}/kvasir.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${pages}/kvasir.bash RENAME kvasir
        DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES ${pages}/_kvasir DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
install(FILES packaging/kvasir.service DESTINATION lib/systemd/system)
install(FILES packaging/copyright README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME kvasir)
set(CPACK_PACKAGE_VENDOR "The Kvasir authors")
set(CPACK_PACKAGE_CONTACT "The Kvasir authors <kvasir@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "trains, runs and serves small language models")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION "\
Kvasir trains small language models on a person's own text, generates from them\n\
under full control, and serves them over HTTP, on ordinary CPUs. Same model, text,\n\
settings and seed give the same bits, whatever the cache does. This package holds\n\
the program, the library with its headers, and the bundled model of Tang verse.")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "libfmt-dev, libhwy-dev, libutf8proc-dev, libxxhash-dev")
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
# Times of SOURCE_DATE_EPOCH, where it is set: then the same objects give the same package.
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_SOURCE_DIR}/cmake/package_times.cmake)
include(CPack)
