# SPDX-License-Identifier: MIT
# add_cunit_test(NAME SOURCES ... LIBS ... LABELS ... [TIMEOUT s]): one test program.
function(add_cunit_test name)
	cmake_parse_arguments(T "" "TIMEOUT" "SOURCES;LIBS;LABELS" ${ARGN})
	if(NOT T_TIMEOUT)
		set(T_TIMEOUT 120)
	endif()
	add_executable(test_${name} ${T_SOURCES})
	target_link_libraries(test_${name} PRIVATE dmaheap_warnings
		test_support ${T_LIBS})
	target_compile_options(test_${name} PRIVATE -UNDEBUG)
	add_test(NAME ${name} COMMAND test_${name})
	set_tests_properties(${name} PROPERTIES LABELS "${T_LABELS}"
		TIMEOUT ${T_TIMEOUT} SKIP_RETURN_CODE 77)
endfunction()
