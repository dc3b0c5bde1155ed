/* SPDX-License-Identifier: MIT */
#include "contract.h"

#include <dirent.h>

static void entries(const char *path)
{
	struct dirent **entry;
	char text[256] = "", full[512];
	struct stat st;
	int n = scandir(path, &entry, NULL, alphasort), shown = 0;

	for (int i = 0; i < n; i++) {
		if (entry[i]->d_name[0] != '.') {
			snprintf(full, sizeof(full), "%s/%s", path,
				 entry[i]->d_name);
			stat(full, &st);
			snprintf(text + strlen(text),
				 sizeof(text) - strlen(text), " %s(0%o)",
				 entry[i]->d_name, st.st_mode & 07777);
			shown++;
		}
		free(entry[i]);
	}
	if (n < 0)
		line("sysfs.entries", "%s", res_errno(errno));
	else
		line("sysfs.entries", "%d:%s", shown, text);
}

static void attribute(const char *directory, const char *what)
{
	char path[256], name[64];

	snprintf(path, sizeof(path), "%s/%s", directory, what);
	snprintf(name, sizeof(name), "sysfs.%s", what);
	file_lines(name, path);
}

static int count_entries(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	int n = 0;

	while (dir && (entry = readdir(dir)))
		n += entry->d_name[0] != '.';
	if (dir)
		closedir(dir);
	return n;
}

/* Tabs as '>', the inode numbers by their order: the
 * first buffer is 0, any later one 1. */
static void bufinfo(ino_t smallest)
{
	FILE *file = fopen("/sys/kernel/debug/dma_buf/bufinfo", "re");
	char text[512], *ino, *at;

	if (!file) {
		line("bufinfo", "%s", res_errno(errno));
		return;
	}
	while (fgets(text, sizeof(text), file)) {
		text[strcspn(text, "\n")] = '\0';
		for (at = text; (at = strchr(at, '\t'));)
			*at = '>';
		ino = strstr(text, ">system>");
		if (ino) {
			unsigned long n = strtoul(ino + 8, &at, 10);

			line("bufinfo", "|%.*s#INO%04lu%s|",
			     (int)(ino + 8 - text), text,
			     n == smallest ? 0ul : 1ul, at);
		} else {
			line("bufinfo", "|%s|", text);
		}
	}
	fclose(file);
}

static void lifetime(const char *path, int fd)
{
	void *at = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);

	close(fd);
	line("sysfs.fd-closed-mapping-lives", "%s",
	     access(path, F_OK) ? res_errno(errno) : "still there");
	munmap(at, PAGE);
	line("sysfs.after-munmap", "%s", res(access(path, F_OK)));
}

void walk_sysfs(void)
{
	int fd = buf_alloc(4 * PAGE, O_RDWR | O_CLOEXEC), second;
	char path[128];
	struct stat st;

	fstat(fd, &st);
	snprintf(path, sizeof(path), "/sys/kernel/dmabuf/buffers/%llu",
		 (unsigned long long)st.st_ino);
	entries(path);
	attribute(path, "exporter_name");
	attribute(path, "size");
	second = buf_alloc(1 << 20, O_RDWR | O_CLOEXEC);
	buf_set_name(second, "probename");
	line("sysfs.buffers.count", "%d",
	     count_entries("/sys/kernel/dmabuf/buffers"));
	bufinfo(st.st_ino);
	close(second);
	lifetime(path, fd);
	fd = buf_alloc(4 * PAGE, O_RDWR | O_CLOEXEC);
	fstat(fd, &st);
	snprintf(path, sizeof(path), "/sys/kernel/dmabuf/buffers/%llu",
		 (unsigned long long)st.st_ino);
	close(fd);
	line("sysfs.gone-after-close", "%s", res(access(path, F_OK)));
}
