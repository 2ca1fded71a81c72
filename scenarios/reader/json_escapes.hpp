#pragma once

#include <string>

namespace ddpsim {

/// The same text, in which pairs of escapes that JSON writes a character beyond U+FFFF with are the
/// one escape that YAML has for it:
///
///     "\ud83d\ude00"  becomes  "\U0001F600"
///
/// All other text stays as it is; half of a pair too, which is an error to whoever reads on. What
/// follows on the line moves two columns to the left.
/// Source: RFC 8259, section 7; YAML 1.2.2, 5.7.
std::string with_joined_surrogates(const std::string& text);

}  // namespace ddpsim
