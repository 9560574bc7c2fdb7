# Run by CPack over the files it is about to pack: their times become SOURCE_DATE_EPOCH, if set.
if(NOT DEFINED ENV{SOURCE_DATE_EPOCH})
  return()
endif()
file(GLOB_RECURSE packed LIST_DIRECTORIES true ${CPACK_TEMPORARY_DIRECTORY}/*)
foreach(path IN LISTS packed ITEMS ${CPACK_TEMPORARY_DIRECTORY})
  execute_process(COMMAND touch --no-dereference --date=@$ENV{SOURCE_DATE_EPOCH} ${path})
endforeach()
