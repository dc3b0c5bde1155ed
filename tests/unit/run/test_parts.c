/* SPDX-License-Identifier: MIT */
/* The parts of dmaheap-run that need no program: names, options, maps, node. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "run/fdinfo.h"
#include "run/maps.h"
#include "run/mirror.h"
#include "run/names.h"
#include "run/node.h"
#include "run/options.h"
#include "run/resolve.h"
#include "run/target.h"
#include "support/test.h"

static void a_name_is_the_inodes_until_it_is_forgotten(void)
{
	struct names *names = names_new();
	char name[DMAHEAP_NAME_MAX_BYTES];

	T_REQUIRE(names);
	CU_ASSERT_FALSE(names_get(names, 1, 100, name));
	CU_ASSERT_STRING_EQUAL(name, "");
	names_set(names, 1, 100, "one");
	names_set(names, 2, 100, "two");
	names_set(names, 1, 101, "");
	CU_ASSERT_TRUE(names_get(names, 1, 100, name));
	CU_ASSERT_STRING_EQUAL(name, "one");
	CU_ASSERT_TRUE(names_get(names, 2, 100, name));
	CU_ASSERT_STRING_EQUAL(name, "two");
	CU_ASSERT_TRUE(names_get(names, 1, 101, name));
	names_set(names, 1, 100, "again");
	CU_ASSERT_TRUE(names_get(names, 1, 100, name));
	CU_ASSERT_STRING_EQUAL(name, "again");
	names_forget(names, 1, 100);
	CU_ASSERT_FALSE(names_get(names, 1, 100, name));
	names_forget(names, 1, 100);
	names_free(names);
}

static void of_too_many_names_the_oldest_is_forgotten(void)
{
	struct names *names = names_new();
	char name[DMAHEAP_NAME_MAX_BYTES];
	size_t known = 0;

	T_REQUIRE(names);
	for (ino_t ino = 1; ino <= 2 * NAMES_MAX; ino++)
		names_set(names, 1, ino, "x");
	for (ino_t ino = 1; ino <= 2 * NAMES_MAX; ino++)
		known += names_get(names, 1, ino, name);
	CU_ASSERT_EQUAL(known, NAMES_MAX);
	CU_ASSERT_TRUE(names_get(names, 1, 2 * NAMES_MAX, name));
	CU_ASSERT_FALSE(names_get(names, 1, 1, name));
	names_free(names);
}

static void inject_words_become_the_request(void)
{
	struct dmaheap_inject_req req;
	char why[256];

	CU_ASSERT_TRUE(options_parse_inject("stall=2s,fail-nth=3,errno=EMFILE,"
					    "count=4,heap=system",
					    &req, why));
	CU_ASSERT_EQUAL(req.stall_ms, 2000);
	CU_ASSERT_EQUAL(req.fail_nth, 3);
	CU_ASSERT_EQUAL(req.err, EMFILE);
	CU_ASSERT_EQUAL(req.count, 4);
	CU_ASSERT_STRING_EQUAL(req.heap_name, "system");
	CU_ASSERT_EQUAL(req.uid, DMAHEAP_INJECT_ANY_ID);
	CU_ASSERT_EQUAL(req.pid, DMAHEAP_INJECT_ANY_ID);
	CU_ASSERT_TRUE(options_parse_inject("fail-rate=12.5%", &req, why));
	CU_ASSERT_EQUAL(req.fail_rate_ppm, 125000);
	CU_ASSERT_TRUE(options_parse_inject("stall=80", &req, why));
	CU_ASSERT_EQUAL(req.stall_ms, 80);
	CU_ASSERT_FALSE(options_parse_inject("stall=", &req, why));
	CU_ASSERT_FALSE(options_parse_inject("stall", &req, why));
	CU_ASSERT_FALSE(options_parse_inject("stall=3601s", &req, why));
	CU_ASSERT_FALSE(options_parse_inject("fail-rate=0", &req, why));
	CU_ASSERT_FALSE(options_parse_inject("fail-nth=-1", &req, why));
	CU_ASSERT_FALSE(
		options_parse_inject("stall=1ms,heap="
				     "0123456789012345678901234567890123",
				     &req, why));
	CU_ASSERT_PTR_NOT_NULL(strstr(why, "at most 31 bytes"));
	CU_ASSERT_FALSE(options_parse_inject("", &req, why));
}

static void the_heap_is_read_from_the_memfds_name(void)
{
	char heap[DMAHEAP_NAME_MAX_BYTES];

	fdinfo_heap_name("/memfd:dmaheap:system:12 (deleted)", heap);
	CU_ASSERT_STRING_EQUAL(heap, "system");
	fdinfo_heap_name("/memfd:dmaheap:linux,cma:1", heap);
	CU_ASSERT_STRING_EQUAL(heap, "linux,cma");
	fdinfo_heap_name("/memfd:dmaheap:a:b:77 (deleted)", heap);
	CU_ASSERT_STRING_EQUAL(heap, "a:b");
	fdinfo_heap_name("/memfd:dmaheap:odd (deleted)", heap);
	CU_ASSERT_STRING_EQUAL(heap, "");
}

static void a_mapping_of_a_buffer_is_found_by_any_of_its_bytes(void)
{
	int fd = memfd_create("dmaheap:system:1", MFD_CLOEXEC);
	int other = memfd_create("mine", MFD_CLOEXEC);
	uint64_t at, elsewhere;

	T_REQUIRE(ftruncate(fd, 16384) == 0 && ftruncate(other, 4096) == 0);
	at = (uintptr_t)mmap(NULL, 16384, PROT_READ, MAP_SHARED, fd, 0);
	elsewhere =
		(uintptr_t)mmap(NULL, 4096, PROT_READ, MAP_SHARED, other, 0);
	CU_ASSERT_TRUE(maps_has_buffer(getpid(), at, 1));
	CU_ASSERT_TRUE(maps_has_buffer(getpid(), at + 16383, 1));
	CU_ASSERT_TRUE(maps_has_buffer(getpid(), at - 4096, 4097));
	CU_ASSERT_FALSE(maps_has_buffer(getpid(), at + 16384, 0));
	CU_ASSERT_FALSE(maps_has_buffer(getpid(), elsewhere, 4096));
	CU_ASSERT_TRUE(maps_has_buffer(getpid(), 4096, UINT64_MAX));
	munmap((void *)(uintptr_t)at, 16384);
	munmap((void *)(uintptr_t)elsewhere, 4096);
	close(fd);
	close(other);
}

static void strings_end_before_unreadable_memory_or_fail(void)
{
	char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char text[8192];

	T_REQUIRE(page != MAP_FAILED && munmap(page + 4096, 4096) == 0);
	memset(page, 'x', 4096);
	memcpy(page + 4092, "abc", 4);
	CU_ASSERT_EQUAL(target_read_string(getpid(), (uintptr_t)page + 4092,
					   text, sizeof(text)),
			3);
	CU_ASSERT_STRING_EQUAL(text, "abc");
	page[4095] = 'd';
	CU_ASSERT_EQUAL(target_read_string(getpid(), (uintptr_t)page + 4092,
					   text, sizeof(text)),
			-EFAULT);
	CU_ASSERT_EQUAL(target_read_string(getpid(), (uintptr_t)page + 4092,
					   text, 4),
			-ENAMETOOLONG);
	CU_ASSERT_EQUAL(target_read_string(getpid(), 8, text, sizeof(text)),
			-EFAULT);
	munmap(page, 4096);
}

static struct workdir workdir;
static struct node *node;

static void make_node(void)
{
	char names[2][DMAHEAP_NAME_MAX_BYTES] = {"system", "linux,cma"};
	char why[256];

	T_REQUIRE(workdir_make(&workdir) == 0);
	T_REQUIRE(node_new(&node, &workdir, names, 2, why) == 0);
}

static void drop_node(void)
{
	node = node_free(node);
	workdir_remove(&workdir);
}

static enum place place_of(int dirfd, const char *path)
{
	static struct resolved at;

	resolve(node, getpid(), dirfd, path, false, &at);
	return at.place;
}

static void paths_lead_where_they_say(void)
{
	char long_path[5000];

	make_node();
	CU_ASSERT_EQUAL(place_of(AT_FDCWD, "/dev/dma_heap"), PLACE_DIRECTORY);
	CU_ASSERT_EQUAL(place_of(AT_FDCWD, "/dev/dma_heap/"), PLACE_DIRECTORY);
	CU_ASSERT_EQUAL(place_of(AT_FDCWD, "/dev/dma_heap/system"), PLACE_HEAP);
	CU_ASSERT_EQUAL(place_of(AT_FDCWD, "/dev/dma_heap/linux,cma"),
			PLACE_HEAP);
	CU_ASSERT_EQUAL(place_of(AT_FDCWD, "/dev/dma_heap/system/"),
			PLACE_NOT_A_DIRECTORY);
	CU_ASSERT_EQUAL(place_of(AT_FDCWD, "/dev/dma_heap/systems"),
			PLACE_MISSING);
	CU_ASSERT_EQUAL(place_of(AT_FDCWD, "/dev/dma_heap/.."), PLACE_OUTSIDE);
	CU_ASSERT_EQUAL(place_of(AT_FDCWD, "/dev/dma_heaps"), PLACE_ELSEWHERE);
	CU_ASSERT_EQUAL(place_of(AT_FDCWD, "system"), PLACE_ELSEWHERE);
	CU_ASSERT_EQUAL(place_of(AT_FDCWD, ""), PLACE_ELSEWHERE);
	CU_ASSERT_EQUAL(place_of(-1, "system"), PLACE_ELSEWHERE);
	CU_ASSERT_EQUAL(place_of(AT_FDCWD, "/proc/self/fd/0"), PLACE_FD);
	CU_ASSERT_EQUAL(place_of(AT_FDCWD, "/dev/fd/0"), PLACE_FD);
	CU_ASSERT_EQUAL(place_of(AT_FDCWD, "/proc/thread-self/fdinfo/0"),
			PLACE_FDINFO);
	memset(long_path, '/', sizeof(long_path) - 1);
	long_path[sizeof(long_path) - 1] = '\0';
	CU_ASSERT_EQUAL(place_of(AT_FDCWD, long_path), PLACE_ELSEWHERE);
	drop_node();
}

static void only_texts_that_may_matter_are_interesting(void)
{
	make_node();
	CU_ASSERT_TRUE(resolve_is_interesting(node, "/dev/dma_heap"));
	CU_ASSERT_TRUE(resolve_is_interesting(node, "linux,cma"));
	CU_ASSERT_TRUE(resolve_is_interesting(node, "/proc/self/fd/3"));
	CU_ASSERT_FALSE(resolve_is_interesting(node, "/usr/lib/libc.so.6"));
	CU_ASSERT_FALSE(resolve_is_interesting(node, ""));
	CU_ASSERT_TRUE(mirror_is_interesting("/proc/devices"));
	CU_ASSERT_FALSE(mirror_is_interesting("/proc/devicesx"));
	drop_node();
}

static void objects_are_known_by_what_they_are(void)
{
	struct node_object o;
	int fd, buffer;

	make_node();
	fd = node_open_heap(node_find(node, "linux,cma", 9), O_RDONLY);
	T_REQUIRE(fd >= 0);
	node_identify(node, getpid(), fd, &o);
	CU_ASSERT_EQUAL(o.kind, NODE_HEAP);
	CU_ASSERT_STRING_EQUAL(o.heap->name, "linux,cma");
	close(fd);
	node_identify(node, getpid(), fd, &o);
	CU_ASSERT_EQUAL(o.kind, NODE_OTHER);
	node_identify(node, getpid(), -1, &o);
	CU_ASSERT_EQUAL(o.kind, NODE_OTHER);

	fd = node_open_sync_file(node);
	node_identify(node, getpid(), fd, &o);
	CU_ASSERT_EQUAL(o.kind, NODE_SYNC_FILE);
	close(fd);
	fd = node_open_directory(node, O_RDONLY | O_DIRECTORY);
	node_identify(node, getpid(), fd, &o);
	CU_ASSERT_EQUAL(o.kind, NODE_DIRECTORY);
	close(fd);

	buffer = memfd_create("dmaheap:system:9", MFD_CLOEXEC);
	node_identify(node, getpid(), buffer, &o);
	CU_ASSERT_EQUAL(o.kind, NODE_BUFFER);
	close(buffer);
	/* The name alone makes no heap. */
	fd = memfd_create("dma_heap:system", MFD_CLOEXEC);
	node_identify(node, getpid(), fd, &o);
	CU_ASSERT_EQUAL(o.kind, NODE_OTHER);
	close(fd);
	drop_node();
}

static void names_that_are_no_file_names_are_refused(void)
{
	static const char *const bad[] = {"", ".", "..", "a/b"};
	char names[1][DMAHEAP_NAME_MAX_BYTES], why[256];
	struct node *none = NULL;

	T_REQUIRE(workdir_make(&workdir) == 0);
	for (size_t i = 0; i < 4; i++) {
		(void)snprintf(names[0], sizeof(names[0]), "%s", bad[i]);
		CU_ASSERT_EQUAL(node_new(&none, &workdir, names, 1, why),
				-EINVAL);
		CU_ASSERT_PTR_NULL(none);
	}
	workdir_remove(&workdir);
	CU_ASSERT_EQUAL(access(workdir.path, F_OK), -1);
}

int main(int argc, char **argv)
{
	CU_TestInfo tests[] = {
		{"a name is the inode's until it is forgotten",
		 a_name_is_the_inodes_until_it_is_forgotten},
		{"of too many names the oldest is forgotten",
		 of_too_many_names_the_oldest_is_forgotten},
		{"inject words become the request",
		 inject_words_become_the_request},
		{"the heap is read from the memfd's name",
		 the_heap_is_read_from_the_memfds_name},
		{"a mapping of a buffer is found by any of its bytes",
		 a_mapping_of_a_buffer_is_found_by_any_of_its_bytes},
		{"strings end before unreadable memory, or fail",
		 strings_end_before_unreadable_memory_or_fail},
		{"paths lead where they say", paths_lead_where_they_say},
		{"only texts that may matter are interesting",
		 only_texts_that_may_matter_are_interesting},
		{"objects are known by what they are",
		 objects_are_known_by_what_they_are},
		{"names that are no file names are refused",
		 names_that_are_no_file_names_are_refused},
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		{.pName = "parts", .pTests = tests},
		CU_SUITE_INFO_NULL,
	};

	return t_main(argc, argv, suites);
}
