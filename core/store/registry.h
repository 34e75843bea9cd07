// Registry: the kinds of store, by scheme. See outcore/store_kind.h. Any thread; not on the fault
// path.
#pragma once

#include <string>

#include "core/store/uri.h"
#include "outcore/shared_writers.h"
#include "outcore/store.h"
#include "outcore/store_kind.h"

namespace outcore::store {

// Registers a built-in kind: of the core, or of a product (core/base/products.h).
// REQUIRES: register_store_kind() would take it (checked).
void add_kind(StoreKind kind);

// The URI names space that is empty each time it is opened, and is lost with the process.
bool dies_with_process(const std::string& uri);
// How checkpoints of the URI's stores are kept; kNone if the kind is unknown.
StoreKind::Checkpoints checkpoints_of(const Uri& uri);
// Why checkpoints cannot be kept in what the text names; empty: they can, or no kind has pools, and
// what would make checkpoints says so.
std::string why_no_pool(const std::string& text);
// A file without parameters, of the kind that text without a scheme names.
bool is_plain_file(const Uri& uri);
bool is_persistent_memory(const Uri& uri);
// The file or folder that is locked when the store is opened for writing; empty: none.
std::string lockable_path(const Uri& uri);

}  // namespace outcore::store
