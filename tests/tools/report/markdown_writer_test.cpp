#include "tools/report/writers/markdown_writer.hpp"

#include <catch2/catch.hpp>

#include "tests/tools/report/tables.hpp"

namespace ddpsim {
namespace {

TEST_CASE("a Markdown table has all columns, names at the left and numbers at the right",
          "[tools][report][markdown]") {
  CHECK(markdown_of(tables::menu()) ==
        "| dish | price | weight | spice | salt | remark |\n"
        "|---|--:|--:|--:|--:|---|\n"
        "| soup | 12.50 | 1.5 KiB | 10 % | 5 % | with bread |\n"
        "| fish | 7.25 | 3 B | - | 50 % |  |\n");
}

TEST_CASE("what Markdown would take for marks reads as itself", "[tools][report][markdown]") {
  const Table table{{tables::dish},
                    {{"a|b"}, {"*.bias"}, {"bucket_cap"}, {"_orig_mod"}, {"<- best"}, {"`x`"}}};
  CHECK(markdown_of(table) ==
        "| dish |\n|---|\n| a\\|b |\n| \\*.bias |\n| bucket_cap |\n| \\_orig_mod |\n| \\<- best |\n"
        "| \\`x\\` |\n");
}

TEST_CASE("a page's sentences keep their lines; pictures and what is to be pasted are code",
          "[tools][report][markdown]") {
  Page page;
  page.add(Paragraph{"first\nsecond\n"});
  page.add(Table{{tables::dish}, {{"soup"}}, "a title", "a note"});
  page.add(Verbatim{"paste this"});
  page.add(Drawing{[](PageWidth) { return std::string("FFBB\n"); }});
  CHECK(markdown_of(page) ==
        "first  \nsecond\n\na title\n\n| dish |\n|---|\n| soup |\n\na note\n\n"
        "```\npaste this\n```\n\n```\nFFBB\n```\n");
}

TEST_CASE("a bar is said as a share", "[tools][report][markdown]") {
  const Table table{{tables::dish, tables::spice.with(fields::as_bar)}, {{"soup", 0.25}}};
  CHECK(markdown_of(table) == "| dish | spice |\n|---|---|\n| soup | 25 % |\n");
}

}  // namespace
}  // namespace ddpsim
