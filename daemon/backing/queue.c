/* SPDX-License-Identifier: MIT */
#include "backing/queue.h"

#include <stdlib.h>

/*
 * lanes (one per user with work) -> flows (one per client with work) -> jobs.
 * Serving a job moves its flow behind its lane's others and its lane behind
 * the other lanes; whatever runs empty is freed at once, so the lists are as
 * long as there are users and clients that wait.
 */

void queue_init(struct queue *q)
{
	list_init(&q->lanes);
	q->n_jobs = 0;
	list_init(&q->common_lane.link);
	list_init(&q->common_lane.flows);
	list_init(&q->common_flow.link);
	list_init(&q->common_flow.jobs);
}

void queue_fini(struct queue *q)
{
	assert(q->n_jobs == 0 && list_is_empty(&q->lanes));
	(void)q;
}

static struct queue_flow *flow_of_common(struct queue *q)
{
	struct queue_lane *lane = &q->common_lane;
	struct queue_flow *flow = &q->common_flow;

	if (list_is_empty(&lane->flows))
		list_add_tail(&lane->flows, &flow->link);
	if (list_is_empty(&lane->link))
		list_add_tail(&q->lanes, &lane->link);
	return flow;
}

static struct queue_lane *lane_get(struct queue *q, uid_t uid)
{
	struct queue_lane *lane;

	list_for_each(pos, &q->lanes)
	{
		lane = list_entry(pos, struct queue_lane, link);
		if (lane->uid == uid && lane != &q->common_lane)
			return lane;
	}
	lane = malloc(sizeof(*lane));
	if (!lane)
		return NULL;
	lane->uid = uid;
	list_init(&lane->flows);
	list_add_tail(&q->lanes, &lane->link);
	return lane;
}

static void lane_put(struct queue *q, struct queue_lane *lane)
{
	if (!list_is_empty(&lane->flows))
		return;
	list_remove(&lane->link);
	if (lane != &q->common_lane)
		free(lane);
}

static struct queue_flow *flow_get(struct queue *q, const struct job *job)
{
	struct queue_lane *lane = lane_get(q, job->uid);
	struct queue_flow *flow;

	if (!lane)
		return flow_of_common(q);
	list_for_each(pos, &lane->flows)
	{
		flow = list_entry(pos, struct queue_flow, link);
		if (flow->client == job->client)
			return flow;
	}
	flow = malloc(sizeof(*flow));
	if (!flow) {
		lane_put(q, lane);
		return flow_of_common(q);
	}
	flow->client = job->client;
	list_init(&flow->jobs);
	list_add_tail(&lane->flows, &flow->link);
	return flow;
}

static void flow_put(struct queue *q, struct queue_flow *flow)
{
	list_remove(&flow->link);
	if (flow != &q->common_flow)
		free(flow);
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
