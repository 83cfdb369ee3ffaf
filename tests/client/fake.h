/* SPDX-License-Identifier: MIT */
/*
 * A system for the client's error paths: one machine with one device, where
 * every call works but the ones that a test picks. It counts calls and what is
 * open, so that a test can make each call fail in turn and see that nothing
 * stays open.
 */
#ifndef TESTS_CLIENT_FAKE_H
#define TESTS_CLIENT_FAKE_H

#include "dmamap/client.h"

#define FAKE_BDF      "0000:00:03.0"
#define FAKE_APERTURE ((UINT64_C(1) << 39) - 1)

/* Chains that GET_INFO can give. */
enum fake_chain {
	FAKE_RANGES,
	FAKE_NO_RANGES,
	FAKE_LOOP,
	FAKE_TOO_MANY,
	FAKE_PAST_END, /* the next header is cut off by the end */
	FAKE_CUT,      /* the list of ranges has its header and no more */
};

/*
 * @path, @request: the open or the ioctl that fails with @error (negative);
 *	"" and 0: none
 * @nth: the call that fails with -EIO, counted from 1; 0: none
 * @driver, @group: what the device's links point to; NULL: no link
 * @cdev: the device's vfio-dev entry; NULL: none
 * @not_viable: the group's status
 * @reason: what the system's reason gives; kind NULL: it knows none
 * @calls: system calls so far; @ioctls: of these
 * @request_seen, @argument: the last ioctl, and the first bytes at its argument
 * @held: address of the last mmap
 */
struct fake {
	struct dmamap_system system;
	const char *path;
	unsigned long request;
	int error;
	unsigned nth;
	const char *driver;
	const char *group;
	const char *cdev;
	bool not_viable;
	bool mmap_fails;
	enum fake_chain chain;
	struct dmamap_reason reason;
	unsigned calls;
	unsigned ioctls;
	unsigned long request_seen;
	uint64_t argument[5];
	int opened;
	int open_now;
	void *held;
};

void fake_init(struct fake *fake);

#endif
