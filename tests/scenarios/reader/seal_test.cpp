#include "scenarios/reader/text/seal.hpp"

#include <catch2/catch.hpp>

#include "scenarios/reader/text/input_error.hpp"

namespace ddpsim {
namespace {

const std::string plain = "format: ddpsim.link/1\na: 12\nb: 3\nend: ddpsim.link/1\n";

std::string refusal(const std::string& content) {
  try {
    check_seal(content, "f.yaml");
  } catch (const InputError& problem) {
    return problem.what();
  }
  return "";
}

TEST_CASE("a seal counts the lines and sums up the bytes", "[scenarios][seal]") {
  // The sum is Python's zlib.crc32(plain.encode()).
  CHECK(sealed(plain) ==
        "format: ddpsim.link/1\na: 12\nb: 3\nend: ddpsim.link/1  # 4 lines, crc32 5fe18e88\n");
  CHECK(sealed(sealed(plain)) == sealed(plain));
  CHECK(sealed("a: 1\n") == "a: 1\n");
  CHECK(refusal(sealed(plain)).empty());
  CHECK(refusal(plain).empty());
}

TEST_CASE("any one change of a sealed file is noticed", "[scenarios][seal]") {
  const std::string whole = sealed(plain);
  for (std::size_t i = 0; i + 1 < whole.size(); ++i) {
    CAPTURE(i);
    std::string changed = whole;
    changed[i] = changed[i] == '7' ? '8' : '7';
    // What is no seal any more, or no last line, is left to the reader of the key `end`.
    const std::size_t end = whole.find("end: "), seal = whole.find("  # ");
    if (i + 1 < end || i > seal + 2) CHECK(refusal(changed) != "");
  }
  std::string other_system;
  for (const char c : whole) other_system += c == '\n' ? "\r\n" : std::string(1, c);
  CHECK(refusal(other_system).empty());
  CHECK(refusal(whole + "c: 4\n") ==
        "f.yaml:4:19: this file is not as ddpsim wrote it: its last line says \"# 4 lines, crc32 "
        "5fe18e88\", and what is here has \"# 5 lines, crc32 " +
            sealed(plain + "c: 4\n").substr(whole.find("crc32 ") + 6, 8) +
            "\"; copy it or make it again, or, if you changed it on purpose, remove the comment of "
            "that line");
}

TEST_CASE("what a program wrote without a seal is noted, and nothing else", "[scenarios][seal]") {
  CHECK(unsealed_note(plain, "f.yaml").empty());
  CHECK(unsealed_note("written_by: x\n" + plain, "f.yaml").starts_with("f.yaml has no checksum"));
  CHECK(unsealed_note(sealed("written_by: x\n" + plain), "f.yaml").empty());
  CHECK_FALSE(unsealed_note("end: ddpsim.calibration/1\n", "f.yaml").empty());
  CHECK(unsealed_note("a: 1\n", "f.yaml").empty());
  CHECK(is_end_line("end: ddpsim.link/1  # 4 lines, crc32 0", "ddpsim.link/1"));
  CHECK(is_end_line("end: ddpsim.link/1", "ddpsim.link/1"));
  CHECK_FALSE(is_end_line("end: ddpsim.link/12", "ddpsim.link/1"));
}

}  // namespace
}  // namespace ddpsim
