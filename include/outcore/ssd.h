// ssd: memory that is part of a program's checkpoints, by the four calls of NVMalloc
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
// Everything is kept in one pool, which the environment variable OUTCORE_POOL names: a folder, or
// the disks of a Ceph cluster, rbd://CEPHPOOL/RUN?lifetime=2d. There `grid` is the image RUN.grid
// (RUN is ssd if left out), and images that nobody had open for the lifetime are given back
// (without a lifetime they are kept). One process at a time can use a folder or a run; the next
// process finds the memory by its names. All memory shares one runtime, whose options come from the
// environment (OUTCORE_BUDGET and so on). Any thread. A forked child has none of the memory. After
// ssdmalloc, ssdfree, ssdcheckpoint and ssdrestart of NVMalloc (Wang et al., IPDPS 2012).
#pragma once

// NOLINTBEGIN(modernize-*,readability-identifier-naming): C, with names as in C

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

// Page-aligned memory, which may be larger than the budget. It holds what the pool has under the
// name, or zeros. Returns NULL on errors, sets errno, and oc_last_error() says why: EINVAL (the
// name has another size in the pool), ENOENT (OUTCORE_POOL is not set), EBUSY (the name or pool is
// in use, here or by another process), ENOSPC (Ceph: the pool's free space or quota), EEXIST (Ceph:
// there is a foreign image of that name), and errors of mapping.
void* oc_ssd_malloc(const char* name, size_t size_bytes);
// Removes the memory and its name from the checkpoints that follow; existing checkpoints keep them.
// Its space is given back, except what those hold. 0 or -errno; -EINVAL: not from oc_ssd_malloc.
// NULL is allowed.
int oc_ssd_free(void* memory);

// Makes a checkpoint of all memory from oc_ssd_malloc and of a range of ordinary memory (NULL:
// none), as they are at one moment; it is durable when the call returns. It replaces a checkpoint
// of the same name; `outcore checkpoint` shows it as NAME.1, NAME.2 and so on. Other threads are
// stopped for milliseconds. 0, or -errno with oc_last_error(): then there is no new checkpoint, and
// the old one stays.
int oc_ssd_checkpoint(const char* name, const void* memory, size_t size_bytes);
// Restores a checkpoint (NULL: the newest), including the range of ordinary memory. Call it before
// the first oc_ssd_malloc. Errors, after which nothing has changed: -ENOENT (there is no
// checkpoint), -EINVAL (its range has another size, or it has none), -EBUSY (there is memory of
// oc_ssd_malloc).
int oc_ssd_restart(const char* name, void* memory, size_t size_bytes);

#ifdef __cplusplus
}
#endif

// NOLINTEND(modernize-*,readability-identifier-naming)
