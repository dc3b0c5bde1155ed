/* SPDX-License-Identifier: MIT */
/* Each planted bug must end the program, with a message that names it. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/slab.h"
#include "support/test.h"

static struct slab_cache *make(enum slab_debug debug)
{
	struct slab_params params = {.size_bytes = 20,
				     .debug = debug,
				     .n_fronts = 1};
	struct slab_cache *cache = NULL;

	T_REQUIRE(slab_cache_new(&cache, "victim", &params) == 0);
	return cache;
}

/* Runs @bug in a child. Return: true if it aborted with @message. */
static bool aborts_with(void (*bug)(struct slab_cache *), const char *message)
{
	char text[512];
	int pipe_fds[2], status;
	ssize_t n;
	pid_t pid;

	T_REQUIRE(pipe(pipe_fds) == 0);
	fflush(stdout);
	pid = fork();
	T_REQUIRE(pid >= 0);
	if (pid == 0) {
		signal(SIGABRT, SIG_DFL);
		dup2(pipe_fds[1], STDERR_FILENO);
		bug(make(SLAB_DEBUG_ON));
		_exit(0);
	}
	close(pipe_fds[1]);
	n = read(pipe_fds[0], text, sizeof(text) - 1);
	close(pipe_fds[0]);
	T_REQUIRE(waitpid(pid, &status, 0) == pid);
	text[n > 0 ? n : 0] = '\0';
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT &&
	       strstr(text, message) && strstr(text, "slab victim: object");
}

static void overrun(struct slab_cache *cache)
{
	char *object = slab_alloc(cache, 0);

	object[24] = 1; /* 20 bytes, 4 of padding, then the red zone */
	slab_free(cache, 0, object);
}

static void free_twice(struct slab_cache *cache)
{
	char *object = slab_alloc(cache, 0);

	slab_free(cache, 0, object);
	slab_free(cache, 0, object);
}

static void use_after_free(struct slab_cache *cache)
{
	char *object = slab_alloc(cache, 0);

	slab_free(cache, 0, object);
	object[5] = 1;
	(void)!slab_alloc(cache, 0); /* the same object */
}

static void overrun_after_free(struct slab_cache *cache)
{
	char *object = slab_alloc(cache, 0);

	slab_free(cache, 0, object);
	object[24] = 1;
	(void)!slab_alloc(cache, 0);
}

static void a_write_past_the_end_is_caught(void)
{
	CU_ASSERT_TRUE(aborts_with(overrun, "written past its end"));
}

static void a_second_free_is_caught(void)
{
	CU_ASSERT_TRUE(aborts_with(free_twice, "freed twice"));
}

static void a_write_after_free_is_caught(void)
{
	CU_ASSERT_TRUE(
		aborts_with(use_after_free, "written to after it was freed"));
	CU_ASSERT_TRUE(aborts_with(overrun_after_free,
				   "red zone overwritten while free"));
}

static void check_sees_damage_before_the_object_moves(void)
{
	struct slab_cache *cache = make(SLAB_DEBUG_ON);
	char *object = slab_alloc(cache, SLAB_NO_FRONT), saved;

	CU_ASSERT_TRUE(slab_check(cache));
	saved = object[24];
	object[24] = 1;
	CU_ASSERT_FALSE(slab_check(cache));
	object[24] = saved;
	slab_free(cache, 0, object);
	CU_ASSERT_TRUE(slab_check(cache));
	saved = object[3];
	object[3] = 1; /* in a front */
	CU_ASSERT_FALSE(slab_check(cache));
	object[3] = saved;
	slab_cache_free(cache);
}

static void new_objects_are_not_zero_by_chance(void)
{
	struct slab_cache *cache = make(SLAB_DEBUG_ON);
	unsigned char *object = slab_alloc(cache, 0);

	for (int i = 0; i < 20; i++)
		CU_ASSERT_EQUAL(object[i], 0xa3);
	slab_free(cache, 0, object);
	object = slab_zalloc(cache, 0);
	for (int i = 0; i < 20; i++)
		CU_ASSERT_EQUAL(object[i], 0);
	slab_free(cache, 0, object);
	slab_cache_free(cache);
}

static void debugging_is_the_default_of_debug_builds(void)
{
	struct slab_cache *cache = make(SLAB_DEBUG_DEFAULT);
	struct slab_stats stats;

	slab_cache_stats(cache, &stats);
#ifdef DMAHEAP_DEBUG
	CU_ASSERT_EQUAL(stats.object_bytes, 40);
#else
	CU_ASSERT_EQUAL(stats.object_bytes, 24);
#endif
	slab_cache_free(cache);
}

int main(int argc, char **argv)
{
	CU_TestInfo tests[] = {
		{"a write past the end is caught",
		 a_write_past_the_end_is_caught},
		{"a second free is caught", a_second_free_is_caught},
		{"a write after free is caught", a_write_after_free_is_caught},
		{"check sees damage before the object moves",
		 check_sees_damage_before_the_object_moves},
		{"new objects are not zero by chance",
		 new_objects_are_not_zero_by_chance},
		{"debugging is the default of debug builds",
		 debugging_is_the_default_of_debug_builds},
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		{.pName = "base_slab_debug", .pTests = tests},
		CU_SUITE_INFO_NULL,
	};

	return t_main(argc, argv, suites);
}
