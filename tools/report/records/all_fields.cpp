#include "tools/report/records/all_fields.hpp"

#include "tools/report/records/cluster_fields.hpp"
#include "tools/report/records/described_fields.hpp"
#include "tools/report/records/doctor_fields.hpp"
#include "tools/report/records/drawn_fields.hpp"
#include "tools/report/records/hook_fields.hpp"
#include "tools/report/records/memory_fields.hpp"
#include "tools/report/records/plan_fields.hpp"
#include "tools/report/records/schedule_fields.hpp"
#include "tools/report/records/score_fields.hpp"
#include "tools/report/records/shard_fields.hpp"
#include "tools/report/records/steps_fields.hpp"
#include "tools/report/records/sweep_fields.hpp"
#include "tools/report/records/throughput_fields.hpp"
#include "tools/report/records/tune_fields.hpp"
#include "tools/report/records/unit_fields.hpp"
#include "tools/report/records/validate_fields.hpp"
#include "tools/report/records/why_fields.hpp"

namespace ddpsim {

const std::vector<FieldGroup>& all_fields() {
  static const std::vector<FieldGroup> groups{
      {"run", fields::of_run},           {"throughput", fields::of_throughput},
      {"scaling", fields::of_scaling},   {"seeds", fields::of_seeds},
      {"cluster", fields::of_cluster},   {"described", fields::of_description},
      {"buckets", fields::of_bucket},    {"memory", fields::of_memory},
      {"steps", fields::of_steps},       {"kinds of steps", fields::of_kinds},
      {"why", fields::of_why},           {"sweep", fields::of_sweep},
      {"plan", fields::of_plan},         {"tune", fields::of_tune},
      {"score", fields::of_score},       {"validate", fields::of_validate},
      {"schedule", fields::of_schedule}, {"collectives", fields::of_collectives},
      {"hooks-log", fields::of_hooks},   {"doctor", fields::of_doctor},
      {"units", fields::of_unit},        {"shards", fields::of_shards}};
  return groups;
}

}  // namespace ddpsim
