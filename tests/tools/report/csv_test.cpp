#include "tools/report/writers/csv.hpp"

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include <catch2/catch.hpp>

#include "tests/tools/report/tables.hpp"

namespace ddpsim {
namespace {

TEST_CASE("a CSV file has a header and a line for every row, nothing as an empty field",
          "[tools][report][csv]") {
  Table table{{tables::dish, tables::price, tables::weight, tables::hot},
              {{"soup", 12.5, 1536, true}, {"fish", FieldValue(), FieldValue(), false}}};
  CHECK(csv_of(table) == "dish,price,weight,hot\nsoup,12.5,1536,true\nfish,,,false\n");
  table.columns[1].audience = Audience::people;
  CHECK(csv_of(table) == "dish,weight,hot\nsoup,1536,true\nfish,,false\n");
}

TEST_CASE("a field with a comma, a quote or a line break is quoted", "[tools][report][csv]") {
  CHECK(csv_field("plain text") == "plain text");
  CHECK(csv_field("a,b") == "\"a,b\"");
  CHECK(csv_field("say \"so\"") == "\"say \"\"so\"\"\"");
  CHECK(csv_field("two\nlines") == "\"two\nlines\"");
  CHECK(csv_field(Texts{{"a", "[1, 2]"}, {"b", "x"}}) == "\"a=[1, 2]; b=x\"");
  CHECK(csv_field(List{1, "a"}) == "\"[1,\"\"a\"\"]\"");
  for (const std::string text : {"a,b", "say \"so\"", "\"", ",", "two\nlines", "\xc3\xa9"}) {
    CsvRecord record;
    const std::string line = csv_field(text) + ",x\n";
    CsvReader reader(line);
    REQUIRE(reader.next(record));
    CHECK(record.fields == std::vector<std::string>{text, "x"});
  }
}

TEST_CASE("a number that is not finite is an empty field", "[tools][report][csv]") {
  CHECK(csv_field(std::nan("")).empty());
  CHECK(csv_field(std::numeric_limits<double>::infinity()).empty());
}

TEST_CASE("every real number is read back to the bit", "[tools][report][csv]") {
  std::mt19937_64 random(18);
  std::vector<double> numbers{0.0,   -0.0,   0.1,     1.0,
                              1e300, 5e-324, 1.0 / 3, std::numeric_limits<double>::max()};
  while (numbers.size() < 20'000) {
    const double any = std::bit_cast<double>(random());
    if (std::isfinite(any)) numbers.push_back(any);
  }
  for (const double number : numbers) {
    const auto read = value_from_csv(ValueKind::real, csv_field(number));
    REQUIRE(read);
    CHECK(std::bit_cast<std::uint64_t>(std::get<double>(read->held)) ==
          std::bit_cast<std::uint64_t>(number));
  }
}

TEST_CASE("a field is read as its kind, never by what it looks like", "[tools][report][csv]") {
  CHECK(value_from_csv(ValueKind::text, "10") == FieldValue("10"));
  CHECK(value_from_csv(ValueKind::whole, "10") == FieldValue(10));
  CHECK(value_from_csv(ValueKind::real, "10") == FieldValue(10.0));
  CHECK(value_from_csv(ValueKind::flag, "true") == FieldValue(true));
  for (const ValueKind kind : {ValueKind::text, ValueKind::whole, ValueKind::real, ValueKind::flag})
    CHECK(value_from_csv(kind, "") == FieldValue());
  CHECK(!value_from_csv(ValueKind::whole, "10.5"));
  CHECK(!value_from_csv(ValueKind::real, "many"));
  CHECK(!value_from_csv(ValueKind::flag, "1"));
}

}  // namespace
}  // namespace ddpsim
