#include "checkpoints/store/kinds.h"

#include "checkpoints/store/versioned_store.h"
#include "core/store/registry.h"

namespace outcore::store {

void add_versioned_kind() {
  StoreKind kind;
  kind.scheme = "versioned";
  kind.syntax = "versioned:FOLDER?object=NAME&chunk=4k&at=CHECKPOINT&direct=auto|on|off";
  kind.summary = "objects with checkpoints that are never overwritten";
  kind.parameters = {"object", "chunk", "at", "direct"};
  kind.open = open_versioned;
  kind.check = check_versioned;
  kind.place = StoreKind::Place::kFolder;
  kind.checkpoints = StoreKind::Checkpoints::kInPool;
  add_kind(std::move(kind));
}

}  // namespace outcore::store
