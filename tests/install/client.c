/* SPDX-License-Identifier: MIT */
/* A program outside the tree: opens a device of the soft system and maps memory. */
#include <dmamap/dmamap.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define LENGTH (1 << 20)

int main(void)
{
	const struct dmamap_mode *mode = dmamap_mode_find("vfio_type1v2_iommu");
	struct dmamap_system *system = NULL;
	struct dmamap_client *client = NULL;
	struct dmamap_access *access = NULL;
	struct dmamap_reason why = {0};
	uint64_t unmapped = 0;
	char bdf[16], text[200] = "", byte = 0;
	char *ram = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (ram == MAP_FAILED)
		return 1;
	ram[LENGTH - 1] = 'x';
	if (!mode || dmamap_system_soft(NULL, &system, &why) || dmamap_client_device(system, bdf) ||
		dmamap_client_open(system, mode, bdf, &client, &why) ||
		dmamap_client_map(client, ram, LENGTH, 0, DMAMAP_READ, &why) ||
		dmamap_soft_access(system, dmamap_client_device_fd(client), &access) ||
		dmamap_read(access, LENGTH - 1, &byte, 1, &why)) {
		dmamap_reason_format(&why, text, sizeof(text));
		printf("refused: %s\n", text);
		return 1;
	}
	dmamap_access_destroy(access);
	if (dmamap_client_unmap(client, 0, LENGTH, &unmapped, &why) || unmapped != LENGTH)
		return 1;
	dmamap_client_close(client);
	dmamap_system_destroy(system);
	printf("dmamap %s: %s\n", dmamap_version(), byte == 'x' ? "the same" : "different");
	return strcmp(dmamap_version(), DMAMAP_VERSION) != 0;
}
