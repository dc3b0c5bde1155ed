/* SPDX-License-Identifier: MIT */
/* Programs of many processes, threads and buffers. */
#include "scenario.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <sys/time.h>
#include <sys/wait.h>

#define LIVE 64

static const size_t live_bytes[] = {4096, 16384, 65536, 1048576};

static void child_of_forks(int heap, int fds[4][LIVE])
{
	for (int s = 0; s < 4; s++)
		for (int i = 0; i < LIVE; i++) {
			unsigned char *at = mmap(NULL, live_bytes[s], PROT_READ,
						 MAP_SHARED, fds[s][i], 0);

			EXPECT(at != MAP_FAILED);
			EXPECT(at[live_bytes[s] - 1] == i + 1);
			munmap(at, live_bytes[s]);
		}
	for (int i = 0; i < LIVE; i++) {
		int fd = heap_alloc(heap, 65536);

		EXPECT(fd >= 0);
		check_zero_and_fill(fd, 65536, 0xff);
		close(fd);
	}
	_exit(0);
}

/* Forks with 64 live buffers of each of four sizes, four times. */
int scenario_forks(int argc, char **argv)
{
	int heap = heap_open(), fds[4][LIVE], status;

	(void)argc;
	(void)argv;
	EXPECT(heap >= 0);
	for (int s = 0; s < 4; s++)
		for (int i = 0; i < LIVE; i++) {
			fds[s][i] = heap_alloc(heap, live_bytes[s]);
			EXPECT(fds[s][i] >= 0);
			check_zero_and_fill(fds[s][i], live_bytes[s], i + 1);
		}
	for (int n = 0; n < 4; n++) {
		pid_t pid = fork();

		EXPECT(pid >= 0);
		if (pid == 0)
			child_of_forks(heap, fds);
	}
	for (int n = 0; n < 4; n++) {
		EXPECT(wait(&status) > 0);
		EXPECT(status == 0);
	}
	for (int s = 0; s < 4; s++)
		for (int i = 0; i < LIVE; i++)
			close(fds[s][i]);
	close(heap);
	return 0;
}

#define THREADS 100

static void *allocate(void *arg)
{
	int heap = *(int *)arg;

	for (int i = 0; i < 10; i++) {
		int fd = heap_alloc(heap, 65536);

		EXPECT(fd >= 0);
		check_zero_and_fill(fd, 65536, 0xff);
		close(fd);
	}
	return NULL;
}

int scenario_threads(int argc, char **argv)
{
	pthread_t thread[THREADS];
	int heap = heap_open();

	(void)argc;
	(void)argv;
	EXPECT(heap >= 0);
	for (int i = 0; i < THREADS; i++)
		EXPECT(pthread_create(&thread[i], NULL, allocate, &heap) == 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	close(heap);
	return 0;
}

int scenario_thousands(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 3000, heap = heap_open();
	int before = count_fds();

	EXPECT(heap >= 0);
	for (int i = 0; i < n; i++) {
		size_t size = (size_t)4096 << (i % 6);
		int fd = heap_alloc(heap, size);

		EXPECT(fd >= 0);
		check_zero_and_fill(fd, size, 0xff);
		close(fd);
	}
	EXPECT(count_fds() == before);
	close(heap);
	return 0;
}

static void spawn_self(const char *what)
{
	char *argv[] = {(char *)(uintptr_t) "self", (char *)(uintptr_t)what,
			NULL};
	int status;
	pid_t pid;

	EXPECT(posix_spawn(&pid, "/proc/self/exe", NULL, NULL, argv, environ) ==
	       0);
	EXPECT(waitpid(pid, &status, 0) == pid);
	EXPECT(status == 0);
}

int scenario_spawn(int argc, char **argv)
{
	int status;
	pid_t pid;

	(void)argc;
	(void)argv;
	spawn_self("alloc");
	pid = vfork();
	if (pid == 0) {
		execl("/proc/self/exe", "self", "alloc", (char *)NULL);
		_exit(126);
	}
	EXPECT(waitpid(pid, &status, 0) == pid);
	EXPECT(status == 0);
	EXPECT(system("exec 9</dev/dma_heap/system && test -c "
		      "/dev/dma_heap/system") == 0);
	return 0;
}

/* One allocation, held for as many milliseconds as the argument says. */
int scenario_alloc(int argc, char **argv)
{
	int heap = heap_open(), fd;

	EXPECT(heap >= 0);
	fd = heap_alloc(heap, 65536);
	EXPECT(fd >= 0);
	check_zero_and_fill(fd, 65536, 1);
	if (argc > 1)
		usleep((useconds_t)atoi(argv[1]) * 1000);
	close(fd);
	close(heap);
	return 0;
}

static bool wait_for_file(const char *path)
{
	for (int i = 0; i < 6000; i++) {
		if (access(path, F_OK) == 0)
			return true;
		usleep(10000);
	}
	return false;
}

/*
 * The parent ends at once; the child, a daemon by then, waits for the file of
 * the first argument, allocates, and leaves the file of the second.
 */
int scenario_daemonise(int argc, char **argv)
{
	int heap, fd;

	EXPECT(argc == 3);
	EXPECT(daemon(1, 0) == 0);
	EXPECT(wait_for_file(argv[1]));
	heap = heap_open();
	EXPECT(heap >= 0);
	fd = heap_alloc(heap, 65536);
	EXPECT(fd >= 0);
	check_zero_and_fill(fd, 65536, 1);
	fd = open(argv[2], O_WRONLY | O_CREAT | O_EXCL, 0600);
	EXPECT(fd >= 0);
	return 0;
}

static volatile sig_atomic_t ticks;

static void on_tick(int sig)
{
	(void)sig;
	ticks++;
}

/* A 10 ms interval timer while an allocation stalls. */
int scenario_timer(int argc, char **argv)
{
	struct sigaction action = {.sa_handler = on_tick};
	struct itimerval every = {{0, 10000}, {0, 10000}};
	int heap = heap_open(), fd;

	(void)argc;
	(void)argv;
	EXPECT(heap >= 0);
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &every, NULL);
	for (int i = 0; i < 3; i++) {
		fd = heap_alloc(heap, 65536);
		EXPECT(fd >= 0);
		close(fd);
	}
	EXPECT(ticks >= 3);
	printf("%d ticks\n", (int)ticks);
	return 0;
}

static atomic_bool stalled_done;

static void *stalled(void *arg)
{
	int fd = heap_alloc(*(int *)arg, 4096);

	atomic_store(&stalled_done, true);
	EXPECT(fd >= 0);
	return NULL;
}

/*
 * Argument: how many threads allocate at once, each for as long as the stall;
 * meanwhile this one opens files, which must not wait for any of them.
 */
int scenario_open_during_stall(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 1, heap = heap_open(), opened = 0;
	pthread_t thread[200];

	EXPECT(heap >= 0 && n > 0 && n <= 200);
	for (int i = 0; i < n; i++)
		EXPECT(pthread_create(&thread[i], NULL, stalled, &heap) == 0);
	while (!atomic_load(&stalled_done)) {
		int fd = open("/etc/passwd", O_RDONLY | O_CLOEXEC);

		EXPECT(fd >= 0);
		close(fd);
		if (!atomic_load(&stalled_done))
			opened++;
		usleep(1000);
	}
	for (int i = 0; i < n; i++)
		pthread_join(thread[i], NULL);
	printf("%d opens\n", opened);
	EXPECT(opened >= 3);
	return 0;
}

/* Holds a buffer in the way the argument says, and exits. */
int scenario_hold(int argc, char **argv)
{
	int heap = heap_open(), fd;

	EXPECT(argc == 2 && heap >= 0);
	fd = heap_alloc(heap, 65536);
	EXPECT(fd >= 0);
	if (strcmp(argv[1], "mapping") == 0) {
		EXPECT(mmap(NULL, 65536, PROT_READ, MAP_SHARED, fd, 0) !=
		       MAP_FAILED);
		close(fd);
	} else if (strcmp(argv[1], "child") == 0) {
		if (fork() == 0) {
			setsid();
			sleep(3);
			_exit(0);
		}
		close(fd);
	} else if (strcmp(argv[1], "nothing") == 0) {
		close(fd);
	}
	return 0;
}

int scenario_die(int argc, char **argv)
{
	EXPECT(argc == 2);
	raise(atoi(argv[1]));
	return 3;
}

static volatile sig_atomic_t got;

static void on_signal(int sig)
{
	got = sig;
}

/* Says "ready", waits for SIGTERM, and ends with 42. */
int scenario_signals(int argc, char **argv)
{
	struct sigaction action = {.sa_handler = on_signal};

	(void)argc;
	(void)argv;
	sigaction(SIGTERM, &action, NULL);
	printf("ready\n");
	fflush(stdout);
	for (int i = 0; i < 500 && !got; i++)
		usleep(10000);
	return got == SIGTERM ? 42 : 1;
}

/*
 * Says "ready" when it holds a buffer; on SIGTERM, by when the daemon is dead,
 * it allocates: ENOMEM, while its buffer and everything else works.
 */
int scenario_after_death(int argc, char **argv)
{
	struct sigaction action = {.sa_handler = on_signal};
	int heap = heap_open(), fd = heap_alloc(heap, 65536), file;

	(void)argc;
	(void)argv;
	EXPECT(fd >= 0);
	sigaction(SIGTERM, &action, NULL);
	printf("ready\n");
	fflush(stdout);
	for (int i = 0; i < 500 && !got; i++)
		usleep(10000);
	for (int i = 0; i < 3; i++) {
		EXPECT(heap_alloc(heap, 65536) < 0);
		EXPECT(errno == ENOMEM);
	}
	file = open("/etc/passwd", O_RDONLY);
	EXPECT(file >= 0);
	check_zero_and_fill(fd, 65536, 1);
	EXPECT(ioctl(fd, DMA_BUF_IOCTL_SYNC,
		     &(struct dma_buf_sync){DMA_BUF_SYNC_READ}) == 0);
	EXPECT(ioctl(fd, DMA_BUF_SET_NAME_B, "alive") == 0);
	return 0;
}
