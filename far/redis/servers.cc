#include "far/redis/servers.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <string_view>

#include "core/base/clock.h"
#include "core/os/wait.h"

namespace outcore::redis {

Servers::Servers(Options options)
    : table_(std::move(options)),
      lines_(table_),
      copies_(table_),
      slot_reader_(table_, lines_, copies_),
      standby_(table_, lines_, copies_, slot_reader_) {}

int Servers::refresh(uint64_t deadline_ns) {
  const uint32_t before = asked_.load(std::memory_order_acquire);
  while (!asking_.try_lock()) {
    os::wait(&asked_, before, 20'000'000);
    if (asked_.load(std::memory_order_acquire) != before) return 0;
    if (base::now_ns() >= deadline_ns) return -ETIMEDOUT;
  }
  const int result =
      table_.options().has_standby ? standby_.ask(deadline_ns) : ask_any(deadline_ns);
  asked_.fetch_add(1, std::memory_order_release);
  asking_.unlock();
  os::wake_all(&asked_);
  return result;
}

int Servers::ask_any(uint64_t deadline_ns) {
  int result = -EHOSTUNREACH;
  const uint32_t known = table_.count();
  for (uint32_t i = 0; i < known && result != 0; ++i) {
    const uint64_t now_ns = base::now_ns();
    if (i > 0 && now_ns >= deadline_ns) break;
    const uint32_t server = next_.fetch_add(1, std::memory_order_relaxed) % known;
    result = slot_reader_.ask(server, std::min(deadline_ns, now_ns + SlotReader::kAskNs));
  }
  return result;
}

bool Servers::is_stopped(uint64_t after_ns) {
  if (table_.options().alone_after_ns != 0 || table_.options().replicas == 0) return false;
  bool is_stopped = false;
  for (uint32_t i = 0; i < table_.count(); ++i) {
    Server& it = table_.at(i);
    const uint64_t since_ns = it.short_since_ns.load(), now_ns = base::now_ns();
    if (since_ns == 0 || now_ns < since_ns + after_ns) continue;
    if (CopyWatch::is_time_to_probe(it, now_ns) && has_replicas(i))
      it.short_since_ns.store(0);
    else
      is_stopped = true;
  }
  return is_stopped;
}

// Counts connected replicas. Whether they acknowledge is found out by the next write.
bool Servers::has_replicas(uint32_t server) {
  const uint64_t until_ns = base::now_ns() + SlotReader::kAskNs;
  int error = 0;
  Reply reply;
  if (Line* const line = lines_.acquire(server, Use::kControl, until_ns, &error); line != nullptr) {
    char count[24];
    char* const end = std::to_chars(count, count + sizeof count, table_.options().replicas).ptr;
    const std::string_view wanted(count, static_cast<size_t>(end - count));
    error = line->connection.ask({"WAIT", wanted, "100"}, &reply);
    if (error != 0) line->connection.close();
    lines_.release(line);
  }
  if (error == 0 && reply.type == ':' && reply.number >= table_.options().replicas) return true;
  refresh(until_ns);  // another server may have its place
  return false;
}

}  // namespace outcore::redis
