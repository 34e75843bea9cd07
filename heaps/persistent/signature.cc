#include "heaps/persistent/signature.h"

#include "core/store/signatures.h"
#include "heaps/persistent/persistent_format.h"

namespace outcore::heap::persistent {

void add_signature() { store::add_signature(std::to_array(kHeaderMagic)); }

}  // namespace outcore::heap::persistent
