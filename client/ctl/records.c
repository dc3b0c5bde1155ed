/* SPDX-License-Identifier: MIT */
#include "ctl/records.h"

#include <stdlib.h>
#include <string.h>

bool records_unpack(const void *bytes, size_t n_bytes, size_t n,
		    size_t record_bytes, size_t size, void *to)
{
	size_t copied = record_bytes < size ? record_bytes : size;

	if (n > 0 && (record_bytes == 0 || n > n_bytes / record_bytes))
		return false;
	for (size_t i = 0; i < n; i++) {
		char *record = (char *)to + i * size;

		memcpy(record, (const char *)bytes + i * record_bytes, copied);
		memset(record + copied, 0, size - copied);
	}
	return true;
}

int records_fetch(struct ctl *ctl, const char *what,
		  struct dmaheap_message *msg, size_t size, void **ret,
		  size_t *ret_n)
{
	_Alignas(8) char reply[DMAHEAP_MESSAGE_MAX_BYTES];
	const struct dmaheap_records_reply *head = (const void *)reply;
	void *records;

	msg->reply = reply;
	msg->reply_capacity_bytes = sizeof(reply);
	if (ctl_call(ctl, what, msg))
		return CTL_FAILED;
	if (msg->reply_bytes < sizeof(*head) ||
	    head->n_records > DMAHEAP_MESSAGE_MAX_BYTES)
		return ctl_fail("%s: the daemon's answer makes no sense", what);
	records = calloc(head->n_records + 1, size);
	if (!records)
		return ctl_fail("%s: out of memory", what);
	if (!records_unpack(head + 1, msg->reply_bytes - sizeof(*head),
			    head->n_records, head->record_bytes, size,
			    records)) {
		free(records);
		return ctl_fail("%s: the daemon's answer makes no sense", what);
	}
	*ret = records;
	*ret_n = head->n_records;
	return CTL_OK;
}
