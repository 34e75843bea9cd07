#include "bench/array_life.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <new>

#include "bench/clock.h"
#include "cli/text.h"

namespace outcore::bench {
namespace {

void pause_us(long us) {
  const timespec pause{0, us * 1000};
  ::nanosleep(&pause, nullptr);
}

// One of the processes.
class Member {
 public:
  Member(const LifeOptions& life, unsigned rank, LifeNews& news)
      : life_(life), rank_(rank), news_(news) {}

  Status live() {
    Contents contents = life_.contents;
    for (unsigned s = 0; s < kLifeSessionsMax; ++s) {
      if (!gather()) return {};
      const ArrayScript script =
          life_.scripts.make(life_.first_number + s, life_.processes, contents);
      if (Status done = run(script, news_.sessions[s]); !done) return done;
      if (news_.sessions[s].closing[rank_] == Closing::kFailed) return {};
      contents = script.contents.back();
    }
    return {};
  }

 private:
  // False: one is dead, and will never come.
  bool gather() {
    const unsigned all = ++gathered_ * life_.processes;
    ++news_.come;
    while (news_.come < all) {
      if (news_.is_over) return false;
      pause_us(50);
    }
    return true;
  }

  template <typename Work>
  Status step(SessionNews& session, const Work& work) {
    ++session.begun;
    Status s = work();
    if (s.ok()) ++session.done;
    return s;
  }

  Status run(const ArrayScript& script, SessionNews& session) {
    unsigned none = 0;
    session.begun.compare_exchange_strong(none, 1);
    auto out = Arrays::open(life_.path, script.mode, Communicator::processes(life_.processes));
    if (!out) return out.status();
    if (rank_ == 0) {
      session.done = 1;
      for (const ArrayScript::Move& move : script.moves)
        if (Status s = step(session,
                            [&] {
                              return move.to.empty() ? out->remove(move.from)
                                                     : out->rename(move.from, move.to);
                            });
            !s)
          return s;
    }
    if (gather())  // else it is closed with what there is, and has to be absent
      if (Status s = store(script, session, out.value()); !s) return s;
    session.closing[rank_] = Closing::kBegun;
    Status closed = out->close();
    session.closing[rank_] = closed.ok() ? Closing::kDone : Closing::kFailed;
    if (!closed.ok()) news_.closing_trouble.tell(closed.error());
    return {};
  }

  Status store(const ArrayScript& script, SessionNews& session, Arrays& out) {
    for (const ArrayScript::Boxed& boxed : script.boxes) {
      const Kept& kept = boxed.kept;
      if (Status s = out.alloc(boxed.name, kept.type, kept.dims, kept.options); !s) return s;
      Dims at, dims;
      share(boxed, rank_, life_.processes, &at, &dims);
      const auto bytes = box_of(kept, at, dims);
      if (Status s = out.store_box(boxed.name, kept.type, bytes.data(), at, dims); !s) return s;
    }
    for (const ArrayScript::Whole& whole : script.wholes) {
      if (whole.rank != rank_) continue;
      const Kept& kept = whole.kept;
      const auto bytes = whole_of(kept);
      if (Status s = out.store_whole(whole.name, kept.type, kept.dims, bytes.data()); !s) return s;
      if (!whole.renamed.empty())
        if (Status s = out.rename(whole.name, whole.renamed); !s) return s;
      if (whole.is_flushed)
        if (Status s = step(session, [&] { return out.flush(); }); !s) return s;
    }
    return {};
  }

  const LifeOptions& life_;
  const unsigned rank_;
  LifeNews& news_;
  unsigned gathered_ = 0;
};

}  // namespace

void Trouble::tell(const Error& error) {
  if (is_taken.exchange(true)) return;
  std::snprintf(message, sizeof message, "%s", error.message.c_str());
  code = error.code;
}

Result<ArrayLife> ArrayLife::start(const LifeOptions& options) {
  void* const memory =
      ::mmap(nullptr, sizeof(LifeNews), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return cli::failure(errno, "share memory with programs to be killed");
  ArrayLife life;
  life.news_ = new (memory) LifeNews;
  const pid_t parent = ::getpid();
  for (unsigned rank = 0; rank < options.processes; ++rank) {
    const pid_t pid = ::fork();
    if (pid < 0) return cli::failure(errno, "start a program that is to be killed");
    if (pid == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != parent) ::_exit(1);
      LifeNews& news = *life.news_;
      const Status s = Member(options, rank, news).live();
      if (!s.ok()) news.trouble.tell(s.error());
      ::_exit(s.ok() ? 0 : 1);
    }
    life.pids_.push_back(pid);
  }
  return life;
}

ArrayLife::ArrayLife(ArrayLife&& other) noexcept
    : news_(std::exchange(other.news_, nullptr)), pids_(std::move(other.pids_)) {
  other.pids_.clear();
}

ArrayLife::~ArrayLife() {
  end(0);
  if (news_ != nullptr) ::munmap(news_, sizeof(LifeNews));
}

void ArrayLife::kill(unsigned rank) {
  if (pids_[rank] == 0) return;
  ::kill(pids_[rank], SIGKILL);
  ::waitpid(pids_[rank], nullptr, 0);
  pids_[rank] = 0;
}

void ArrayLife::end(uint64_t grace_ns) {
  if (news_ != nullptr) news_->is_over = true;
  const uint64_t until_ns = now_ns() + grace_ns;
  for (pid_t& pid : pids_)
    while (pid != 0 && now_ns() < until_ns) {
      if (::waitpid(pid, nullptr, WNOHANG) == pid)
        pid = 0;
      else
        pause_us(500);
    }
  for (const pid_t pid : pids_)  // all at once, as nearly as may be
    if (pid != 0) ::kill(pid, SIGKILL);
  for (unsigned rank = 0; rank < pids_.size(); ++rank) kill(rank);
}

}  // namespace outcore::bench
