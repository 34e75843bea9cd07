// Chunks: the values of one store on its servers, read and written in parts.
//
// The requests of a batch travel together: those for one server are sent in one go, and all servers
// work at the same time. What a server that died or moved does not answer is asked again elsewhere,
// until the timeout of the store. Any thread; kRead may be used on the fault path (without TLS).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/packing/packer.h"
#include "far/redis/combining_queue.h"
#include "far/redis/record.h"
#include "far/redis/scripts.h"
#include "far/redis/servers.h"
#include "far/redis/space_pool.h"

namespace outcore::redis {

enum class Act : uint8_t {
  kRead,    // bytes of a chunk; what was never written reads zero
  kWrite,   // bytes of a chunk, if the token is the writer's; of packed chunks: the new value
  kZero,    // the same with zeros; a whole chunk (if packed: always) is deleted
  kFence,   // the fence of the part gets the token; `number` becomes its seq
  kSeq,     // `number` becomes the part's seq
  kToken,   // `number` becomes the token in its fence
  kCount,   // `number` becomes the count of stored chunks of the part
  kBytes,   // of packed chunks: `number` becomes the bytes of the part's values
  kForget,  // deletes the fence of the part
  kDrop     // deletes the chunk, whoever has the fence
};

struct ChunkRequest {
  Act act = Act::kRead;
  uint64_t at = 0;      // the chunk; for kFence to kForget the part
  uint32_t offset = 0;  // within the chunk
  uint32_t size_bytes = 0;
  std::byte* bytes = nullptr;  // kWrite only reads from it
  int result = 0;              // 0 or -errno
  uint64_t number = 0;

  // Used by Chunks alone.
  static constexpr uint8_t kUnsent = 255;
  uint16_t server = 0;
  uint8_t group = kUnsent;
  bool is_asking = false, is_done = false, is_short = false;
  bool is_plain = false;   // a write that must go through the script, whatever its size
  bool is_same = false;    // the same chunk as the request before: its value is asked for once
  bool is_absent = false;  // of packed chunks: there was no value
};

// How the chunks of a store are arranged on the servers. Constant.
struct Layout {
  std::string id;           // 16 hex digits
  uint32_t part_count = 0;  // a power of two <= kPartsMax
  uint64_t chunk_bytes = 0;
  bool is_packed = false;  // values are made by a Packer
};

class Chunks {
 public:
  static constexpr size_t kBatchMax = 128;
  static constexpr size_t kReadBatchMax = 32;  // on the stack of the thread that faulted
  static constexpr uint64_t kGraceNs = 250'000'000;

  // `member`: of a shared lease (redis/shared_lease.h), which member this is. REQUIRES: to read or
  // write packed chunks, a packer; packed stores have no members.
  Chunks(Servers& servers, Layout layout, uint32_t replicas, uint64_t timeout_ns,
         std::shared_ptr<const packing::Packer> packer = nullptr, const std::string& member = {});

  // Carries out up to kBatchMax requests and sets their results: -ETIMEDOUT (no server, or too few
  // replicas, answered within the timeout; later requests to a server that has been silent for so
  // long are given up within kGraceNs), -ENOSPC (the memory of a server is full), -ESTALE (another
  // writer has the store), -EIO (the servers lost bytes of the part), -EACCES, -EPROTO.
  void run(std::span<ChunkRequest> batch);

  // Asks for the names of the scripts; 0 or -errno. Call it before the first kWrite, kZero or
  // kFence.
  int learn_scripts();
  // Writes the token into the fences of all parts: a writer with a smaller token cannot change
  // anything any more. For readers: checks that all fences exist. 0 or -errno, as run().
  // *is_untouched: nothing was ever changed in the store.
  int take_fences(uint64_t token, bool is_new, bool* is_untouched);
  int check_fences();
  // *sum: of how often each part was changed, if the last writer of all of them has this token;
  // else 0. What has the same sum and token has the same bytes. 0 or -errno, as run().
  int sum_changes(uint64_t token, uint64_t* sum);
  // Deletes all fences, and then all chunks, of a store of so many bytes.
  int remove_all(uint64_t size_bytes);
  // The bytes that the servers hold in whole values.
  Result<uint64_t> stored_bytes();

  const Layout& layout() const { return layout_; }
  // Neighbouring chunks lie on different servers, spread as evenly as the golden ratio does.
  uint32_t part_of(uint64_t chunk) const {
    return static_cast<uint32_t>(chunk * 159 % layout_.part_count);
  }
  // False: there was no memory for unpacking when this was made.
  bool has_spaces() const { return spaces_ == nullptr || spaces_->is_made(); }
  bool has_lost() const { return has_lost_.load(std::memory_order_relaxed); }
  // The last network error, for messages: "127.0.0.1:7000: Connection refused".
  std::string trouble() const;

 private:
  struct Group {
    uint32_t server = 0;
    bool is_write = false;
    Line* line = nullptr;
    uint32_t replicas = 0;               // how many must acknowledge
    bool is_probe = false;               // none must acknowledge; it asks whether they would
    bool was_returning = false;          // Servers::is_returning() when it was sent
    const ChunkRequest* last = nullptr;  // the last one that was sent
  };
  // Of packed chunks: the last value of a group.
  struct Last {
    explicit Last(SpacePool* pool) : space(pool) {}
    Space space;
    const std::byte* chunk = nullptr;
    int result = 0, error = 0;
    bool is_short = false;
  };
  // How the bytes of a write travel: through a script; to a key of their own, which then becomes
  // the chunk; or into a copy of the chunk, which then does.
  enum class Way : uint8_t { kScript, kWhole, kCopied };
  static constexpr uint32_t kStagedMin = 8192;  // below, a script's few calls are cheaper
  static constexpr size_t kGroupsMax = 32, kKeyMax = 80, kStagedKeyMax = kKeyMax + 80;

  uint32_t part_of(const ChunkRequest& r) const {
    return is_of_part(r.act) ? static_cast<uint32_t>(r.at) : part_of(r.at);
  }
  static bool is_of_part(Act act) { return act >= Act::kFence && act != Act::kDrop; }
  static bool is_change(Act act) {
    return act != Act::kRead && act != Act::kSeq && act != Act::kToken && act != Act::kCount &&
           act != Act::kBytes;
  }
  static Use use_of(bool is_write) { return is_write ? Use::kWrite : Use::kRead; }
  void assign(std::span<ChunkRequest> batch);
  bool is_given_up(const ChunkRequest& r, uint64_t start_ns) const;
  void read_combined(std::span<ChunkRequest> batch, uint64_t deadline_ns);
  void lead(Line* line, std::span<ChunkRequest> batch, uint64_t deadline_ns);
  void ask_together(Line* line, uint32_t server, std::span<ChunkRequest> all);
  void release(Line* line, uint32_t server);
  bool round(std::span<ChunkRequest> batch, uint64_t deadline_ns);
  size_t find_groups(std::span<const ChunkRequest> batch, Group* groups) const;
  int open(Group& group, uint64_t deadline_ns);
  void send_unless_lost(Group& group, uint8_t number, ChunkRequest& r);
  void conclude(Group& group, uint8_t number, std::span<ChunkRequest> batch);
  void send(Connection& stream, const ChunkRequest& r);
  void send_script(Connection& stream, Script script, const ChunkRequest& r);
  void send_packed(Connection& stream, const ChunkRequest& r);
  void send_staged(Connection& stream, const ChunkRequest& r, Way way);
  Way way_of(const ChunkRequest& r) const;
  int receive(Line& line, ChunkRequest& r, Last& last);
  int receive_own(Line& line, ChunkRequest& r, Last& last);
  int receive_packed(Connection& stream, const Reply& reply, ChunkRequest& r, Last& last);
  int receive_staged(Connection& stream, ChunkRequest& r, Way way);
  int repeat(const Last& last, ChunkRequest& r) const;
  static std::unique_ptr<SpacePool> make_spaces(const packing::Packer* packer);
  int receive_bytes(Connection& stream, const Reply& reply, ChunkRequest& r);
  int receive_number(Connection& stream, const Reply& reply, ChunkRequest& r);
  int refuse(const Reply& reply, ChunkRequest& r);
  void refuse_number(ChunkRequest& r);
  void lose(uint32_t part);
  int finish(Group& group, uint8_t number, std::span<ChunkRequest> batch);
  static void forget_redirections(std::span<ChunkRequest> batch, uint8_t group);
  int judge_short_reads(Connection& stream, uint8_t group, std::span<ChunkRequest> batch);
  int judge(uint32_t server, uint32_t part, const ChunkRequest& answer, uint64_t least);
  void send_wait(Group& group, uint64_t deadline_ns);
  int wait_for_replicas(Group& group);
  int check_fresh(Line& line, uint32_t server);
  int load_scripts(Connection& stream);
  size_t put_key(char* into, const ChunkRequest& r, bool is_fence) const;
  uint64_t count_all();
  int run_on_parts(Act act, std::vector<uint64_t>* numbers);
  void note(uint32_t server, int error, std::string_view text = {});

  Servers& servers_;
  const Layout layout_;
  const uint32_t replicas_;
  const uint64_t timeout_ns_;
  const std::shared_ptr<const packing::Packer> packer_;
  const std::unique_ptr<SpacePool> spaces_;  // if there is a packer
  const std::string member_;            // a field of the fences; empty: the lease is not shared
  std::vector<uint32_t> tags_, slots_;  // by part
  char script_name_[kScriptCount][41] = {};
  std::atomic<uint64_t> token_{0}, staged_count_{0};
  std::atomic<bool> is_new_{false}, must_have_fences_{false}, has_lost_{false};
  // Of each part: the seq, or the number of the member's changes, that replicas have acknowledged.
  std::unique_ptr<std::atomic<uint64_t>[]> seen_;
  std::unique_ptr<std::atomic<bool>[]> is_lost_;
  std::unique_ptr<std::atomic<uint64_t>[]> suspect_since_ns_;  // by part; 0: it is not suspect

  std::unique_ptr<CombiningQueue[]> queues_;  // by server

  mutable Holder noting_;
  char trouble_[256] = {};
};

}  // namespace outcore::redis
