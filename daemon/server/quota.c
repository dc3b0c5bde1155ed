/* SPDX-License-Identifier: MIT */
#include "server/quota.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

/*
 * Accounts are a plain list: only a new connection or an adoption looks one up,
 * everything else holds a pointer through its charge.
 */
struct quota {
	struct quota_rules rules;
	struct list_node accounts;
};

int quota_new(struct quota **ret)
{
	struct quota *q = calloc(1, sizeof(*q));

	if (!q)
		return err_raise(-ENOMEM);
	q->rules.limits = (struct quota_limits){
		.bytes = QUOTA_UNLIMITED,
		.buffers = QUOTA_UNLIMITED,
		.connections = QUOTA_UNLIMITED,
	};
	list_init(&q->accounts);
	*ret = q;
	return 0;
}

struct quota *quota_free(struct quota *quota)
{
	if (!quota)
		return NULL;
	assert(list_is_empty(&quota->accounts));
	free(quota);
	return NULL;
}

void quota_set_rules(struct quota *quota, const struct quota_rules *rules)
{
	quota->rules = *rules;
}

static const struct quota_override *find_override(const struct quota *q,
						  uint32_t uid)
{
	for (uint32_t i = 0; i < q->rules.n_overrides; i++)
		if (q->rules.overrides[i].uid == uid)
			return &q->rules.overrides[i];
	return NULL;
}

struct quota_limits quota_limits_of(const struct quota *quota, uint32_t uid)
{
	const struct quota_override *o = find_override(quota, uid);
	struct quota_limits l = quota->rules.limits;

	if (!o)
		return l;
	if (o->set & (1u << QUOTA_BYTES))
		l.bytes = o->limits.bytes;
	if (o->set & (1u << QUOTA_BUFFERS))
		l.buffers = o->limits.buffers;
	if (o->set & (1u << QUOTA_CONNECTIONS))
		l.connections = o->limits.connections;
	if (o->set & (1u << QUOTA_REQUESTS_PER_S))
		l.requests_per_s = o->limits.requests_per_s;
	return l;
}

static struct quota_account *find(const struct quota *q, uint32_t uid)
{
	list_for_each(n, &q->accounts)
	{
		struct quota_account *a =
			list_entry(n, struct quota_account, link);

		if (a->uid == uid)
			return a;
	}
	return NULL;
}

static struct quota_account *account_new(struct quota *q, uint32_t uid)
{
	struct quota_account *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->uid = uid;
	a->quota = q;
	fair_source_init(&a->source);
	list_add_tail(&q->accounts, &a->link);
	return a;
}

static void account_free_if_unused(struct quota_account *a)
{
	if (a->n_refs)
		return;
	assert(!a->bytes && !a->buffers && !a->connections);
	assert(fair_source_is_empty(&a->source));
	list_remove(&a->link);
	free(a);
}

static void fill_denial(struct quota_denial *d, const struct quota_account *a,
			enum quota_limit which, uint64_t used, uint64_t asked,
			uint64_t allowed)
{
	static const char *const names[] = {
		[QUOTA_BYTES] = "bytes",
		[QUOTA_BUFFERS] = "buffers",
		[QUOTA_CONNECTIONS] = "connections",
		[QUOTA_REQUESTS_PER_S] = "requests_per_s",
	};
	const struct quota_override *o = find_override(a->quota, a->uid);

	*d = (struct quota_denial){
		.uid = a->uid,
		.limit = names[which],
		.used = used,
		.asked = asked,
		.allowed = allowed,
	};
	if (o && (o->set & (1u << which)))
		snprintf(d->section, sizeof(d->section), "quota uid %" PRIu32,
			 a->uid);
	else
		snprintf(d->section, sizeof(d->section), "quota");
}

/* Written so that no sum can wrap. */
static bool exceeds(uint64_t used, uint64_t asked, uint64_t allowed)
{
	return asked && (used > allowed || asked > allowed - used);
}

static bool denied(struct quota_account *a, const struct quota_charge *want,
		   struct quota_denial *d)
{
	struct quota_limits l = quota_limits_of(a->quota, a->uid);

	if (exceeds(a->bytes, want->bytes, l.bytes))
		fill_denial(d, a, QUOTA_BYTES, a->bytes, want->bytes, l.bytes);
	else if (exceeds(a->buffers, want->buffers, l.buffers))
		fill_denial(d, a, QUOTA_BUFFERS, a->buffers, want->buffers,
			    l.buffers);
	else if (exceeds(a->connections, want->connections, l.connections))
		fill_denial(d, a, QUOTA_CONNECTIONS, a->connections,
			    want->connections, l.connections);
	else
		return false;
	a->denied++;
	return true;
}

static void take(struct quota_account *a, const struct quota_charge *want,
		 struct quota_charge *ret)
{
	a->bytes += want->bytes;
	a->buffers += want->buffers;
	a->connections += want->connections;
	a->n_refs++;
	*ret = *want;
	ret->account = a;
}

static int charge(struct quota *quota, uint32_t uid,
		  const struct quota_charge *want, struct quota_charge *ret,
		  struct quota_denial *ret_denial)
{
	struct quota_account *a = find(quota, uid);

	if (!a)
		a = account_new(quota, uid);
	if (!a)
		return err_raise(-ENOMEM);
	if (ret_denial && denied(a, want, ret_denial)) {
		account_free_if_unused(a);
		return QUOTA_E_EXCEEDED;
	}
	take(a, want, ret);
	return 0;
}

int quota_charge(struct quota *quota, uint32_t uid,
		 const struct quota_charge *want, struct quota_charge *ret,
		 struct quota_denial *ret_denial)
{
	return charge(quota, uid, want, ret, ret_denial);
}

int quota_charge_forced(struct quota *quota, uint32_t uid,
			const struct quota_charge *want,
			struct quota_charge *ret)
{
	return charge(quota, uid, want, ret, NULL);
}

void quota_charge_split(struct quota_charge *charge,
			const struct quota_charge *part,
			struct quota_charge *ret)
{
	assert(charge->account);
	assert(part->bytes <= charge->bytes);
	assert(part->buffers <= charge->buffers);
	assert(part->connections <= charge->connections);
	*ret = *part;
	ret->account = charge->account;
	ret->account->n_refs++;
	charge->bytes -= part->bytes;
	charge->buffers -= part->buffers;
	charge->connections -= part->connections;
}

void quota_charge_join(struct quota_charge *charge, struct quota_charge *part)
{
	if (!part->account)
		return;
	if (!charge->account) {
		*charge = *part;
		*part = (struct quota_charge){0};
		return;
	}
	assert(charge->account == part->account);
	charge->bytes += part->bytes;
	charge->buffers += part->buffers;
	charge->connections += part->connections;
	charge->account->n_refs--;
	*part = (struct quota_charge){0};
}

bool quota_is_shared(const struct quota *quota)
{
	return quota->accounts.next != quota->accounts.prev;
}

void quota_charge_release(struct quota_charge *charge)
{
	struct quota_account *a = charge->account;

	if (!a)
		return;
	assert(a->bytes >= charge->bytes && a->buffers >= charge->buffers);
	assert(a->connections >= charge->connections && a->n_refs > 0);
	a->bytes -= charge->bytes;
	a->buffers -= charge->buffers;
	a->connections -= charge->connections;
	a->n_refs--;
	*charge = (struct quota_charge){0};
	account_free_if_unused(a);
}

int quota_request(struct quota_account *account, uint64_t now_ns,
		  struct quota_denial *ret_denial)
{
	uint64_t limit =
		quota_limits_of(account->quota, account->uid).requests_per_s;
	uint64_t ahead_ns;

	if (!limit)
		return 0;
	if (account->earliest_ns < now_ns)
		account->earliest_ns = now_ns;
	ahead_ns = account->earliest_ns - now_ns;
	if (ahead_ns + NSEC_PER_SEC / limit > NSEC_PER_SEC) {
		fill_denial(ret_denial, account, QUOTA_REQUESTS_PER_S, limit, 1,
			    limit);
		account->denied++;
		return QUOTA_E_EXCEEDED;
	}
	account->earliest_ns += NSEC_PER_SEC / limit;
	return 0;
}

void quota_denial_text(const struct quota_denial *denial, char *buf,
		       size_t buf_bytes)
{
	snprintf(buf, buf_bytes,
		 "uid %" PRIu32 " may have %s = %" PRIu64 ": %" PRIu64
		 " in use, %" PRIu64 " asked for ([%s] %s)",
		 denial->uid, denial->limit, denial->allowed, denial->used,
		 denial->asked, denial->section, denial->limit);
}

struct quota_account *quota_next(const struct quota *quota,
				 const struct quota_account *account)
{
	const struct list_node *n =
		account ? account->link.next : quota->accounts.next;

	if (n == &quota->accounts)
		return NULL;
	return list_entry(n, struct quota_account, link);
}
