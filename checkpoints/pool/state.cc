#include "checkpoints/pool/state.h"

#include <algorithm>

#include "core/base/units.h"

namespace outcore::versioned {
namespace {

std::string add_object(State& state, uint32_t id, const std::string& name, uint64_t size_bytes) {
  if (size_bytes > ChunkMap::kChunksMax * state.chunk_bytes)
    return "an object is larger than one can be";
  auto found = state.objects.find(id);
  if (found == state.objects.end()) {
    auto map = ChunkMap::make();
    if (map == nullptr) return kNoMemory;
    found = state.objects.emplace(id, StateObject{{}, 0, std::move(map)}).first;
  }
  found->second.name = name;
  found->second.size_bytes = size_bytes;
  state.next_object = std::max(state.next_object, id + 1);
  return {};
}

// Applies changes. `death`: the commit with which the replaced blocks die; 0: there were none. The
// result is safe to read, whoever wrote the record.
std::string apply_changes(State& state, Decoder& from, uint32_t commit, uint32_t death) {
  const auto id = from.get<uint32_t>();
  const auto count = from.get<uint32_t>();
  const auto object = state.objects.find(id);
  if (object == state.objects.end()) return "it changes an object that there is not";
  if (count > from.left() / kChangeBytes) return "it ends too early";
  ChunkMap& map = *object->second.map;
  for (uint32_t i = 0; i < count; ++i) {
    const Change change = from.get_change();
    if (change.block == UINT32_MAX ||
        (change.block != 0 && (change.birth == 0 || change.birth > commit)))
      return "it has a block that cannot be";
    const Entry old = map.get(change.chunk);
    if (old.block != 0 && death != 0 && !state.graves.push_back({old.block, old.birth, death}))
      return kNoMemory;
    if (old.block == 0 && change.block == 0) continue;
    if (map.prepare(change.chunk) != 0) return kNoMemory;
    map.set(change.chunk, {change.block, change.birth, change.sum});
  }
  return {};
}

std::string remove_object(State& state, uint32_t id, uint32_t death) {
  const auto object = state.objects.find(id);
  if (object == state.objects.end()) return {};  // created and removed since the commit before
  bool has_memory = true;
  object->second.map->for_each(0, UINT64_MAX, [&](uint64_t, Entry entry) {
    has_memory = has_memory && state.graves.push_back({entry.block, entry.birth, death});
  });
  state.objects.erase(object);
  return has_memory ? "" : kNoMemory;
}

std::string apply_commit(State& state, const RecordHeader& header, Decoder& from) {
  if (header.commit <= state.commit) return "its commit is not after the one before";
  if (header.commit > kCommitMax) return "its commit is past the last that there can be";
  const bool is_checkpoint = from.get<uint32_t>() != 0;
  Checkpoint checkpoint = from.get_checkpoint();
  const auto table_count = from.get<uint32_t>();
  for (uint32_t i = 0; i < table_count && from.is_intact(); ++i) {
    const auto id = from.get<uint32_t>();
    const bool is_removed = from.get<uint32_t>() != 0;
    const auto size_bytes = from.get<uint64_t>();
    const std::string name = from.get_text(kNameBytesMax);
    std::string why = is_removed ? remove_object(state, id, header.commit)
                                 : add_object(state, id, name, size_bytes);
    if (!why.empty()) return why;
  }
  const auto group_count = from.get<uint32_t>();
  for (uint32_t i = 0; i < group_count && from.is_intact(); ++i)
    if (std::string why = apply_changes(state, from, header.commit, header.commit); !why.empty())
      return why;
  if (!from.is_done()) return {};  // apply() reports it
  if (is_checkpoint) state.checkpoints.push_back(std::move(checkpoint));
  // Set last: whoever looks for this commit takes a state that has its number.
  state.commit = header.commit;
  return {};
}

std::string apply_removal(State& state, Decoder& from) {
  const auto count = from.get<uint32_t>();
  for (uint32_t i = 0; i < count && from.is_intact(); ++i) {
    const auto number = from.get<uint32_t>();
    if (std::erase_if(state.checkpoints, [&](const Checkpoint& c) { return c.number == number; }) ==
        0)
      return "it removes a checkpoint that there is not";
  }
  return {};
}

std::string apply_rename(State& state, Decoder& from) {
  const auto number = from.get<uint32_t>();
  const std::string name = from.get_text(kNameBytesMax);
  for (Checkpoint& checkpoint : state.checkpoints)
    if (checkpoint.number == number) {
      checkpoint.name = name;
      return {};
    }
  return "it renames a checkpoint that there is not";
}

std::string apply_base(State& state, const Record& record, Decoder& from) {
  switch (record.type()) {
    case RecordType::kBase:
      state.pool_id = record.header.pool_id;
      state.commit = record.header.commit;
      state.chunk_bytes = from.get<uint32_t>();
      state.next_object = from.get<uint32_t>();
      if (!base::is_power_of_two(state.chunk_bytes) || state.chunk_bytes < kChunkBytesMin ||
          state.chunk_bytes > kChunkBytesMax)
        return "its chunks have a size that cannot be";
      if (state.commit > kCommitMax) return "its commit is past the last that there can be";
      return {};
    case RecordType::kObject: {
      const auto id = from.get<uint32_t>();
      const auto size_bytes = from.get<uint64_t>();
      return add_object(state, id, from.get_text(kNameBytesMax), size_bytes);
    }
    case RecordType::kMap:
      return apply_changes(state, from, state.commit, 0);
    case RecordType::kHeld: {
      const auto count = from.get<uint32_t>();
      for (uint32_t i = 0; i < count && from.is_intact(); ++i)
        state.checkpoints.push_back(from.get_checkpoint());
      return {};
    }
    default: {
      const auto count = from.get<uint32_t>();
      for (uint32_t i = 0; i < count && from.is_intact(); ++i)
        if (!state.graves.push_back(from.get_grave())) return kNoMemory;
      return {};
    }
  }
}

}  // namespace

const Checkpoint* State::find(const std::string& name) const {
  const auto found = std::find_if(checkpoints.begin(), checkpoints.end(),
                                  [&](const Checkpoint& c) { return c.name == name; });
  return found == checkpoints.end() ? nullptr : &*found;
}

std::string apply(State& state, const Record& record) {
  Decoder from(record.payload);
  std::string why;
  switch (record.type()) {
    case RecordType::kBase:
    case RecordType::kObject:
    case RecordType::kMap:
    case RecordType::kHeld:
    case RecordType::kGraves:
      why = apply_base(state, record, from);
      break;
    case RecordType::kCommit:
      why = apply_commit(state, record.header, from);
      break;
    case RecordType::kRemoval:
      why = apply_removal(state, from);
      break;
    case RecordType::kRename:
      why = apply_rename(state, from);
      break;
    case RecordType::kBaseEnd:
    case RecordType::kClosed:
    case RecordType::kContinued:
      return {};
    default:
      return "it is of a kind that there is not";
  }
  if (why.empty() && !from.is_done()) why = "it is not as long as what it says";
  return why;
}

}  // namespace outcore::versioned
