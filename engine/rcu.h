/* SPDX-License-Identifier: MIT */
/*
 * RCU: liburcu's bp flavour (threads register themselves at first use), and
 * what ThreadSanitizer has to be told, since it does not see through liburcu's
 * barriers: leaving a read section happens before the wait that it holds up
 * returns, and what was done before that wait happens before read sections
 * that start after it.
 */
#ifndef DMAMAP_ENGINE_RCU_H
#define DMAMAP_ENGINE_RCU_H

/*
 * Inline read sections, but not under sanitizers: liburcu 0.13 declares its
 * per-thread structure with more alignment than it gives it.
 */
#ifndef DMAMAP_SANITIZED
#define _LGPL_SOURCE
#endif
#include <urcu/urcu-bp.h>

#if defined(__SANITIZE_THREAD__)
#define RCU_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define RCU_TSAN 1
#endif
#endif

#ifdef RCU_TSAN
void __tsan_acquire(void *address);
void __tsan_release(void *address);
extern char rcu_readers_done, rcu_writer_done;
#define rcu_acquire(what) __tsan_acquire(&(what))
#define rcu_release(what) __tsan_release(&(what))
#else
#define rcu_acquire(what) ((void)0)
#define rcu_release(what) ((void)0)
#endif

static inline void read_section_enter(void)
{
	urcu_bp_read_lock();
	rcu_acquire(rcu_writer_done);
}

static inline void read_section_leave(void)
{
	rcu_release(rcu_readers_done);
	urcu_bp_read_unlock();
}

/* Every read section that is under way now ends before this returns. */
static inline void read_sections_wait(void)
{
	rcu_release(rcu_writer_done);
	urcu_bp_synchronize_rcu();
	rcu_acquire(rcu_readers_done);
}

#endif
