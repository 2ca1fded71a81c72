#include "tools/report/writers/json_writer.hpp"

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include <catch2/catch.hpp>

#include "tests/tools/report/tables.hpp"

namespace ddpsim {
namespace {

TEST_CASE("a record is an object with its fields in order", "[tools][report][json]") {
  Record record;
  record.add(tables::weight, 1536)
      .add(tables::dish, "soup")
      .add(tables::price, 1.0)
      .add(tables::hot, true)
      .add(tables::spice, FieldValue());
  CHECK(one_line(json_of(record)) ==
        R"({"weight":1536,"dish":"soup","price":1.0,"hot":true,"spice":null})");
}

TEST_CASE("lists, records in them and texts under other names nest", "[tools][report][json]") {
  Record inner;
  inner.add(tables::price, 0.1);
  Record record;
  record.add(tables::dish, List{1, inner, List{}})
      .add(tables::remark, Texts{{"b", "1"}, {"a", "2"}});
  CHECK(one_line(json_of(record)) == R"({"dish":[1,{"price":0.1},[]],"remark":{"b":"1","a":"2"}})");
}

TEST_CASE("what is for people alone is not in JSON", "[tools][report][json]") {
  static constexpr Field aside = tables::remark.only_for(Audience::people);
  Record record;
  record.add(tables::dish, "soup").add(aside, "tell nobody");
  CHECK(one_line(json_of(record)) == R"({"dish":"soup"})");
  CHECK(one_line(json_of(Table{{tables::dish, aside}, {{"soup", "x"}}})) == R"([{"dish":"soup"}])");
}

TEST_CASE("a number that is not finite is null", "[tools][report][json]") {
  CHECK(json_of(FieldValue(std::nan(""))).is_null());
  CHECK(json_of(FieldValue(-std::numeric_limits<double>::infinity())).is_null());
}

TEST_CASE("every real number keeps its bits on the way through JSON", "[tools][report][json]") {
  std::mt19937_64 random(18);
  for (int i = 0; i < 20'000; ++i) {
    const double number = std::bit_cast<double>(random());
    if (!std::isfinite(number)) continue;
    const auto read = value_from_json(
        ValueKind::real, nlohmann::ordered_json::parse(one_line(json_of(FieldValue(number)))));
    REQUIRE(read);
    CHECK(std::bit_cast<std::uint64_t>(std::get<double>(read->held)) ==
          std::bit_cast<std::uint64_t>(number));
  }
}

TEST_CASE("JSON is read as the field's kind", "[tools][report][json]") {
  using Json = nlohmann::ordered_json;
  CHECK(value_from_json(ValueKind::real, Json(10)) == FieldValue(10.0));
  CHECK(value_from_json(ValueKind::whole, Json(10)) == FieldValue(10));
  CHECK(value_from_json(ValueKind::text, Json("10")) == FieldValue("10"));
  CHECK(value_from_json(ValueKind::text, Json(nullptr)) == FieldValue());
  CHECK(!value_from_json(ValueKind::text, Json(10)));
  CHECK(!value_from_json(ValueKind::whole, Json(10.5)));
  CHECK(!value_from_json(ValueKind::real, Json("10")));
}

TEST_CASE("bytes that are no UTF-8 do not break the line", "[tools][report][json]") {
  CHECK(one_line(json_of(FieldValue("bad\xff"))) == "\"bad\xef\xbf\xbd\"");
}

}  // namespace
}  // namespace ddpsim
