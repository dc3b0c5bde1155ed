/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Facts: what doctor finds out about this machine, one line each.
 *
 * Ownership: plain values in the caller's list.
 * Threads:   one.
 */

#include <stdbool.h>
#include <stddef.h>

#define FACTS_MAX 48u

struct fact {
	char name[24];
	bool ok;
	char value[96];
	char reason[256]; /* why it is not ok, or a remark; may be "" */
};

struct facts {
	struct fact fact[FACTS_MAX];
	size_t n;
};

/* Adds a fact, cut to fit; one beyond FACTS_MAX is dropped. */
struct fact *facts_add(struct facts *facts, const char *name, bool ok,
		       const char *value, const char *reason);

/* Adds what the host says: files of /proc and /sys, and a few tries. */
void facts_add_host(struct facts *facts);

/**
 * facts_add_probe() - add what `dmaheapd --probe --json` prints
 *
 * A daemon that is not found, fails or prints something else is a fact too.
 */
void facts_add_probe(struct facts *facts);
