# cmake -DCOMMAND="PROGRAM;ARGS…" -DREPORT=REGEX -P expect_crash.cmake
# Succeeds only if the command dies and its stderr names the input by REPORT. (WILL_FAIL does not
# turn a crash into a pass.)
execute_process(COMMAND ${COMMAND} RESULT_VARIABLE result ERROR_VARIABLE errors OUTPUT_QUIET)
if(result STREQUAL "0")
  message(FATAL_ERROR "the planted fault was not noticed")
endif()
if(NOT errors MATCHES "${REPORT}")
  message(FATAL_ERROR "ended with '${result}', but stderr does not say ${REPORT}:\n${errors}")
endif()
message(STATUS "crashed and was reported, as it must: ${result}")
