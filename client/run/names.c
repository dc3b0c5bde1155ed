/* SPDX-License-Identifier: MIT */
#include "run/names.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/*
 * The model: a hash table of sets; a set has WAYS entries, the oldest of which
 * gives way. All of it is allocated once.
 */
#define WAYS 16u
#define SETS (NAMES_MAX / WAYS)

struct entry {
	dev_t dev;
	ino_t ino; /* 0: free */
	uint64_t age;
	char name[DMAHEAP_NAME_MAX_BYTES];
};

struct names {
	pthread_mutex_t lock;
	uint64_t clock;
	struct entry entry[SETS][WAYS];
};

struct names *names_new(void)
{
	struct names *names = calloc(1, sizeof(*names));

	if (names)
		(void)pthread_mutex_init(&names->lock, NULL);
	return names;
}

struct names *names_free(struct names *names)
{
	if (names)
		(void)pthread_mutex_destroy(&names->lock);
	free(names);
	return NULL;
}

/* Inode numbers of memfds are consecutive: neighbours get sets of their own. */
static struct entry *set_of(struct names *names, ino_t ino)
{
	return names->entry[ino % SETS];
}

static struct entry *find(struct names *names, dev_t dev, ino_t ino)
{
	struct entry *set = set_of(names, ino);

	for (unsigned int i = 0; i < WAYS; i++)
		if (set[i].ino == ino && set[i].dev == dev)
			return &set[i];
	return NULL;
}

static struct entry *find_oldest(struct names *names, ino_t ino)
{
	struct entry *set = set_of(names, ino), *oldest = set;

	for (unsigned int i = 0; i < WAYS; i++) {
		if (!set[i].ino)
			return &set[i];
		if (set[i].age < oldest->age)
			oldest = &set[i];
	}
	return oldest;
}

void names_set(struct names *names, dev_t dev, ino_t ino, const char *name)
{
	struct entry *entry;

	(void)pthread_mutex_lock(&names->lock);
	entry = find(names, dev, ino);
	if (!entry)
		entry = find_oldest(names, ino);
	entry->dev = dev;
	entry->ino = ino;
	entry->age = ++names->clock;
	(void)snprintf(entry->name, sizeof(entry->name), "%s", name);
	(void)pthread_mutex_unlock(&names->lock);
}

void names_forget(struct names *names, dev_t dev, ino_t ino)
{
	struct entry *entry;

	(void)pthread_mutex_lock(&names->lock);
	entry = find(names, dev, ino);
	if (entry)
		entry->ino = 0;
	(void)pthread_mutex_unlock(&names->lock);
}

bool names_get(struct names *names, dev_t dev, ino_t ino,
	       char ret_name[DMAHEAP_NAME_MAX_BYTES])
{
	const struct entry *entry;
	bool found;

	(void)pthread_mutex_lock(&names->lock);
	entry = find(names, dev, ino);
	(void)snprintf(ret_name, DMAHEAP_NAME_MAX_BYTES, "%s",
		       entry ? entry->name : "");
	found = entry != NULL;
	(void)pthread_mutex_unlock(&names->lock);
	return found;
}
