/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Quota: what each uid may hold at once, and how often it may ask.
 *
 * A charge object records what its owner (a buffer, a connection) holds of an
 * account; releasing it is the owner's destructor's business, so that no path
 * can forget it.
 *
 * Units:     *_bytes count bytes; *_per_s requests per second; now_ns is any
 *            monotonic clock.
 * Ownership: quota_new() gives the caller the only reference; quota_free()
 *            asserts that every charge was released. An account lives as long
 *            as a charge of it does, and is forgotten with the last one.
 * Threads:   not locked; the event loop's thread.
 */

#include <stddef.h>

#include "base/base.h"
#include "server/fair.h"

/* Outcomes of quota_charge() and quota_request(). */
enum {
	QUOTA_E_OK_,
	QUOTA_E_EXCEEDED, /* the denial says which limit */
};

#define QUOTA_OVERRIDES_MAX 64u
#define QUOTA_UNLIMITED     UINT64_MAX

struct quota_limits {
	uint64_t bytes;
	uint64_t buffers;
	uint64_t connections;
	uint64_t requests_per_s; /* 0: no limit */
};

/* Which limits a config section "[quota uid N]" sets. */
enum quota_limit {
	QUOTA_BYTES,
	QUOTA_BUFFERS,
	QUOTA_CONNECTIONS,
	QUOTA_REQUESTS_PER_S,
};

struct quota_override {
	uint32_t uid;
	uint32_t set; /* bit (1 << enum quota_limit): limits.x is meant */
	struct quota_limits limits;
};

struct quota_rules {
	struct quota_limits limits; /* of a uid without a section of its own */
	uint32_t n_overrides;
	struct quota_override overrides[QUOTA_OVERRIDES_MAX];
};

struct quota;

/* One uid's; public so that a queue can be part of it. */
struct quota_account {
	uint32_t uid;
	uint64_t bytes;
	uint64_t buffers;
	uint64_t connections;
	uint64_t denied;
	struct fair_source source; /* requests of this uid that wait */

	/* quota.c's own */
	uint64_t n_refs;
	uint64_t earliest_ns;  /* when the requests so far will be used up */
	struct list_node link; /* quota::accounts */
	struct quota *quota;
};

/* Held by what it pays for; all zero: nothing charged. */
struct quota_charge {
	struct quota_account *account;
	uint64_t bytes;
	uint64_t buffers;
	uint64_t connections;
};

/* Who was refused what, and which key of the config says so. */
struct quota_denial {
	uint32_t uid;
	const char *limit; /* the key: "bytes", "buffers", ... */
	uint64_t used;
	uint64_t asked;
	uint64_t allowed;
	char section[32]; /* "quota" or "quota uid N" */
};

/* Return: 0, -ENOMEM. Every limit is QUOTA_UNLIMITED until quota_set_rules().
 */
int quota_new(struct quota **ret) _must_check_;

/* Return: NULL, always. @quota may be NULL. */
struct quota *quota_free(struct quota *quota);
DEFINE_CLEANUP(struct quota *, quota_free);

/* Copies @rules. What is held already stays, even where it exceeds them. */
void quota_set_rules(struct quota *quota, const struct quota_rules *rules);

/* The limits in force for @uid. */
struct quota_limits quota_limits_of(const struct quota *quota, uint32_t uid);

/**
 * quota_charge() - charge what is about to be held
 * @want:       bytes, buffers and connections to add (account is ignored)
 * @ret:        receives the charge on success; untouched on failure
 * @ret_denial: receives the reason with QUOTA_E_EXCEEDED
 *
 * All or nothing. A denial is counted in the account.
 * Return: 0, QUOTA_E_EXCEEDED, -ENOMEM.
 */
int quota_charge(struct quota *quota, uint32_t uid,
		 const struct quota_charge *want, struct quota_charge *ret,
		 struct quota_denial *ret_denial) _must_check_;

/**
 * quota_charge_forced() - the same whatever the limits say
 *
 * For buffers that exist already (adopted ones): refusing the charge would not
 * make them smaller, only unseen.
 * Return: 0, -ENOMEM.
 */
int quota_charge_forced(struct quota *quota, uint32_t uid,
			const struct quota_charge *want,
			struct quota_charge *ret) _must_check_;

/* Moves @part out of @charge, which must hold at least that, into @ret. */
void quota_charge_split(struct quota_charge *charge,
			const struct quota_charge *part,
			struct quota_charge *ret);

/* Moves all of @part, of the same account or empty, into @charge. */
void quota_charge_join(struct quota_charge *charge, struct quota_charge *part);

/* Return: true if more than one uid holds anything: turns must be taken. */
bool quota_is_shared(const struct quota *quota);

/* Gives back what @charge holds; it is all zero afterwards. */
void quota_charge_release(struct quota_charge *charge);

/**
 * quota_request() - count one request of @account against requests_per_s
 *
 * A second's worth may come at once; after that one each 1 s / limit.
 * Return: 0, QUOTA_E_EXCEEDED (and @ret_denial).
 */
int quota_request(struct quota_account *account, uint64_t now_ns,
		  struct quota_denial *ret_denial) _must_check_;

/* The sentence for the client: who, which limit, used, asked, key. */
void quota_denial_text(const struct quota_denial *denial, char *buf,
		       size_t buf_bytes);

/* Accounts in no order: NULL gives the first; NULL comes after the last. */
struct quota_account *quota_next(const struct quota *quota,
				 const struct quota_account *account);
