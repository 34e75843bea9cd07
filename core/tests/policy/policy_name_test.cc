// Names of policies, and the errors for wrong ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "outcore/policy.h"

namespace outcore::policy {
namespace {

using testing::HasSubstr;

std::string refusal(const std::string& name) {
  const auto made = make_policy(name, 100, 100);
  EXPECT_EQ(made.code(), EINVAL) << name;
  return made.ok() ? "" : made.message();
}

TEST(PolicyName, ParametersAreReadAndDefaultsAreFilledIn) {
  EXPECT_EQ(make_policy("fifo", 9, 9).value()->name(), "fifo:cool=0%");
  EXPECT_EQ(make_policy("s3-fifo:cool=5%", 9, 9).value()->name(),
            "s3-fifo:small=3%,ghosts=18%,cool=5%");
  EXPECT_EQ(make_policy("di-mmap:buckets=7,hot=50%", 9, 9).value()->name(),
            "di-mmap:hot=50%,queue=10%,buckets=7");
}

TEST(PolicyName, AnUnknownPolicyIsToldTheNearest) {
  EXPECT_THAT(refusal("s3fifo"), HasSubstr("did you mean 's3-fifo'?"));
  EXPECT_THAT(refusal("dimmap:hot=75%"), HasSubstr("did you mean 'di-mmap'?"));
  EXPECT_THAT(refusal("quite-another-thing"), HasSubstr("policies: auto, s3-fifo, di-mmap, fifo"));
  EXPECT_THAT(refusal(""), HasSubstr("policies: auto"));
}

TEST(PolicyName, AnUnknownParameterIsToldTheNearest) {
  EXPECT_THAT(refusal("s3-fifo:smal=10%"), HasSubstr("did you mean 'small'?"));
  EXPECT_THAT(refusal("di-mmap:,"), HasSubstr("parameters: hot, queue, buckets"));
}

TEST(PolicyName, AValueOutOfRangeIsToldTheRange) {
  for (const char* value : {"91%", "-1%", "75", "", "%", "7 5%", "1e1%", "99999999999999999999%"})
    EXPECT_THAT(refusal(std::string("di-mmap:hot=") + value), HasSubstr("from 0% to 90%")) << value;
  EXPECT_THAT(refusal("di-mmap:hot"), HasSubstr("from 0% to 90%"));
  EXPECT_THAT(refusal("di-mmap:buckets=0"), HasSubstr("from 1 to 268435456"));
  EXPECT_THAT(refusal("s3-fifo:small=0%"), HasSubstr("from 1% to 90%"));
}

TEST(PolicyName, AParameterGivenTwiceIsRefused) {
  EXPECT_THAT(refusal("di-mmap:hot=10%,hot=20%"), HasSubstr("given twice"));
}

TEST(PolicyName, FramesThatCannotBeAreRefused) {
  EXPECT_EQ(make_policy("fifo", 0, 0).code(), EINVAL);
  EXPECT_EQ(make_policy("fifo", 10, 11).code(), EINVAL);
  EXPECT_EQ(make_policy("fifo", 0xFFFFFFFF, 11).code(), EINVAL);
}

}  // namespace
}  // namespace outcore::policy
