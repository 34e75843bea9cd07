#include "core/store/signatures.h"

#include <algorithm>
#include <atomic>

#include "core/base/assert.h"
#include "core/base/units.h"

namespace outcore::store {
namespace {

std::array<Signature, kSignaturesMax> signatures;
std::atomic<size_t> signature_count{0};

}  // namespace

void add_signature(const Signature& signature) {
  const size_t count = signature_count.load();
  OC_CHECK(count < kSignaturesMax);
  signatures[count] = signature;
  signature_count.store(count + 1);
}

bool has_signature(Store& store) {
  if (store.size_bytes() < base::kSystemPage) return false;
  std::byte page[base::kSystemPage];
  if (store.read(0, page) != 0) return false;
  const auto* const known = signatures.begin();
  return std::any_of(known, known + signature_count.load(), [&](const Signature& one) {
    return std::equal(one.begin(), one.end(), reinterpret_cast<const char*>(page));
  });
}

}  // namespace outcore::store
