/* SPDX-License-Identifier: MIT */
/* Comma-separated values: a line for each run, the same columns in each. */
#include <inttypes.h>

#include "print.h"

void vduse_print_csv(FILE *out, const struct vduse_report *report)
{
	const struct vduse_options *options = report->options;
	char **command;

	fputs("page_size,granule,unit_size,jobs,depth,op,size,bounce_size,delay_ns,queues,run,"
	      "requests,bytes,nanoseconds,failed,verified,mismatches,p50_ns,p90_ns,p99_ns,p999_ns,"
	      "max_ns,units_most,units_needed,units,fast,slow,flushes,requeued,ring_full,pages,"
	      "kicks,interrupts,copied_to_device,copied_from_device,cpu_ns,"
	      "cpu_requests,disk,command\n",
		out);
	for (unsigned i = 0; i < report->n_rows; i++) {
		const struct vduse_row *row = &report->rows[i];

		command = row->disk->command;
		for (unsigned r = 0; r < row->n; r++) {
			const struct vduse_run *run = &row->runs[r];
			const uint64_t numbers[] = {options->size, options->bounce,
				options->delay_ns, row->disk->queues, r, run->result.requests,
				run->result.bytes, run->result.nanoseconds, run->result.failed,
				run->result.verified, run->result.mismatches,
				run->result.latency.p50, run->result.latency.p90,
				run->result.latency.p99, run->result.latency.p999,
				run->result.latency.most, run->most_units, vduse_row_needed(row),
				row->units, run->bounce.fast, run->bounce.slow, run->bounce.flushes,
				run->driver.requeued, run->driver.ring_full, run->bounce.pages,
				run->driver.kicks, run->driver.interrupts, run->bounce.to_device,
				run->bounce.from_device, run->cpu_ns, run->cpu_requests,
				(uint64_t)(row->disk - report->disks)};

			fprintf(out, "%u,%s,%u,%u,%u,%s", 1u << row->page_shift,
				vduse_row_granule(row), 1u << row->unit_shift, row->shape.jobs,
				row->shape.depth, options->reads ? "read" : "write");
			for (size_t n = 0; n < sizeof(numbers) / sizeof(numbers[0]); n++)
				fprintf(out, ",%" PRIu64, numbers[n]);
			fputs(command ? ",\"" : ",", out);
			if (command)
				vduse_print_words(out, command, '"');
			fputs(command ? "\"\n" : "\n", out);
		}
	}
}
