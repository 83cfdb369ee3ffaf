/* SPDX-License-Identifier: MIT */
/* All of dmamap's public headers. */
#ifndef DMAMAP_H
#define DMAMAP_H

#include "bounce.h"
#include "client.h"
#include "common.h"
#include "engine.h"
#include "machine.h"
#include "soft.h"
#include "system.h"
#include "vdpa.h"
#include "vduse_client.h"
#include "virtqueue.h"

#endif
