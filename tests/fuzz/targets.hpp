#pragma once

#include <array>
#include <string_view>

namespace ddpsim::fuzz {

// A target gives any bytes to one reader of the program and holds what comes back against what a
// user may expect: what is read is written and read again as the same, and what is refused is
// refused as `check_refusal` says. A target that finds something else ends the program.

void scenario(std::string_view input);
void profile(std::string_view input);
void link(std::string_view input);
void description(std::string_view input);
void calibration(std::string_view input);
void trace(std::string_view input);
void nccl_tests(std::string_view input);
void sweep(std::string_view input);
void flags(std::string_view input);
void explore(std::string_view input);
void http(std::string_view input);
void rendezvous(std::string_view input);
void redis(std::string_view input);
void handshake(std::string_view input);

struct Target {
  std::string_view name;  ///< also of the folder of its corpus
  void (*run)(std::string_view input);
};

inline constexpr std::array all_targets{Target{"scenario", scenario},
                                        Target{"profile", profile},
                                        Target{"link", link},
                                        Target{"description", description},
                                        Target{"calibration", calibration},
                                        Target{"trace", trace},
                                        Target{"nccl_tests", nccl_tests},
                                        Target{"sweep", sweep},
                                        Target{"flags", flags},
                                        Target{"explore", explore},
                                        Target{"http", http},
                                        Target{"rendezvous", rendezvous},
                                        Target{"redis", redis},
                                        Target{"handshake", handshake}};

}  // namespace ddpsim::fuzz
