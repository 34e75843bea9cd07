#include "far/redis/catalog.h"

#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>

#include "core/base/assert.h"
#include "core/base/clock.h"
#include "core/base/units.h"
#include "far/redis/call.h"
#include "far/redis/catalog_scripts.h"

namespace outcore::redis {
namespace {

// What a server needs for a value in addition to its bytes, measured with Redis 7.0 (decision
// 0009). Its allocator has four sizes between two powers of two, and a chunk with its header does
// not fit into one of them. The rest is for the key and its entry in the server's tables, which
// double when they grow.
constexpr double kValueFactor = 1.25;
constexpr const char* kValueFactorText = "1.25";  // whatever the locale writes between digits
constexpr uint64_t kKeyBytes = 128;
constexpr uint64_t kServerBytes = 3 << 20;

const std::string& catalog_script() {
  // Never destroyed: a lease is given back when the process ends, after static objects are
  // destroyed.
  static const auto* const text = new std::string(
      std::string(kRecordPrelude) + "local value_factor, key_bytes = " + kValueFactorText + ", " +
      std::to_string(kKeyBytes) + "\n" + kCatalogScript);
  return *text;
}

std::string word_at(const std::string& text, size_t index) {
  size_t at = 0;
  for (; index > 0 && at != std::string::npos; --index) at = text.find(' ', at + 1);
  if (at == std::string::npos) return {};
  const size_t begin = at == 0 ? 0 : at + 1;
  return text.substr(begin, text.find(' ', begin) - begin);
}

}  // namespace

Error explain_refusal(const std::string& attempted, const std::string& refusal) {
  const std::string name = word_at(refusal, 0), first = word_at(refusal, 1);
  if (name == "MISSING")
    return {ENOENT, attempted +
                        ": there is no store of that name: `outcore store ls` lists those "
                        "there are"};
  if (name == "TAKEN")
    return {EBUSY, attempted + ": " + refusal.substr(7 + first.size()) +
                       " writes it; its lease "
                       "ends in " +
                       std::to_string((read_count(first).value_or(0) + 999) / 1000) +
                       " s unless it is renewed: wait, or open it for reading"};
  if (name == "PACKED")
    return {ENOTSUP, attempted + ": its chunks are compressed (" + first +
                         "), which only one process can write: make the store without compress="};
  if (name == "REMOVED")
    return {EBUSY, attempted +
                       ": it is being removed: `outcore store rm` ends a removal that was "
                       "interrupted"};
  if (name == "INCOMPLETE")
    return {EUCLEAN,
            attempted +
                (read_count(first).value_or(0) > 0
                     ? ": " + refusal.substr(12 + first.size()) + " is just putting it: wait for it"
                     : ": a copy into it did not end, so only a part of it is what it should be: "
                       "put it again, or remove it (`outcore store rm`)")};
  if (name == "SHORT")
    return {EFBIG, attempted + ": it has " + first + " bytes, fewer than asked for"};
  if (name == "FULL")
    return {ENOSPC, attempted + ": the servers' memory is booked: " +
                        base::format_bytes(read_count(first).value_or(0)) + " by others, " +
                        base::format_bytes(read_count(word_at(refusal, 2)).value_or(0)) +
                        " asked for: remove stores (`outcore store ls`, `rm`), or add servers"};
  if (const size_t at = refusal.find("DAMAGED "); at != std::string::npos)
    return {EIO, attempted + ": " +
                     explain_damage(word_at(refusal.substr(at), 1),
                                    "field '" + word_at(refusal.substr(at), 2) +
                                        "' is not a number that a store can have")};
  if (const size_t at = refusal.find("ALIEN "); at != std::string::npos) {
    const std::string kind = word_at(refusal.substr(at), 1), key = word_at(refusal.substr(at), 2);
    return {EIO, attempted + ": the catalog is damaged: a " + kind + " has its key " + key +
                     ": rename or remove that key (redis-cli)" +
                     (key == "oc:{catalog}" ? "" : ", and give the store up")};
  }
  if (name == "FENCED") return {ESTALE, attempted + ": the lease has gone to " + refusal.substr(7)};
  if (name == "OOM") return {ENOSPC, attempted + ": the server's memory is full"};
  if (name == "NOPERM" || name == "NOAUTH")
    return {EACCES, attempted + ": the server refuses: " + refusal};
  return {EPROTO, attempted + ": the server says: " + refusal};
}

namespace {

std::string random_digits() {
  uint64_t words[2] = {};
  if (::getrandom(words, sizeof words, 0) != sizeof words) words[0] = base::now_ns();
  char text[40];
  std::snprintf(text, sizeof text, "%016lx%016lx", static_cast<unsigned long>(words[0]),
                static_cast<unsigned long>(words[1]));
  return text;
}

std::string format_int(int64_t number) { return std::to_string(number); }

}  // namespace

uint32_t chance_of_fence() {
  uint32_t chance = 0;
  if (::getrandom(&chance, sizeof chance, 0) != sizeof chance)
    chance = static_cast<uint32_t>(base::now_ns());
  return chance & kChanceMax;
}

uint64_t needed_bytes(uint64_t size_bytes, uint64_t chunk_bytes, uint32_t part_count) {
  OC_CHECK(chunk_bytes != 0);
  const uint64_t chunks = (size_bytes + chunk_bytes - 1) / chunk_bytes;
  const double values = static_cast<double>(chunks * chunk_bytes) * kValueFactor;
  return static_cast<uint64_t>(std::ceil(values)) + (chunks + part_count) * kKeyBytes;
}

uint64_t bookable_bytes(uint64_t room_bytes, uint64_t chunk_bytes, uint32_t part_count) {
  OC_CHECK(chunk_bytes != 0);
  const uint64_t fences = part_count * kKeyBytes;
  const double room = static_cast<double>(room_bytes - std::min(room_bytes, fences));
  const double chunk = static_cast<double>(chunk_bytes) * kValueFactor + double{kKeyBytes};
  return static_cast<uint64_t>(room / chunk) * chunk_bytes;
}

void Claim::set_owner() {
  char host[256] = "an unknown host";
  ::gethostname(host, sizeof host - 1);
  owner_id = random_digits();
  new_id = random_digits().substr(0, 16);
  owner = "process " + std::to_string(::getpid()) + " on " + host;
  OC_ASSERT(owner_id.size() == 32 && new_id.size() == 16);
}

void Claim::set_member() {
  set_owner();
  member = owner_id.substr(0, 16);
}

Result<Value> Catalog::run(const std::string& attempted, const std::string& verb,
                           const std::string& name, std::vector<std::string> arguments,
                           bool is_change) {
  Command command;
  command.words = {
      "EVAL", catalog_script(), "2", kCatalogSet, std::string(kCatalogSet) + ":" + name, verb,
      name};
  command.words.insert(command.words.end(), arguments.begin(), arguments.end());
  command.slot = slot_of(kCatalogSet);
  command.replicas = is_change ? replicas_ : 0;
  Result<Value> answer = call(servers_, command, base::now_ns() + timeout_ns_);
  if (!answer) return Error{answer.code(), attempted + ": " + answer.message()};
  if (answer.value().type == '-') return explain_refusal(attempted, answer.value().text);
  return answer;
}

Result<Record> Catalog::open(const Claim& claim) {
  const std::string attempted = "open store '" + claim.name + "'";
  const auto answer =
      run(attempted, "open", claim.name,
          {claim.owner_id,
           claim.is_removal  ? "d"
           : claim.is_writer ? "w"
                             : "r",
           claim.owner, std::to_string(claim.size_bytes), claim.may_create ? "1" : "0",
           std::to_string(claim.chunk_bytes), std::to_string(claim.part_count),
           std::to_string(claim.replicas), claim.new_id, format_int(claim.lifetime_ms),
           format_int(claim.capacity_bytes), std::to_string(kLeaseMs),
           claim.is_expired_only ? "1" : "0", claim.packing, claim.member,
           std::to_string(chance_of_fence()), claim.is_rewritten ? "1" : "0"},
          claim.is_writer);
  if (!answer) return answer.error();
  Record record = read_record(answer.value(), claim.name);
  if (record.damage.empty()) return record;
  // Nobody should have to wait for a lease that cannot be used.
  if (claim.is_writer && claim.member.empty()) static_cast<void>(release(claim.name, record.token));
  return Error{EIO, attempted + ": " + explain_damage(claim.name, record.damage)};
}

Status Catalog::renew(const std::string& name, uint64_t token) {
  return run("renew the lease of '" + name + "'", "renew", name,
             {std::to_string(token), std::to_string(kLeaseMs)})
      .status();
}

Status Catalog::mark_ready(const std::string& name, uint64_t token) {
  return run("create store '" + name + "'", "ready", name, {std::to_string(token)}).status();
}

// A process that closes does not wait for dead servers: the lease ends by itself.
Status Catalog::release(const std::string& name, uint64_t token, int64_t lifetime_ms) {
  constexpr uint64_t kWaitNs = 2'000'000'000;
  Catalog impatient(servers_, replicas_, std::min(timeout_ns_, kWaitNs));
  std::vector<std::string> words = {std::to_string(token)};
  if (lifetime_ms >= 0) words.push_back(format_int(lifetime_ms));
  return impatient.run("give back the lease of '" + name + "'", "release", name, std::move(words))
      .status();
}

Status Catalog::resize(const std::string& name, uint64_t token, uint64_t size_bytes,
                       int64_t capacity_bytes) {
  return run("resize store '" + name + "'", "resize", name,
             {std::to_string(token), std::to_string(size_bytes), format_int(capacity_bytes)})
      .status();
}

Status Catalog::begin_rewrite(const std::string& name, uint64_t token) {
  return run("note that '" + name + "' is incomplete", "rewrite", name, {std::to_string(token)})
      .status();
}

Status Catalog::note_checksum(const std::string& name, uint64_t token,
                              const std::string& checksum) {
  return run("note the checksum of '" + name + "'", "sum", name, {std::to_string(token), checksum})
      .status();
}

Status Catalog::drop(const std::string& name, uint64_t token) {
  return run("remove store '" + name + "'", "drop", name, {std::to_string(token)}).status();
}

Result<std::vector<Record>> Catalog::list() {
  Command command;
  command.words = {
      "EVAL", catalog_script(), "2", kCatalogSet, std::string(kCatalogSet) + ":", "list", "", ""};
  command.slot = slot_of(kCatalogSet);
  Result<Value> answer = call(servers_, command, base::now_ns() + timeout_ns_);
  if (!answer) return answer.error();
  if (answer.value().type == '-') return explain_refusal("list the stores", answer.value().text);
  std::vector<Record> records;
  for (const Value& item : answer.value().items)
    records.push_back(read_record(item, item.field("listed")));
  std::sort(records.begin(), records.end(),
            [](const Record& a, const Record& b) { return a.name < b.name; });
  return records;
}

namespace {

// The value of "key:value\r\n" in a reply to INFO.
std::string info_field(const std::string& info, const std::string& key) {
  const size_t at = info.find("\n" + key + ":");
  if (at == std::string::npos) return {};
  const size_t begin = at + key.size() + 2;
  return info.substr(begin, info.find('\r', begin) - begin);
}

}  // namespace

Result<int64_t> Catalog::capacity_bytes() {
  std::vector<uint32_t> masters;
  for (uint32_t slot = 0; slot < kSlotCount; ++slot)
    if (const uint32_t server = servers_.server_of(slot);
        server != Servers::kNobody &&
        std::find(masters.begin(), masters.end(), server) == masters.end())
      masters.push_back(server);
  int64_t sum = 0;
  bool has_limit = true;
  for (const uint32_t server : masters) {
    const Command command{{"INFO", "memory"}, 0, 0};
    const Result<Value> info =
        call_server(servers_, server, command, base::now_ns() + Connection::kSilenceNsMax);
    if (!info) continue;  // it is down: its replica will answer
    const uint64_t limit =
        read_count(info_field(info.value().text, "maxmemory"), UINT64_MAX).value_or(0);
    const std::string policy = info_field(info.value().text, "maxmemory_policy");
    if (limit == 0) has_limit = false;
    if (limit != 0 && !policy.empty() && policy != "noeviction")
      return Error{EINVAL, std::string("server ") + servers_.address(server).text +
                               " evicts what it holds when it is full (maxmemory-policy " + policy +
                               "): set maxmemory-policy noeviction"};
    // Less what the server itself needs, and its buffers.
    const uint64_t room = limit - std::min(limit / 4, limit / 64 + kServerBytes);
    sum = static_cast<int64_t>(
        std::min(kCountMax, static_cast<uint64_t>(sum) + std::min(room, kCountMax)));
  }
  return has_limit ? sum : -1;
}

}  // namespace outcore::redis
