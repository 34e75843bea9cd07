#include "far/redis/chunks.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "core/base/assert.h"
#include "core/base/clock.h"
#include "core/os/wait.h"

namespace outcore::redis {
namespace {

constexpr uint64_t kRoundNs = 3'000'000'000;       // the longest wait for a connection
constexpr uint64_t kWaitMs = 1000, kProbeMs = 20;  // for replicas

// The request was not refused, but cannot be carried out now or here.
constexpr int kAgain = -EAGAIN;

bool is_all_done(std::span<const ChunkRequest> batch) {
  return std::all_of(batch.begin(), batch.end(), [](const ChunkRequest& r) { return r.is_done; });
}

void sleep_ns(uint64_t ns) {
  std::atomic<uint32_t> nobody{0};
  os::wait(&nobody, 0, ns);
}

}  // namespace

Chunks::Chunks(Servers& servers, Layout layout, uint32_t replicas, uint64_t timeout_ns,
               std::shared_ptr<const packing::Packer> packer, const std::string& member)
    : servers_(servers),
      layout_(std::move(layout)),
      replicas_(replicas),
      timeout_ns_(timeout_ns),
      packer_(std::move(packer)),
      spaces_(make_spaces(packer_.get())),
      member_(member.empty() ? member : "of:" + member),
      seen_(new std::atomic<uint64_t>[layout_.part_count]()),
      is_lost_(new std::atomic<bool>[layout_.part_count]()),
      suspect_since_ns_(new std::atomic<uint64_t>[layout_.part_count]()),
      queues_(new CombiningQueue[Servers::kServersMax]) {
  OC_CHECK(layout_.part_count != 0 && layout_.part_count <= kPartsMax && layout_.id.size() == 16);
  OC_CHECK(member.empty() || (member.size() == 16 && packer_ == nullptr));
  for (uint32_t part = 0; part < layout_.part_count; ++part) {
    tags_.push_back(even_tag(part, layout_.part_count));
    slots_.push_back(slot_of(std::to_string(tags_.back())));
  }
}

void Chunks::run(std::span<ChunkRequest> batch) {
  OC_ASSERT(batch.size() <= kBatchMax);
  const uint64_t start_ns = base::now_ns(), deadline_ns = start_ns + timeout_ns_;
  for (ChunkRequest& r : batch) {
    OC_ASSERT(part_of(r) < layout_.part_count);
    OC_ASSERT(is_of_part(r.act) || (layout_.is_packed && r.act == Act::kWrite) ||
              uint64_t{r.offset} + r.size_bytes <= layout_.chunk_bytes);
    OC_ASSERT((r.act != Act::kRead && r.act != Act::kWrite) || r.bytes != nullptr);
    r.result = 0;
    r.is_done = r.is_asking = r.is_plain = r.is_short = false;
  }
  assign(batch);
  if (servers_.is_stopped(timeout_ns_))
    for (ChunkRequest& r : batch)
      if (r.act == Act::kWrite || r.act == Act::kZero) {
        r.result = -ETIMEDOUT;
        r.is_done = true;
      }
  if (!batch.empty()) read_combined(batch, deadline_ns);
  if (is_all_done(batch)) return;
  for (uint64_t pause_ns = 500'000;; pause_ns = std::min<uint64_t>(2 * pause_ns, 100'000'000)) {
    assign(batch);
    if (round(batch, deadline_ns)) return;
    if (base::now_ns() >= deadline_ns) break;
    if (std::all_of(batch.begin(), batch.end(),
                    [&](const ChunkRequest& r) { return r.is_done || is_given_up(r, start_ns); }))
      break;
    const bool is_redirected = std::any_of(batch.begin(), batch.end(), [](const ChunkRequest& r) {
      return !r.is_done && r.is_asking;
    });
    if (is_redirected) continue;
    sleep_ns(pause_ns);
    servers_.refresh(deadline_ns);
  }
  for (ChunkRequest& r : batch)
    if (!r.is_done) r.result = -ETIMEDOUT;
}

// Whether others have waited for this server as long as a request may. Otherwise a flush of many
// pages would wait that long for each of them.
bool Chunks::is_given_up(const ChunkRequest& r, uint64_t start_ns) const {
  if (r.server == Servers::kNobody) return false;
  const uint64_t since_ns = servers_.silent_since_ns(r.server, use_of(is_change(r.act)));
  const uint64_t now_ns = base::now_ns();
  return since_ns != 0 && now_ns >= since_ns + timeout_ns_ && now_ns >= start_ns + kGraceNs;
}

void Chunks::assign(std::span<ChunkRequest> batch) {
  for (ChunkRequest& r : batch)
    if (!r.is_done && !r.is_asking)
      r.server = static_cast<uint16_t>(servers_.server_of(slots_[part_of(r)]));
}

// Finds the servers and directions of requests that are not done, in ascending order, so that two
// batches that hold some connections while they wait for others cannot wait for each other.
size_t Chunks::find_groups(std::span<const ChunkRequest> batch, Group* groups) const {
  size_t count = 0;
  for (const ChunkRequest& r : batch) {
    if (r.is_done || r.server == Servers::kNobody) continue;
    const Group wanted{r.server, is_change(r.act), nullptr};
    const auto key = [](const Group& g) { return 2 * g.server + (g.is_write ? 1 : 0); };
    Group* const end = groups + count;
    Group* const place = std::lower_bound(
        groups, end, wanted, [&](const Group& a, const Group& b) { return key(a) < key(b); });
    if ((place != end && key(*place) == key(wanted)) || count == kGroupsMax) continue;
    std::move_backward(place, end, end + 1);
    *place = wanted;
    ++count;
  }
  OC_ASSERT(count <= kGroupsMax);
  return count;
}

// Asks all servers once. True: everything is done.
bool Chunks::round(std::span<ChunkRequest> batch, uint64_t deadline_ns) {
  Group groups[kGroupsMax + 1];
  const size_t count = find_groups(batch, groups);
  for (ChunkRequest& r : batch) r.group = ChunkRequest::kUnsent;
  for (size_t i = 0; i < count; ++i) {
    Group& group = groups[i];
    if (open(group, deadline_ns) != 0) {
      for (ChunkRequest& r : batch)
        if (r.server == group.server) r.is_asking = false;
      continue;
    }
    OC_ASSERT(group.line != nullptr && group.line->connection.is_open());
    group.was_returning = servers_.is_returning(group.server);
    group.replicas = servers_.acknowledging(group.server, replicas_);
    for (ChunkRequest& r : batch) {
      if (r.is_done || r.server != group.server || is_change(r.act) != group.is_write) continue;
      send_unless_lost(group, static_cast<uint8_t>(i), r);
    }
    if (group.is_write && replicas_ > 0) send_wait(group, deadline_ns);
    group.line->connection.flush();
  }
  for (size_t i = 0; i < count; ++i) {
    Group& group = groups[i];
    if (group.line == nullptr) continue;
    conclude(group, static_cast<uint8_t>(i), batch);
    group.is_write ? servers_.release(group.line) : release(group.line, group.server);
  }
  return is_all_done(batch);
}

// Sent after a new connection was checked: lost bytes must not be read as zeros.
void Chunks::send_unless_lost(Group& group, uint8_t number, ChunkRequest& r) {
  OC_ASSERT(!r.is_done && r.server == group.server);
  if (is_lost_[part_of(r)].load(std::memory_order_relaxed) && r.act != Act::kForget &&
      r.act != Act::kDrop) {
    r.result = -EIO;
    r.is_done = true;
    return;
  }
  r.group = number;
  r.is_same = layout_.is_packed && r.act == Act::kRead && !r.is_asking && group.last != nullptr &&
              group.last->act == Act::kRead && group.last->at == r.at;
  if (r.is_same) return;
  group.last = &r;
  send(group.line->connection, r);
}

// Reads the replies, and notes what became of the requests.
void Chunks::conclude(Group& group, uint8_t number, std::span<ChunkRequest> batch) {
  OC_ASSERT(group.line != nullptr);
  const int error = finish(group, number, batch);
  servers_.note_answer(group.server, use_of(group.is_write), error == 0);
  if (error != 0 && error != kAgain) {
    note(group.server, error);
    group.line->abandon();  // it is unknown what is still on its way there
  }
  if (error != 0) forget_redirections(batch, number);
}

int Chunks::open(Group& group, uint64_t deadline_ns) {
  const Use use = use_of(group.is_write);
  const uint64_t now_ns = base::now_ns();
  const uint64_t since_ns = servers_.silent_since_ns(group.server, use);
  if (since_ns != 0 && now_ns >= since_ns + timeout_ns_)
    deadline_ns = std::min(deadline_ns, now_ns + kGraceNs);
  int error = 0;
  group.line =
      servers_.acquire(group.server, use, std::min(deadline_ns, now_ns + kRoundNs), &error);
  if (group.line != nullptr) {
    group.line->connection.set_deadline(deadline_ns);
    if (servers_.is_retired(group.server)) error = -EAGAIN;
    if (error == 0 && group.is_write) error = servers_.end_abandoned(*group.line);
    const uint32_t epoch = servers_.epoch(group.server);
    if (error == 0 && servers_.is_checked(*group.line, group.server)) return 0;
    if (error == 0) error = check_fresh(*group.line, group.server);
    // A server that took over does not know the scripts. What is staged before it says so would be
    // in vain.
    if (error == 0 && group.is_write && group.line->is_fresh)
      error = load_scripts(group.line->connection);
    if (error == 0) {
      group.line->is_fresh = false;
      group.line->epoch = epoch;
      return 0;
    }
    group.line->connection.close();
    servers_.release(group.line);
    group.line = nullptr;
  }
  if (error != -EBUSY) servers_.note_answer(group.server, use, false);
  note(group.server, error);
  return error;
}

// If a redirection leads to a server that does not answer, the owner of the slot is asked again.
void Chunks::forget_redirections(std::span<ChunkRequest> batch, uint8_t group) {
  for (ChunkRequest& r : batch)
    if (r.group == group) r.is_asking = false;
}

// Reads the replies for a group. Requests that must be asked again stay as they are. -EAGAIN: too
// few replicas have acknowledged. Other errors are the connection's.
int Chunks::finish(Group& group, uint8_t number, std::span<ChunkRequest> batch) {
  OC_CHECK(batch.size() <= kBatchMax);  // `changed` has no room for more
  bool must_load = false, is_short = false;
  Last last(spaces_.get());
  uint32_t changed[kBatchMax];
  size_t changed_count = 0;
  for (uint32_t i = 0; i < batch.size(); ++i) {
    ChunkRequest& r = batch[i];
    if (r.group != number) continue;
    const int result = receive(*group.line, r, last);
    must_load = must_load || result == -ENOEXEC;
    if (result != 0 && result != kAgain && result != -ENOEXEC) return result;
    if (result == 0 && r.result == 0) changed[changed_count++] = i;
    // A value that is shorter than it should be is not done before it was judged.
    const bool is_judged = !r.is_short || !must_have_fences_.load(std::memory_order_acquire);
    r.is_done =
        result == 0 && is_judged && (!group.is_write || group.replicas == 0 || r.result != 0);
  }
  if (!group.is_write)
    if (const int result = judge_short_reads(group.line->connection, number, batch); result != 0)
      return result;
  if (group.is_write && (group.replicas > 0 || group.is_probe)) {
    const int result = wait_for_replicas(group);
    if (result != 0 && result != kAgain) return result;
    for (size_t i = 0; i < changed_count; ++i) batch[changed[i]].is_done = result == 0;
    is_short = result == kAgain;
  }
  // A write that went to a server which its standby has replaced meanwhile is repeated there, as is
  // a write without replicas that have come back. This is checked twice: either this thread sees
  // the replacement, or the thread that asks the standby first sees what was acknowledged.
  const auto is_replaced = [&] {
    if (!group.is_write) return false;
    const bool has_copies = group.replicas >= servers_.acknowledging(group.server, replicas_);
    if (has_copies && !servers_.is_retired(group.server)) return false;
    for (size_t i = 0; i < changed_count; ++i) batch[changed[i]].is_done = false;
    return true;
  };
  if (is_replaced()) return kAgain;
  for (size_t i = 0; group.is_write && i < changed_count; ++i) {
    const ChunkRequest& r = batch[changed[i]];
    std::atomic<uint64_t>& seen = seen_[part_of(r)];
    uint64_t known = seen.load();
    const bool has_seq = r.act == Act::kWrite || r.act == Act::kZero || r.act == Act::kFence;
    while (has_seq && r.is_done && known < r.number &&
           !seen.compare_exchange_weak(known, r.number)) {
    }
  }
  if (is_replaced()) return kAgain;
  if (must_load) return load_scripts(group.line->connection);
  return is_short ? kAgain : 0;
}

// Sends WAIT after the writes of a group.
void Chunks::send_wait(Group& group, uint64_t deadline_ns) {
  OC_ASSERT(group.is_write && replicas_ > 0);
  group.is_probe = group.replicas == 0 && servers_.may_probe(group.server);
  if (group.replicas == 0 && !group.is_probe) return;
  Connection& stream = group.line->connection;
  stream.begin(3);
  stream.word("WAIT");
  stream.word(group.is_probe ? replicas_ : group.replicas);
  // It must end before the deadline, or a lack of replicas would look like a failure of the server.
  const uint64_t now_ns = base::now_ns();
  const uint64_t left_ms = deadline_ns > now_ns ? (deadline_ns - now_ns) / 1'000'000 : 0;
  stream.word(std::clamp<uint64_t>(left_ms / 2, 1, group.is_probe ? kProbeMs : kWaitMs));
}

int Chunks::wait_for_replicas(Group& group) {
  OC_ASSERT(group.is_probe ? group.replicas == 0 : group.replicas > 0);
  Reply reply;
  if (const int result = group.line->connection.read(&reply); result != 0) return result;
  const uint64_t count = reply.type == ':' && reply.number > 0 ? reply.number : 0;
  if (group.is_probe) {
    if (count >= replicas_) servers_.note_found(group.server);
    return 0;
  }
  if (count >= group.replicas) {
    servers_.note_acknowledged(group.server, group.was_returning);
    return 0;
  }
  note(group.server, 0, "too few of its replicas acknowledge");
  servers_.note_shortage(group.server, static_cast<uint32_t>(count));
  return kAgain;
}

void Chunks::note(uint32_t server, int error, std::string_view text) {
  const os::SignalBlock block;  // a handler of this thread that faults may come here, too
  while (!noting_.try_lock()) os::yield();
  std::snprintf(trouble_, sizeof trouble_, "%s: %.*s%s",
                server == Servers::kNobody ? "no server" : servers_.address(server).text,
                static_cast<int>(std::min<size_t>(text.size(), 100)), text.data(),
                error == 0 ? "" : ::strerrordesc_np(-error));
  noting_.unlock();
}

std::string Chunks::trouble() const {
  char text[sizeof trouble_];
  {
    const os::SignalBlock block;
    while (!noting_.try_lock()) os::yield();
    std::memcpy(text, trouble_, sizeof text);
    noting_.unlock();
  }
  return text;
}

size_t Chunks::put_key(char* into, const ChunkRequest& r, bool is_fence) const {
  return write_key({into, kKeyMax}, tags_[part_of(r)], layout_.id,
                   is_fence ? std::nullopt : std::optional<uint64_t>(r.at));
}

}  // namespace outcore::redis
