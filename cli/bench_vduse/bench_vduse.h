/* SPDX-License-Identifier: MIT */
/* dmamap bench vduse: what dmamap bench hands over to. */
#ifndef BENCH_VDUSE_BENCH_VDUSE_H
#define BENCH_VDUSE_BENCH_VDUSE_H

/** bench_vduse_command() - @argv[0] is "vduse". Return: the exit status. */
int bench_vduse_command(int argc, char **argv);

#endif
