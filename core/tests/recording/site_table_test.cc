// SiteTable: places in the code, by module and offset.
#include "core/recording/site_table.h"

#include <dlfcn.h>
#include <elf.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace outcore::recording {
namespace {

using base::Json;
using published::Event;
using published::EventKind;
using published::Pattern;

const std::map<uint32_t, std::string> kUris{{0, "/first"}, {1, "/second"}};

Event fault_at(uint64_t site, uint64_t duration_ns = 1000, Pattern pattern = Pattern::kRandom) {
  Event event;
  event.kind = EventKind::kFault;
  event.pattern = pattern;
  event.site = site;
  event.duration_ns = duration_ns;
  return event;
}

Json place_of(const void* address) {
  SiteTable table;
  table.note(fault_at(reinterpret_cast<uint64_t>(address)), 0, 1);
  return table.to_json(kUris)[size_t{0}];
}

// The bytes that lie there in the file are those at the address.
void expect_is_at(const Json& place, const void* address) {
  const std::string module = place.value("module", "");
  std::ifstream file(module, std::ios::binary);
  char bytes[16] = {};
  file.seekg(static_cast<std::streamoff>(place.value("offset", uint64_t{0})));
  file.read(bytes, sizeof bytes);
  EXPECT_TRUE(file.good()) << module;
  EXPECT_EQ(std::memcmp(bytes, address, sizeof bytes), 0) << module;
}

TEST(SiteTable, AFunctionOfALibraryIsAtItsOffsetInTheFile) {
  void* const address = ::dlsym(RTLD_DEFAULT, "qsort");
  Dl_info about{};
  ASSERT_NE(::dladdr(address, &about), 0);
  const Json place = place_of(address);
  EXPECT_TRUE(std::filesystem::equivalent(place.value("module", ""), about.dli_fname))
      << place.dump();
  expect_is_at(place, address);
}

void some_code() { std::fputs("", stdout); }

TEST(SiteTable, AFunctionOfTheProgramIsAtItsOffsetInTheProgram) {
  const Json place = place_of(reinterpret_cast<const void*>(&some_code));
  EXPECT_EQ(place.value("module", ""), std::filesystem::read_symlink("/proc/self/exe").string());
  expect_is_at(place, reinterpret_cast<const void*>(&some_code));
}

TEST(SiteTable, CodeThatNoFileHasIsAnAddress) {
  void* const memory =
      ::mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  const Json place = place_of(static_cast<char*>(memory) + 16);
  EXPECT_EQ(place.value("module", "?"), "");
  EXPECT_EQ(place.value("offset", uint64_t{0}), reinterpret_cast<uint64_t>(memory) + 16);
  ::munmap(memory, 4096);
  EXPECT_EQ(place_of(reinterpret_cast<const void*>(UINT64_MAX)).value("module", "?"), "");
}

TEST(SiteTable, CountsFaultsWaitsAndPatternsOfAPlaceWithTheirWeights) {
  SiteTable table;
  const auto here = reinterpret_cast<uint64_t>(&some_code);
  for (int i = 0; i < 6; ++i) table.note(fault_at(here, 1'000'000, Pattern::kSequential), 1, 4);
  for (int i = 0; i < 3; ++i) table.note(fault_at(here, 2'000'000, Pattern::kStrided), 0, 4);
  table.note(fault_at(here + 1, 1'000'000), 0, 4);
  table.note(fault_at(0), 0, 4);  // its place is not known
  table.note(fault_at(0), 0, 4);
  EXPECT_EQ(table.sampled(), 12u);
  const Json all = table.to_json(kUris);
  ASSERT_EQ(all.size(), 2u);
  const Json& first = all[size_t{0}];
  EXPECT_EQ(first.value("faults", 0.0), 36);
  EXPECT_DOUBLE_EQ(first.value("share", 0.0), 9.0 / 12);
  EXPECT_NEAR(first.value("stalled_s", 0.0), 4 * 0.012, 1e-12);
  EXPECT_DOUBLE_EQ(first["pattern"].value("sequential", 0.0), 6.0 / 9);
  EXPECT_DOUBLE_EQ(first["pattern"].value("strided", 0.0), 3.0 / 9);
  EXPECT_DOUBLE_EQ(first["pattern"].value("random", 1.0), 0.0);
  EXPECT_EQ(first.value("file_uri", ""), "/second") << "the one with the most faults";
  EXPECT_EQ(all[size_t{1}].value("file_uri", ""), "/first");
}

TEST(SiteTable, TellsThePlacesWithTheMostFaultsFirstAndNotAllOfThem) {
  SiteTable table;
  for (uint64_t site = 1; site <= 100; ++site)
    for (uint64_t i = 0; i < site; ++i) table.note(fault_at(site), 0, 1);
  const Json all = table.to_json(kUris);
  ASSERT_EQ(all.size(), SiteTable::kSitesTold);
  for (size_t i = 0; i < all.size(); ++i)
    EXPECT_EQ(all[i].value("faults", 0.0), 100 - static_cast<double>(i));
}

TEST(SiteTable, OfMorePlacesThanItHasItCountsTheFurtherOnesTogether) {
  constexpr size_t kSites = 2 * SiteTable::kSitesTold;  // of each the maps are read
  SiteTable table(kSites);
  for (uint64_t site = 1; site <= kSites; ++site) table.note(fault_at(site), 0, 1);
  for (uint64_t i = 0; i < kSites; ++i) table.note(fault_at(1 << 20 | i), 0, 1);
  EXPECT_EQ(table.sampled(), 2 * kSites);
  const Json all = table.to_json(kUris);
  ASSERT_EQ(all.size(), SiteTable::kSitesTold);
  for (const Json& site : all) {
    EXPECT_LE(site.value("offset", UINT64_MAX), kSites) << "a place that was known";
    EXPECT_DOUBLE_EQ(site.value("share", 0.0), 0.5 / static_cast<double>(kSites));
  }
}

}  // namespace
}  // namespace outcore::recording
