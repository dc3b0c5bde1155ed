/* SPDX-License-Identifier: MIT */
/* Finding the daemon, losing it, finding the next one, fork() and threads. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <dmaheap/dmaheap.h>

#include "lib/handle.h"
#include "support/test.h"
#include "unit/client/fake.h"

static struct fake *fake;
static struct dmaheap *dh;

/* What ADOPT brought, by inode; written by the fake's thread. */
static ino_t adopted[512];
static atomic_uint n_adopted, n_adopt_requests;

static _Atomic(fake_hook) spoil;

static void hook(const struct fake_request *req, struct fake_reply *reply,
		 void *ctx)
{
	fake_hook now = spoil;

	if (req->header.opcode == DMAHEAP_OP_ADOPT) {
		n_adopt_requests++;
		for (size_t i = 0; i < req->n_fds; i++) {
			struct stat st;

			fstat(req->fds[i], &st);
			adopted[n_adopted++ % 512] = st.st_ino;
		}
	}
	if (now && req->header.opcode != DMAHEAP_OP_HELLO)
		now(req, reply, ctx);
}

static void setup(void)
{
	spoil = NULL;
	n_adopted = n_adopt_requests = 0;
	fake = fake_start("s", 1, hook, NULL);
	T_REQUIRE(dmaheap_connect(&dh, fake->path) == 0);
	dh->patience_ns = 50 * NSEC_PER_MSEC;
}

static void teardown(void)
{
	dh = dmaheap_close(dh);
	if (fake)
		fake = fake_stop(fake);
}

static void restart(uint64_t instance_id)
{
	fake_stop(fake);
	fake = fake_start("s", instance_id, hook, NULL);
}

static ino_t ino_of(int fd)
{
	struct stat st;

	T_REQUIRE(fstat(fd, &st) == 0);
	return st.st_ino;
}

static unsigned int times_adopted(ino_t ino)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < n_adopted; i++)
		n += adopted[i] == ino;
	return n;
}

static int connect_from_environment(void)
{
	struct dmaheap *found = NULL;
	int r = dmaheap_connect(&found, NULL);

	dmaheap_close(found);
	return r;
}

static void the_socket_is_searched_in_the_documented_order(void)
{
	struct fake *runtime = fake_start("dmaheap.sock", 7, NULL, NULL);
	struct dmaheap_hello_reply hello;
	struct dmaheap *found;
	char missing[128];

	setenv("XDG_RUNTIME_DIR", fake_dir(), 1);
	unsetenv("DMAHEAP_SOCKET");
	T_REQUIRE(dmaheap_connect(&found, NULL) == 0);
	CU_ASSERT_EQUAL(dmaheap_hello(found, &hello), 0);
	CU_ASSERT_EQUAL(hello.instance_id, 7);
	CU_ASSERT_STRING_EQUAL(dmaheap_socket_path(found), runtime->path);
	dmaheap_close(found);

	setenv("DMAHEAP_SOCKET", fake->path, 1);
	T_REQUIRE(dmaheap_connect(&found, NULL) == 0);
	CU_ASSERT_EQUAL(dmaheap_hello(found, &hello), 0);
	CU_ASSERT_EQUAL(hello.instance_id, 1);
	dmaheap_close(found);

	/* A name that is given is the only one. */
	snprintf(missing, sizeof(missing), "%s/missing", fake_dir());
	setenv("DMAHEAP_SOCKET", missing, 1);
	CU_ASSERT_EQUAL(connect_from_environment(), -ENOENT);
	unsetenv("DMAHEAP_SOCKET");
	unsetenv("XDG_RUNTIME_DIR");
	fake_stop(runtime);
}

static int listen_at(const char *path)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	strcpy(addr.sun_path, path);
	unlink(path);
	T_REQUIRE(bind(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0);
	T_REQUIRE(listen(fd, 4) == 0);
	return fd;
}

static void what_is_no_daemon_is_named_by_its_error(void)
{
	struct dmaheap *none = NULL;
	char path[256];
	int fd;

	memset(path, 'x', 200);
	path[200] = '\0';
	CU_ASSERT_EQUAL(dmaheap_connect(&none, path), -ENAMETOOLONG);
	snprintf(path, sizeof(path), "%s/stale", fake_dir());
	CU_ASSERT_EQUAL(dmaheap_connect(&none, path), -ENOENT);
	close(listen_at(path));
	CU_ASSERT_EQUAL(dmaheap_connect(&none, path), -ECONNREFUSED);
	unlink(path);
	fd = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	CU_ASSERT_EQUAL(dmaheap_connect(&none, path), -ECONNREFUSED);
	close(fd);
	unlink(path);
	CU_ASSERT_PTR_NULL(none);
}

/* Listens at @path as another user; ends with its standard input. */
static pid_t foreign_listener(const char *path, int ready)
{
	pid_t pid = fork();

	if (pid == 0) {
		int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
		struct sockaddr_un addr = {.sun_family = AF_UNIX};

		strcpy(addr.sun_path, path);
		if (bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 ||
		    setresuid(65534, 65534, 65534) < 0 || listen(fd, 4) < 0 ||
		    write(ready, "", 1) != 1)
			_exit(1);
		pause();
	}
	return pid;
}

static void a_foreign_daemon_is_not_used(void)
{
	struct dmaheap *none = NULL;
	char path[128], byte;
	int fd, pipe_fds[2];
	pid_t pid;

	if (getuid() != 0) {
		printf("(as root only) ");
		return;
	}
	snprintf(path, sizeof(path), "%s/foreign", fake_dir());
	fd = listen_at(path);
	T_REQUIRE(chown(path, 65534, 65534) == 0);
	CU_ASSERT_EQUAL(dmaheap_connect(&none, path), -EPERM);
	close(fd);
	unlink(path);

	/* The file is ours, but who listens is not. */
	T_REQUIRE(pipe2(pipe_fds, O_CLOEXEC) == 0);
	pid = foreign_listener(path, pipe_fds[1]);
	T_REQUIRE(read(pipe_fds[0], &byte, 1) == 1);
	CU_ASSERT_EQUAL(dmaheap_connect(&none, path), -EPERM);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(pipe_fds[0]);
	close(pipe_fds[1]);
	unlink(path);
}

static bool write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool ok = fd >= 0 && write(fd, text, strlen(text)) > 0;

	close(fd);
	return ok;
}

/* As user 65533 of the host, who is 1000 here, and nobody else is anybody.
 * Return: 77 when there are no such namespaces; bits of what went wrong. */
static int connect_from_a_rootless_container(const char *path)
{
	struct dmaheap *h = NULL;
	int wrong = 0;

	if (setresgid(65533, 65533, 65533) < 0 ||
	    setresuid(65533, 65533, 65533) < 0 ||
	    /* Else /proc/self would be root's still. */
	    prctl(PR_SET_DUMPABLE, 1) < 0 || unshare(CLONE_NEWUSER) < 0 ||
	    !write_file("/proc/self/uid_map", "1000 65533 1\n"))
		return 77;
	unsetenv("DMAHEAP_SOCKET");
	setenv("XDG_RUNTIME_DIR", fake_dir(), 1);
	wrong |= dmaheap_connect(&h, NULL) == -EPERM ? 0 : 1;
	wrong |= dmaheap_connect(&h, path) == 0 ? 0 : 2;
	dmaheap_close(h);
	setenv("DMAHEAP_SOCKET", path, 1);
	wrong |= dmaheap_connect(&h, NULL) == 0 ? 0 : 4;
	return wrong;
}

/* He looks like any other user of the host. */
static void the_hosts_root_is_trusted_at_a_chosen_place_alone(void)
{
	struct fake *roots;
	int status = 0;
	pid_t pid;

	if (getuid() != 0) {
		printf("(as root only) ");
		return;
	}
	roots = fake_start("dmaheap.sock", 3, hook, NULL);
	T_REQUIRE(chmod(fake_dir(), 0755) == 0);
	T_REQUIRE(chmod(roots->path, 0666) == 0);
	pid = fork();
	if (pid == 0)
		_exit(connect_from_a_rootless_container(roots->path));
	CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
	CU_ASSERT_TRUE(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		printf("(no user namespaces) ");
	else
		CU_ASSERT_EQUAL(WEXITSTATUS(status), 0);
	fake_stop(roots);
}

static void live_buffers_are_handed_to_the_next_daemon_once_each(void)
{
	int a = dmaheap_alloc(dh, NULL, 4096, O_RDWR | O_CLOEXEC, 0);
	int b = dmaheap_alloc(dh, NULL, 4096, O_RDWR | O_CLOEXEC, 0);
	int c = dmaheap_alloc(dh, NULL, 4096, O_RDWR | O_CLOEXEC, 0);
	int received = fake_buffer(4096, "dmaheap:system:9");
	int other = fake_buffer(4096, "somebody's");
	int twice = fcntl(a, F_DUPFD_CLOEXEC, 0);
	ino_t closed = ino_of(b);
	struct dmaheap_hello_reply hello;

	close(b);
	restart(2);
	CU_ASSERT_EQUAL(dmaheap_hello(dh, &hello), 0);
	CU_ASSERT_EQUAL(hello.instance_id, 2);
	CU_ASSERT_EQUAL(n_adopted, 3);
	CU_ASSERT_EQUAL(times_adopted(ino_of(a)), 1);
	CU_ASSERT_EQUAL(times_adopted(ino_of(c)), 1);
	CU_ASSERT_EQUAL(times_adopted(ino_of(received)), 1);
	CU_ASSERT_EQUAL(times_adopted(ino_of(other)), 0);
	CU_ASSERT_EQUAL(times_adopted(closed), 0);
	close(a);
	close(c);
	close(received);
	close(other);
	close(twice);
}

static void nothing_keeps_a_closed_buffer_alive(void)
{
	unsigned int before = fake_count_fds();
	int fd = dmaheap_alloc(dh, NULL, 4096, O_RDWR | O_CLOEXEC, 0);

	T_REQUIRE(fd >= 0);
	close(fd);
	restart(2);
	/* Not always the same number: the fake's thread opens fds as well. */
	fd = dmaheap_alloc(dh, NULL, 4096, O_RDWR, 0);
	CU_ASSERT(fd >= 0);
	close(fd);
	CU_ASSERT_EQUAL(n_adopted, 0);
	CU_ASSERT(fake_settle_fds(before));
}

static void more_than_64_buffers_take_several_requests(void)
{
	int fds[128];

	for (unsigned int i = 0; i < 128; i += 64)
		T_REQUIRE(dmaheap_alloc_many(dh, NULL, 4096, O_RDWR | O_CLOEXEC,
					     0, 64, fds + i) == 0);
	close(fds[127]);
	restart(2);
	CU_ASSERT_EQUAL(dmaheap_set_name(dh, fds[0], "x"), 0);
	CU_ASSERT_EQUAL(n_adopted, 127);
	CU_ASSERT_EQUAL(n_adopt_requests, 2);
	for (unsigned int i = 0; i < 127; i++)
		close(fds[i]);
}

static void a_buffer_is_not_handed_to_another_daemon(void)
{
	struct fake *second = fake_start("second", 5, NULL, NULL);
	struct dmaheap_hello_reply hello;
	struct dmaheap *dh2;
	int ours, theirs;

	T_REQUIRE(dmaheap_connect(&dh2, second->path) == 0);
	ours = dmaheap_alloc(dh, NULL, 4096, O_RDWR | O_CLOEXEC, 0);
	theirs = dmaheap_alloc(dh2, NULL, 4096, O_RDWR | O_CLOEXEC, 0);
	restart(2);
	CU_ASSERT_EQUAL(dmaheap_hello(dh, &hello), 0);
	CU_ASSERT_EQUAL(n_adopted, 1);
	CU_ASSERT_EQUAL(times_adopted(ino_of(ours)), 1);
	close(ours);
	close(theirs);
	dmaheap_close(dh2);
	fake_stop(second);
}

static void a_bare_mapping_is_handed_over_where_the_kernel_lets_us(void)
{
	int fd = dmaheap_alloc(dh, NULL, 8192, O_RDWR | O_CLOEXEC, 0);
	void *map = dmaheap_map(fd, 8192, PROT_READ | PROT_WRITE);
	ino_t ino = ino_of(fd);
	struct dmaheap_hello_reply hello;
	char path[64];
	int direct;

	T_REQUIRE(map != MAP_FAILED);
	close(fd);
	snprintf(path, sizeof(path), "/proc/self/map_files/%lx-%lx",
		 (unsigned long)map, (unsigned long)map + 8192);
	direct = open(path, O_RDWR | O_CLOEXEC);
	restart(2);
	CU_ASSERT_EQUAL(dmaheap_hello(dh, &hello), 0);
	CU_ASSERT_EQUAL(times_adopted(ino), direct >= 0);
	if (direct >= 0)
		close(direct);
	munmap(map, 8192);
}

/* Hangs up on the next request, or on all of them. */
static atomic_int hang_ups;

static void hang_up(const struct fake_request *req, struct fake_reply *reply,
		    void *ctx)
{
	(void)req;
	(void)ctx;
	if (hang_ups > 0) {
		hang_ups--;
		reply->hang_up = true;
	}
}

static void a_request_is_sent_again_after_a_hang_up(void)
{
	int fd;

	spoil = hang_up;
	hang_ups = 1;
	fd = dmaheap_alloc(dh, NULL, 4096, O_RDWR, 0);
	CU_ASSERT(fd >= 0);
	close(fd);
	CU_ASSERT_EQUAL(n_adopt_requests, 0); /* the daemon is the same */
	CU_ASSERT_EQUAL(fake->n_connections, 2);
}

static void a_daemon_that_hangs_up_twice_means_it(void)
{
	unsigned int before = fake->n_requests;

	spoil = hang_up;
	hang_ups = 100;
	CU_ASSERT_EQUAL(dmaheap_alloc(dh, NULL, 4096, O_RDWR, 0), -ECONNRESET);
	CU_ASSERT_EQUAL(fake->n_requests, before + 3); /* one HELLO between */
}

static void a_daemon_that_stays_away_is_an_error_and_may_return(void)
{
	int fd;

	fake = fake_stop(fake);
	CU_ASSERT_EQUAL(dmaheap_alloc(dh, NULL, 1, O_RDWR, 0), -ECONNRESET);
	CU_ASSERT_EQUAL(dmaheap_alloc(dh, NULL, 1, O_RDWR, 0), -ECONNRESET);
	fake = fake_start("s", 2, hook, NULL);
	fd = dmaheap_alloc(dh, NULL, 1, O_RDWR, 0);
	CU_ASSERT(fd >= 0);
	close(fd);
}

static void *start_later(void *arg)
{
	(void)arg;
	usleep(60000);
	fake = fake_start("s", 2, hook, NULL);
	return NULL;
}

static void a_request_waits_for_the_next_daemon(void)
{
	pthread_t thread;
	int fd;

	dh->patience_ns = 30 * NSEC_PER_SEC;
	fake_stop(fake);
	pthread_create(&thread, NULL, start_later, NULL);
	fd = dmaheap_alloc(dh, NULL, 1, O_RDWR, 0);
	CU_ASSERT(fd >= 0);
	close(fd);
	pthread_join(thread, NULL);
}

/* Return: whether the child, which runs @child, said yes. */
static bool child_says(bool (*child)(void))
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		_exit(child() ? 0 : 1);
	return waitpid(pid, &status, 0) == pid && status == 0;
}

static bool alloc_in_child(void)
{
	alarm(20);
	return dmaheap_alloc(dh, NULL, 4096, O_RDWR, 0) >= 0;
}

static void a_forked_child_makes_its_own_connection(void)
{
	int fd;

	CU_ASSERT(child_says(alloc_in_child));
	CU_ASSERT_EQUAL(fake->n_connections, 2);
	fd = dmaheap_alloc(dh, NULL, 4096, O_RDWR, 0);
	CU_ASSERT(fd >= 0);
	close(fd);
	CU_ASSERT_EQUAL(fake->n_connections, 2); /* the parent kept its own */
}

static atomic_bool heard;

static void say_nothing_once(const struct fake_request *req,
			     struct fake_reply *reply, void *ctx)
{
	(void)req;
	(void)ctx;
	if (!heard) {
		reply->silent = true;
		heard = true;
	}
}

static void *alloc_in_thread(void *arg)
{
	*(int *)arg = dmaheap_alloc(dh, NULL, 4096, O_RDWR | O_CLOEXEC, 0);
	return NULL;
}

static void fork_works_while_another_thread_waits_for_a_reply(void)
{
	pthread_t thread;
	int fd = -1;

	heard = false;
	dh->patience_ns = 30 * NSEC_PER_SEC;
	spoil = say_nothing_once;
	pthread_create(&thread, NULL, alloc_in_thread, &fd);
	while (!heard)
		usleep(1000);
	CU_ASSERT(child_says(alloc_in_child));
	/* The waiting one is served by the next daemon. */
	restart(2);
	pthread_join(thread, NULL);
	CU_ASSERT(fd >= 0);
	close(fd);
}

#define N_THREADS 4
#define N_ROUNDS  100

static void *alloc_many_times(void *arg)
{
	unsigned int *failures = arg;

	for (unsigned int i = 0; i < N_ROUNDS; i++) {
		size_t len = 4096 * (1 + i % 7);
		struct stat st;
		int fd = dmaheap_alloc(dh, NULL, len, O_RDWR | O_CLOEXEC, 0);

		if (fd < 0 || fstat(fd, &st) < 0 || (size_t)st.st_size != len)
			++*failures;
		close(fd);
	}
	return NULL;
}

static void threads_share_a_handle(void)
{
	unsigned int failures[N_THREADS] = {0};
	pthread_t threads[N_THREADS];

	for (unsigned int i = 0; i < N_THREADS; i++)
		pthread_create(&threads[i], NULL, alloc_many_times,
			       &failures[i]);
	for (unsigned int i = 0; i < N_THREADS; i++) {
		pthread_join(threads[i], NULL);
		CU_ASSERT_EQUAL(failures[i], 0);
	}
	CU_ASSERT_EQUAL(fake->n_allocs, N_THREADS * N_ROUNDS);
}

static _Atomic uint32_t hello_bytes;
static _Atomic int32_t hello_status;

static void spoil_hello(const struct fake_request *req,
			struct fake_reply *reply, void *ctx)
{
	(void)ctx;
	if (req->header.opcode != DMAHEAP_OP_HELLO)
		return;
	reply->payload_bytes = hello_bytes;
	reply->header.payload_bytes = hello_bytes;
	reply->header.status = hello_status;
}

static void a_hello_that_is_none_is_refused(void)
{
	struct fake *odd = fake_start("odd", 3, spoil_hello, NULL);
	struct dmaheap *none = NULL;

	hello_bytes = 8;
	hello_status = 0;
	CU_ASSERT_EQUAL(dmaheap_connect(&none, odd->path), -EPROTO);
	hello_bytes = 0;
	hello_status = -EDQUOT;
	CU_ASSERT_EQUAL(dmaheap_connect(&none, odd->path), -EDQUOT);
	CU_ASSERT_PTR_NULL(none);
	fake_stop(odd);
}

int main(int argc, char **argv)
{
	CU_TestInfo tests[] = {
		{"the socket is searched in the documented order",
		 the_socket_is_searched_in_the_documented_order},
		{"what is no daemon is named by its error",
		 what_is_no_daemon_is_named_by_its_error},
		{"a foreign daemon is not used", a_foreign_daemon_is_not_used},
		{"the host's root is trusted at a chosen place alone",
		 the_hosts_root_is_trusted_at_a_chosen_place_alone},
		{"live buffers are handed to the next daemon, once each",
		 live_buffers_are_handed_to_the_next_daemon_once_each},
		{"nothing keeps a closed buffer alive",
		 nothing_keeps_a_closed_buffer_alive},
		{"more than 64 buffers take several requests",
		 more_than_64_buffers_take_several_requests},
		{"a buffer is not handed to another daemon",
		 a_buffer_is_not_handed_to_another_daemon},
		{"a bare mapping is handed over where the kernel lets us",
		 a_bare_mapping_is_handed_over_where_the_kernel_lets_us},
		{"a request is sent again after a hang-up",
		 a_request_is_sent_again_after_a_hang_up},
		{"a daemon that hangs up twice means it",
		 a_daemon_that_hangs_up_twice_means_it},
		{"a daemon that stays away is an error, and may return",
		 a_daemon_that_stays_away_is_an_error_and_may_return},
		{"a request waits for the next daemon",
		 a_request_waits_for_the_next_daemon},
		{"a forked child makes its own connection",
		 a_forked_child_makes_its_own_connection},
		{"fork works while another thread waits for a reply",
		 fork_works_while_another_thread_waits_for_a_reply},
		{"threads share a handle", threads_share_a_handle},
		{"a hello that is none is refused",
		 a_hello_that_is_none_is_refused},
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		{.pName = "reconnecting",
		 .pSetUpFunc = setup,
		 .pTearDownFunc = teardown,
		 .pTests = tests},
		CU_SUITE_INFO_NULL,
	};
	int r = t_main(argc, argv, suites);

	fake_dir_remove();
	return r;
}
