// Settings as lines to paste into a scenario.

#include "tools/report/reports/keys_text.hpp"

#include <catch2/catch.hpp>

namespace ddpsim {

TEST_CASE("settings are lines of their sections, and none is lost", "[tools][keys_text]") {
  CHECK(keys_text({{"cluster.nodes", "4"},
                   {"training.strategy", "fsdp"},
                   {"training.mp_policy", "{param_dtype: bf16, reduce_dtype: fp32}"},
                   {"training.units", "[\"model.layers.*\"]"},
                   {"cluster.nodes", "8"}}) ==
        "cluster:\n"
        "  nodes: 8\n"
        "training:\n"
        "  strategy: fsdp\n"
        "  mp_policy: {param_dtype: bf16, reduce_dtype: fp32}\n"
        "  units: [\"model.layers.*\"]\n");
  // What is said of a section as a whole stays beside its keys, and a bare name becomes its key.
  CHECK(keys_text({{"training.strategy", "fsdp"},
                   {"training", "{strategy: bucketed, pytorch: '1.13'}"},
                   {"cluster", "dgx-h100"},
                   {"cluster.nodes", "2"},
                   {"cluster.inter_node.nics", "2"},
                   {"compare", "[none, fsdp]"}}) ==
        "# in place of the scenario's whole training, cluster\n"
        "training:\n"
        "  strategy: fsdp\n"
        "  pytorch: \"1.13\"\n"
        "cluster:\n"
        "  system: dgx-h100\n"
        "  nodes: 2\n"
        "  inter_node:\n"
        "    nics: 2\n"
        "compare: [none, fsdp]\n");
  CHECK(keys_text({}).empty());
}

}  // namespace ddpsim
