#pragma once

namespace ddpsim::golden {

/// Makes a test of each family of the golden files, before Catch runs.
void register_tests();

}  // namespace ddpsim::golden
