// The name by which programs written for UMap include its interface: see outcore/umap.h.
#pragma once

#include "outcore/umap.h"
