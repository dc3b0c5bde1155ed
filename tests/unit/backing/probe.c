/* SPDX-License-Identifier: MIT */
#include "backing/probe.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "support/faults.h"
#include "support/test.h"

static struct probe_fact facts[PROBE_FACTS_MAX];
static unsigned int n_facts;

static const struct probe_fact *find(const char *name)
{
	for (unsigned int i = 0; i < n_facts; i++)
		if (strcmp(facts[i].name, name) == 0)
			return &facts[i];
	return NULL;
}

static void every_fact_is_there_and_each_lack_is_explained(void)
{
	static const char *const names[] = {
		"plain",          "collapse",  "folio",  "hugetlb",
		"leases",         "inotify",   "memory", "open-files",
		"memlock",        "file-size", "psi",    "overcommit",
		"seccomp-notify",
	};

	n_facts = backing_probe(facts, 0x111);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		CU_ASSERT_PTR_NOT_NULL(find(names[i]));
	for (unsigned int i = 0; i < n_facts; i++) {
		CU_ASSERT_NOT_EQUAL(facts[i].value[0], '\0');
		CU_ASSERT_EQUAL(facts[i].ok, facts[i].consequence[0] == '\0');
	}
	CU_ASSERT_TRUE(find("plain")->ok);
}

static void what_is_taken_away_is_missed(void)
{
	faults_arm(FAULT_LEASE, 0, 1000, EACCES);
	n_facts = backing_probe(facts, 0x111);
	CU_ASSERT_FALSE(find("leases")->ok);
	CU_ASSERT_PTR_NOT_NULL(strstr(find("leases")->command, "leases"));
	faults_clear();
	faults_arm(FAULT_INOTIFY_INIT1, 0, 1000, EMFILE);
	n_facts = backing_probe(facts, 0x111);
	CU_ASSERT_TRUE(find("leases")->ok);
	CU_ASSERT_FALSE(find("inotify")->ok);
	faults_clear();
	faults_arm(FAULT_MADVISE, 0, 1000, EINVAL);
	n_facts = backing_probe(facts, 0x111);
	CU_ASSERT_FALSE(find("collapse")->ok);
	CU_ASSERT_FALSE(find("folio")->ok);
	CU_ASSERT_STRING_EQUAL(find("folio")->kernel, "6.11");
	faults_clear();
	faults_arm(FAULT_MEMFD_CREATE, 0, 1000, EMFILE);
	n_facts = backing_probe(facts, 0x111);
	CU_ASSERT_FALSE(find("plain")->ok);
	faults_clear();
	faults_arm(FAULT_EVENTFD, 0, 1000, EMFILE);
	n_facts = backing_probe(facts, 0x111);
	CU_ASSERT_FALSE(find("psi")->ok);
	faults_clear();
}

int main(int argc, char **argv)
{
	CU_TestInfo tests[] = {
		{"every fact is there and each lack is explained",
		 every_fact_is_there_and_each_lack_is_explained},
		{"what is taken away is missed", what_is_taken_away_is_missed},
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		{.pName = "probe", .pTests = tests},
		CU_SUITE_INFO_NULL,
	};

	return t_main(argc, argv, suites);
}
