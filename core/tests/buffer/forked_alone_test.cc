// Forked children that do not become members of their parent's buffer.
#include <signal.h>
#include <sys/syscall.h>

#include <cstdlib>

#include "core/tests/buffer/forked.h"

namespace outcore {
namespace {

using namespace scene;

using namespace of_job;

TEST_F(Forked, WhereAChildCannotBeAMemberTheKernelMapsTheFile) {
  EXPECT_EQ(in_member([&](Runtime&, Region& region) {
              return status_in_child([&] {
                ::setenv("OUTCORE_BUFFER_DIR", "/dev/null/none", 1);
                if (!is_all_right(region)) return kWrong;
                if (region.pin(0, kPage).code() != EPERM) return kNoRegion;
                const int of_grandchild =
                    status_in_child([&] { return is_all_right(region, 2) ? 0 : kWrong; });
                ::setenv("OUTCORE_BUFFER_DIR", (job_.folder() / "buffers").c_str(), 1);
                return is_member(::getpid()) ? kNotShared : of_grandchild;
              });
            }),
            0);
}

TEST_F(Forked, AChildThatFindsAnotherFolderMakesNoBufferThere) {
  EXPECT_EQ(in_member([&](Runtime&, Region& region) {
              return status_in_child([&] {
                ::setenv("OUTCORE_BUFFER_DIR", (job_.folder() / "others").c_str(), 1);
                if (!is_all_right(region)) return kWrong;
                const auto buffers = list_buffers();
                return buffers.ok() && buffers.value().empty() ? 0 : kNotShared;
              });
            }),
            0);
}

TEST_F(Forked, AChildOfVforkThatTouchesFirstLeavesItsParentRight) {
  EXPECT_EQ(in_member([&](Runtime& runtime, Region& region) {
              const int status = status_in_child([&] {
                const pid_t borrower = ::vfork();
                if (borrower == 0) {
                  static_cast<void>(*static_cast<const volatile std::byte*>(region.data()));
                  ::_exit(0);
                }
                int ended = 0;
                if (::waitpid(borrower, &ended, 0) != borrower || ended != 0) return kNoRuntime;
                return is_all_right(region) ? 0 : kWrong;
              });
              if (status != 0) return status;
              if (!is_all_right(region)) return kWrong;
              const auto again = runtime.map(job_.path());
              return again && is_all_right(again.value()) ? 0 : kWrong;
            }),
            0);
}

TEST_F(Forked, AChildMayHaveTheFileByARuntimeOfItsOwn) {
  EXPECT_EQ(in_member([&](Runtime&, Region& region) {
              return status_in_child([&] {
                auto runtime = Runtime::start(Job::options(kLimit));
                if (!runtime) return kNoRuntime;
                auto own = runtime.value().map(job_.path());
                if (!own || !is_all_right(own.value())) return kNoRegion;
                return is_all_right(region, 2) ? 0 : kWrong;
              });
            }),
            0);
}

TEST_F(Forked, ATouchOfARegionThatTheChildHasEndedEndsIt) {
  EXPECT_EQ(in_member([&](Runtime&, Region& region) {
              const std::byte* const at = region.data();
              return status_in_child([&] {
                { const Region ended(std::move(region)); }
                return static_cast<int>(*static_cast<const volatile std::byte*>(at));
              });
            }),
            128 + SIGSEGV);
}

TEST_F(Forked, AWriteToItRaisesItsSignalInAChild) {
  EXPECT_EQ(in_member([&](Runtime&, Region& region) {
              const int status = status_in_child([&] {
                if (!job_.is_right(region, 1, 1)) return kWrong;
                *static_cast<volatile std::byte*>(region.data()) = std::byte{1};
                return kWrong;
              });
              return status == -SIGSEGV ? 0 : kWrong;
            }),
            0);
}

}  // namespace
}  // namespace outcore
