#include "tools/report/all_fields.hpp"

#include "tools/report/cluster_fields.hpp"
#include "tools/report/described_fields.hpp"
#include "tools/report/doctor_fields.hpp"
#include "tools/report/hook_fields.hpp"
#include "tools/report/memory_fields.hpp"
#include "tools/report/schedule_fields.hpp"
#include "tools/report/score_fields.hpp"
#include "tools/report/steps_fields.hpp"
#include "tools/report/sweep_fields.hpp"
#include "tools/report/throughput_fields.hpp"
#include "tools/report/tune_fields.hpp"
#include "tools/report/validate_fields.hpp"
#include "tools/report/why_fields.hpp"

namespace ddpsim {

const std::vector<FieldGroup>& all_fields() {
  static const std::vector<FieldGroup> groups{{"run", fields::of_run},
                                              {"throughput", fields::of_throughput},
                                              {"scaling", fields::of_scaling},
                                              {"cluster", fields::of_cluster},
                                              {"described", fields::of_description},
                                              {"buckets", fields::of_bucket},
                                              {"memory", fields::of_memory},
                                              {"steps", fields::of_steps},
                                              {"kinds of steps", fields::of_kinds},
                                              {"why", fields::of_why},
                                              {"sweep", fields::of_sweep},
                                              {"tune", fields::of_tune},
                                              {"score", fields::of_score},
                                              {"validate", fields::of_validate},
                                              {"schedule", fields::of_schedule},
                                              {"collectives", fields::of_collectives},
                                              {"hooks-log", fields::of_hooks},
                                              {"doctor", fields::of_doctor}};
  return groups;
}

}  // namespace ddpsim
