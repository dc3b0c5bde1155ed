/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Circular doubly linked list of nodes embedded in their owners.
 *
 * Ownership: a list owns nothing; a node is on one list or, pointing at itself,
 *            on none.
 * Threads:   not locked.
 */

#include "base/base.h"

struct list_node {
	struct list_node *next;
	struct list_node *prev;
};

static inline void list_init(struct list_node *node)
{
	node->next = node;
	node->prev = node;
}

static inline bool list_is_empty(const struct list_node *head)
{
	return head->next == head;
}

static inline void list_insert_(struct list_node *node, struct list_node *prev,
				struct list_node *next)
{
	node->prev = prev;
	node->next = next;
	prev->next = node;
	next->prev = node;
}

static inline void list_add_head(struct list_node *head, struct list_node *node)
{
	list_insert_(node, head, head->next);
}

static inline void list_add_tail(struct list_node *head, struct list_node *node)
{
	list_insert_(node, head->prev, head);
}

/* Afterwards the node is on no list; removing it again is harmless. */
static inline void list_remove(struct list_node *node)
{
	node->prev->next = node->next;
	node->next->prev = node->prev;
	list_init(node);
}

/* Return: the first node, or NULL. */
static inline struct list_node *list_first(const struct list_node *head)
{
	return list_is_empty(head) ? NULL : head->next;
}

#define list_entry(node, type, member) container_of(node, type, member)

#define list_for_each(pos, head)                                               \
	for (struct list_node *pos = (head)->next; pos != (head);              \
	     pos = pos->next)

/* @pos may be removed, and freed, in the body. */
#define list_for_each_safe(pos, head)                                          \
	for (struct list_node *pos = (head)->next, *pos##_next_ = pos->next;   \
	     pos != (head); pos = pos##_next_, pos##_next_ = pos->next)
