/* SPDX-License-Identifier: MIT */
#include "ipc/timer_heap.h"

/*
 * A node's children are a list through next; prev is the left sibling, or the
 * parent for the first child. The root has neither.
 */

static struct loop_timer *meld(struct loop_timer *a, struct loop_timer *b)
{
	if (!a)
		return b;
	if (!b)
		return a;
	if (b->at_ns < a->at_ns) {
		struct loop_timer *t = a;

		a = b;
		b = t;
	}
	b->next = a->child;
	b->prev = a;
	if (a->child)
		a->child->prev = b;
	a->child = b;
	a->next = NULL;
	a->prev = NULL;
	return a;
}

/* Melds siblings in pairs from the left, then the pairs from the right. */
static struct loop_timer *meld_siblings(struct loop_timer *first)
{
	struct loop_timer *pairs = NULL, *root = NULL;

	while (first) {
		struct loop_timer *a = first, *b = first->next;

		first = b ? b->next : NULL;
		a->next = NULL;
		if (b)
			b->next = NULL;
		a = meld(a, b);
		a->next = pairs;
		pairs = a;
	}
	while (pairs) {
		struct loop_timer *a = pairs;

		pairs = a->next;
		a->next = NULL;
		root = meld(root, a);
	}
	if (root)
		root->prev = NULL;
	return root;
}

void timer_heap_insert(struct timer_heap *heap, struct loop_timer *timer)
{
	timer->child = NULL;
	timer->next = NULL;
	timer->prev = NULL;
	heap->root = meld(heap->root, timer);
}

void timer_heap_remove(struct timer_heap *heap, struct loop_timer *timer)
{
	struct loop_timer *rest = meld_siblings(timer->child);

	if (heap->root == timer) {
		heap->root = rest;
	} else {
		if (timer->prev->child == timer)
			timer->prev->child = timer->next;
		else
			timer->prev->next = timer->next;
		if (timer->next)
			timer->next->prev = timer->prev;
		heap->root = meld(heap->root, rest);
	}
	timer->child = NULL;
	timer->next = NULL;
	timer->prev = NULL;
}

struct loop_timer *timer_heap_first(const struct timer_heap *heap)
{
	return heap->root;
}

/* The next node of a walk over the whole tree, or NULL at its end. */
static const struct loop_timer *walk(const struct loop_timer *t)
{
	if (t->child)
		return t->child;
	while (t && !t->next) {
		while (t->prev && t->prev->child != t)
			t = t->prev;
		t = t->prev; /* the parent */
	}
	return t ? t->next : NULL;
}

bool timer_heap_check(const struct timer_heap *heap)
{
	if (!heap->root)
		return true;
	if (heap->root->next || heap->root->prev)
		return false;
	for (const struct loop_timer *t = heap->root; t; t = walk(t)) {
		if (t->child && t->child->prev != t)
			return false;
		if (t->next && t->next->prev != t)
			return false;
		for (const struct loop_timer *c = t->child; c; c = c->next)
			if (c->at_ns < t->at_ns)
				return false;
	}
	return true;
}
