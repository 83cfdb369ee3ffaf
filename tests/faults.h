/* SPDX-License-Identifier: MIT */
/*
 * Memory that runs out: a test does the same calls again and again, with the
 * n-th allocation of its own thread failing, until none fails. A program that
 * links faults.c is linked with faults_link (meson.build), so that every
 * allocation of what it tests comes by there.
 */
#ifndef TESTS_FAULTS_H
#define TESTS_FAULTS_H

#include <stdbool.h>

/* Counts down to the allocation that fails; 0: none does. */
extern _Thread_local unsigned fail_nth;
/* It did. */
extern _Thread_local bool failed;

#endif
