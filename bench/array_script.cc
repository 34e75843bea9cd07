#include "bench/array_script.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "bench/random.h"

namespace outcore::bench {
namespace {

constexpr size_t kArraysMax = 10;   // kept from one session to the next
constexpr unsigned kNewInMax = 10;  // every so many sessions the container is made anew

uint64_t count_of(const Dims& dims) {
  uint64_t count = 1;
  for (const uint64_t n : dims) count *= n;
  return count;
}

ArrayType some_type(Random& random) {
  constexpr const char* kNames[] = {"<f8", "<f4", "<i4", "<c16", "|u1", "V24"};
  return ArrayType::parse(kNames[random.below(std::size(kNames))]).value();
}

// Boxes of it are long runs or short ones: that is for the axis and the last dimension to say.
Kept some_array(Random& random, uint64_t bytes_max) {
  Kept kept;
  kept.type = some_type(random);
  kept.tag = random.next();
  const uint64_t elements =
      std::max<uint64_t>(bytes_max / kept.type.size_bytes / (1 + random.below(8)), 64);
  const uint64_t last = 4 + random.below(std::min<uint64_t>(elements / 16, 2000) + 1);
  const uint64_t middle = 4 + random.below(40);
  kept.dims = {std::max<uint64_t>(elements / last / middle, 4), middle, last};
  if (random.below(4) == 0) kept.options.order = Order::kColumn;
  if (random.below(4) == 0)
    for (const uint64_t n : kept.dims) kept.options.tiles.push_back(1 + random.below(n));
  return kept;
}

// Of one process: a value, a short row, a long one.
Kept some_whole(Random& random, uint64_t bytes_max) {
  Kept kept;
  kept.type = some_type(random);
  kept.tag = random.next();
  const uint64_t kind = random.below(8);
  const uint64_t bytes = kind == 0 ? bytes_max : kind < 4 ? 1024 : 200 << 10;
  if (kind != 1) kept.dims = {1 + random.below(bytes / kept.type.size_bytes)};
  return kept;
}

}  // namespace

std::vector<std::byte> box_of(const Kept& kept, const Dims& at, const Dims& dims) {
  const size_t size = kept.type.size_bytes;
  const uint64_t count = count_of(dims), words = (size + 7) / 8;
  std::vector<std::byte> bytes(count * size);
  Dims i(dims.size(), 0);
  for (uint64_t n = 0; n < count; ++n) {
    uint64_t number = 0;
    for (size_t d = 0; d < dims.size(); ++d) number = number * kept.dims[d] + at[d] + i[d];
    for (uint64_t w = 0; w < words; ++w) {
      const uint64_t word = mix(mix(kept.tag) + number * words + w);
      std::memcpy(bytes.data() + n * size + 8 * w, &word, std::min<size_t>(size - 8 * w, 8));
    }
    for (size_t k = 0; k < dims.size(); ++k) {
      const size_t d = kept.options.order == Order::kRow ? dims.size() - 1 - k : k;
      if (++i[d] < dims[d]) break;
      i[d] = 0;
    }
  }
  return bytes;
}

std::vector<std::byte> whole_of(const Kept& kept) {
  return box_of(kept, Dims(kept.dims.size(), 0), kept.dims);
}

void share(const ArrayScript::Boxed& boxed, unsigned rank, unsigned processes, Dims* at,
           Dims* dims) {
  *at = Dims(boxed.kept.dims.size(), 0);
  *dims = boxed.kept.dims;
  const uint64_t n = boxed.kept.dims[boxed.axis];
  (*at)[boxed.axis] = rank * n / processes;
  (*dims)[boxed.axis] = (rank + 1) * n / processes - rank * n / processes;
}

ArrayScript ArrayScripts::make(uint64_t number, unsigned processes, const Contents& before) const {
  Random random(mix(seed) + number);
  ArrayScript script;
  unsigned names = 0;
  const auto fresh = [&] { return "n" + std::to_string(number) + "." + std::to_string(names++); };
  if (random.below(kNewInMax) == 0) script.mode = ArraysMode::kWrite;
  Contents now = script.mode == ArraysMode::kWrite ? Contents() : before;
  script.contents = {before, now};
  const auto move = [&](const std::string& from, const std::string& to) {
    script.moves.push_back({from, to});
    if (!to.empty()) now[to] = now[from];
    now.erase(from);
    script.contents.push_back(now);
  };
  const auto any = [&] {
    return std::next(now.begin(), static_cast<long>(random.below(now.size())))->first;
  };
  while (now.size() > kArraysMax || (!now.empty() && random.below(4) == 0)) move(any(), "");
  if (!now.empty() && random.below(2) == 0) move(any(), fresh());

  Contents stored;  // and not finished yet
  for (uint64_t b = random.below(3) + (processes > 1 ? 1 : 0); b > 0; --b) {
    const std::string name = "u" + std::to_string(random.below(4));
    if (stored.contains(name)) continue;
    if (now.contains(name)) move(name, random.below(2) == 0 ? fresh() : "");
    script.boxes.push_back({name, some_array(random, bytes_max), random.below(3)});
    stored[name] = script.boxes.back().kept;
  }
  for (unsigned rank = 0; rank < processes; ++rank)
    for (uint64_t w = 1 + random.below(2); w > 0; --w) {
      // One that may be there, and is replaced then; or one that is renamed before it is finished.
      ArrayScript::Whole whole{rank, "r" + std::to_string(rank) + "." + std::to_string(w), "",
                               some_whole(random, bytes_max),
                               processes == 1 && random.below(3) == 0};
      if (random.below(4) == 0) whole.name = fresh(), whole.renamed = fresh();
      stored[whole.renamed.empty() ? whole.name : whole.renamed] = whole.kept;
      if (whole.is_flushed) {
        for (auto& [name, kept] : stored) now[name] = kept;
        stored.clear();
        script.contents.push_back(now);
      }
      script.wholes.push_back(std::move(whole));
    }
  for (auto& [name, kept] : stored) now[name] = kept;
  script.contents.push_back(now);
  return script;
}

}  // namespace outcore::bench
