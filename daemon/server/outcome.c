/* SPDX-License-Identifier: MIT */
#include "server/outcome.h"

#include <errno.h>

#include "backing/backing.h"
#include "heap/system_heap.h"
#include "server/quota.h"

static const int heap_errnos[] = {
	[HEAP_E_NO_MEMORY] = ENOMEM,  [HEAP_E_TOO_LARGE] = ENOMEM,
	[HEAP_E_NOT_PARKED] = EAGAIN, [HEAP_E_EXISTS] = EEXIST,
	[HEAP_E_BAD_NAME] = EINVAL,   [HEAP_E_COMPOSITION] = EINVAL,
};

static const int backing_errnos[] = {
	[BACKING_E_BUDGET] = ENOMEM,    [BACKING_E_FDS] = ENFILE,
	[BACKING_E_FILE_SIZE] = ENOMEM, [BACKING_E_BUSY] = EAGAIN,
	[BACKING_E_FOREIGN] = EPERM,    [BACKING_E_KNOWN] = EEXIST,
	[BACKING_E_BROKEN] = EAGAIN,
};

static const int quota_errnos[] = {
	[QUOTA_E_EXCEEDED] = EDQUOT,
};

static const int server_errnos[] = {
	[SERVER_E_FIELD] = EINVAL,     [SERVER_E_NO_HEAP] = ENOENT,
	[SERVER_E_NOT_ADMIN] = EPERM,  [SERVER_E_NOT_BUFFER] = ENOTTY,
	[SERVER_E_NO_BUFFER] = ENOENT, [SERVER_E_TOO_LARGE] = ENOMEM,
	[SERVER_E_BUSY] = EBUSY,       [SERVER_E_DRAINING] = ESHUTDOWN,
	[SERVER_E_CONFIG] = EINVAL,    [SERVER_E_UNSUPPORTED] = EOPNOTSUPP,
	[SERVER_E_NO_FD] = ENFILE,
};

static const struct {
	const int *errnos;
	size_t n;
} tables[] = {
	[OUTCOME_OF_HEAP] = {heap_errnos, ARRAY_SIZE(heap_errnos)},
	[OUTCOME_OF_BACKING] = {backing_errnos, ARRAY_SIZE(backing_errnos)},
	[OUTCOME_OF_QUOTA] = {quota_errnos, ARRAY_SIZE(quota_errnos)},
	[OUTCOME_OF_SERVER] = {server_errnos, ARRAY_SIZE(server_errnos)},
};

int outcome_errno(enum outcome_of of, int r)
{
	if (r < 0)
		return -r;
	assert(r > 0 && (size_t)r < tables[of].n && tables[of].errnos[r]);
	return tables[of].errnos[r];
}
