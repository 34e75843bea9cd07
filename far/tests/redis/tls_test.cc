// A store on a server that speaks TLS.
#include <cstdlib>

#include "far/tests/redis/redis_case.h"
#include "outcore/runtime.h"

namespace outcore::redis_test {
namespace {

using testing::HasSubstr;

// Made at once; one of RSA takes a second now and then.
const std::string kKey = "ec -pkeyopt ec_paramgen_curve:P-256";

class RedisTls : public RedisTest {
 protected:
  void SetUp() override {
    RedisTest::SetUp();
    if (IsSkipped()) return;
    make_authority("ca");
    make_authority("other");
    run("openssl req -newkey " + kKey + " -nodes -subj /CN=node -keyout node.key -out node.csr");
    run("openssl x509 -req -in node.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 "
        "-out node.crt");
    ServerOptions options;
    options.tls_folder = folder_.path();
    start(options);
  }
  void make_authority(const std::string& name) {
    run("openssl req -x509 -newkey " + kKey + " -nodes -days 2 -subj /CN=" + name + " -keyout " +
        name + ".key -out " + name + ".crt");
  }
  void run(const std::string& command) {
    ASSERT_EQ(std::system(("cd " + folder_.path() + " && " + command + " 2>/dev/null").c_str()), 0)
        << command;
  }
  std::string uri(const std::string& authority) {
    return servers_->tls_uri("a",
                             "replicas=0&timeout=1s&tls_ca=" + folder_.path() + "/" + authority);
  }
  scene::Folder folder_;
};

TEST_F(RedisTls, KeepsWhatIsStored) {
  const auto store = open_store(uri("ca.crt"), writable(kSize));
  ASSERT_TRUE(store.ok()) << store.message();
  const Bytes bytes = random_bytes(kSize, 1);
  EXPECT_EQ(store.value()->write(0, bytes), 0);
  EXPECT_EQ(read_all(*store.value()), bytes);
  EXPECT_FALSE(store.value()->traits().is_fault_safe) << "OpenSSL allocates";
  EXPECT_THAT(store.value()->remark(), HasSubstr("TLS"));
  servers_->kill(0);  // what is written to a broken stream raises SIGPIPE in OpenSSL
  EXPECT_EQ(store.value()->write(0, bytes), -ETIMEDOUT);
}

TEST_F(RedisTls, ServesARegion) {
  RuntimeOptions options;
  options.budget_bytes = 1 << 20;
  options.ignore_environment = true;
  auto runtime = Runtime::start(options);
  ASSERT_TRUE(runtime.ok()) << runtime.message();
  MapOptions map;
  map.access = Access::kReadWrite;
  map.may_create = true;
  map.size_bytes = 4 * kSize;
  const auto region = runtime->map(uri("ca.crt"), map);
  ASSERT_TRUE(region.ok()) << region.message();
  for (uint64_t at = 0; at < map.size_bytes; at += 1000)
    region->data()[at] = static_cast<std::byte>(at % 251);
  for (uint64_t at = 0; at < map.size_bytes; at += 1000)
    ASSERT_EQ(region->data()[at], static_cast<std::byte>(at % 251)) << at;
}

TEST_F(RedisTls, RefusesWhatItsAuthorityDidNotSign) {
  EXPECT_THAT(open_store(uri("other.crt"), writable(kSize)).message(),
              HasSubstr("no TLS with the server"));
  EXPECT_THAT(open_store(uri("none.crt"), writable(kSize)).message(), HasSubstr("read tls_ca"));
  std::string plain = servers_->uri("a", "tls=1&replicas=0&timeout=1s");
  EXPECT_FALSE(open_store(plain, writable(kSize)).ok()) << "that port does not speak TLS";
  EXPECT_THAT(open_store(servers_->uri("a", "tls_ca=x"), writable(kSize)).message(),
              HasSubstr("without tls=1"));
}

}  // namespace
}  // namespace outcore::redis_test
