// What is listed is closed in a forked child, and nothing else is.
#include "core/os/parents_descriptors.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "gtest/gtest.h"

namespace outcore::os {
namespace {

int open_null() { return ::open("/dev/null", O_RDONLY | O_CLOEXEC); }
bool is_open(int fd) { return ::fcntl(fd, F_GETFD) != -1; }

// What a forked child finds of it.
template <typename Question>
bool is_so_in_a_child(Question question) {
  const pid_t child = ::fork();
  EXPECT_GE(child, 0);
  if (child == 0) ::_exit(question() ? 0 : 1);
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return status == 0;
}

TEST(ParentsDescriptors, AreClosedInAChildAndStayOpenInItsParent) {
  const int opened = ParentsDescriptors::open(open_null);
  const int added = open_null();
  ASSERT_GE(opened, 0);
  ASSERT_GE(added, 0);
  ParentsDescriptors::add(added);
  EXPECT_TRUE(is_so_in_a_child([&] { return !is_open(opened) && !is_open(added); }));
  EXPECT_TRUE(is_open(opened) && is_open(added));
  ParentsDescriptors::close(opened);
  ParentsDescriptors::close(added);
  EXPECT_FALSE(is_open(opened) || is_open(added));
}

TEST(ParentsDescriptors, OfAChildAreItsOwn) {
  const int parents = ParentsDescriptors::open(open_null);
  ASSERT_GE(parents, 0);
  EXPECT_TRUE(is_so_in_a_child([&] {
    const int childs = ParentsDescriptors::open(open_null);  // the number that became free
    const bool is_kept = childs == parents && is_open(childs);
    return is_kept && is_so_in_a_child([&] { return !is_open(childs); });
  }));
  ParentsDescriptors::close(parents);
}

TEST(ParentsDescriptors, ThatAreNotListedStayOpen) {
  const int never_listed = open_null();
  const int forgotten = ParentsDescriptors::open(open_null);
  ASSERT_GE(never_listed, 0);
  ASSERT_GE(forgotten, 0);
  ParentsDescriptors::forget(forgotten);
  ParentsDescriptors::close(never_listed);
  ParentsDescriptors::close(forgotten);
  EXPECT_TRUE(is_open(never_listed) && is_open(forgotten));
  EXPECT_TRUE(is_so_in_a_child([&] { return is_open(never_listed) && is_open(forgotten); }));
  ::close(never_listed);
  ::close(forgotten);
}

TEST(ParentsDescriptors, WhoseOpeningFailsAreAnError) {
  EXPECT_EQ(ParentsDescriptors::open([] { return -ENOENT; }), -ENOENT);
  EXPECT_TRUE(is_so_in_a_child([] { return true; }));
}

}  // namespace
}  // namespace outcore::os
