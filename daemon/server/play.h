/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Play: the steps of a scenario, done live to the daemon's node by timers. Its
 * allocations are blocks of the first heap without memory behind them: they
 * press on the node, not on the host.
 *
 * Only the common steps and those of the scenario's first table are played; its
 * node, profile and policy keys are for dmaheap-lab.
 *
 * Units:     the scenario's times pass on CLOCK_MONOTONIC.
 * Ownership: play_new() gives the caller the only reference; play_free() gives
 *            every block back.
 * Threads:   the loop's.
 */

#include "base/base.h"
#include "conf/ini.h"

struct play;
struct server;

/**
 * play_new() - start a scenario
 * @fd:   borrowed; a sealed memfd with its text
 * @over: called from the loop after the last step; may free the play
 *
 * Return: 0, SERVER_E_CONFIG with @err, -ENOMEM.
 */
int play_new(struct play **ret, struct server *server, int fd,
	     void (*over)(void *ctx), void *ctx, struct conf_error *err)
	_must_check_;

/* Return: NULL, always. @play may be NULL. */
struct play *play_free(struct play *play);
