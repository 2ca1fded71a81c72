#pragma once

#include <functional>
#include <string>

namespace ddpsim {

/// Is there somebody to ask: are stdin and stderr a terminal?
bool can_ask();

/// Asks on stderr, reads a line from stdin, and returns it without the blanks around it; an empty
/// one means `usual`. Asks again, saying why, while `check` throws InputError. Throws InputError
/// where input ends before an answer.
std::string ask(const std::string& question, const std::string& usual,
                const std::function<void(const std::string& answer)>& check);

}  // namespace ddpsim
