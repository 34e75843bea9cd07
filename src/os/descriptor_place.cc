#include "os/descriptor_place.h"

namespace outcore::os {

int (*place_descriptor)(int fd) = nullptr;

}  // namespace outcore::os
