// Registry: the kinds of store, by scheme. See outcore/store_kind.h.
#pragma once

#include <string>

#include "core/store/uri.h"
#include "outcore/shared_writers.h"
#include "outcore/store.h"
#include "outcore/store_kind.h"

namespace outcore::store {

// The kinds that are there before the program adds any register themselves by this: those of the
// core, and of each product (core/base/products.h). EEXIST, EINVAL: as register_store_kind().
Status add_kind(StoreKind kind);

// The URI names space that is new whenever it is opened, and dies with the process.
bool dies_with_process(const std::string& uri);
// How what the URI's stores hold is kept; kNone for a text that is no URI.
StoreKind::Checkpoints checkpoints_of(const Uri& uri);
// A file without parameters, of the kind that text without a scheme names.
bool is_plain_file(const Uri& uri);
bool is_persistent_memory(const Uri& uri);
// The file or folder that who opens the store for writing may lock; empty: none.
std::string lockable_path(const Uri& uri);

}  // namespace outcore::store
