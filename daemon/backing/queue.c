/* SPDX-License-Identifier: MIT */
#include "backing/queue.h"

/*
 * lanes (one per user with work) -> flows (one per client with work) -> jobs.
 * Serving a job moves its flow behind its lane's others and its lane behind
 * the other lanes; whatever runs empty is free again at once, so the lists are
 * as long as there are users and clients that wait.
 */

void queue_init(struct queue *q)
{
	list_init(&q->lanes);
	q->n_jobs = 0;
	list_init(&q->free_lanes);
	list_init(&q->free_flows);
	for (unsigned int i = 0; i <= QUEUE_LANES; i++) {
		list_init(&q->lane[i].flows);
		list_init(&q->lane[i].link);
		if (i < QUEUE_LANES)
			list_add_tail(&q->free_lanes, &q->lane[i].link);
	}
	for (unsigned int i = 0; i <= QUEUE_FLOWS; i++) {
		list_init(&q->flow[i].jobs);
		list_init(&q->flow[i].link);
		if (i < QUEUE_FLOWS)
			list_add_tail(&q->free_flows, &q->flow[i].link);
	}
}

void queue_fini(struct queue *q)
{
	assert(q->n_jobs == 0 && list_is_empty(&q->lanes));
	(void)q;
}

static struct queue_flow *common_flow(struct queue *q)
{
	struct queue_lane *lane = &q->lane[QUEUE_LANES];
	struct queue_flow *flow = &q->flow[QUEUE_FLOWS];

	if (list_is_empty(&lane->flows))
		list_add_tail(&lane->flows, &flow->link);
	if (list_is_empty(&lane->link))
		list_add_tail(&q->lanes, &lane->link);
	return flow;
}

/* Return: the lane of @uid, or NULL when there is none left. */
static struct queue_lane *lane_get(struct queue *q, uid_t uid)
{
	struct queue_lane *lane;
	struct list_node *node;

	list_for_each(pos, &q->lanes)
	{
		lane = list_entry(pos, struct queue_lane, link);
		if (lane->uid == uid && lane != &q->lane[QUEUE_LANES])
			return lane;
	}
	node = list_first(&q->free_lanes);
	if (!node)
		return NULL;
	lane = list_entry(node, struct queue_lane, link);
	lane->uid = uid;
	list_remove(&lane->link);
	list_add_tail(&q->lanes, &lane->link);
	return lane;
}

static void lane_put(struct queue *q, struct queue_lane *lane)
{
	if (!list_is_empty(&lane->flows))
		return;
	list_remove(&lane->link);
	if (lane != &q->lane[QUEUE_LANES])
		list_add_head(&q->free_lanes, &lane->link);
}

static struct queue_flow *flow_get(struct queue *q, const struct job *job)
{
	struct queue_lane *lane = lane_get(q, job->uid);
	struct queue_flow *flow;
	struct list_node *node;

	if (!lane)
		return common_flow(q);
	list_for_each(pos, &lane->flows)
	{
		flow = list_entry(pos, struct queue_flow, link);
		if (flow->client == job->client)
			return flow;
	}
	node = list_first(&q->free_flows);
	if (!node) {
		lane_put(q, lane);
		return common_flow(q);
	}
	flow = list_entry(node, struct queue_flow, link);
	flow->client = job->client;
	list_remove(&flow->link);
	list_add_tail(&lane->flows, &flow->link);
	return flow;
}

static void flow_put(struct queue *q, struct queue_flow *flow)
{
	list_remove(&flow->link);
	if (flow != &q->flow[QUEUE_FLOWS])
		list_add_head(&q->free_flows, &flow->link);
}

void queue_push(struct queue *q, struct job *job)
{
	list_add_tail(&flow_get(q, job)->jobs, &job->link);
	q->n_jobs++;
}

void queue_push_back(struct queue *q, struct job *job)
{
	list_add_head(&flow_get(q, job)->jobs, &job->link);
	q->n_jobs++;
}

struct job *queue_pop(struct queue *q)
{
	struct queue_lane *lane;
	struct queue_flow *flow;
	struct job *job;

	if (list_is_empty(&q->lanes))
		return NULL;
	lane = list_entry(list_first(&q->lanes), struct queue_lane, link);
	flow = list_entry(list_first(&lane->flows), struct queue_flow, link);
	job = list_entry(list_first(&flow->jobs), struct job, link);

	list_remove(&job->link);
	q->n_jobs--;
	list_remove(&flow->link);
	list_add_tail(&lane->flows, &flow->link);
	list_remove(&lane->link);
	list_add_tail(&q->lanes, &lane->link);
	if (list_is_empty(&flow->jobs))
		flow_put(q, flow);
	lane_put(q, lane);
	return job;
}
