// The store of regions past the end of their file, which the conformance suite of core/tests/store
// is run on here. A program's own store is called for whole pages alone, as the pager does, and is
// tested by regions.
#include "core/tests/store/store_case.h"

#include "umap/stores/tail_store.h"

namespace outcore::store_test {
namespace {

// Over a file that has a part of the bytes.
StoreCase of_tail(const std::string& name, uint64_t parts) {
  return {name,
          [parts](const Folder& folder, uint64_t size_bytes) -> Result<std::shared_ptr<Store>> {
            store::FileStoreOptions options;
            options.path = folder / "file";
            options.open.is_writable = options.open.may_create = true;
            options.open.size_bytes = parts == 0 ? 0 : size_bytes / parts;
            auto file = store::FileStore::open(options);
            if (!file) return file.error();
            return std::shared_ptr<Store>(std::make_shared<umapped::TailStore>(
                std::static_pointer_cast<store::FileStore>(file.value()), true, size_bytes));
          },
          false};
}

}  // namespace

std::vector<StoreCase> all_cases() { return {of_tail("Tail", 0), of_tail("HalfTail", 2)}; }

}  // namespace outcore::store_test
