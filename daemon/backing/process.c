/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "backing/backing.h"
#include "base/fd.h"

static void ignore_signal(int number)
{
	struct sigaction action = {.sa_handler = SIG_IGN};

	sigemptyset(&action.sa_mask);
	(void)sigaction(number, &action, NULL);
}

void backing_process_setup(void)
{
	static const char score[] = "-500";
	struct rlimit limit;
	int fd;

	ignore_signal(SIGIO);
	ignore_signal(SIGXFSZ);
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &limit);
	}
	/* The buffers of all clients hang on this process. Lowering needs
	 * CAP_SYS_RESOURCE; without it the score stays as it is. */
	fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	if (fd >= 0)
		(void)!write(fd, score, sizeof(score) - 1);
	fd_close(fd);
}
