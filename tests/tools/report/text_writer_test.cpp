#include "tools/report/writers/text_writer.hpp"

#include <cmath>
#include <limits>

#include <catch2/catch.hpp>

#include "tests/tools/program.hpp"
#include "tests/tools/report/tables.hpp"
#include "tools/report/writers/text_width.hpp"

namespace ddpsim {
namespace {

using tables::menu;

TEST_CASE("a table of text: names at the left, numbers at the right, each as its field says",
          "[tools][report][text_writer]") {
  CHECK(text_of(menu()) ==
        "dish  price   weight  spice  salt  remark\n"
        "---------------------------------------------\n"
        "soup  12.50  1.5 KiB   10 %   5 %  with bread\n"
        "fish   7.25      3 B      -  50 %\n");
}

TEST_CASE("lines above and below belong to a table", "[tools][report][text_writer]") {
  Table table{{tables::dish}, {{"soup"}}, "today", "and more tomorrow"};
  CHECK(text_of(table) == "today\ndish\n----\nsoup\nand more tomorrow\n");
}

TEST_CASE("a number that is not finite is shown as nothing is", "[tools][report][text_writer]") {
  for (const FieldValue& value : {FieldValue(), FieldValue(std::nan("")), FieldValue(-std::nan("")),
                                  FieldValue(std::numeric_limits<double>::infinity())}) {
    CHECK(cell_text(tables::price, value) == "-");
    CHECK(cell_text(tables::price.with(Look{}.or_blank()), value).empty());
  }
}

TEST_CASE("values of every kind have a text", "[tools][report][text_writer]") {
  CHECK(cell_text(tables::hot, true) == "yes");
  CHECK(cell_text(tables::hot, false) == "no");
  CHECK(cell_text(tables::dish, "soup") == "soup");
  CHECK(cell_text(fields::count_field("n", "n", ""), 7) == "7");
  CHECK(cell_text(tables::price, 7) == "7.00");  // the field says how
  CHECK(cell_text(tables::price, List{1.0, 2.5}) == "1.00, 2.50");
  CHECK(cell_text(tables::price, Texts{{"a", "1"}, {"b", "x y"}}) == "a=1; b=x y");
}

TEST_CASE("the least important columns of a wide table go first, and a line names them",
          "[tools][report][text_writer]") {
  // 45 columns: without salt 39, without spice as well 32.
  CHECK(text_of(menu(), 45) == text_of(menu()));
  CHECK(text_of(menu(), 44) ==
        "dish  price   weight  spice  remark\n"
        "---------------------------------------\n"
        "soup  12.50  1.5 KiB   10 %  with bread\n"
        "fish   7.25      3 B      -\n"
        "(left out: salt; --wide shows all)\n");
  CHECK(text_of(menu(), 38) ==
        "dish  price   weight  remark\n"
        "--------------------------------\n"
        "soup  12.50  1.5 KiB  with bread\n"
        "fish   7.25      3 B\n"
        "(left out: spice, salt; --wide shows\n"
        "all)\n");
}

TEST_CASE("the first column stays, however narrow the page", "[tools][report][text_writer]") {
  const std::vector<std::string> lines = lines_of(text_of(menu(), 5));
  REQUIRE(lines.size() > 4);
  CHECK(lines[0] == "dish");
  CHECK(lines[2] == "soup");
}

TEST_CASE("a text goes on several lines before a column is given up for it",
          "[tools][report][text_writer]") {
  Table table{{tables::dish, tables::price, tables::remark},
              {{"soup", 1.0, "with bread, butter, and a glass of water"}}};
  CHECK(text_of(table, 32) ==
        "dish  price  remark\n"
        "--------------------------------\n"
        "soup   1.00  with bread, butter,\n"
        "             and a glass of\n"
        "             water\n");
}

TEST_CASE("no line is wider than the page, whatever stands in the table",
          "[tools][report][text_writer]") {
  Table table = menu();
  table.title = "a title that goes on and on, as titles of tables do when nobody stops them";
  table.notes = "and notes below: " + std::string(90, 'x');
  table.add({"a dish with a very long name indeed, and more of it", 123456.789, 1 << 30, 0.5, 0.25,
             "a remark without end that says " + std::string(70, 'z')});
  for (std::size_t width = 20; width < 220; ++width) {
    CAPTURE(width);
    for (const std::string& line : lines_of(text_of(table, width)))
      CHECK(display_width(line) <= width);
  }
}

TEST_CASE("nothing of a text is lost on a narrow page", "[tools][report][text_writer]") {
  const std::string name = "bucketed, 16 KiB, comm_hook: {powersgd: {rank: 1}}, no_sync: true";
  std::string joined;
  for (const std::string& line : lines_of(text_of(Table{{tables::dish}, {{name}}}, 24)))
    joined += line;
  joined.erase(std::remove(joined.begin(), joined.end(), ' '), joined.end());
  std::string expected = "dish" + std::string(24, '-') + name;
  expected.erase(std::remove(expected.begin(), expected.end(), ' '), expected.end());
  CHECK(joined == expected);
}

TEST_CASE("columns line up below letters of several bytes and of two columns",
          "[tools][report][text_writer]") {
  const Table table{{tables::dish, tables::price},
                    {{"caf\xc3\xa9", 1.0},               // an e with an accent, two bytes
                     {"cafe\xcc\x81", 2.0},              // e, and an accent put on it
                     {"\xe6\x96\x99\xe7\x90\x86", 3.0},  // two characters drawn wide
                     {"bad\xff", 4.0}}};                 // no UTF-8
  CHECK(text_of(table) ==
        "dish     price\n"
        "--------------\n"
        "caf\xc3\xa9      1.00\n"
        "cafe\xcc\x81      2.00\n"
        "\xe6\x96\x99\xe7\x90\x86      3.00\n"
        "bad\\xff   4.00\n");
}

TEST_CASE("a name cannot break the lines of a table or reach the terminal's controls",
          "[tools][report][text_writer]") {
  const std::string text = text_of(Table{{tables::dish}, {{"a\nb\x1b[31mred"}}});
  CHECK(lines_of(text).size() == 3);
  CHECK(text.find('\x1b') == std::string::npos);
}

TEST_CASE("a bar is as long as its value, and shorter on a narrow page",
          "[tools][report][text_writer]") {
  const Field bar = tables::spice.with(fields::as_bar);
  const Table table{{tables::dish, bar}, {{"soup", 1.0}, {"fish", List{0.5, " <- best"}}}};
  CHECK(text_of(table) == "dish  spice\n" + std::string(46, '-') + "\nsoup  " +
                              std::string(40, '#') + "\nfish  " + std::string(20, '#') +
                              " <- best\n");
  // 26 columns leave 20 for the bar.
  CHECK(text_of(table, 26) == "dish  spice\n" + std::string(26, '-') + "\nsoup  " +
                                  std::string(20, '#') + "\nfish  " + std::string(10, '#') +
                                  " <- best\n");
}

TEST_CASE("programs' columns are not in tables", "[tools][report][text_writer]") {
  const Table table{{tables::dish, tables::price.only_for(Audience::programs)}, {{"soup", 1.0}}};
  CHECK(text_of(table) == "dish\n----\nsoup\n");
}

TEST_CASE("a page keeps its sentences within its width and what is to be pasted as it is",
          "[tools][report][text_writer]") {
  Page page;
  page.add(Paragraph{"one two three four"});
  page.add(Paragraph{""});
  page.add(Verbatim{"five six seven eight"});
  page.add(Drawing{[](PageWidth width) { return std::string(width.value_or(30), '=') + "\n"; }});
  CHECK(text_of(page) ==
        "one two three four\n\nfive six seven eight\n\n" + std::string(30, '=') + "\n");
  CHECK(text_of(page, 9) == "one two\nthree\nfour\n\nfive six seven eight\n\n=========\n");
}

TEST_CASE("tables that lose the same columns say so once", "[tools][report][text_writer]") {
  Page page;
  for (int i = 0; i < 3; ++i) page.add(menu());
  const std::string text = text_of(page, 44);
  const std::size_t first = text.find("(left out: salt; --wide shows all)");
  REQUIRE(first != std::string::npos);
  CHECK(text.find("(left out", first + 1) == std::string::npos);
}

TEST_CASE("lines part at blanks, keep what they begin with, and break words that are too long",
          "[tools][report][text_width]") {
  CHECK(wrapped("  previous      the one before", 20) ==
        std::vector<std::string>{"  previous      the", "  one before"});
  CHECK(wrapped("abcdefgh", 3) == std::vector<std::string>{"abc", "def", "gh"});
  CHECK(wrapped("", 3) == std::vector<std::string>{""});
  CHECK(shortened("abcdefgh", 6) == "abc...");
  CHECK(shortened("abcdefgh", 8) == "abcdefgh");
}

}  // namespace
}  // namespace ddpsim
