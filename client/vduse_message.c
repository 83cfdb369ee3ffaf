/* SPDX-License-Identifier: MIT */
/*
 * VDUSE's messages: what the kernel asks, and the answer. Each has to be
 * answered, within the kernel's patience, or the device is broken for good; one
 * that is not understood is refused.
 */
#include <errno.h>
#include <string.h>

#include "abi/virtio.h"
#include "client/vduse.h"

static const struct {
	uint32_t kernel;
	enum dmamap_vduse_type type;
} types[] = {
	{VDUSE_GET_VQ_STATE, DMAMAP_VDUSE_QUEUE_STATE},
	{VDUSE_SET_STATUS, DMAMAP_VDUSE_STATUS},
	{VDUSE_UPDATE_IOTLB, DMAMAP_VDUSE_IOTLB},
};

int dmamap_vduse_decode(
	const void *bytes, size_t size, uint32_t n_queues, struct dmamap_vduse_message *message)
{
	struct vduse_dev_request request;

	if (size < sizeof(request))
		return -EBADMSG;
	memcpy(&request, bytes, sizeof(request));
	*message = (struct dmamap_vduse_message){
		.type = DMAMAP_VDUSE_UNKNOWN, .id = request.request_id};
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (types[i].kernel == request.type)
			message->type = types[i].type;
	switch (message->type) {
	case DMAMAP_VDUSE_QUEUE_STATE:
		message->queue = request.vq_state.index;
		if (message->queue >= n_queues)
			message->type = DMAMAP_VDUSE_UNKNOWN;
		break;
	case DMAMAP_VDUSE_STATUS:
		message->status = request.s.status;
		break;
	case DMAMAP_VDUSE_IOTLB:
		message->first = request.iova.start;
		message->last = request.iova.last;
		if (message->first > message->last)
			message->type = DMAMAP_VDUSE_UNKNOWN;
		break;
	case DMAMAP_VDUSE_UNKNOWN:
		break;
	}
	return 0;
}

int dmamap_vduse_receive(struct dmamap_vduse *vduse, struct dmamap_vduse_message *message)
{
	struct vduse_dev_request request;
	ssize_t n =
		vduse->system->ops->read(vduse->system, vduse->device, &request, sizeof(request));

	if (n < 0)
		return (int)n;
	return dmamap_vduse_decode(&request, (size_t)n, vduse->n_queues, message);
}

int dmamap_vduse_reply(
	struct dmamap_vduse *vduse, const struct dmamap_vduse_message *message, bool done)
{
	struct vduse_dev_response response = {
		.request_id = message->id,
		.result = done ? VDUSE_REQ_RESULT_OK : VDUSE_REQ_RESULT_FAILED,
	};
	uint64_t features = 0;
	ssize_t n;

	if (message->type == DMAMAP_VDUSE_QUEUE_STATE) {
		response.vq_state.index = message->queue;
		dmamap_vduse_features(vduse, &features);
		if (features >> VIRTIO_F_RING_PACKED & 1) {
			response.vq_state.packed.last_avail_idx = message->available & 0x7fff;
			response.vq_state.packed.last_avail_counter = message->available >> 15;
			response.vq_state.packed.last_used_idx = message->used & 0x7fff;
			response.vq_state.packed.last_used_counter = message->used >> 15;
		} else {
			response.vq_state.split.avail_index = message->available;
		}
	}
	n = vduse->system->ops->write(vduse->system, vduse->device, &response, sizeof(response));
	return n < 0 ? (int)n : 0;
}
