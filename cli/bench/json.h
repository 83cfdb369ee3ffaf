/* SPDX-License-Identifier: MIT */
/* The name and version of the JSON schema, for the writer and the reader. */
#ifndef BENCH_JSON_H
#define BENCH_JSON_H

#define JSON_SCHEMA  "dmamap-bench"
#define JSON_VERSION 1

#endif
