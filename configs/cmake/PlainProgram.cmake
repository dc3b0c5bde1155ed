# SPDX-License-Identifier: MIT
# plain_program(TARGET): a program that is watched, not tested: never built with
# sanitizers, which open, map and catch signals at moments of their own.
function(plain_program target)
	if(DMAHEAP_SANITIZE)
		target_compile_features(${target} PRIVATE c_std_11)
		target_compile_definitions(${target} PRIVATE _GNU_SOURCE)
	else()
		target_link_libraries(${target} PRIVATE dmaheap_warnings)
	endif()
endfunction()
