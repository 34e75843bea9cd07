// Chunks: the values of one store on its servers, read and written in parts.
//
// Requests of a batch travel together: all that go to one server in one stretch, all servers at
// once. What a server that died or moved does not answer is asked again elsewhere until the store's
// timeout. Any thread; kRead is fit for the fault path (without TLS).
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
  kZero,    // the same with zeros; a whole chunk (of packed chunks always) is given back
  kFence,   // the part's fence takes the token; `number` becomes its seq
  kSeq,     // `number` becomes the part's seq
  kCount,   // `number` becomes how many chunks of the part are stored
  kBytes,   // of packed chunks: `number` becomes the bytes of the part's values
  kForget,  // the part's fence goes
  kDrop     // the chunk goes, whoever has the fence
};

struct ChunkRequest {
  Act act = Act::kRead;
  uint64_t at = 0;      // the chunk; of kFence to kForget, the part
  uint32_t offset = 0;  // within the chunk
  uint32_t size_bytes = 0;
  std::byte* bytes = nullptr;  // kWrite only reads from it
  int result = 0;              // 0 or -errno
  uint64_t number = 0;

  // The executor's own.
  static constexpr uint8_t kUnsent = 255;
  uint16_t server = 0;
  uint8_t group = kUnsent;
  bool is_asking = false, is_done = false, is_short = false;
  bool is_plain = false;   // a write goes through the script, whatever its size
  bool is_same = false;    // as the request before it: the value is asked for once
  bool is_absent = false;  // of packed chunks: there was no value
};

// Where the chunks of a store are. Constant.
struct Layout {
  std::string id;           // 16 hex digits
  uint32_t part_count = 0;  // a power of two <= kPartsMax
  uint64_t chunk_bytes = 0;
  bool is_packed = false;  // values are a Packer's
};

class Chunks {
 public:
  static constexpr size_t kBatchMax = 128;
  static constexpr size_t kReadBatchMax = 32;  // on the stack of whoever touched the page
  static constexpr uint64_t kGraceNs = 250'000'000;

  // `member`: of those that share the writer's lease (redis/shared_lease.h), which one this is.
  // REQUIRES: a packer to read or write chunks that are packed; then there is no member.
  Chunks(Servers& servers, Layout layout, uint32_t replicas, uint64_t timeout_ns,
         std::shared_ptr<const packing::Packer> packer = nullptr, const std::string& member = {});

  // Carries out up to kBatchMax requests and sets their results: -ETIMEDOUT (no server, or too few
  // replicas, within the timeout; what is asked later of a server that has been silent for so long
  // already is given up within kGraceNs), -ENOSPC (a server's memory is full), -ESTALE (another
  // writer has the store), -EIO (the servers lost bytes of the part), -EACCES, -EPROTO.
  void run(std::span<ChunkRequest> batch);

  // Loads the scripts' names; 0 or -errno. Before the first kWrite, kZero or kFence.
  int learn_scripts();
  // Every part's fence takes the token: no writer with a smaller one changes anything any more. Or,
  // for readers, every fence is there. 0 or -errno as above.
  // *is_untouched: nothing was ever changed in the store.
  int take_fences(uint64_t token, bool is_new, bool* is_untouched);
  int look_at_fences();
  // All fences, and then all chunks, of a store of so many bytes go.
  int remove_all(uint64_t size_bytes);
  // Bytes that the servers hold, in whole values; or -errno.
  Result<uint64_t> stored_bytes();

  const Layout& layout() const { return layout_; }
  // Neighbours lie on different servers, as evenly as the golden ratio spreads them.
  uint32_t part_of(uint64_t chunk) const {
    return static_cast<uint32_t>(chunk * 159 % layout_.part_count);
  }
  // False: no memory to unpack in, which has a size that was known when this was made.
  bool has_spaces() const { return spaces_ == nullptr || spaces_->is_made(); }
  bool has_lost() const { return has_lost_.load(std::memory_order_relaxed); }
  // What last went wrong on the way, for messages: "127.0.0.1:7000: Connection refused".
  std::string trouble() const;

 private:
  struct Group {
    uint32_t server = 0;
    bool is_write = false;
    Line* line = nullptr;
    uint32_t replicas = 0;               // that must acknowledge
    bool is_probe = false;               // none must; asked whether they do
    bool was_returning = false;          // Servers::is_returning() when it was sent
    const ChunkRequest* last = nullptr;  // that was sent
  };
  // Of packed chunks: what a group's last value was.
  struct Last {
    explicit Last(SpacePool* pool) : space(pool) {}
    Space space;
    const std::byte* chunk = nullptr;
    int result = 0, error = 0;
    bool is_short = false;
  };
  // How the bytes of a write travel: through a script, to a key of their own that becomes the
  // chunk, or into a copy of the chunk that does.
  enum class Way : uint8_t { kScript, kWhole, kCopied };
  static constexpr uint32_t kStagedMin = 8192;  // below, a script's few calls are cheaper
  static constexpr size_t kGroupsMax = 32, kKeyMax = 80, kStagedKeyMax = kKeyMax + 80;

  uint32_t part_of(const ChunkRequest& r) const {
    return is_of_part(r.act) ? static_cast<uint32_t>(r.at) : part_of(r.at);
  }
  static bool is_of_part(Act act) { return act >= Act::kFence && act != Act::kDrop; }
  static bool is_change(Act act) {
    return act != Act::kRead && act != Act::kSeq && act != Act::kCount && act != Act::kBytes;
  }
  static Use use_of(bool is_write) { return is_write ? Use::kWrite : Use::kRead; }
  void assign(std::span<ChunkRequest> batch);
  bool is_given_up(const ChunkRequest& r, uint64_t start_ns) const;
  void read_combined(std::span<ChunkRequest> batch, uint64_t deadline_ns);
  void lead(Line* line, std::span<ChunkRequest> batch, uint64_t deadline_ns);
  void ask_together(Line* line, uint32_t server, std::span<ChunkRequest> all);
  void give(Line* line, uint32_t server);
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
  const std::unique_ptr<SpacePool> spaces_;  // with a packer
  const std::string member_;                 // field of the fences; empty: the lease is not shared
  std::vector<uint32_t> tags_, slots_;       // of each part
  char script_name_[kScriptCount][41] = {};
  std::atomic<uint64_t> token_{0}, staged_count_{0};
  std::atomic<bool> is_new_{false}, must_have_fences_{false}, has_lost_{false};
  // Each part's seq, or the count of the member's changes, that replicas acknowledged.
  std::unique_ptr<std::atomic<uint64_t>[]> seen_;
  std::unique_ptr<std::atomic<bool>[]> is_lost_;
  std::unique_ptr<std::atomic<uint64_t>[]> suspect_since_ns_;  // each part; 0: it is not

  std::unique_ptr<CombiningQueue[]> queues_;  // of each server

  mutable Holder noting_;
  char trouble_[256] = {};
};

}  // namespace outcore::redis
