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

  // All members look at once which files are written. Returns the number of this request.
  static uint32_t ring(Member& member) {
    os::Word<uint32_t>& requests = member.board().heir_requests;
    const uint32_t request = requests.fetch_add(1, std::memory_order_seq_cst) + 1;
    os::wake_between_processes(&requests);
    return request;
  }

  // This member has opened what it can of the files that were written at that request.
  static void note_heard(Member& member, uint32_t request) {
    member.record().heir_requests_heard.store(request, std::memory_order_seq_cst);
    member.record().heir_answer.store(HeirAnswer::kSoon);
  }

  // This member is about to write the file: rings for the others, and waits until one of them has
  // it open, or none of them can. On a busy machine that takes a while; who is stopped is waited
  // for once, for two seconds, and for 50 ms from then on.
  static void wait_for_one(Member& member, const FileRecord& file) {
    const uint32_t request = ring(member);
    const uint64_t start_ns = os::now_ns();
    while (!has_staying(member, file, member.index()) &&
           !have_all_heard(member, request, os::now_ns() - start_ns))
      os::pause(50'000);
  }

 private:
  static constexpr uint64_t wait_ns_of(HeirAnswer answer) {
    if (answer == HeirAnswer::kNever) return 0;
    return answer == HeirAnswer::kSoon ? 2'000'000'000 : 50'000'000;
  }

  // Whether all others that live and stay have heard the request, or were waited for as long as one
  // waits for them.
  static bool have_all_heard(const Member& member, uint32_t request, uint64_t waited_ns) {
    const uint32_t end = member.board().members_end.load(std::memory_order_seq_cst);
    for (uint32_t i = 0; i < end; ++i) {
      MemberRecord& other = member.board().members[i];
      const auto has_heard = [&] {
        const uint32_t heard = other.heir_requests_heard.load(std::memory_order_seq_cst);
        return static_cast<int32_t>(heard - request) >= 0 || other.is_leaving.load() != 0;
      };
      if (i == member.index() || has_heard() || !member.is_alive(i)) continue;
      HeirAnswer answer = other.heir_answer.load();
      if (waited_ns < wait_ns_of(answer)) return false;
      if (answer != HeirAnswer::kSoon) continue;
      other.heir_answer.compare_exchange_strong(answer, HeirAnswer::kLate);
      if (has_heard()) other.heir_answer.store(HeirAnswer::kSoon);
    }
    return true;
  }
};

}  // namespace outcore::buffer
