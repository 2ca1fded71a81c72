#pragma once

#include <string>
#include <string_view>

namespace ddpsim {

/// A text that descriptions tell people, there as long as the program runs: a literal, or one that
/// was put together and is kept for good. Nothing is copied or freed, so that hundreds of them
/// compile to little.
class Told : public std::string_view {
 public:
  constexpr Told() = default;
  constexpr Told(const char* literal) : std::string_view(literal) {}
  Told(std::string_view made);
  Told(const std::string& made) : Told(std::string_view(made)) {}

  operator std::string() const { return std::string(data(), size()); }
};

}  // namespace ddpsim
