/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What the benchmarks share: samples and their quantiles, pinning, a table.
 *
 * Units:     *_ns.
 * Ownership: samples_fini() frees.
 * Threads:   no shared state.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct samples {
	uint64_t *ns;
	size_t n;
	size_t capacity;
};

/* Ends the program when memory is short. */
void samples_init(struct samples *s, size_t capacity);
void samples_fini(struct samples *s);

/* Beyond the capacity samples are dropped. */
void samples_add(struct samples *s, uint64_t ns);

/* Return: the smallest sample that @permille of all do not exceed; sorts. */
uint64_t samples_quantile(struct samples *s, unsigned int permille);

uint64_t bench_now_ns(void);

/* Pins a thread, 0: the calling one. Return: false if it cannot be. */
bool bench_pin(pid_t tid, unsigned int cpu);

/* Pins the first thread of @pid to @cpu and its others to @others. */
void bench_pin_process(pid_t pid, unsigned int cpu, unsigned int others);

/* Return: how many CPUs this process may use. */
unsigned int bench_n_cpus(void);

/**
 * bench_ratio() - one line of the result: a, b, a / b and what it should be
 * @at_most: whether @target is an upper or a lower bound
 *
 * Return: whether the target is met.
 */
bool bench_ratio(const char *what, double a, double b, const char *unit,
		 bool at_most, double target);

_Noreturn void bench_fail(const char *what);
