#include "run/preload/release_link.h"

#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "core/base/assert.h"
#include "core/os/at_fork.h"
#include "core/os/wait.h"
#include "run/preload/own_descriptors.h"
#include "run/preload/real.h"

namespace outcore::preload {
namespace {

constexpr uint64_t kNsMax = 30'000'000'000;
// While questions are answered, each of which may wait for other processes: those that write the
// file together, and those that do now.
constexpr uint64_t kAnsweringNsMax = 200'000'000'000;
constexpr uint64_t kStepNs = 20'000'000;  // between looks at whether the other is there

// A question and its answer, in memory that a process shares with its descendants. So neither side
// needs a new descriptor, of which it may have none left.
struct Slot {
  enum State : uint32_t {
    kFree,
    kClaimed,  // the question is being written
    kAsked,
    kTaken,  // it is being answered
    kAnswered,
    kAbandoned  // taken, but nobody waits for the answer
  };
  std::atomic<uint32_t> state;
  std::atomic<uint64_t> claimed_ns;
  std::atomic<uint64_t> owner;  // the time of the claim that succeeded
  ReleaseLink::Question question;
  ReleaseLink::Answer answer;

  bool change(uint32_t from, uint32_t to) { return state.compare_exchange_strong(from, to); }
};

struct Board {
  static constexpr unsigned char kSlotsMax = 64;
  Slot slots[kSlotsMax];
};

// The asking ends that this process has: its own and those of its ancestors.
struct Link {
  std::atomic<int> asking_end{-1};
  std::atomic<Board*> board{nullptr};
};
constexpr size_t kLinksMax = 64;  // generations of processes, each forked by the one before
std::array<Link, kLinksMax> links;

std::atomic<int> answering{-1}, asking{-1};

// Forked children close the answering end: otherwise, when the process is gone, whoever asks would
// wait for them, and they for themselves. They keep the asking end.
void close_in_child() {
  asking.store(-1);
  if (const int fd = answering.exchange(-1); fd >= 0) {
    OwnDescriptors::forget(fd);
    real().close(fd);
  }
}

Board* board_of(int asking_end) {
  for (const Link& link : links)
    if (link.asking_end.load() == asking_end) return link.board.load();
  return nullptr;
}

bool add_link(int asking_end, Board* board) {
  OC_ASSERT(asking_end >= 0 && board != nullptr);
  for (Link& link : links) {
    if (link.board.load() != nullptr) continue;
    link.board.store(board);
    link.asking_end.store(asking_end);
    return true;
  }
  return false;
}

// Claims a free slot, or one that was claimed so long ago that its owner must have ended.
Slot* claim(Board& board) {
  const uint64_t now = os::now_ns();
  for (Slot& slot : board.slots) {
    const uint32_t state = slot.state.load();
    uint64_t claimed_ns = slot.claimed_ns.load();
    // What is being answered is freed by whoever answers, however long that takes.
    const bool is_answered = state == Slot::kTaken || state == Slot::kAbandoned;
    const bool is_left = !is_answered && now > claimed_ns + 2 * kNsMax;
    if (state != Slot::kFree && !is_left) continue;
    // The time first: a slot that is claimed must not look as if it were left. Of several that
    // claim a slot that was left, one changes the time; of a free one, one changes the state.
    if (!slot.claimed_ns.compare_exchange_strong(claimed_ns, now)) continue;
    if (!slot.change(state, Slot::kClaimed)) continue;
    slot.owner.store(now);
    return &slot;
  }
  return nullptr;
}

// The asker needs it no more. If the question is just being answered, the answering thread frees
// it; an asker that was stopped for a minute no longer has it.
void leave(Slot& slot, uint64_t owner) {
  while (slot.owner.load() == owner) {
    const uint32_t state = slot.state.load();
    if (state == Slot::kFree || state == Slot::kClaimed || state == Slot::kAbandoned) return;
    if (slot.change(state, state == Slot::kTaken ? Slot::kAbandoned : Slot::kFree)) return;
  }
}

// Tells the process at the other end that there is a question. 0 or an errno.
int ring(int link, unsigned char number, uint64_t deadline_ns) {
  OC_ASSERT(link >= 0 && number < Board::kSlotsMax);
  for (;;) {
    if (real().send(link, &number, 1, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0) return 0;
    if (errno != EAGAIN && errno != EINTR) return errno;
    if (os::now_ns() >= deadline_ns) return ETIMEDOUT;
    pollfd wanted{link, POLLOUT, 0};
    ::poll(&wanted, 1, 20);
  }
}

bool is_answering(const Board& board) {
  return std::any_of(std::begin(board.slots), std::end(board.slots), [](const Slot& slot) {
    const uint32_t state = slot.state.load();
    return state == Slot::kTaken || state == Slot::kAbandoned;
  });
}

bool is_gone(int link) {
  pollfd wanted{link, 0, 0};
  return ::poll(&wanted, 1, 0) == 1 && (wanted.revents & (POLLHUP | POLLERR | POLLNVAL)) != 0;
}

}  // namespace

void ReleaseLink::prepare() {
  os::at_fork(os::ForkOrder::kReleaseLink, nullptr, nullptr, close_in_child);
}

int ReleaseLink::start() {
  if (const int there = answering.load(); there >= 0) return there;
  void* memory = real().mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return -errno;
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    const int error = errno;
    real().munmap(memory, sizeof(Board));
    return -error;
  }
  for (int& end : ends) end = OwnDescriptors::keep(end);
  if (!add_link(ends[1], static_cast<Board*>(memory))) {
    for (const int end : ends) {
      OwnDescriptors::forget(end);
      real().close(end);
    }
    real().munmap(memory, sizeof(Board));
    return -ENFILE;
  }
  asking.store(ends[1]);
  answering.store(ends[0]);
  return ends[0];
}

int ReleaseLink::asking_end() { return asking.load(); }

void ReleaseLink::answer(int answering_end, Answer (*release)(const Question&)) {
  unsigned char number = 0;
  if (real().recv(answering_end, &number, 1, MSG_DONTWAIT) != 1 || number >= Board::kSlotsMax)
    return;
  Board* const board = board_of(asking.load());
  if (board == nullptr) return;
  Slot& slot = board->slots[number];
  if (!slot.change(Slot::kAsked, Slot::kTaken)) return;
  slot.answer = release(slot.question);
  if (!slot.change(Slot::kTaken, Slot::kAnswered)) slot.change(Slot::kAbandoned, Slot::kFree);
  os::wake_between_processes(&slot.state);
}

ReleaseLink::Answer ReleaseLink::ask(int asking_end, const Question& question,
                                     void (*meanwhile)()) {
  const uint64_t begun_ns = os::now_ns(), deadline_ns = begun_ns + kNsMax;
  Board* const board = board_of(asking_end);
  if (board == nullptr) return Answer::kLate;
  std::atomic<uint32_t> nothing{0};
  Slot* slot = claim(*board);
  for (; slot == nullptr; slot = claim(*board)) {
    if (os::now_ns() >= deadline_ns) return Answer::kLate;
    os::wait(&nothing, 0, 1'000'000);
  }
  OC_CHECK(slot >= board->slots && slot < board->slots + Board::kSlotsMax);
  const uint64_t owner = slot->owner.load();
  slot->question = question;
  slot->state.store(Slot::kAsked);
  Answer answer = Answer::kLate;
  int error = ring(asking_end, static_cast<unsigned char>(slot - board->slots), deadline_ns);
  while (error == 0 && slot->state.load() != Slot::kAnswered) {
    if (os::now_ns() >= begun_ns + (is_answering(*board) ? kAnsweringNsMax : kNsMax))
      error = ETIMEDOUT;
    if (meanwhile != nullptr) meanwhile();
    if (is_gone(asking_end)) error = EPIPE;
    if (const uint32_t seen = slot->state.load(); seen != Slot::kAnswered && error == 0)
      os::wait_between_processes(&slot->state, seen, kStepNs);
  }
  if (slot->state.load() == Slot::kAnswered)
    answer = slot->answer;
  else if (error == EPIPE || error == ECONNRESET)
    answer = Answer::kGone;
  leave(*slot, owner);
  return answer;
}

}  // namespace outcore::preload
