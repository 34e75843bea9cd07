// The name by which programs written for UMap include its class of stores: see
// outcore/umap_store.h.
#pragma once

#include "outcore/umap_store.h"
