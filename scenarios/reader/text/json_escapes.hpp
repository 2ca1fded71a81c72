#pragma once

#include <string>

namespace ddpsim {

/// The text with other escapes: JSON writes a character beyond U+FFFF as a pair of escapes, for
/// which YAML has one:
///
///     "\ud83d\ude00"  becomes  "\U0001F600"
///
/// All other text stays as it is; half of a pair too, which is an error to whoever reads on. What
/// follows on the line moves two columns to the left.
/// Source: RFC 8259, section 7; YAML 1.2.2, 5.7.
std::string with_joined_surrogates(const std::string& text);

}  // namespace ddpsim
