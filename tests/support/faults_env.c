/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/fail_malloc.h"
#include "support/faults.h"

static void arm_one(const char *text)
{
	char name[32];
	unsigned int every;
	int err, n = sscanf(text, "%31[a-z0-9_]:%u:%d", name, &every, &err);
	enum fault fault = n >= 2 ? faults_find(name) : FAULT_COUNT_;

	if (n >= 2 && !strcmp(name, "malloc")) {
		fail_malloc_every(every);
		return;
	}
	if (fault == FAULT_COUNT_) {
		fprintf(stderr, "DMAHEAP_FAULTS: '%s' is no fault\n", text);
		abort();
	}
	faults_arm_every(fault, every,
			 n == 3 ? err : faults_usual_errno(fault));
}

__attribute__((constructor)) static void arm_from_environment(void)
{
	const char *value = getenv("DMAHEAP_FAULTS");
	char text[256], *next = NULL;

	if (!value)
		return;
	(void)snprintf(text, sizeof(text), "%s", value);
	for (char *one = strtok_r(text, " ", &next); one;
	     one = strtok_r(NULL, " ", &next))
		arm_one(one);
}
