/* SPDX-License-Identifier: MIT */
/* What is printed while a case runs: text for people, JSON, or diagnostics of TAP. */
#ifndef REPLAY_REPORT_H
#define REPLAY_REPORT_H

#include "run.h"

#define FAILURES_MAX 8

/** struct finding - One thing that is wrong with a call. */
struct finding {
	bool disagree; /**< the two systems differ; else an expectation fails */
	char text[300];
};

struct report;

struct report *report_create(struct replay *replay, FILE *out);
void report_destroy(struct report *report);
/** report_call() - A call and what came of it. */
void report_call(struct report *report, const struct case_statement *statement,
	struct outcome *outcome, const struct finding *findings, unsigned n);
/** report_end() - The case's verdict. */
void report_end(struct report *report);

/** report_json_text() - A string as JSON has it. */
void report_json_text(FILE *out, const char *text);

#endif
