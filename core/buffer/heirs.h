// Heirs: members that could store what others write to a file, because they have it open. They are
// there for the case that all who write it are killed; see heir.h. Not the fault path.
#pragma once

#include <cstdint>

#include "core/buffer/member.h"
#include "core/os/wait.h"
#include "core/os/word.h"

namespace outcore::buffer {

class Heirs {
 public:
  static void add(FileRecord& file, uint32_t member) {
    file.heirs[member / 64].fetch_or(uint64_t{1} << (member % 64));
  }
  static void remove(FileRecord& file, uint32_t member) {
    file.heirs[member / 64].fetch_and(~(uint64_t{1} << (member % 64)));
  }
  static bool has(const FileRecord& file, uint32_t member) {
    return (file.heirs[member / 64].load() >> (member % 64) & 1) != 0;
  }
  // Whether one of them lives; and is about to stay, but for `but`.
  static bool has_living(const Member& member, const FileRecord& file) {
    for (uint32_t i = 0; i < kMembersMax; ++i)
      if (is_living(member, file, i)) return true;
    return false;
  }
  static bool has_staying(const Member& member, const FileRecord& file, uint32_t but) {
    for (uint32_t i = 0; i < kMembersMax; ++i)
      if (i != but && has(file, i) && member.board().members[i].is_leaving.load() == 0 &&
          is_living(member, file, i))
        return true;
    return false;
  }
  // Who is alive there may be another by now: the bits of a dead one go before its place is taken.
  static bool is_living(const Member& member, const FileRecord& file, uint32_t i) {
    return has(file, i) && member.is_alive(i) && has(file, i);
  }
  static bool is_alone(const Member& member) {
    const uint32_t end = member.board().members_end.load(std::memory_order_seq_cst);
    for (uint32_t i = 0; i < end; ++i)
      if (i != member.index() && member.is_alive(i)) return false;
    return true;
  }

  // They look at once what is written.
  static void ring(Member& member) {
    os::Word<uint32_t>& requests = member.board().heir_requests;
    requests.fetch_add(1, std::memory_order_seq_cst);
    os::wake_between_processes(&requests);
  }

  // This member is about to write the file: tells the others, and waits until one of them could
  // store it; for as long as that takes where they run, and no longer.
  static void wait_for_one(Member& member, const FileRecord& file) {
    constexpr uint64_t kNsMax = 50'000'000;
    ring(member);
    const uint64_t start_ns = os::now_ns();
    while (!has_staying(member, file, member.index()) && os::now_ns() - start_ns < kNsMax &&
           !is_alone(member)) {
      os::pause(50'000);
    }
  }
};

}  // namespace outcore::buffer
