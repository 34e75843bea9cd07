// How a state is read from a journal, and written to a new one. See state.h.
#include <algorithm>
#include <cerrno>

#include "checkpoints/pool/state.h"
#include "core/base/assert.h"
#include "core/base/error.h"

namespace outcore::versioned {
namespace {

constexpr uint32_t kPerRecord = 64 << 10;  // entries of a map, or graves

}  // namespace

Result<std::vector<uint32_t>> list_journals(Disk& disk) {
  const auto names = disk.list();
  if (!names) return names.error();
  std::vector<uint32_t> numbers;
  for (const std::string& name : names.value())
    if (const uint32_t number = journal_number(name); number != 0) numbers.push_back(number);
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

Result<Loaded> load_journal(Disk& disk, uint32_t number, std::optional<uint32_t> until) {
  const std::string name = disk.name() + "/" + journal_name(number);
  auto file = disk.open(journal_name(number), Disk::Mode::kRead, false);
  if (!file) return file.error();
  Loaded loaded;
  JournalReader reader(*file.value(), name);
  Record record;
  bool is_first = true;
  while (true) {
    const auto next = reader.next(record);
    if (next == JournalReader::Next::kError) return reader.why();
    if (next == JournalReader::Next::kDamage) loaded.damage = reader.why();
    if (next != JournalReader::Next::kRecord) break;
    const bool is_base = record.type() == RecordType::kBase;
    const bool is_until =
        until && record.type() == RecordType::kCommit && record.header.commit > *until;
    if (is_until) break;
    std::string why = is_base == is_first ? apply(loaded.state, record)
                                          : "a journal begins with its base, and has one";
    if (why == kNoMemory) return base::system_error(ENOMEM, "read " + name);
    if (!why.empty()) {
      loaded.damage = Error{EIO, name + " is damaged at offset " +
                                     std::to_string(reader.record_offset()) + ": " + why};
      break;
    }
    is_first = false;
    loaded.last = reader.record_offset();
    if (record.type() == RecordType::kBaseEnd) {
      loaded.has_base = true;
      loaded.base_bytes = reader.offset();
    }
    loaded.is_closed = record.type() == RecordType::kClosed;
    loaded.is_continued = record.type() == RecordType::kContinued;
  }
  loaded.end = reader.offset();
  loaded.sequence = reader.sequence();
  loaded.is_torn = reader.is_torn();
  // The base is made durable before the file gets its name.
  if (!loaded.has_base && loaded.damage)
    loaded.damage = Error{EIO, name + " is damaged at offset " + std::to_string(loaded.end) +
                                   ": its base is not complete"};
  return loaded;
}

Result<uint32_t> first_commit_of(Disk& disk, uint32_t number) {
  auto file = disk.open(journal_name(number), Disk::Mode::kRead, false);
  if (!file) return file.error();
  JournalReader reader(*file.value(), disk.name() + "/" + journal_name(number));
  Record record;
  if (reader.next(record) == JournalReader::Next::kRecord && record.type() == RecordType::kBase)
    return record.header.commit;
  if (reader.why().code != 0) return reader.why();
  return Error{EIO, disk.name() + "/" + journal_name(number) + " is damaged at offset 0: no base"};
}

namespace {

Result<State> load_commit_once(Disk& disk, uint32_t commit) {
  const auto numbers = list_journals(disk);
  if (!numbers) return numbers.error();
  for (size_t i = numbers->size(); i-- > 0;) {
    const uint32_t number = numbers.value()[i];
    const auto first = first_commit_of(disk, number);
    // A journal that was removed after it was listed is not needed for this commit.
    if (!first && first.code() != EIO && first.code() != ENOENT) return first.error();
    if (!first || first.value() > commit) continue;
    auto loaded = load_journal(disk, number, commit);
    if (!loaded) return loaded.error();
    if (loaded->state.commit == commit && loaded->has_base) return std::move(loaded->state);
    if (!loaded->damage) return loaded->damage.error();
    break;
  }
  return Error{ENOENT, "read commit " + std::to_string(commit) + " of " + disk.name() +
                           ": no journal has it"};
}

}  // namespace

Result<State> load_commit(Disk& disk, uint32_t commit) {
  auto state = load_commit_once(disk, commit);
  // A writer may have replaced the journals that were listed by a new one.
  return state.code() == ENOENT ? load_commit_once(disk, commit) : std::move(state);
}

Result<MappedArray<Grave>> needed_graves(const State& state, const std::vector<uint32_t>& held) {
  const Error no_memory{ENOMEM, "there is no memory for the blocks of checkpoints"};
  MappedArray<uint64_t> living;
  bool has_memory = true;
  for (const auto& [id, object] : state.objects)
    object.map->for_each(0, UINT64_MAX, [&](uint64_t, Entry entry) {
      if (entry.block / 64 >= living.size() && !living.resize(entry.block / 64 + 1))
        has_memory = false;
      else
        living[entry.block / 64] |= uint64_t{1} << entry.block % 64;
    });
  const auto lives = [&](uint32_t block) {
    return block / 64 < living.size() && (living[block / 64] >> block % 64 & 1) != 0;
  };
  MappedArray<Grave> graves;
  for (const Grave& grave : state.graves)
    if (is_needed(grave, held) && !lives(grave.block))
      has_memory = has_memory && graves.push_back(grave);
  if (!has_memory) return no_memory;
  std::sort(graves.begin(), graves.end(), [](const Grave& a, const Grave& b) {
    return a.block != b.block ? a.block < b.block : a.death > b.death;
  });
  const auto end = std::unique(graves.begin(), graves.end(),
                               [](const Grave& a, const Grave& b) { return a.block == b.block; });
  graves.truncate(static_cast<size_t>(end - graves.begin()));
  return graves;
}

namespace {

int write_map(Journal& journal, uint32_t commit, uint32_t id, const ChunkMap& map) {
  Encoder changes;
  uint32_t count = 0;
  int error = 0;
  const auto flush = [&] {
    if (count == 0 || error != 0) return;
    Encoder record;
    record.put(id);
    record.put(count);
    record.put_all(changes.bytes());
    error = journal.append(RecordType::kMap, commit, record.bytes(), {false, false});
    changes.clear();
    count = 0;
  };
  map.for_each(0, UINT64_MAX, [&](uint64_t chunk, Entry entry) {
    changes.put(Change{static_cast<uint32_t>(chunk), entry.block, entry.birth, entry.sum});
    if (++count == kPerRecord) flush();
  });
  flush();
  return error;
}

int write_graves(Journal& journal, uint32_t commit, const MappedArray<Grave>& graves) {
  for (size_t from = 0; from < graves.size(); from += kPerRecord) {
    const auto count = static_cast<uint32_t>(std::min<size_t>(kPerRecord, graves.size() - from));
    Encoder record;
    record.put(count);
    for (uint32_t i = 0; i < count; ++i) record.put(graves[from + i]);
    const int error = journal.append(RecordType::kGraves, commit, record.bytes(), {false, false});
    if (error != 0) return error;
  }
  return 0;
}

}  // namespace

int write_base(Journal& journal, const State& state, const MappedArray<Grave>& graves) {
  constexpr Journal::How kLater = {false, false};
  OC_ASSERT(state.chunk_bytes != 0);
  Encoder record;
  record.put(state.chunk_bytes);
  record.put(state.next_object);
  int error = journal.append(RecordType::kBase, state.commit, record.bytes(), kLater);
  for (auto object = state.objects.begin(); error == 0 && object != state.objects.end(); ++object) {
    const auto& [id, about] = *object;
    record.clear();
    record.put(id);
    record.put(about.size_bytes);
    record.put(std::string_view(about.name));
    error = journal.append(RecordType::kObject, state.commit, record.bytes(), kLater);
    if (error == 0) error = write_map(journal, state.commit, id, *about.map);
  }
  if (error != 0) return error;
  record.clear();
  record.put(static_cast<uint32_t>(state.checkpoints.size()));
  for (const Checkpoint& checkpoint : state.checkpoints) record.put(checkpoint);
  error = journal.append(RecordType::kHeld, state.commit, record.bytes(), kLater);
  if (error == 0) error = write_graves(journal, state.commit, graves);
  if (error == 0) error = journal.append(RecordType::kBaseEnd, state.commit, {}, kLater);
  return error;
}

}  // namespace outcore::versioned
