#include "model/base/printable.hpp"

#include <random>

#include <catch2/catch.hpp>

namespace ddpsim {
namespace {

TEST_CASE("what a terminal would obey is spelled out", "[model][printable]") {
  CHECK(printable("\x1b[2J\x1b]0;title\x07") == "\\x1b[2J\\x1b]0;title\\x07");
  CHECK(printable("a\nb\tc\rd\x7f") == "a\\nb\\tc\\rd\\x7f");
  CHECK(printable(std::string_view("a\0b", 3)) == "a\\x00b");
  CHECK(printable("\xc2\x9b"
                  "31m") == "\\u009b31m");  // the control sequence introducer in one character
  CHECK(printable("a\xc2\x85"
                  "b\xe2\x80\xa8"
                  "c\xe2\x80\xa9") == "a\\u0085b\\u2028c\\u2029");
  CHECK(printable("gpj.\xe2\x80\xae"
                  "exe\xe2\x81\xa6") == "gpj.\\u202eexe\\u2066");
}

TEST_CASE(
    "a byte that is no UTF-8 is spelled out, for some terminals take it for a control character",
    "[model][printable]") {
  CHECK(printable("a\x9b"
                  "31m") == "a\\x9b31m");
  CHECK(printable("\xff\xc3") == "\\xff\\xc3");
  CHECK(printable("\xed\xa0\x80") == "\\xed\\xa0\\x80");  // a surrogate
  CHECK(printable("\xc0\x9b") == "\\xc0\\x9b");  // an escape in a longer form than it needs
}

TEST_CASE("the first and last characters of each length in UTF-8", "[model][printable]") {
  CHECK(utf8_length("\xdf\xbf", 0) == 2);
  CHECK(utf8_length("\xe0\xa0\x80", 0) == 3);
  CHECK(utf8_length("\xe0\x9f\xbf", 0) == 0);  // in a longer form than it needs
  CHECK(utf8_length("\xf4\x8f\xbf\xbf", 0) == 4);
  CHECK(utf8_length("\xf4\x90\x80\x80", 0) == 0);  // beyond the last character there is
}

TEST_CASE("what is printable stays as it is", "[model][printable]") {
  for (const char* text : {"", "layers.0.weight", "5 \xc2\xb5s, \xe2\x80\xa6", "\xc2\xa0",
                           "C:\\names", "\xf0\x9f\x9a\x80", "\xe4\xb8\xad\xe6\x96\x87", "\\x1b"})
    CHECK(printable(text) == text);
  CHECK(printable("two\nlines\x1b", "\n") == "two\nlines\\x1b");
}

TEST_CASE("an error is one line that a screen holds", "[model][printable]") {
  CHECK(error_line("a: expected b") == "a: expected b");
  CHECK(error_line("two\nlines") == "two\\nlines");
  const std::string line = error_line("file.yaml:1:1: " + std::string(5000, '\1') + ": no name");
  CHECK(line.size() <= 2000);
  CHECK(line.starts_with("file.yaml:1:1: \\x01"));
  CHECK(line.ends_with("\\x01: no name"));
}

TEST_CASE("of any bytes nothing is left that a terminal obeys, and once is enough",
          "[model][printable]") {
  std::mt19937 random(3);
  for (int i = 0; i < 2000; ++i) {
    std::string bytes(random() % 40, ' ');
    for (char& byte : bytes) byte = static_cast<char>(random());
    const std::string text = printable(bytes);
    for (std::size_t at = 0; at < text.size(); at += utf8_length(text, at)) {
      REQUIRE(utf8_length(text, at) > 0);
      const auto byte = static_cast<unsigned char>(text[at]);
      REQUIRE((byte >= 0x20 && byte != 0x7f));
      REQUIRE_FALSE((byte == 0xc2 && static_cast<unsigned char>(text[at + 1]) < 0xa0));
    }
    CHECK(printable(text) == text);
  }
}

}  // namespace
}  // namespace ddpsim
