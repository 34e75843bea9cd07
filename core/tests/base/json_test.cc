#include "core/base/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/base/json_fields.h"

namespace outcore::base {
namespace {

using testing::HasSubstr;

std::string again(const std::string& text) {
  const auto json = Json::parse(text);
  return json ? json->dump() : json.message();
}

TEST(Json, WholeNumbersOf64BitsAreKeptWithoutLoss) {
  for (const char* number : {"0", "-1", "9223372036854775807", "-9223372036854775808",
                             "9223372036854775808", "18446744073709551615"})
    EXPECT_EQ(again(number), number);
  EXPECT_EQ(Json(UINT64_MAX).as<uint64_t>(), UINT64_MAX);
  EXPECT_EQ(Json(INT64_MIN).as<int64_t>(), INT64_MIN);
  EXPECT_EQ(Json(INT64_MAX).as<uint64_t>(), uint64_t{INT64_MAX});
  EXPECT_EQ(Json(uint64_t{INT64_MAX}).as<int64_t>(), INT64_MAX);
  EXPECT_EQ(Json(uint64_t{INT64_MAX} + 1).as<int64_t>(), std::nullopt);
  EXPECT_EQ(Json(-1).as<uint64_t>(), std::nullopt);
}

TEST(Json, AWholeNumberThatDoesNotFitIsNone) {
  EXPECT_EQ(Json(70'000).as<uint16_t>(), std::nullopt);
  EXPECT_EQ(Json(-129).as<int8_t>(), std::nullopt);
  EXPECT_EQ(Json(65'535).as<uint16_t>(), 65'535);
  EXPECT_EQ(Json(1.0).as<uint64_t>(), std::nullopt);
  EXPECT_EQ(Json::parse("18446744073709551616")->as<uint64_t>(), std::nullopt);
  EXPECT_EQ(Json::parse("18446744073709551616")->as<double>(), 18446744073709551616.0);
}

TEST(Json, NumbersCompareByValueAndNothingElseHasAnOrder) {
  EXPECT_EQ(Json(5), 5.0);
  EXPECT_EQ(Json(5), 5u);
  EXPECT_LT(Json(-1), Json(UINT64_MAX));
  EXPECT_GT(Json(UINT64_MAX), Json(UINT64_MAX - 1));
  EXPECT_LT(Json(INT64_MIN), Json(INT64_MIN + 1));
  EXPECT_GT(Json(1.5), 1);
  EXPECT_FALSE(Json() < Json(1));
  EXPECT_FALSE(Json("a") < Json("b"));
  EXPECT_NE(Json(std::nan("")), std::nan(""));
  EXPECT_NE(Json(0), Json());
  EXPECT_NE(Json("0"), 0);
  EXPECT_NE(Json(true), 1);
}

TEST(Json, DoublesAreWrittenAsShortAsTheyCanBeReadAgain) {
  const std::pair<double, const char*> kWritten[] = {{0.1, "0.1"},
                                                     {1, "1.0"},
                                                     {-0.0, "-0.0"},
                                                     {1e14, "100000000000000.0"},
                                                     {1e15, "1e+15"},
                                                     {1e-4, "0.0001"},
                                                     {1e-5, "1e-05"},
                                                     {1.0 / 3, "0.3333333333333333"},
                                                     {1e300, "1e+300"},
                                                     {5e-324, "5e-324"},
                                                     {123456.789, "123456.789"}};
  for (const auto& [value, text] : kWritten) {
    EXPECT_EQ(Json(value).dump(), text);
    EXPECT_EQ(Json::parse(text)->as<double>(), value);
  }
  EXPECT_EQ(Json(std::numeric_limits<double>::infinity()).dump(), "null");
  EXPECT_EQ(Json(std::nan("")).dump(), "null");
}

TEST(Json, ANumberBeyondAllIsRefused) { EXPECT_EQ(Json::parse("1e999").code(), EINVAL); }

TEST(Json, WhatIsNoUtf8IsReplacedWhenItIsWrittenAndRefusedWhenItIsRead) {
  EXPECT_EQ(Json("a\xff\xfe b").dump(), "\"a\xef\xbf\xbd\xef\xbf\xbd b\"");
  EXPECT_EQ(Json("cut \xe2\x82").dump(), "\"cut \xef\xbf\xbd\"");
  EXPECT_EQ(Json("\xff").dump({.is_ascii = true}), "\"\\ufffd\"");
  EXPECT_EQ(Json("é\n\x1f").dump({.is_ascii = true}), "\"\\u00e9\\n\\u001f\"");
  EXPECT_EQ(Json("é\"\\").dump(), "\"é\\\"\\\\\"");
  EXPECT_FALSE(Json::parse("\"a\xff\""));
  EXPECT_EQ(Json::parse("\"\\u20ac\"")->as<std::string>(), "€");
  const Json named = {{"\xff", 1}};
  EXPECT_EQ(named.dump(), "{\"\xef\xbf\xbd\":1}");
}

TEST(Json, WhatIsNestedTooDeepIsRefused) {
  const auto nested = [](size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_EQ(again(nested(Json::kDepthMax)), nested(Json::kDepthMax));
  EXPECT_THAT(again(nested(Json::kDepthMax + 1)), HasSubstr("deeper than 64"));
  EXPECT_THAT(again(std::string(1'000'000, '[')), HasSubstr("deeper than 64"));
  std::string objects;
  for (size_t i = 0; i < 100'000; ++i) objects += "{\"a\":";
  EXPECT_THAT(again(objects), HasSubstr("deeper than 64"));
  EXPECT_EQ(again("[" + nested(63) + "," + nested(63) + "]").size(), 2 * 2 * 63 + 3u);
  const Json::Bytes cbor(1'000'000, 0x81);
  EXPECT_THAT(Json::from_cbor(cbor.data(), cbor.size()).message(), HasSubstr("deeper than 64"));
  for (const uint8_t piece : {uint8_t{0x5f}, uint8_t{0x7f}}) {  // a string in a string in a string
    const Json::Bytes pieces(1'000'000, piece);
    EXPECT_THAT(Json::from_cbor(pieces.data(), pieces.size()).message(), HasSubstr("in pieces"));
    Json::Bytes later = {0x82, 0x18, 0x7f, piece, 0x61, 'a', 0xff};
    EXPECT_THAT(Json::from_cbor(later.data(), later.size()).message(), HasSubstr("in pieces"));
  }
  const Json bytes = Json::binary(Json::Bytes(300, 0x7f));
  const Json::Bytes kept = Json::array({bytes, Json(uint64_t{0x5f5f5f5f5f5f5f5f})}).to_cbor();
  EXPECT_TRUE(Json::from_cbor(kept.data(), kept.size()).ok());
}

TEST(Json, OfMembersOfTheSameNameTheLastCounts) {
  EXPECT_EQ(again(R"({"b":1,"a":2,"b":{"c":3},"a":[4]})"), R"({"a":[4],"b":{"c":3}})");
  std::string many = "{";
  for (int i = 0; i < 100'000; ++i)
    many += (i == 0 ? "" : ",") + ("\"n" + std::to_string(i % 7)) + "\":" + std::to_string(i);
  EXPECT_EQ(Json::parse(many + "}")->size(), 7u);
  EXPECT_EQ(Json::parse(many + "}")->value("n6", 0), 99'994);
}

TEST(Json, WhatIsNoJsonOrMoreThanOneIsRefusedWithThePlace) {
  for (const char* text : {"", " ", "{", "[1,]", "{\"a\" 1}", "{a:1}", "tru", "01", "'a'", "[1] 2",
                           "{}{}", "\"a", "nan", "// a\n1", "-"})
    EXPECT_EQ(Json::parse(text).code(), EINVAL) << text;
  EXPECT_THAT(Json::parse("[1, 2, oh]").message(), HasSubstr("byte 8 "));
  EXPECT_EQ(Json::parse_or_null("[1"), Json());
  EXPECT_EQ(again(" [1 , 2]\n"), "[1,2]");
}

TEST(Json, LookingForWhatIsNotThereGivesNothing) {
  const Json json = Json::parse_or_null(R"({"a":{"b":[1,"x"]},"n":null})");
  EXPECT_EQ(json["a"]["b"][0], 1);
  EXPECT_EQ(json["a"]["b"][1], "x");
  EXPECT_TRUE(json["a"]["b"][2].is_null());
  EXPECT_TRUE(json["a"]["c"]["d"][7]["e"].is_null());
  EXPECT_TRUE(json["a"][0].is_null());
  EXPECT_TRUE(json.contains("n"));
  EXPECT_FALSE(json.contains("a.b"));
  EXPECT_FALSE(json["a"]["b"].contains("x"));
  EXPECT_EQ(json["a"]["b"].value("x", 7), 7);
  EXPECT_EQ(json.value("a", 7), 7) << "of another type";
  EXPECT_EQ(json.value("a", "none"), "none");
  EXPECT_TRUE(json["n"].empty());
  EXPECT_EQ(json["a"]["b"].as<std::vector<int>>(), std::nullopt);
  EXPECT_EQ(json["n"].as<std::vector<int>>(), std::nullopt);
  for (const Json& item : json["a"]) ADD_FAILURE() << item;
}

TEST(Json, IsMadeOfWhatProgramsHave) {
  Json json = {{"list", std::vector<uint64_t>{1, 2}},
               {"texts", std::map<std::string, std::string>{{"k", "v"}}},
               {"yes", true},
               {"none", nullptr},
               {"inner", {{"x", 1.5}}}};
  json["items"].push_back("a");
  json["items"].push_back({{"b", 2}});
  json["inner"]["y"] = -1;
  json.update({{"yes", false}, {"new", std::string("n")}});
  json.erase("none");
  EXPECT_EQ(json.dump(), R"({"inner":{"x":1.5,"y":-1},"items":["a",{"b":2}],"list":[1,2],)"
                         R"("new":"n","texts":{"k":"v"},"yes":false})");
  EXPECT_EQ(json["list"].as<std::vector<uint64_t>>(), (std::vector<uint64_t>{1, 2}));
  EXPECT_EQ(json, Json::parse(json.dump()).value());
  EXPECT_NE(json, Json::object());
}

TEST(Json, MembersAreWrittenByNameOrAsTheyWereAdded) {
  const Json json = {{"b", Json::array()}, {"a", {{"d", 1}, {"c", Json::object()}}}};
  EXPECT_EQ(json.dump(), R"({"a":{"c":{},"d":1},"b":[]})");
  EXPECT_EQ(json.dump({.is_as_added = true}), R"({"b":[],"a":{"d":1,"c":{}}})");
  EXPECT_EQ(json.dump({.indent = 2}),
            "{\n  \"a\": {\n    \"c\": {},\n    \"d\": 1\n  },\n  \"b\": []\n}");
}

TEST(Json, BytesGoThroughCbor) {
  const Json json = {{"b", Json::binary({0, 255})}, {"n", -5}, {"u", UINT64_MAX}, {"d", 0.1}};
  const Json::Bytes cbor = json.to_cbor();
  auto read = Json::from_cbor(cbor.data(), cbor.size());
  ASSERT_TRUE(read) << read.message();
  EXPECT_EQ(*read, json);
  EXPECT_EQ((*read)["b"].as<Json::Bytes>(), (Json::Bytes{0, 255}));
  for (size_t size = 0; size < cbor.size(); ++size)
    EXPECT_EQ(Json::from_cbor(cbor.data(), size).code(), EINVAL);
}

TEST(JsonFields, GiveWhatHasItsType) {
  const Json json = {{"n", 7}, {"t", "x"}, {"y", true}, {"d", 2}, {"l", std::vector<int>{1}}};
  JsonFields fields(json);
  EXPECT_EQ(fields.get<uint32_t>("n"), 7u);
  EXPECT_EQ(fields.get<std::string>("t"), "x");
  EXPECT_TRUE(fields.get<bool>("y"));
  EXPECT_EQ(fields.get<double>("d"), 2.0);
  EXPECT_EQ(fields.get("missing", 3), 3);
  EXPECT_EQ(fields.get<std::vector<uint64_t>>("l"), std::vector<uint64_t>{1});
  EXPECT_EQ(fields.items("l").size(), 1u);
  EXPECT_TRUE(fields.ok());
}

TEST(JsonFields, TheFirstThatIsMissingOrWrongIsTheError) {
  const Json json = {{"n", -7}, {"t", 1}, {"long", std::string(100, 'x')}};
  const auto message_of = [&](const auto& look) {
    JsonFields fields(json);
    look(fields);
    EXPECT_EQ(fields.error().code, EINVAL);
    return fields.error().message;
  };
  EXPECT_EQ(message_of([](JsonFields& f) { f.get<uint64_t>("n"), f.get<bool>("t"); }),
            "'n' is -7 and must be a whole number, 0 or more");
  EXPECT_EQ(message_of([](JsonFields& f) { f.get<uint8_t>("m"); }),
            "'m' is missing and must be a whole number, 0 … 255");
  EXPECT_EQ(message_of([](JsonFields& f) { f.get("t", std::string()); }),
            "'t' is 1 and must be a text");
  EXPECT_EQ(message_of([](JsonFields& f) { f.items("t"); }), "'t' is 1 and must be a list");
  EXPECT_THAT(message_of([](JsonFields& f) { f.get<bool>("long"); }),
              HasSubstr("xxx… and must be true or false"));
  EXPECT_EQ(JsonFields(Json("text")).error().message, "it is not a JSON object");
}

}  // namespace
}  // namespace outcore::base
