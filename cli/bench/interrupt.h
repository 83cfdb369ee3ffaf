/* SPDX-License-Identifier: MIT */
/*
 * Ctrl-C and its like. The first asks for an end: what is under way is
 * finished and what is complete is printed. The second ends at once.
 */
#ifndef BENCH_INTERRUPT_H
#define BENCH_INTERRUPT_H

/**
 * interrupt_catch() - From now on SIGINT, SIGTERM and SIGHUP do that.
 * @clean: called before the end at once, in the signal's handler
 */
void interrupt_catch(void (*clean)(void));
/** interrupt_signal() - Which signal came; 0: none. */
int interrupt_signal(void);

#endif
