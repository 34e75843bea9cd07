#include "far/redis/group_exchange.h"

#include <algorithm>
#include <cerrno>

#include "core/base/assert.h"
#include "core/base/clock.h"

namespace outcore::redis {
namespace {

constexpr uint64_t kRoundNs = 3'000'000'000;       // the longest wait for a connection
constexpr uint64_t kWaitMs = 1000, kProbeMs = 20;  // for replicas

// The request was not refused, but cannot be carried out now or here.
constexpr int kAgain = -EAGAIN;

}  // namespace

int GroupExchange::open(Group& group, uint64_t deadline_ns) {
  const Use use = group.use();
  const uint64_t now_ns = base::now_ns();
  const uint64_t since_ns = state_.servers.silent_since_ns(group.server, use);
  if (since_ns != 0 && now_ns >= since_ns + state_.timeout_ns)
    deadline_ns = std::min(deadline_ns, now_ns + kGraceNs);
  int error = 0;
  group.line =
      state_.servers.acquire(group.server, use, std::min(deadline_ns, now_ns + kRoundNs), &error);
  if (group.line != nullptr) {
    group.line->connection.set_deadline(deadline_ns);
    if (state_.servers.is_retired(group.server)) error = -EAGAIN;
    if (error == 0 && group.is_write) error = state_.servers.end_abandoned(*group.line);
    const uint32_t epoch = state_.servers.epoch(group.server);
    if (error == 0 && state_.servers.is_checked(*group.line, group.server)) return 0;
    if (error == 0) error = fence_check_.check_fresh(*group.line, group.server);
    // A server that took over does not know the scripts. What is staged before it says so would be
    // in vain.
    if (error == 0 && group.is_write && group.line->is_fresh)
      error = state_.scripts.load(group.line->connection);
    if (error == 0) {
      group.line->is_fresh = false;
      group.line->epoch = epoch;
      return 0;
    }
    state_.servers.note_refusal(*group.line, error);
    group.line->connection.close();
    state_.servers.release(group.line);
    group.line = nullptr;
  }
  if (error != -EBUSY) state_.servers.note_answer(group.server, use, false);
  RefusalText::Line said = "";
  if (Connection::is_refusal(error)) state_.servers.refusal(group.server).copy_to(said);
  state_.failure.note(group.server, said[0] == 0 ? error : 0, said);
  return error;
}

// Sent after a new connection was checked: lost bytes must not be read as zeros.
void GroupExchange::send(Group& group, uint8_t number, ChunkRequest& r) {
  OC_ASSERT(!r.is_done && r.server == group.server);
  if (state_.fences.is_lost(state_.part_of(r)) && r.act != Act::kForget && r.act != Act::kDrop) {
    r.result = -EIO;
    r.is_done = true;
    return;
  }
  r.group = number;
  r.is_same = state_.layout().is_packed && r.act == Act::kRead && !r.is_asking &&
              group.last != nullptr && group.last->act == Act::kRead && group.last->at == r.at;
  if (r.is_same) return;
  group.last = &r;
  commands_.send(group.line->connection, r);
}

void GroupExchange::send_wait(Group& group, uint64_t deadline_ns) {
  OC_ASSERT(group.is_write && state_.replicas > 0);
  group.is_probe = group.replicas == 0 && state_.servers.may_probe(group.server);
  if (group.replicas == 0 && !group.is_probe) return;
  Connection& stream = group.line->connection;
  stream.begin(3);
  stream.word("WAIT");
  stream.word(group.is_probe ? state_.replicas : group.replicas);
  // It must end before the deadline, or a lack of replicas would look like a failure of the server.
  const uint64_t now_ns = base::now_ns();
  const uint64_t left_ms = deadline_ns > now_ns ? (deadline_ns - now_ns) / 1'000'000 : 0;
  stream.word(std::clamp<uint64_t>(left_ms / 2, 1, group.is_probe ? kProbeMs : kWaitMs));
}

void GroupExchange::conclude(Group& group, uint8_t number, std::span<ChunkRequest> batch) {
  OC_ASSERT(group.line != nullptr);
  const int error = finish(group, number, batch);
  state_.servers.note_answer(group.server, group.use(), error == 0);
  if (error != 0 && error != kAgain) {
    state_.failure.note(group.server, error);
    group.line->abandon();  // it is unknown what is still on its way there
  }
  if (error != 0) forget_redirections(batch, number);
}

// If a redirection leads to a server that does not answer, the owner of the slot is asked again.
void GroupExchange::forget_redirections(std::span<ChunkRequest> batch, uint8_t group) {
  for (ChunkRequest& r : batch)
    if (r.group == group) r.is_asking = false;
}

// Reads the replies for a group. Requests that must be asked again stay as they are. -EAGAIN: too
// few replicas have acknowledged. Other errors are the connection's.
int GroupExchange::finish(Group& group, uint8_t number, std::span<ChunkRequest> batch) {
  OC_CHECK(batch.size() <= ChunkRequest::kBatchMax);  // `changed` has no room for more
  bool must_load = false, is_short = false;
  LastValue last(packed_.spaces());
  uint32_t changed[ChunkRequest::kBatchMax];
  size_t changed_count = 0;
  for (uint32_t i = 0; i < batch.size(); ++i) {
    ChunkRequest& r = batch[i];
    if (r.group != number) continue;
    const int result = commands_.receive(*group.line, r, last);
    must_load = must_load || result == -ENOEXEC;
    if (result != 0 && result != kAgain && result != -ENOEXEC) return result;
    if (result == 0 && r.result == 0) changed[changed_count++] = i;
    // A value that is shorter than it should be is not done before it was judged.
    const bool is_judged = !r.is_short || !state_.fences.must_exist();
    r.is_done =
        result == 0 && is_judged && (!group.is_write || group.replicas == 0 || r.result != 0);
  }
  if (!group.is_write)
    if (const int result = fence_check_.judge_short_reads(group.line->connection, number, batch);
        result != 0)
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
    const bool has_copies =
        group.replicas >= state_.servers.acknowledging(group.server, state_.replicas);
    if (has_copies && !state_.servers.is_retired(group.server)) return false;
    for (size_t i = 0; i < changed_count; ++i) batch[changed[i]].is_done = false;
    return true;
  };
  if (is_replaced()) return kAgain;
  for (size_t i = 0; group.is_write && i < changed_count; ++i) {
    const ChunkRequest& r = batch[changed[i]];
    const bool has_seq = r.act == Act::kWrite || r.act == Act::kZero || r.act == Act::kFence;
    if (has_seq && r.is_done) state_.fences.note_seen(state_.part_of(r), r.number);
  }
  if (is_replaced()) return kAgain;
  if (must_load) return state_.scripts.load(group.line->connection);
  return is_short ? kAgain : 0;
}

int GroupExchange::wait_for_replicas(Group& group) {
  OC_ASSERT(group.is_probe ? group.replicas == 0 : group.replicas > 0);
  Reply reply;
  if (const int result = group.line->connection.read(&reply); result != 0) return result;
  const uint64_t count = reply.type == ':' && reply.number > 0 ? reply.number : 0;
  if (group.is_probe) {
    if (count >= state_.replicas) state_.servers.note_found(group.server);
    return 0;
  }
  if (count >= group.replicas) {
    state_.servers.note_acknowledged(group.server, group.was_returning);
    return 0;
  }
  state_.failure.note(group.server, 0, "too few of its replicas acknowledge");
  state_.servers.note_shortage(group.server, static_cast<uint32_t>(count));
  return kAgain;
}

}  // namespace outcore::redis
