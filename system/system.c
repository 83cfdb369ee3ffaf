/* SPDX-License-Identifier: MIT */
/* What every system has in common: it is destroyed by its own table of operations. */
#include "dmamap/system.h"

void dmamap_system_destroy(struct dmamap_system *system)
{
	if (system)
		system->ops->destroy(system);
}
