# SPDX-License-Identifier: MIT
# One INTERFACE target that carries language, warnings, hardening and
# sanitizers; every target of the project links it.
add_library(dmaheap_warnings INTERFACE)
target_compile_features(dmaheap_warnings INTERFACE c_std_11)
target_compile_definitions(dmaheap_warnings INTERFACE
	_GNU_SOURCE
	$<$<CONFIG:Debug>:DMAHEAP_DEBUG=1>
	DMAHEAP_VERSION="${PROJECT_VERSION}")
target_compile_options(dmaheap_warnings INTERFACE
	-Wall -Wextra -Wshadow -Wundef -Wvla -Wwrite-strings -Wpointer-arith
	-Wstrict-prototypes -Wold-style-definition -Wmissing-prototypes
	-Wredundant-decls -Wnested-externs -Wdate-time -Wconversion
	-Wno-sign-conversion -Wimplicit-fallthrough -Wformat=2
	-Werror=implicit-function-declaration -Werror=implicit-int
	-Werror=incompatible-pointer-types -Werror=int-conversion
	-Werror=return-type
	$<$<C_COMPILER_ID:Clang>:-Wno-string-conversion> # assert(!"why")
	$<$<C_COMPILER_ID:GNU>:-Wlogical-op -Wduplicated-cond
		-Wduplicated-branches
		# sentences of errors are cut to their field on purpose
		-Wno-format-truncation>
	-fvisibility=hidden -fno-common)
if(DMAHEAP_WERROR)
	target_compile_options(dmaheap_warnings INTERFACE -Werror)
endif()
target_include_directories(dmaheap_warnings INTERFACE
	"${PROJECT_SOURCE_DIR}/include" "${PROJECT_SOURCE_DIR}/daemon")

# Release keeps its asserts: NDEBUG is set only by who asks for it.
set(CMAKE_C_FLAGS_RELEASE "-O2" CACHE STRING "" FORCE)
set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O2 -g" CACHE STRING "" FORCE)
if(DMAHEAP_SANITIZE)
	string(REPLACE "," "$<COMMA>" dmaheap_san_ "${DMAHEAP_SANITIZE}")
	target_compile_options(dmaheap_warnings INTERFACE
		"-fsanitize=${dmaheap_san_}" -fno-omit-frame-pointer
		-fno-sanitize-recover=all -g)
	target_link_options(dmaheap_warnings INTERFACE
		"-fsanitize=${dmaheap_san_}")
else()
	target_compile_options(dmaheap_warnings INTERFACE
		$<$<CONFIG:Release>:-D_FORTIFY_SOURCE=2
			-fstack-protector-strong -fstack-clash-protection>)
endif()
if(DMAHEAP_FUZZ)
	target_compile_options(dmaheap_warnings INTERFACE
		-fsanitize=fuzzer-no-link -O1)
endif()
target_link_options(dmaheap_warnings INTERFACE -Wl,-z,relro,-z,now)
