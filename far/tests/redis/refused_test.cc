// What messages say of a URI that is not understood, and of servers that refuse.
#include "far/tests/redis/redis_case.h"

namespace outcore::redis_test {
namespace {

using testing::HasSubstr;
using testing::Not;

// No server is asked.
TEST(RedisUri, NoMessageHasAPartOfThePassword) {
  for (const char* uri :
       {"redis://:topsecret/abc@127.0.0.1:1/", "redis://:p@topsecret:w/abc@127.0.0.1:1/a",
        "redis://:p@topsecret/abc@127.0.0.1:1/a", "redis://topsecret@abc:w/o@127.0.0.1:1/a",
        "redis://:topsecret?abc@127.0.0.1:1/a", "redis://:topsecret?timeout=abc@127.0.0.1:1/a",
        "redis://:topsecret/?abc=1@127.0.0.1:1/a", "far://:topsecret/abc@127.0.0.1:1",
        "far://me:12/topsecret/abc@127.0.0.1:1"}) {
    const auto refused = open_store(uri, writable(1 << 20));
    const std::string message = refused.message();
    EXPECT_EQ(refused.code(), EINVAL) << message;
    EXPECT_THAT(message, HasSubstr("***@127.0.0.1:1")) << uri;
    EXPECT_THAT(message, HasSubstr("write / as %2F, ? as %3F and @ as %40 in the password"));
    EXPECT_THAT(message, Not(testing::AnyOf(HasSubstr("topsecret"), HasSubstr("abc"))));
    EXPECT_EQ(list_stores(uri).message().find("topsecret"), std::string::npos);
  }
  EXPECT_THAT(open_store("redis://127.0.0.1:x/a@2").message(), HasSubstr("%40 in the password"));
  EXPECT_THAT(open_store("redis://127.0.0.1:1/a@2?colour=red").message(), HasSubstr("'colour'"));
}

}  // namespace
}  // namespace outcore::redis_test
