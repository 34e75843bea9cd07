// `outcore bench matmul` on an image of a real cluster: its answer, and that nothing stays.
#include <cerrno>

#include "cli/tests/command_line.h"
#include "far/tests/rbd/ceph.h"
#include "outcore/store.h"

namespace outcore::rbd_test {
namespace {

class RbdBench : public cli::CommandTest {
 protected:
  void SetUp() override {
    OUTCORE_NEEDS_CEPH();
    CommandTest::SetUp();
  }
  cli::Outcome bench(const std::string& words) const {
    return run("bench " + words + " --json --dir " + dir() + " --store '" +
               Ceph::instance().uri("bench") + "'");
  }
};

TEST_F(RbdBench, MultipliesByAMatrixOfTwiceItsBudget) {
  const cli::Outcome outcome = bench("matmul --size 1M --budget 512k --threads 2 --memory outcore");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  ASSERT_EQ(outcome.lines().size(), 1U);
  const auto line = outcome.lines().front();
  EXPECT_EQ(line["checked"], true);
  EXPECT_GT(line["read_bytes"].as<uint64_t>().value_or(0), uint64_t{512} << 10);
  EXPECT_NE(line.value("store", "").find("rbd://"), std::string::npos) << outcome.out;
  EXPECT_EQ(open_store(Ceph::instance().uri("bench")).code(), ENOENT);
}

}  // namespace
}  // namespace outcore::rbd_test
