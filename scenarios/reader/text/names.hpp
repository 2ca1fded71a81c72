#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ddpsim {

// Which of several known names somebody means who writes "AdamW" or "A100".

/// The position of `given` among `names`: exactly so if it is there, else regardless of case.
std::optional<std::size_t> position_of(std::string_view given,
                                       const std::vector<std::string>& names);

/// The one of `names` that `given` spells otherwise: "gpt2" for "GPT-2", where letters of another
/// case, hyphens and underscores make no difference. "" where none does, or several.
std::string other_spelling_of(std::string_view given, const std::vector<std::string>& names);

/// The members of the family `given`, regardless of case: names that begin with it and go on with
/// "-" or, behind a letter, with a digit. The family "a100" has a100-40 and a100-80, "nvlink" has
/// nvlink2 to nvlink5.
std::vector<std::string> family_of(std::string_view given, const std::vector<std::string>& names);

}  // namespace ddpsim
