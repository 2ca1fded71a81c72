#pragma once

#include <string>
#include <vector>

#include "tools/report/records/record.hpp"
#include "tools/study/comparison.hpp"

namespace ddpsim {

/// For how long a node makes the batches of its ranks (training.input): no step of the scenario is
/// shorter. Zero: they are ready.
Duration least_step(const Scenario& scenario);

/// What a step under `strategy` is predicted from, and the band around it: fields::band_low_ms,
/// band_high_ms and known_from. The ends are nothing where it is not known how far such predictions
/// were off. The band is of what was predicted, the step without its wait for batches, and neither
/// end is below `least`, which the user gave. Where the host's rate is assumed, it is around the
/// steps of all hosts (host_rate.hpp). `without`: the step without communication, and without that
/// wait. `more`: by how much such steps are longer in the long run.
Record band_record(const Knowledge& knowledge, Strategy strategy, const StepMetrics& step,
                   Duration without, Duration least, Duration more = {});

/// "In proportion, steps take: naive 107.12 to 127.35 ms; bucketed, 25 MiB 101.70 to 120.92 ms.":
/// the band of each step, and which of them wait for launches, by which hosts differ more than the
/// band is wide; "" where none is known.
std::string bands_text(const Comparison& run);

/// sentences() of the steps that are compared.
std::string accuracy_sentences(const Comparison& run);

/// Says that there is no band for steps of these names; "" for none. `beside_others`: that how far
/// other steps were off was said before.
std::string no_band_text(const std::vector<std::string>& names, bool beside_others = false);

/// What is to be said of a saving (a share of the step) that is smaller than the band is wide to
/// either side; "" of another, and where no band is known.
std::string saving_text(const Knowledge& knowledge, double saving);

}  // namespace ddpsim
