// The policies by name. To add a policy, add its file and a line here.
#include <cerrno>

#include "core/policy/auto_policy.h"
#include "core/policy/di_mmap.h"
#include "core/policy/fifo.h"
#include "core/policy/s3_fifo.h"
#include "outcore/policy.h"

namespace outcore {
namespace {

using policy::AutoPolicy;
using policy::DiMmap;
using policy::Fifo;
using policy::S3Fifo;

template <typename T>
Result<std::unique_ptr<Policy>> make(const std::string& full, std::string_view text,
                                     size_t frames_max, size_t capacity) {
  typename T::Parameters parameters = T::kParameters;
  if (Status s = policy::parse_parameters(full, text, parameters); !s) return s.error();
  auto made = std::make_unique<T>(parameters);
  if (Status s = made->allocate(frames_max); !s) return s.error();
  made->set_capacity(capacity);
  return std::unique_ptr<Policy>(std::move(made));
}

struct Known {
  std::string_view name;
  Result<std::unique_ptr<Policy>> (*make)(const std::string&, std::string_view, size_t, size_t);
};
constexpr Known kKnown[] = {{AutoPolicy::kName, make<AutoPolicy>},
                            {S3Fifo::kName, make<S3Fifo>},
                            {DiMmap::kName, make<DiMmap>},
                            {Fifo::kName, make<Fifo>}};

}  // namespace

Result<std::unique_ptr<Policy>> make_policy(const std::string& name, size_t frames_max,
                                            size_t capacity) {
  if (frames_max == 0 || frames_max >= static_cast<uint32_t>(kNoFrame) || capacity > frames_max)
    return Error{EINVAL, "policy '" + name + "' for " + std::to_string(capacity) + " of " +
                             std::to_string(frames_max) +
                             " frames: at least 1 and fewer than 2^32 - 1 frames, and no "
                             "larger capacity"};
  const size_t colon = name.find(':');
  const std::string_view wanted = std::string_view(name).substr(0, colon);
  const std::string_view text =
      colon == std::string::npos ? std::string_view() : std::string_view(name).substr(colon + 1);
  std::string_view names[std::size(kKnown)];
  for (size_t i = 0; i < std::size(kKnown); ++i) {
    if (kKnown[i].name == wanted) return kKnown[i].make(name, text, frames_max, capacity);
    names[i] = kKnown[i].name;
  }
  return policy::unknown_policy(name, wanted, names);
}

}  // namespace outcore
