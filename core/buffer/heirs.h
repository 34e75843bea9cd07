// Heirs: the members that have a file open that others write, so that they can store its pages if
// all its writers are killed; see heir.h. Not the fault path.
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
  // Whether an heir of the file lives; whether one other than `but` lives that is not leaving.
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
  // has() twice: a new member may have taken the place of a dead one, whose bit is cleared before.
  static bool is_living(const Member& member, const FileRecord& file, uint32_t i) {
    return has(file, i) && member.is_alive(i) && has(file, i);
  }
  static bool is_alone(const Member& member) {
    const uint32_t end = member.board().members_end.load(std::memory_order_seq_cst);
    for (uint32_t i = 0; i < end; ++i)
      if (i != member.index() && member.is_alive(i)) return false;
    return true;
  }

  // All members look at once which files are written.
  static void ring(Member& member) {
    os::Word<uint32_t>& requests = member.board().heir_requests;
    requests.fetch_add(1, std::memory_order_seq_cst);
    os::wake_between_processes(&requests);
  }

  // This member is about to write the file: rings for the others, and waits until one of them has
  // it open, at most 50 ms (members that are not stopped take less).
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
