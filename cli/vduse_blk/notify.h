/* SPDX-License-Identifier: MIT */
/* Telling a service manager how far the program is, as systemd's readiness protocol has it. */
#ifndef VDUSE_BLK_NOTIFY_H
#define VDUSE_BLK_NOTIFY_H

/** notify() - Send @state, such as "READY=1", to NOTIFY_SOCKET; nothing without one. */
void notify(const char *state);

#endif
