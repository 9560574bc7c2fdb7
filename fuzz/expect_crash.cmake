# cmake -DCOMMAND="PROGRAM;ARGS…" -DREPORT=REGEX [-DINPUT=FILE] -P expect_crash.cmake
# Succeeds only if the command dies, its stderr names the input by REPORT, and the crash file it
# leaves in the working directory equals FILE. (WILL_FAIL does not turn a crash into a pass.)
execute_process(COMMAND ${COMMAND} RESULT_VARIABLE result ERROR_VARIABLE errors OUTPUT_QUIET)
if(result STREQUAL "0")
  message(FATAL_ERROR "the planted fault was not noticed")
endif()
if(NOT errors MATCHES "${REPORT}")
  message(FATAL_ERROR "ended with '${result}', but stderr does not say ${REPORT}:\n${errors}")
endif()
if(INPUT)
  execute_process(COMMAND ${CMAKE_COMMAND} -E compare_files ${INPUT} crash-canary_replay
                  COMMAND_ERROR_IS_FATAL ANY)
endif()
message(STATUS "crashed and was reported, as it must: ${result}")
