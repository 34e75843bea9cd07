// ArraysObjects: stores C++ structs and containers by name in an outcore::Arrays. Header-only; uses
// your cereal (Debian: libcereal-dev), so the including file needs exceptions and RTTI. No
// exception leaves these calls. Programs without exceptions include it in one file that has them.
//
//   struct Probe {
//     std::string name;
//     std::map<int, std::vector<double>> samples;
//     template <class Archive>
//     void serialize(Archive& archive) { archive(name, samples); }
//   };
//   outcore::store_object(out, "probes", std::vector<Probe>{…});
//   auto probes = outcore::load_object<std::vector<Probe>>(in, "probes");
//
// Everything that cereal can archive can be stored: strings and all containers of the standard
// library, optional, variant, tuple, smart pointers, and types with serialize() or save() and
// load() as in cereal's documentation. An object is one value of the type "object", stored by one
// process, and present completely or not at all. For millions of numbers use arrays, which have
// boxes and views.
#pragma once

#include "outcore/object_archive.h"

// The most common types of cereal; include others yourself.
#include <cereal/types/array.hpp>
#include <cereal/types/bitset.hpp>
#include <cereal/types/chrono.hpp>
#include <cereal/types/complex.hpp>
#include <cereal/types/deque.hpp>
#include <cereal/types/list.hpp>
#include <cereal/types/map.hpp>
#include <cereal/types/memory.hpp>
#include <cereal/types/optional.hpp>
#include <cereal/types/set.hpp>
#include <cereal/types/string.hpp>
#include <cereal/types/tuple.hpp>
#include <cereal/types/unordered_map.hpp>
#include <cereal/types/unordered_set.hpp>
#include <cereal/types/utility.hpp>
#include <cereal/types/variant.hpp>
#include <cereal/types/vector.hpp>
#include <cerrno>
#include <exception>
#include <new>
#include <string>
#include <type_traits>

#include "outcore/object_bytes.h"
#include "outcore/object_name.h"

namespace outcore {

namespace arrays {

// Runs work() and turns exceptions (of cereal, the standard containers or your serialize()) into an
// Error.
template <typename Answer, typename Work>
Answer caught(const std::string& attempted, const Work& work) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return Error{ENOMEM, attempted + ": there is no memory for it"};
  } catch (const std::exception& e) {
    return Error{EINVAL, attempted + ": cereal: " + one_line(e.what())};
  } catch (...) {
    return Error{EINVAL,
                 attempted + ": its serialize() threw something that is not a std::exception"};
  }
}

}  // namespace arrays

// Stores the object, in place of an array of that name. Errors: as Arrays::store_whole; EINVAL
// (cereal refuses it, for example a pointer to a class that was not registered). Any thread.
template <typename T>
Status store_object(Arrays& arrays, const std::string& name, const T& value) {
  const std::string attempted = "store '" + name + "'";
  return arrays::caught<Status>(attempted, [&]() -> Status {
    std::string bytes = arrays::object_head(ObjectName<T>::get());
    arrays::ObjectOutput archive(&bytes);
    archive(value);
    if (!archive.can_be_read())
      return Error{EINVAL, attempted + ": a container in it has more than " +
                               std::to_string(arrays::kBytelessMax) +
                               " elements of no bytes: store their number"};
    return arrays::store_object_bytes(arrays, name, &bytes, archive.shape());
  });
}

// Loads an object that was stored with this type. Errors: as Arrays::load; EINVAL (not an object,
// another type, or the parts of the type have changed), EIO (damaged), ENOMEM. Any thread.
template <typename T>
Result<T> load_object(const Arrays& arrays, const std::string& name) {
  static_assert(std::is_default_constructible_v<T>, "an object is made first, then loaded");
  const std::string attempted = "load '" + name + "'";
  return arrays::caught<Result<T>>(attempted, [&]() -> Result<T> {
    const std::string type = ObjectName<T>::get();
    const auto kept = arrays::load_object_bytes(arrays, name, type);
    if (!kept) return kept.error();
    const Error other{EINVAL, attempted + ": the " + type +
                                  " that was stored has other parts than today's: load it by the "
                                  "serialize() that stored it"};
    try {
      arrays::ObjectInput archive(kept->archive());
      T value{};
      archive(value);
      if (!archive.is_done(kept->shape)) return other;
      return value;
    } catch (const arrays::ObjectInput::Refusal& e) {  // not damaged: others' bytes
      return Error{EINVAL, other.message + " (the archive " + e.what() + ")"};
    }
  });
}

}  // namespace outcore
