/* SPDX-License-Identifier: MIT */
/*
 * The signals that end the daemon: SIGINT, SIGTERM, SIGHUP. The first one shows
 * at a descriptor, so that all that was begun is done; a second SIGINT or SIGTERM,
 * 300 ms after stop_release() or later, ends the process at once.
 */
#ifndef CLI_VDUSE_BLK_STOP_H
#define CLI_VDUSE_BLK_STOP_H

/** stop_catch() - Before there are threads, so that none of them takes the signals.
 * Return: a descriptor that can be read when one came; -errno. */
int stop_catch(void);
/** stop_release() - Takes the first signal out, which would else be delivered here, and lets
 * others through. @fd: of stop_catch(), or -1. */
void stop_release(int fd);

#endif
