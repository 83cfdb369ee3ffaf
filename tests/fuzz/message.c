/* SPDX-License-Identifier: MIT */
/*
 * libFuzzer's target for VDUSE's messages: whatever the bytes, a message that
 * is understood names a queue that exists and a range that is one.
 */
#include <stdint.h>
#include <stdlib.h>

#include "dmamap/vduse_client.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define QUEUES 4u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct dmamap_vduse_message message;

	if (dmamap_vduse_decode(data, size, QUEUES, &message))
		return 0;
	switch (message.type) {
	case DMAMAP_VDUSE_QUEUE_STATE:
		if (message.queue >= QUEUES)
			abort();
		break;
	case DMAMAP_VDUSE_IOTLB:
		if (message.first > message.last)
			abort();
		break;
	case DMAMAP_VDUSE_STATUS:
	case DMAMAP_VDUSE_UNKNOWN:
		break;
	}
	return 0;
}
