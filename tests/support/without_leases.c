/* SPDX-License-Identifier: MIT */
/*
 * without-leases PROGRAM ARGS...: runs a program for which F_SETLEASE always
 * fails with EACCES, as on kernels and file systems that refuse leases.
 */
#include <errno.h>
#include <fcntl.h>
#include <seccomp.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);

	if (argc < 2) {
		fprintf(stderr, "usage: %s PROGRAM ARGS...\n", argv[0]);
		return 2;
	}
	if (!filter ||
	    seccomp_rule_add(filter, SCMP_ACT_ERRNO(EACCES), SCMP_SYS(fcntl), 1,
			     SCMP_A1(SCMP_CMP_EQ, F_SETLEASE, 0)) ||
	    seccomp_load(filter))
		return 126;
	seccomp_release(filter);
	execv(argv[1], argv + 1);
	perror(argv[1]);
	return 127;
}
