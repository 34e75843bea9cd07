// ssd: memory that is in a program's checkpoints, in the four calls of NVMalloc
// (docs/guides/checkpoints.md). C11 and later, or C++; link with -loutcore.
//
//   long step = 0;
//   if (oc_ssd_restart(NULL, &step, sizeof step) == 0) printf("going on at %ld\n", step);
//   double* grid = oc_ssd_malloc("grid", bytes);  // as it was in the checkpoint, or zeros
//   for (; step < steps; ++step) {
//     compute(grid);
//     if (step % 100 == 99) oc_ssd_checkpoint("step 100", &step, sizeof step);
//   }
//
// All of it rests in one pool, which OUTCORE_POOL names: a folder, or the disks of a Ceph cluster,
// rbd://CEPHPOOL/RUN?lifetime=2d, where `grid` is the image RUN.grid (RUN: ssd if left out), and
// what nobody had open for the lifetime is given back (without one it is kept). One process at a
// time has a folder or a run; the next finds the memory by its names. All shares one runtime, which
// the environment describes (OUTCORE_BUDGET and so on). Any thread. A forked child has none of it.
// After ssdmalloc, ssdfree, ssdcheckpoint and ssdrestart of NVMalloc (Wang et al., IPDPS 2012).
#pragma once

// NOLINTBEGIN(modernize-*,readability-identifier-naming): C, with names as in C

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

// Memory of that name, page-aligned, which may be larger than the budget: what the pool holds under
// the name, or zeros. Of a name that it has with another size: EINVAL. NULL: errno, and
// oc_last_error() tells why: ENOENT (OUTCORE_POOL is not set), EBUSY (it is in use, here or by
// another process), ENOSPC (of Ceph: the pool's free space or quota), EEXIST (of Ceph: somebody's
// image has that name), and what mapping says.
void* oc_ssd_malloc(const char* name, size_t size_bytes);
// The name and its bytes are not in the checkpoints that follow; those that there are keep them.
// Its space is given back, but for what they hold. 0 or -errno; -EINVAL: not from oc_ssd_malloc.
// NULL is nothing.
int oc_ssd_free(void* memory);

// All memory of oc_ssd_malloc, and a range of ordinary memory (NULL: none), as they are at one
// moment, durable when it returns. It takes the place of a checkpoint of that name; `outcore
// checkpoint` shows it as NAME.1, NAME.2 and so on. Other threads are held for milliseconds. 0, or
// -errno with oc_last_error(): then there is no new checkpoint, and the old one stays.
int oc_ssd_checkpoint(const char* name, const void* memory, size_t size_bytes);
// Back to a checkpoint (NULL: the newest), before the first oc_ssd_malloc; the range of ordinary
// memory is read back. -ENOENT: there is no checkpoint; -EINVAL: its range is of another size, or
// it has none: nothing happened then. -EBUSY: there is memory of oc_ssd_malloc.
int oc_ssd_restart(const char* name, void* memory, size_t size_bytes);

#ifdef __cplusplus
}
#endif

// NOLINTEND(modernize-*,readability-identifier-naming)
