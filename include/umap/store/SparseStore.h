// The name by which programs written for UMap include its store of many files: see
// outcore/umap_sparse_store.h.
#pragma once

#include "outcore/umap_sparse_store.h"
