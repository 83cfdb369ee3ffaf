/* SPDX-License-Identifier: MIT */
/*
 * Groups join and leave a type1 container. A group that no domain can serve
 * makes one more, which is filled with all that is mapped. What IOVAs may be
 * mapped is a list of ranges: the aperture that all domains share, without the
 * windows of all groups. A group whose aperture or windows collide with a
 * mapping may not join.
 *
 * The list is changed by the steps of drivers/vfio/vfio_iommu_type1.c, since
 * they show: when a group leaves, only the two ends of the list move, and only
 * when a domain goes with it. A window that had cut off an end of the aperture
 * stays away as long as that domain lives.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "soft/type1.h"

/* The devices of a group have one IOMMU; the machine sees to that. */
static const struct dmamap_machine_iommu *group_iommu(const struct soft_group *group)
{
	const struct soft_system *system = group->system;
	size_t i = 0;

	while (system->devices[i].group != group)
		i++;
	return soft_device_iommu(&system->devices[i]);
}

static uint64_t aperture_last(const struct dmamap_machine_iommu *iommu)
{
	return iommu->aperture_bits < 64 ? (1ULL << iommu->aperture_bits) - 1 : UINT64_MAX;
}

/* ------------------------------------------------------- the usable ranges */

struct ranges {
	struct dmamap_range *list;
	size_t n, room;
};

static int add(struct ranges *ranges, uint64_t first, uint64_t last)
{
	if (ranges->n == ranges->room) {
		size_t room = ranges->room ? 2 * ranges->room : 8;
		struct dmamap_range *list = realloc(ranges->list, room * sizeof(*list));

		if (!list)
			return SOFT_REFUSE(no_memory, ENOMEM, "usable ranges", 0);
		ranges->list = list;
		ranges->room = room;
	}
	ranges->list[ranges->n++] = (struct dmamap_range){first, last};
	return 0;
}

/* What is left of the ranges up to @last: vfio_iommu_aper_resize(), whose apertures start at 0. */
static int resize(struct ranges *ranges, uint64_t last)
{
	size_t kept = 0;

	if (!ranges->n)
		return add(ranges, 0, last);
	for (size_t i = 0; i < ranges->n; i++) {
		struct dmamap_range *range = &ranges->list[i];

		if (last <= range->first)
			continue;
		if (last < range->last)
			range->last = last;
		ranges->list[kept++] = *range;
	}
	ranges->n = kept;
	return 0;
}

/* Take one IOMMU's windows out of the ranges: vfio_iommu_resv_exclude(). */
static int exclude(struct ranges *ranges, const struct dmamap_machine_iommu *iommu)
{
	int error = 0;

	for (size_t w = 0; w < iommu->n_windows && !error; w++) {
		const struct dmamap_machine_window *window = &iommu->windows[w];
		struct ranges left = {0};

		for (size_t i = 0; i < ranges->n && !error; i++) {
			const struct dmamap_range *range = &ranges->list[i];

			if (window->first > range->last || window->last < range->first) {
				error = add(&left, range->first, range->last);
				continue;
			}
			if (window->first > range->first)
				error = add(&left, range->first, window->first - 1);
			if (!error && window->last < range->last)
				error = add(&left, window->last + 1, range->last);
		}
		free(ranges->list);
		*ranges = left;
	}
	return error;
}

static int copy_usable(const struct soft_type1 *type1, struct ranges *copy)
{
	int error = 0;

	*copy = (struct ranges){0};
	for (size_t i = 0; i < type1->n_usable && !error; i++)
		error = add(copy, type1->usable[i].first, type1->usable[i].last);
	return error;
}

static void set_usable(struct soft_type1 *type1, struct ranges *ranges)
{
	free(type1->usable);
	type1->usable = ranges->list;
	type1->n_usable = ranges->n;
	ranges->list = NULL;
}

/* Why a range is in none of the usable ones: the lowest window, an aperture, or neither. */
static int refuse_unusable(struct soft_type1 *type1, uint64_t first, uint64_t last)
{
	const struct dmamap_machine_iommu *narrowest = NULL;
	const struct dmamap_machine_window *hit = NULL;

	for (const struct type1_domain *domain = type1->domains; domain; domain = domain->next) {
		if (!narrowest || domain->iommu->aperture_bits < narrowest->aperture_bits)
			narrowest = domain->iommu;
		for (size_t g = 0; g < domain->n_groups; g++) {
			const struct dmamap_machine_iommu *iommu = group_iommu(domain->groups[g]);

			for (size_t w = 0; w < iommu->n_windows; w++) {
				const struct dmamap_machine_window *window = &iommu->windows[w];

				if (window->first <= last && window->last >= first &&
					(!hit || window->first < hit->first))
					hit = window;
			}
		}
	}
	if (hit)
		return DMAMAP_REFUSE(soft_why(), &dmamap_reason_reserved, EINVAL, hit->label, first,
			last, hit->first, hit->last);
	if (last > aperture_last(narrowest))
		return SOFT_REFUSE(aperture, EINVAL, NULL, first, last, aperture_last(narrowest),
			narrowest->aperture_bits);
	return SOFT_REFUSE(unusable, EINVAL, NULL, first, last, type1->n_usable);
}

int type1_check_usable(struct soft_type1 *type1, uint64_t first, uint64_t last)
{
	for (size_t i = 0; i < type1->n_usable; i++)
		if (first >= type1->usable[i].first && last <= type1->usable[i].last)
			return 0;
	return refuse_unusable(type1, first, last);
}

/* ---------------------------------------------------------------- joining */

/* vfio_iommu_aper_conflict(). */
static int check_aperture(struct soft_type1 *type1, const struct soft_group *group)
{
	const struct dmamap_machine_iommu *iommu = group_iommu(group);
	uint64_t last = aperture_last(iommu), end;
	struct dmamap_area area;

	if (!type1->n_usable)
		return 0;
	end = type1->usable[type1->n_usable - 1].last;
	if (last < type1->usable[0].first)
		return SOFT_REFUSE(group_disjoint, EINVAL, NULL, group->number, last,
			iommu->aperture_bits, type1->usable[0].first);
	if (last < end && dmamap_area_find(type1->space.space, last + 1, end, &area))
		return SOFT_REFUSE(group_aperture, EINVAL, NULL, group->number, area.first,
			area.last, last, iommu->aperture_bits);
	return 0;
}

/* vfio_iommu_resv_conflict(). */
static int check_windows(struct soft_type1 *type1, const struct soft_group *group)
{
	const struct dmamap_machine_iommu *iommu = group_iommu(group);

	for (size_t i = 0; i < iommu->n_windows; i++) {
		const struct dmamap_machine_window *window = &iommu->windows[i];
		struct dmamap_area area;

		if (dmamap_area_find(type1->space.space, window->first, window->last, &area))
			return SOFT_REFUSE(group_window, EINVAL, window->label, group->number,
				area.first, area.last, window->first, window->last);
	}
	return 0;
}

/* What the list will be with the group. */
static int usable_with(
	struct soft_type1 *type1, const struct soft_group *group, struct ranges *ranges)
{
	const struct dmamap_machine_iommu *iommu = group_iommu(group);
	int error = copy_usable(type1, ranges);

	if (!error)
		error = resize(ranges, aperture_last(iommu));
	if (!error)
		error = exclude(ranges, iommu);
	if (!error && !ranges->n)
		error = SOFT_REFUSE(group_nothing, EINVAL, NULL, group->number);
	return error;
}

/*
 * Whether a domain that was made for one IOMMU can serve a group behind
 * another. Two are one driver's; what it then asks for is the model's rule:
 * VT-d's units take what their own registers could have made (before 6.13:
 * whatever has mapped nothing past their aperture), AMD's take all, a domain of
 * an SMMU or of a virtio-iommu is that one's alone.
 */
static bool can_serve(const struct soft_type1 *type1, const struct type1_domain *domain,
	const struct dmamap_machine_iommu *iommu)
{
	const struct dmamap_machine_iommu *has = domain->iommu;

	if (has == iommu)
		return true;
	if (has->model != iommu->model || has->coherent != iommu->coherent)
		return false;
	switch (iommu->model) {
	case DMAMAP_IOMMU_INTEL:
		if (type1->space.system->machine.as_kernel < DMAMAP_KERNEL(6, 13))
			return domain->reached <= aperture_last(iommu);
		return has->aperture_bits <= iommu->aperture_bits &&
		       !(has->leaf_sizes & ~iommu->leaf_sizes);
	case DMAMAP_IOMMU_AMD:
		return true;
	default:
		return false;
	}
}

static void update_page_sizes(struct soft_type1 *type1)
{
	uint64_t page = soft_page_size(type1->space.system);

	type1->page_sizes = UINT64_MAX;
	for (const struct type1_domain *domain = type1->domains; domain; domain = domain->next)
		type1->page_sizes &= domain->iommu->leaf_sizes;
	/* Smaller sizes are hidden behind the page, which is made of them. */
	if (type1->page_sizes & (page - 1))
		type1->page_sizes = (type1->page_sizes & -page) | page;
}

static int add_group(struct type1_domain *domain, struct soft_group *group)
{
	struct soft_group **groups =
		realloc(domain->groups, (domain->n_groups + 1) * sizeof(*groups));

	if (!groups)
		return SOFT_REFUSE(no_memory, ENOMEM, "a group", 0);
	domain->groups = groups;
	groups[domain->n_groups++] = group;
	return 0;
}

/* The last IOVA of the highest mapping; 0: there is none. */
static uint64_t highest(struct soft_type1 *type1)
{
	struct dmamap_area area = {0};
	uint64_t from = 0;

	while (dmamap_area_find(type1->space.space, from, UINT64_MAX, &area)) {
		if (area.last == UINT64_MAX)
			break;
		from = area.last + 1;
	}
	return area.last;
}

/* A domain for the group, filled with what is mapped. */
static int create_domain(struct soft_type1 *type1, struct soft_group *group)
{
	struct type1_domain *domain = calloc(1, sizeof(*domain));
	int error;

	if (!domain)
		return SOFT_REFUSE(no_memory, ENOMEM, "a domain", 0);
	domain->iommu = group_iommu(group);
	error = add_group(domain, group);
	if (!error)
		error = soft_space_table(&type1->space, domain->iommu,
			type1->space.system->machine.disable_hugepages, &domain->table);
	if (error) {
		free(domain->groups);
		free(domain);
		return error;
	}
	domain->reached = highest(type1);
	domain->next = type1->domains;
	type1->domains = domain;
	update_page_sizes(type1);
	return 0;
}

static bool has_group(const struct type1_domain *domain, const struct soft_group *group)
{
	for (size_t i = 0; i < domain->n_groups; i++)
		if (domain->groups[i] == group)
			return true;
	return false;
}

static struct type1_domain *domain_of(struct soft_type1 *type1, const struct soft_group *group)
{
	struct type1_domain *domain = type1->domains;

	while (domain && !has_group(domain, group))
		domain = domain->next;
	return domain;
}

int soft_type1_attach(struct soft_type1 *type1, struct soft_group *group)
{
	const struct dmamap_machine *machine = &type1->space.system->machine;
	struct type1_domain *domain = type1->domains;
	struct ranges usable = {0};
	int error;

	if (type1->invalid)
		return SOFT_REFUSE(group_vaddr, EBUSY, NULL, group->number, type1->invalid);
	if (type1->nesting && group_iommu(group)->model != DMAMAP_IOMMU_SMMUV3)
		return SOFT_REFUSE(group_nesting, EINVAL, NULL, group->number);
	error = check_aperture(type1, group);
	if (!error)
		error = check_windows(type1, group);
	if (!error)
		error = usable_with(type1, group, &usable);
	if (!error && !machine->allow_unsafe_interrupts && !machine->isolated_msi)
		error = SOFT_REFUSE(group_msi, EPERM, NULL, group->number);
	if (error)
		goto free_usable;
	while (domain && !can_serve(type1, domain, group_iommu(group)))
		domain = domain->next;
	error = domain ? add_group(domain, group) : create_domain(type1, group);
	if (!error)
		set_usable(type1, &usable);
free_usable:
	free(usable.list);
	return error;
}

/* ---------------------------------------------------------------- leaving */

static void destroy_domain(struct soft_type1 *type1, struct type1_domain *domain)
{
	struct type1_domain **link = &type1->domains;

	/* The mappings belong to the domains: with the last one they go. */
	if (type1->domains == domain && !domain->next)
		dmamap_unmap(type1->space.space, 0, UINT64_MAX, NULL, NULL);
	while (*link != domain)
		link = &(*link)->next;
	*link = domain->next;
	dmamap_table_destroy(domain->table);
	free(domain->groups);
	free(domain);
	update_page_sizes(type1);
}

/* vfio_iommu_aper_expand(): the ends of the list are those of the domains that are left. */
static void expand(const struct soft_type1 *type1, struct ranges *ranges)
{
	uint64_t last = UINT64_MAX;

	for (const struct type1_domain *domain = type1->domains; domain; domain = domain->next)
		if (aperture_last(domain->iommu) < last)
			last = aperture_last(domain->iommu);
	if (ranges->n) {
		ranges->list[0].first = 0;
		ranges->list[ranges->n - 1].last = last;
	}
}

/* vfio_iommu_resv_refresh(): all between the ends, without the windows that are left. */
static int refresh(const struct soft_type1 *type1, struct ranges *ranges)
{
	int error = 0;

	if (!ranges->n)
		return -EINVAL;
	ranges->list[0].last = ranges->list[ranges->n - 1].last;
	ranges->n = 1;
	for (const struct type1_domain *domain = type1->domains; domain; domain = domain->next)
		for (size_t i = 0; i < domain->n_groups && !error; i++)
			error = exclude(ranges, group_iommu(domain->groups[i]));
	return error || ranges->n ? error : -EINVAL;
}

void soft_type1_detach(struct soft_type1 *type1, struct soft_group *group)
{
	struct type1_domain *domain = domain_of(type1, group);
	struct ranges usable;
	size_t i = 0;

	/* Without memory for another list the old one stays. */
	if (copy_usable(type1, &usable))
		usable.n = 0;
	while (domain->groups[i] != group)
		i++;
	memmove(&domain->groups[i], &domain->groups[i + 1],
		(--domain->n_groups - i) * sizeof(struct soft_group *));
	if (!domain->n_groups) {
		destroy_domain(type1, domain);
		expand(type1, &usable);
	}
	if (!refresh(type1, &usable))
		set_usable(type1, &usable);
	free(usable.list);
}

int soft_type1_access(
	struct soft_type1 *type1, const struct soft_group *group, struct dmamap_access **access)
{
	return dmamap_access_create(domain_of(type1, group)->table, access);
}
