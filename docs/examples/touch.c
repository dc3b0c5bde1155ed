/* SPDX-License-Identifier: MIT */

/*
 * touch: maps every buffer named in DMAHEAP_FDS, as `dmaheapctl alloc ... --
 * touch` hands them over, checks that it is zero, writes it whole and reads it
 * back. An example of a program that is given buffers by another.
 */

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <dmaheap/dmaheap.h>

static int touch(int fd)
{
	off_t end = lseek(fd, 0, SEEK_END);
	size_t n_words;
	uint64_t *words;
	int wrong = 0;

	if (end <= 0) {
		fprintf(stderr, "touch: fd %d is no buffer: %s\n", fd,
			strerror(errno));
		return -1;
	}
	words = dmaheap_map(fd, (size_t)end, PROT_READ | PROT_WRITE);
	if (words == MAP_FAILED) {
		fprintf(stderr, "touch: fd %d: %s\n", fd, strerror(errno));
		return -1;
	}
	n_words = (size_t)end / sizeof(*words);
	for (size_t i = 0; i < n_words; i++)
		wrong |= words[i] != 0;
	for (size_t i = 0; i < n_words; i++)
		words[i] = i ^ (uint64_t)fd;
	for (size_t i = 0; i < n_words; i++)
		wrong |= words[i] != (i ^ (uint64_t)fd);
	munmap(words, (size_t)end);
	if (wrong)
		fprintf(stderr, "touch: fd %d does not hold what it should\n",
			fd);
	return wrong ? -1 : 0;
}

int main(void)
{
	const char *list = getenv("DMAHEAP_FDS");
	int n = 0, n_bad = 0;
	char *end;

	while (list && *list) {
		long fd = strtol(list, &end, 10);

		if (end == list)
			break;
		n++;
		n_bad += touch((int)fd) < 0;
		list = end + strspn(end, ", ");
	}
	if (n == 0) {
		fprintf(stderr, "usage: dmaheapctl alloc SIZE -- touch\n");
		return 2;
	}
	printf("touched %d buffers: all zero at first, all writable%s\n", n,
	       n_bad ? ", except as said" : "");
	return n_bad ? 1 : 0;
}
