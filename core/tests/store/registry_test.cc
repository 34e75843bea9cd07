// URIs, and the errors of open_store for bad ones.
#include "core/store/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "core/tests/store/store_case.h"
#include "outcore/store_catalog.h"
#include "outcore/store_kind.h"

namespace outcore::store_test {
namespace {

using store::parse_uri;
using testing::HasSubstr;

std::string message_of(const std::string& uri, OpenOptions options = {}) {
  const auto store = open_store(uri, options);
  EXPECT_EQ(store.code(), EINVAL) << uri;
  return store.ok() ? "" : store.message();
}

TEST(Uri, APlainPathIsAFileAsItIs) {
  for (const char* text : {"a", "/a/b", "./a:b", "a?b=c", "100%.dat", "/data/x:y?z"}) {
    const auto uri = parse_uri(text);
    ASSERT_TRUE(uri.ok()) << uri.message();
    EXPECT_EQ(uri.value().scheme, "file");
    EXPECT_EQ(uri.value().path, text);
    EXPECT_TRUE(uri.value().parameters.empty());
  }
}

TEST(Uri, ASchemeIsFollowedByPathAndParameters) {
  const auto uri = parse_uri("Sparse:/a/b?segment=64M&x=1%26%3d+2").value();
  EXPECT_EQ(uri.scheme, "sparse");
  EXPECT_EQ(uri.path, "/a/b");
  EXPECT_EQ(*uri.find("segment"), "64M");
  EXPECT_EQ(*uri.find("x"), "1&=+2");
  EXPECT_EQ(uri.find("y"), nullptr);
}

TEST(Uri, SlashesBeforeAnAbsolutePathAreDropped) {
  EXPECT_EQ(parse_uri("file:///a/b").value().path, "/a/b");
  EXPECT_EQ(parse_uri("file:/a/b").value().path, "/a/b");
  EXPECT_EQ(parse_uri("file:a/b").value().path, "a/b");
  EXPECT_EQ(parse_uri("redis://host:1,b:2/name").value().authority, "host:1,b:2");
  EXPECT_EQ(parse_uri("redis://host:1,b:2/name?a=b").value().path, "/name");
  EXPECT_THAT(outcore::open_store("file://host/b").message(), HasSubstr("a host has no meaning"));
}

TEST(Uri, APasswordIsNotRepeated) {
  const auto uri = parse_uri("redis://me:s:e@cr@host:1/name").value();
  EXPECT_EQ(uri.text, "redis://me:***@host:1/name");
  EXPECT_EQ(uri.authority, "me:s:e@cr@host:1");
  EXPECT_EQ(parse_uri("redis://me@host:1/a:b@c").value().text, "redis://me@host:1/a:b@c");
}

TEST(Uri, PercentSignsOfAPathStay) {
  EXPECT_EQ(parse_uri("file:a%20b?x=%41").value().path, "a%20b");
}

TEST(Uri, BadParametersAreRefused) {
  EXPECT_THAT(parse_uri("file:a?direct").message(),
              HasSubstr("'direct' after '?' is not a parameter: write key=value"));
  EXPECT_THAT(parse_uri("file:a?x=1&x=2").message(), HasSubstr("'x' is given twice"));
  EXPECT_THAT(parse_uri("file:a?x=%4").message(), HasSubstr("bad escape"));
  EXPECT_THAT(parse_uri("file:a?x=%zz").message(), HasSubstr("bad escape"));
  EXPECT_THAT(parse_uri("").message(), HasSubstr("empty"));
}

TEST(OpenStore, AnUnknownSchemeNamesTheNearest) {
  const std::string message = message_of("scrach:");
  EXPECT_THAT(message, HasSubstr("scheme 'scrach' is unknown (did you mean 'scratch'?)"));
  EXPECT_THAT(message, HasSubstr("write file, pmem, sparse, scratch or memory, "));
  EXPECT_THAT(message_of("weather:today"),
              HasSubstr("file:weather:today if that is a file's name"));
}

// A kind as a program adds it, over memory:.
StoreKind kind_of_memory(const std::string& scheme) {
  StoreKind kind;
  kind.scheme = scheme;
  kind.summary = "for this test";
  kind.parameters = {"colour"};
  kind.open = [](const StoreUri&, const OpenOptions& options, const StoreLimits& limits) {
    return open_store("memory:?read_concurrency=" + std::to_string(limits.read_concurrency),
                      options);
  };
  return kind;
}

TEST(StoreKinds, OneOfTheProgramsIsOpenedByItsUri) {
  StoreKind kind = kind_of_memory("mine+1");
  kind.list = [](const StoreUri& uri) -> Result<std::vector<StoreInfo>> {
    return std::vector<StoreInfo>{{.name = uri.path}};
  };
  ASSERT_TRUE(register_store_kind(kind).ok());
  OpenOptions options;
  options.size_bytes = 4096;
  const auto store = open_store("mine+1:x?colour=red&read_concurrency=3", options);
  ASSERT_TRUE(store.ok()) << store.message();
  EXPECT_EQ(store.value()->traits().read_concurrency, 3U);
  EXPECT_EQ(list_stores("MINE+1:x").value().at(0).name, "x");
  EXPECT_EQ(remove_store("mine+1:x").code(), ENOTSUP);
  EXPECT_THAT(message_of("mine+1:x?color=red"), HasSubstr("did you mean 'colour'?"));
  EXPECT_THAT(message_of("mine+1://host/x"), HasSubstr("a host has no meaning here"));
  EXPECT_THAT(message_of("mine+2:x"), HasSubstr("did you mean 'mine+1'?"));
}

TEST(StoreKinds, WhatCannotBeAKindIsRefused) {
  EXPECT_EQ(register_store_kind(kind_of_memory("file")).code(), EEXIST);
  for (const char* scheme : {"", "m", "1mine", "Mine", "my kind", "mine:"})
    EXPECT_EQ(register_store_kind(kind_of_memory(scheme)).code(), EINVAL) << scheme;
  StoreKind kind = kind_of_memory("mine.no");
  kind.open = nullptr;
  EXPECT_THAT(register_store_kind(kind).message(), HasSubstr("no function that opens a store"));
  // Its folder would be opened as one that Outcore has written.
  StoreKind pool = kind_of_memory("pools");
  pool.checkpoints = StoreKind::Checkpoints::kInPool;
  EXPECT_EQ(register_store_kind(pool).code(), EINVAL);
  EXPECT_EQ(kind_of_scheme("pools:x"), nullptr);
}

TEST(Registry, ASchemeNamesItsKindWhateverElseIsWrong) {
  for (const char* text : {"/a/b", "b", "file:b?x", "FILE:", "a/b:c"}) {
    ASSERT_NE(kind_of_scheme(text), nullptr) << text;
    EXPECT_EQ(kind_of_scheme(text)->scheme, "file") << text;
  }
  EXPECT_EQ(kind_of_scheme("Sparse:x?segment")->scheme, "sparse");
  EXPECT_EQ(kind_of_scheme("nonsense:x"), nullptr);
  EXPECT_EQ(without_file_scheme("file:/a"), "/a");
  for (const char* text : {"filename", "file", "", "sparse:a", "/file:a"})
    EXPECT_EQ(without_file_scheme(text), text);
}

TEST(OpenStore, AnUnknownParameterNamesTheNearest) {
  EXPECT_THAT(message_of("memory:?read_concurency=3"),
              HasSubstr("(did you mean 'read_concurrency'?)"));
  EXPECT_THAT(message_of("file:x?segment=4M"),
              HasSubstr("file takes direct, read_concurrency or write_concurrency"));
}

TEST(OpenStore, BadValuesAreRefused) {
  EXPECT_THAT(message_of("file:x?direct=onn"),
              HasSubstr("direct=onn is unknown (did you mean 'on'?)"));
  EXPECT_THAT(message_of("memory:?read_concurrency=many"), HasSubstr("write a whole number"));
  EXPECT_THAT(message_of("memory:?write_concurrency=-1"), HasSubstr("write a whole number"));
  EXPECT_THAT(message_of("sparse:x?segment=large"), HasSubstr("'large' is not a size"));
  EXPECT_THAT(message_of("memory:name"), HasSubstr("memory has no name"));
  EXPECT_THAT(message_of("sparse:"), HasSubstr("sparse:FOLDER"));
  EXPECT_THAT(message_of("file:"), HasSubstr("file:PATH"));
}

TEST(OpenStore, ConcurrencyIsATraitOfEveryKind) {
  const Folder folder;
  OpenOptions options;
  options.is_writable = options.may_create = true;
  options.size_bytes = 4096;
  for (const std::string& uri : {"file:" + (folder / "f"), "sparse:" + (folder / "s"),
                                 "scratch:" + folder.path(), std::string("memory:")}) {
    const auto store = open_store(uri + "?read_concurrency=7&write_concurrency=2", options);
    ASSERT_TRUE(store.ok()) << store.message();
    EXPECT_EQ(store.value()->traits().read_concurrency, 7u);
    EXPECT_EQ(store.value()->traits().write_concurrency, 2u);
    EXPECT_TRUE(store.value()->traits().is_fault_safe);
  }
}

TEST(OpenStore, MemoryThatCannotBeHadIsRefused) {
  OpenOptions options;
  options.size_bytes = uint64_t{1} << 59;
  EXPECT_EQ(open_store("memory:", options).code(), ENOMEM);
  options.size_bytes = UINT64_MAX;
  EXPECT_EQ(open_store("memory:", options).code(), ENOMEM);
}

TEST(OpenStore, AMissingFileWithAQuestionMarkHintsAtTheScheme) {
  EXPECT_THAT(open_store("/no/such?direct=off").message(), HasSubstr("parameters need the scheme"));
}

}  // namespace
}  // namespace outcore::store_test
