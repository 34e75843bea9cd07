// RbdLibrary: the functions of librados and librbd that are used here, loaded when they are first
// needed.
//
// So a program that does not use Ceph neither loads these libraries (some 20 MB and, once
// connected, 14 threads) nor needs them installed. They stay loaded. Any thread but the fault path.
// threads) nor needs them installed. Any thread but the fault path. They stay loaded.
#pragma once

#include <rados/librados.h>
#include <rbd/librbd.h>

#include "outcore/result.h"

#define OUTCORE_RADOS_FUNCTIONS(X) \
  X(rados_create2)                 \
  X(rados_conf_read_file)          \
  X(rados_conf_parse_env)          \
  X(rados_conf_set)                \
  X(rados_conf_get)                \
  X(rados_connect)                 \
  X(rados_shutdown)                \
  X(rados_cluster_fsid)            \
  X(rados_pool_list)               \
  X(rados_mon_command)             \
  X(rados_buffer_free)             \
  X(rados_ioctx_create)            \
  X(rados_ioctx_destroy)           \
  X(rados_ioctx_get_id)            \
  X(rados_exec)                    \
  X(rados_ioctx_set_namespace)

#define OUTCORE_RBD_FUNCTIONS(X)  \
  X(rbd_create2)                  \
  X(rbd_list2)                    \
  X(rbd_image_spec_list_cleanup)  \
  X(rbd_remove)                   \
  X(rbd_rename)                   \
  X(rbd_open)                     \
  X(rbd_open_read_only)           \
  X(rbd_close)                    \
  X(rbd_stat)                     \
  X(rbd_get_id)                   \
  X(rbd_get_features)             \
  X(rbd_resize)                   \
  X(rbd_flush)                    \
  X(rbd_lock_acquire)             \
  X(rbd_lock_release)             \
  X(rbd_lock_get_owners)          \
  X(rbd_lock_get_owners_cleanup)  \
  X(rbd_is_exclusive_lock_owner)  \
  X(rbd_watchers_list)            \
  X(rbd_watchers_list_cleanup)    \
  X(rbd_metadata_get)             \
  X(rbd_metadata_set)             \
  X(rbd_metadata_remove)          \
  X(rbd_metadata_list)            \
  X(rbd_aio_create_completion)    \
  X(rbd_aio_wait_for_complete)    \
  X(rbd_aio_get_return_value)     \
  X(rbd_aio_release)              \
  X(rbd_aio_read)                 \
  X(rbd_aio_write)                \
  X(rbd_aio_discard)              \
  X(rbd_aio_write_zeroes)         \
  X(rbd_snap_create)              \
  X(rbd_snap_remove)              \
  X(rbd_snap_rollback)            \
  X(rbd_snap_list)                \
  X(rbd_snap_list_end)            \
  X(rbd_clone3)                   \
  X(rbd_image_options_create)     \
  X(rbd_image_options_destroy)    \
  X(rbd_image_options_set_uint64) \
  X(rbd_diff_iterate2)

namespace outcore::store {

struct RbdLibrary {
#define OUTCORE_MEMBER(name) decltype(&::name) name = nullptr;
  OUTCORE_RADOS_FUNCTIONS(OUTCORE_MEMBER)
  OUTCORE_RBD_FUNCTIONS(OUTCORE_MEMBER)
#undef OUTCORE_MEMBER

  // The complete table. Errors: ENOTSUP (not installed, or too old), with the remedy. After an
  // error the next call tries again.
  static Result<const RbdLibrary*> load();
};

}  // namespace outcore::store
