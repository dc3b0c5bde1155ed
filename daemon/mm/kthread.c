/* SPDX-License-Identifier: MIT */
#include "mm/kthread.h"

void kthread_init(struct node *node)
{
	unsigned int cpu = node->n_cpus - 1;

	*node->kswapd = (struct kswapd){
		.task = {.cpu = cpu,
			 .is_kthread = true,
			 .captured_pfn = NO_PFN},
	};
	*node->kcompactd = (struct kcompactd){
		.task = {.cpu = cpu,
			 .is_kthread = true,
			 .captured_pfn = NO_PFN},
		.highest_zone = node->n_zones - 1,
		.proactive_at_ns = node->params.compaction_proactiveness
					   ? 500 * NSEC_PER_MSEC
					   : UINT64_MAX,
	};
	node->next_work_ns = node->kcompactd->proactive_at_ns;
}

void node_run_threads_slow(struct node *node, uint64_t now_ns)
{
	if (node->advancing)
		return;
	node->advancing = true;
	for (;;) {
		uint64_t swap = kswapd_due_ns(node);
		uint64_t compact = kcompactd_due_ns(node);

		node->next_work_ns = MIN(swap, compact);
		if (node->next_work_ns > now_ns)
			break;
		if (swap <= compact)
			kswapd_step(node);
		else
			kcompactd_step(node);
	}
	node->advancing = false;
}
