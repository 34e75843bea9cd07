#include "outcore/arrays.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/assert.h"
#include "python/src/arrays_memory.h"
#include "python/src/arrays_module.h"
#include "python/src/bytes.h"
#include "python/src/errors.h"
#include "python/src/gil.h"
#include "python/src/metrics.h"
#include "python/src/runtime_handle.h"

namespace outcore::python {

namespace nb = nanobind;

namespace {

class ArraysHandle {
 public:
  ArraysHandle(const nb::bytes& uri, const std::string& mode, unsigned rank, unsigned size,
               nb::object any, const RuntimeHandle* runtime)
      : uri_(uri.c_str(), uri.size()) {
    ArraysOptions options;
    if (runtime != nullptr) {
      runtime->check("open a container");
      runtime_ = runtime->runtime;
      options.runtime = runtime_.get();
    }
    Communicator together{rank, size, {}};
    const auto shared = std::make_shared<nb::object>(std::move(any));
    if (!shared->is_none())
      together.any = [shared](bool has_failed) {
        const WithGil held;
        try {
          return or_wait_for_the_end([&] { return nb::cast<bool>((*shared)(has_failed)); });
        } catch (nb::python_error& raised) {
          raised.discard_as_unraisable("outcore: the communicator of arrays");
          return true;
        }
      };
    const ArraysMode how = mode == "r"   ? ArraysMode::kRead
                           : mode == "w" ? ArraysMode::kWrite
                                         : ArraysMode::kUpdate;
    auto opened = [&] {
      const WithoutGil released;
      return Arrays::open(uri_, how, together, options);
    }();
    if (!opened) raise(opened.error(), uri_, Blame::kStore);
    arrays_ = std::make_shared<Arrays>(std::move(opened).value());
  }

  void alloc(const std::string& name, const std::string& type, const Dims& dims, bool is_column,
             const Dims& tiles, const std::string& compress, bool may_replace) {
    const ArrayType of = type_of(type);
    const ArrayOptions options = options_of(is_column, tiles, compress, may_replace);
    call([&](Arrays& arrays) { return arrays.alloc(name, of, dims, options); });
  }
  void store_box(const std::string& name, const std::string& type, nb::handle data,
                 const Dims& offsets, const Dims& dims) {
    const ArrayType of = type_of(type);
    const Bytes bytes(data, PyBUF_ANY_CONTIGUOUS);
    check_size(bytes, of, dims);
    call([&](Arrays& arrays) { return arrays.store_box(name, of, bytes.data(), offsets, dims); });
  }
  void store_whole(const std::string& name, const std::string& type, const Dims& dims,
                   nb::handle data, bool is_column, const Dims& tiles,
                   const std::string& compress) {
    const ArrayType of = type_of(type);
    const Bytes bytes(data, PyBUF_ANY_CONTIGUOUS);
    check_size(bytes, of, dims);
    const ArrayOptions options = options_of(is_column, tiles, compress, false);
    call([&](Arrays& arrays) { return arrays.store_whole(name, of, dims, bytes.data(), options); });
  }
  void load_box(const std::string& name, const std::string& type, nb::handle into,
                const Dims& offsets, const Dims& dims) const {
    const ArrayType of = type_of(type);
    const Bytes bytes(into, PyBUF_ANY_CONTIGUOUS | PyBUF_WRITABLE);
    check_size(bytes, of, dims);
    call([&](Arrays& arrays) { return arrays.load_box(name, of, bytes.data(), offsets, dims); });
  }
  // The memory, from the first element to the last; shape and strides in bytes.
  nb::tuple view(const std::string& name, const std::string& type,
                 const std::optional<Dims>& offsets, const std::optional<Dims>& dims) const {
    const ArrayType of = type_of(type);
    Dims shape;
    std::vector<uint64_t> strides;
    auto memory = std::make_unique<ArraysMemory>();
    memory->runtime = runtime_;
    call([&](Arrays& arrays) {
      return arrays.view_box(name, of, offsets.value_or(Dims()), dims.value_or(Dims()), &shape,
                             &strides, &memory->data, &memory->mapping);
    });
    CLI_CHECK(strides.size() == shape.size());
    uint64_t last = 0;
    bool is_empty = false;
    for (size_t d = 0; d < shape.size(); ++d) {
      is_empty = is_empty || shape[d] == 0;
      last += is_empty ? 0 : (shape[d] - 1) * strides[d];
      strides[d] *= of.size_bytes;
    }
    memory->size_bytes = is_empty ? 0 : (last + 1) * of.size_bytes;
    return nb::make_tuple(nb::cast(std::move(memory)), nb::cast(shape), nb::cast(strides));
  }
  nb::tuple info(const std::string& name) const {
    ArrayInfo found;
    call([&](Arrays& arrays) {
      auto told = arrays.info(name);
      if (told) found = std::move(told).value();
      return told.status();
    });
    return nb::make_tuple(found.type.name, nb::cast(found.dims), found.order == Order::kColumn,
                          nb::cast(found.tiles), found.compress, found.size_bytes);
  }
  nb::list list() const {
    std::vector<ArrayInfo> all;
    call([&](Arrays& arrays) {
      all = arrays.list();
      return Status();
    });
    nb::list names;
    for (const ArrayInfo& info : all) names.append(text_of(info.name));
    return names;
  }
  bool has(const std::string& name) const {
    bool is_there = false;
    call([&](Arrays& arrays) {
      is_there = arrays.has(name);
      return Status();
    });
    return is_there;
  }
  void rename(const std::string& from, const std::string& to) {
    call([&](Arrays& arrays) { return arrays.rename(from, to); });
  }
  void remove(const std::string& name) {
    call([&](Arrays& arrays) { return arrays.remove(name); });
  }
  void set_attribute(const std::string& name, const std::string& key, const std::string& text) {
    call([&](Arrays& arrays) { return arrays.set_attribute(name, key, text); });
  }
  nb::object attribute(const std::string& name, const std::string& key) const {
    std::string text;
    call([&](Arrays& arrays) {
      auto found = arrays.attribute(name, key);
      if (found) text = found.value();
      return found.status();
    });
    return nb::cast(text_of(text));
  }
  std::vector<std::string> attributes(const std::string& name) const {
    std::vector<std::string> keys;
    call([&](Arrays& arrays) {
      auto found = arrays.attributes(name);
      if (found) keys = found.value();
      return found.status();
    });
    return keys;
  }
  // (arrays, bytes, [(array, where)], [arrays without checksums])
  nb::tuple verify(const std::string& name) const {
    constexpr uint64_t kSignalsEach = uint64_t{64} << 20;  // bytes, between two looks at Ctrl-C
    std::vector<ArrayDamage> damages;
    ArraysCheck found;
    bool is_interrupted = false;
    call([&](Arrays& arrays) {
      uint64_t next = 0;
      auto checked = arrays.verify(
          name, [&](const ArrayDamage& damage) { damages.push_back(damage); },
          [&](uint64_t done) {
            if (done < next) return true;
            next = done + kSignalsEach;
            const WithGil held;
            is_interrupted = PyErr_CheckSignals() != 0;
            return !is_interrupted;
          });
      if (checked) found = std::move(checked).value();
      return is_interrupted ? Status() : checked.status();
    });
    if (is_interrupted) throw nb::python_error();
    nb::list damaged, unchecked;
    for (const ArrayDamage& damage : damages)
      damaged.append(nb::make_tuple(text_of(damage.array), text_of(damage.where)));
    for (const std::string& one : found.unchecked) unchecked.append(text_of(one));
    return nb::make_tuple(found.arrays, found.bytes, damaged, unchecked);
  }
  void flush() {
    call([&](Arrays& arrays) { return arrays.flush(); });
  }
  void close() {
    const std::shared_ptr<Arrays> arrays = std::move(arrays_);
    if (arrays == nullptr) return;
    Status s;
    {
      const WithoutGil released;
      s = arrays->close();
    }
    require(s, uri_, Blame::kStore);
  }
  void abort() {
    const std::shared_ptr<Arrays> arrays = std::move(arrays_);
    if (arrays == nullptr) return;
    const WithoutGil released;
    arrays->abort();
  }
  bool is_open() const { return arrays_ != nullptr; }

 private:
  static ArrayType type_of(const std::string& name) {
    auto type = ArrayType::parse(name);
    if (!type) raise(type.error(), "", Blame::kArgument);
    return std::move(type).value();
  }
  static ArrayOptions options_of(bool is_column, const Dims& tiles, const std::string& compress,
                                 bool may_replace) {
    return {is_column ? Order::kColumn : Order::kRow, tiles, compress, may_replace};
  }
  static void check_size(const Bytes& bytes, const ArrayType& type, const Dims& dims) {
    uint64_t size = type.size_bytes;
    for (const uint64_t n : dims)
      if (__builtin_mul_overflow(size, n, &size)) size = UINT64_MAX;
    if (size != bytes.size_bytes()) throw nb::value_error("the buffer is not as large as the box");
  }
  template <typename Call>
  void call(const Call& act) const {
    const std::shared_ptr<Arrays> arrays = arrays_;  // close() may come meanwhile
    if (arrays == nullptr) throw nb::value_error("the container is closed");
    Status s;
    {
      const WithoutGil released;
      s = act(*arrays);
    }
    require(s, uri_, Blame::kArgument);
  }

  const std::string uri_;
  std::shared_ptr<Runtime> runtime_;  // outlives the container: declared before it
  std::shared_ptr<Arrays> arrays_;
};

}  // namespace

void add_arrays(nb::module_& m) {
  add_arrays_memory(m);
  nb::class_<ArraysHandle>(m, "Arrays")
      .def(nb::init<const nb::bytes&, const std::string&, unsigned, unsigned, nb::object,
                    const RuntimeHandle*>(),
           nb::arg("uri"), nb::arg("mode"), nb::arg("rank"), nb::arg("size"), nb::arg("any").none(),
           nb::arg("runtime").none())
      .def("alloc", &ArraysHandle::alloc)
      .def("store_box", &ArraysHandle::store_box)
      .def("store_whole", &ArraysHandle::store_whole)
      .def("load_box", &ArraysHandle::load_box)
      .def("view", &ArraysHandle::view, nb::arg("name"), nb::arg("type"), nb::arg("offsets").none(),
           nb::arg("dims").none())
      .def("info", &ArraysHandle::info)
      .def("list", &ArraysHandle::list)
      .def("has", &ArraysHandle::has)
      .def("rename", &ArraysHandle::rename)
      .def("remove", &ArraysHandle::remove)
      .def("set_attribute", &ArraysHandle::set_attribute)
      .def("attribute", &ArraysHandle::attribute)
      .def("attributes", &ArraysHandle::attributes)
      .def("verify", &ArraysHandle::verify)
      .def("flush", &ArraysHandle::flush)
      .def("close", &ArraysHandle::close)
      .def("abort", &ArraysHandle::abort)
      .def_prop_ro("is_open", &ArraysHandle::is_open);
}

}  // namespace outcore::python
