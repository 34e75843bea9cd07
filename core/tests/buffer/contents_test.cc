// Stores that are not files, in a buffer: processes share pages of those that say what they hold.
#include <cstring>

#include "core/tests/buffer/forked.h"

namespace outcore {
namespace {

using namespace scene;

using namespace of_job;

constexpr uint64_t kPages = 1024;

struct Counts {
  std::atomic<uint64_t> read_bytes{0}, reopened{0};
};

// Words that follow from where they are and from `seed`.
class Formula final : public Store {
 public:
  Formula(Counts& counts, std::string contents_id, uint64_t seed = 1)
      : counts_(counts), contents_id_(std::move(contents_id)), seed_(seed) {}

  static uint64_t word(uint64_t seed, uint64_t i) { return mix(seed * 1'000'003 + i); }
  uint64_t size_bytes() const override { return kPages * kPage; }
  int read(uint64_t offset, std::span<std::byte> into) override {
    if (error != 0) return error;
    counts_.read_bytes.fetch_add(into.size());
    for (uint64_t at = 0; at < into.size(); at += sizeof(uint64_t)) {
      const uint64_t value = word(seed_, (offset + at) / sizeof(uint64_t));
      std::memcpy(into.data() + at, &value, sizeof value);
    }
    return 0;
  }
  int write(uint64_t, std::span<const std::byte>) override { return 0; }
  StoreTraits traits() const override {
    StoreTraits traits;
    traits.is_fault_safe = true;
    return traits;
  }
  std::string identity() const override { return identity_of_it; }
  std::string uri() const override { return "formula:" + std::to_string(seed_); }
  std::string contents_id() const override { return contents_id_; }
  Result<std::shared_ptr<Store>> reopen() const override {
    counts_.reopened.fetch_add(1);
    if (!can_reopen) return Store::reopen();
    return std::shared_ptr<Store>(
        std::make_shared<Formula>(counts_, contents_id_ + changed_since, seed_));
  }
  bool can_reopen = true;
  int error = 0;  // of each read
  std::string identity_of_it;
  std::string changed_since;  // of contents_id(), when it is opened again

 private:
  Counts& counts_;
  const std::string contents_id_;
  const uint64_t seed_;
};

bool is_right(const Region& region, uint64_t seed, uint64_t page) {
  const auto* const words = reinterpret_cast<const volatile uint64_t*>(region.data());
  const uint64_t i = page * kPage / sizeof(uint64_t) + page % (kPage / sizeof(uint64_t));
  return words[i] == Formula::word(seed, i);
}

class Contents : public Forked {
 protected:
  // In a process of its own, with the store mapped.
  template <typename Work>
  pid_t begin(const std::shared_ptr<Formula>& store, Access access, const Work& work) {
    return job_.begin([store, access, &work] {
      auto runtime = Runtime::start(Job::options(kLimit));
      if (!runtime) return std::fprintf(stderr, "%s\n", runtime.message().c_str()), kNoRuntime;
      MapOptions options;
      options.access = access;
      auto region = runtime.value().map(store, options);
      if (!region) return std::fprintf(stderr, "%s\n", region.message().c_str()), kNoRegion;
      return work(region.value());
    });
  }
  template <typename Work>
  int run(const std::shared_ptr<Formula>& store, Access access, const Work& work) {
    return job_.end(begin(store, access, work));
  }
  std::shared_ptr<Formula> formula(const std::string& contents_id, uint64_t seed = 1) {
    return std::make_shared<Formula>(counts(), contents_id, seed);
  }
  // Reads all pages, and stays until `readers` have.
  auto reading(uint64_t seed, uint32_t readers) {
    return [this, seed, readers](Region& region) {
      if (!region.is_shared()) return kNotShared;
      for (uint64_t page = 0; page < kPages; ++page)
        if (!is_right(region, seed, page)) return kWrong;
      job_.shared().arrived.fetch_add(1);
      while (job_.shared().arrived.load() < readers) ::sched_yield();
      return 0;
    };
  }
  Counts& counts() const { return counts_[0]; }

 private:
  const Common<Counts> counts_;
};

TEST_F(Contents, EachPageIsReadOnceForAll) {
  const auto read = reading(1, 4);
  std::vector<pid_t> readers;
  for (int i = 0; i < 4; ++i)
    readers.push_back(begin(formula("formula@1"), Access::kReadOnly, read));
  for (const pid_t reader : readers) EXPECT_EQ(job_.end(reader), 0);
  // Two that miss the same page at once may both read it.
  EXPECT_GE(counts().read_bytes, kPages * kPage);
  EXPECT_LE(counts().read_bytes, kPages * kPage * 5 / 4);
}

TEST_F(Contents, OfAnotherTextAreOthers) {
  const auto first = reading(1, 2), second = reading(2, 2);
  const pid_t one = begin(formula("formula@1", 1), Access::kReadOnly, first);
  const pid_t other = begin(formula("formula@2", 2), Access::kReadOnly, second);
  EXPECT_EQ(job_.end(one), 0);
  EXPECT_EQ(job_.end(other), 0);
  EXPECT_GE(counts().read_bytes, 2 * kPages * kPage);
}

TEST_F(Contents, ThatNobodyKnowsStayTheProcesssOwn) {
  EXPECT_EQ(run(formula(""), Access::kReadOnly,
                [](Region& region) {
                  if (region.is_shared()) return kNotShared;
                  return is_right(region, 1, 7) && Job::facts().files == 0 ? 0 : kWrong;
                }),
            0);
}

TEST_F(Contents, ThatAreWrittenStayTheProcesssOwn) {
  for (const Access access : {Access::kReadWrite, Access::kPrivate})
    EXPECT_EQ(run(formula("formula@1"), access,
                  [](Region& region) {
                    return !region.is_shared() && is_right(region, 1, 7) ? 0 : kNotShared;
                  }),
              0);
}

TEST_F(Contents, AForkedChildOpensTheStoreAgain) {
  EXPECT_EQ(run(formula("formula@1"), Access::kReadOnly,
                [&](Region& region) {
                  for (uint64_t page = 0; page < kPages; ++page)
                    if (!is_right(region, 1, page)) return kWrong;
                  return status_in_child([&] {
                    const uint64_t read_bytes = counts().read_bytes;
                    for (uint64_t page = 0; page < kPages; ++page)
                      if (!is_right(region, 1, page)) return kWrong;
                    return is_member(::getpid()) && counts().read_bytes == read_bytes ? 0
                                                                                      : kNotShared;
                  });
                }),
            0);
  EXPECT_EQ(counts().reopened, 1u);
}

// It ends, rather than to read other bytes.
TEST_F(Contents, AForkedChildThatCannotOpenTheStoreAgainEnds) {
  const auto unopened = formula("formula@1"), changed = formula("formula@1");
  unopened->can_reopen = false;
  changed->changed_since = "+";
  for (const auto& store : {unopened, changed})
    EXPECT_EQ(run(store, Access::kReadOnly,
                  [&](Region& region) {
                    if (!is_right(region, 1, 3)) return kWrong;
                    const int status = status_in_child([&] { return is_right(region, 1, 3); });
                    return status == 139 || status == -SIGSEGV ? 0 : kWrong;
                  }),
              0);
  EXPECT_EQ(counts().reopened, 2u);
}

// Each store that it opens again is another object; the two regions have one.
TEST_F(Contents, AForkedChildGoesOnWithSeveralRegionsOfAStoreThatSaysNoIdentity) {
  const auto store = formula("formula@1");
  const auto map_two = [&] {
    auto runtime = Runtime::start(Job::options(kLimit));
    auto first = runtime.value().map(store), second = runtime.value().map(store);
    if (!first || !second || !second.value().is_shared()) return kNoRegion;
    return status_in_child([&] {
      return is_right(first.value(), 1, 3) && is_right(second.value(), 1, 900) ? 0 : kWrong;
    });
  };
  EXPECT_EQ(job_.end(job_.begin(map_two)), 0);
  EXPECT_EQ(counts().reopened, 1u);
}

// It has the store by a runtime of its own: its parent's region has pages of its own then, which a
// child of it does not have.
TEST_F(Contents, AForkedChildMayHaveTheStoreByARuntimeOfItsOwn) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(run(formula("formula@1"), Access::kReadOnly,
                [&](Region& region) {
                  return status_in_child([&] {
                    auto runtime = Runtime::start(Job::options(kLimit));
                    auto again = runtime.value().map(formula("formula@1"));
                    if (!again || !is_right(again.value(), 1, 7)) return kNoRegion;
                    if (!is_right(region, 1, 7) || !is_right(region, 1, 900)) return kWrong;
                    const int status = status_in_child([&] { return is_right(region, 1, 7); });
                    return status == 139 || status == -SIGSEGV ? 0 : kNotShared;
                  });
                }),
            0);
  const std::string told = testing::internal::GetCapturedStderr();
  EXPECT_NE(told.find("which it does not inherit"), std::string::npos) << told;
}

// Behind the store's end zeros are read, as without a buffer; there lie others' pages.
TEST_F(Contents, ARegionLongerThanItsStoreTouchesNobodyElsesPages) {
  const auto map_longer = [&](bool has_shorter_first) {
    auto runtime = Runtime::start(Job::options(kLimit));
    auto other = Runtime::start(Job::options(kLimit));
    const auto text = has_shorter_first ? "formula@1" : "formula@2";
    auto shorter =
        has_shorter_first ? other.value().map(formula(text)) : Result<Region>(Error{ENOENT, ""});
    MapOptions options;
    options.size_bytes = 3 * kPages * kPage;
    auto longer = runtime.value().map(formula(text), options);
    auto neighbour = runtime.value().map(job_.path());
    if (!longer || !neighbour || !neighbour.value().is_shared()) return kNoRegion;
    if (longer.value().is_shared() == has_shorter_first) return kNotShared;
    for (uint64_t page = 0; page < 3 * kPages; ++page) {
      const std::byte byte = longer.value().data()[page * kPage + 8];
      if (page >= kPages && byte != std::byte{}) return kWrong;
    }
    for (uint64_t page = 0; page < job_.file_pages(); ++page)
      if (!job_.is_right(neighbour.value(), page, page)) return kWrong;
    return is_right(longer.value(), 1, 5) ? 0 : kWrong;
  };
  EXPECT_EQ(job_.end(job_.begin([&] { return map_longer(false); })), 0);
  EXPECT_EQ(job_.end(job_.begin([&] { return map_longer(true); })), 0);
}

TEST_F(Contents, ASecondRegionIsNotLongerThanWhatIsTheStores) {
  const auto map_both = [&] {
    auto runtime = Runtime::start(Job::options(kLimit));
    const auto store = formula("formula@1");
    MapOptions behind, longer;
    behind.offset = kPages * kPage;
    longer.size_bytes = (kPages + 1) * kPage;
    auto first = runtime.value().map(store, behind);
    if (!first) return kNoRegion;
    auto second = runtime.value().map(store, longer);
    if (second || second.code() != EBUSY) return kWrong;
    auto third = runtime.value().map(store);
    return third && is_right(third.value(), 1, kPages - 1) ? 0 : kNotShared;
  };
  EXPECT_EQ(job_.end(job_.begin(map_both)), 0);
}

// Also one that means something else to those who bring pages in.
TEST_F(Contents, AnErrorOfTheStoreReachesWhoTouches) {
  for (const int error : {-ENOENT, -EINVAL, -EAGAIN, -EIO}) {
    const auto store = formula("formula@1");
    store->error = error;
    EXPECT_EQ(run(store, Access::kReadOnly,
                  [&](Region& region) {
                    const Status pinned = region.pin(0, kPage);
                    if (pinned.ok() || !region.is_shared()) return kNotShared;
                    return pinned.code() == (error == -EAGAIN ? EIO : -error) ? 0 : kWrong;
                  }),
              0)
        << error;
    EXPECT_EQ(run(store, Access::kReadOnly,
                  [](Region& region) { return static_cast<int>(is_right(region, 1, 3)); }),
              -SIGBUS)
        << error;
  }
}

TEST_F(Contents, ThatHaveChangedAreNotThoseThatAreMapped) {
  const auto map_both = [&] {
    auto runtime = Runtime::start(Job::options(kLimit));
    const auto before = formula("formula@1", 1), after = formula("formula@2", 2);
    before->identity_of_it = after->identity_of_it = "formula";
    {
      auto region = runtime.value().map(before);
      if (!region || !is_right(region.value(), 1, 3)) return kWrong;
      if (const auto again = runtime.value().map(after); again.code() != EBUSY) return kNotShared;
    }
    auto again = runtime.value().map(after);
    return again && is_right(again.value(), 2, 3) ? 0 : kWrong;
  };
  EXPECT_EQ(job_.end(job_.begin(map_both)), 0);
}

}  // namespace
}  // namespace outcore
