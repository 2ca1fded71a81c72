// Every value that a command writes is described: `ddpsim list results` has it.

#include <set>

#include <catch2/catch.hpp>

#include "tests/tools/jobs.hpp"
#include "tools/report/records/all_fields.hpp"
#include "tools/report/writers/csv.hpp"
#include "tools/report/writers/text_writer.hpp"

namespace ddpsim {
namespace {

/// The names described for these groups.
std::set<std::string> described(const std::set<std::string_view>& groups) {
  std::set<std::string> names;
  for (const FieldGroup& group : all_fields())
    if (groups.contains(group.name))
      for (const Field* field : group.fields) names.insert(std::string(field->name));
  return names;
}

/// Every key of `json`, in it and in what is in it; those of "set" are the user's.
void collect(const Json& json, std::set<std::string>& keys) {
  if (json.is_array())
    for (const Json& each : json) collect(each, keys);
  if (json.is_object())
    for (const auto& [key, value] : json.items()) {
      keys.insert(key);
      if (key != "set") collect(value, keys);
    }
}

void check_described(const std::vector<std::string>& arguments,
                     const std::set<std::string_view>& groups) {
  const Outcome outcome = ddpsim(arguments);
  CAPTURE(arguments, outcome.err);
  REQUIRE(outcome.code == 0);
  std::set<std::string> keys;
  collect(outcome.json(), keys);
  CHECK(keys.size() > 5);
  const std::set<std::string> names = described(groups);
  for (const std::string& key : keys) {
    CAPTURE(key);
    CHECK(names.contains(key));
    const Outcome explained = ddpsim({"explain", key});
    CHECK(explained.code == 0);
    CHECK_THAT(explained.out, Catch::Contains(key + ", in JSON or CSV ("));
  }
}

TEST_CASE("every field says what it means in a sentence", "[tools][report][fields]") {
  for (const FieldGroup& group : all_fields()) {
    std::set<std::string_view> names;
    for (const Field* field : group.fields) {
      CAPTURE(group.name, field->name);
      CHECK(names.insert(field->name).second);
      CHECK(field->hint.size() > 10);
      CHECK(field->hint.ends_with('.'));
      CHECK(field->name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_0123456789") ==
            std::string_view::npos);
      // Its pattern takes a number.
      if (field->kind == ValueKind::real) CHECK(!cell_text(*field, 0.5).empty());
      if (field->name.ends_with("_ms") && field->kind == ValueKind::real &&
          group.name != "validate")  // whose errors are fractions under the figures' names
        CHECK(field->unit == "ms");
      if (field->name.ends_with("_bytes")) CHECK(field->unit == "bytes");
    }
  }
}

TEST_CASE("every key of a command's JSON is described", "[tools][report][fields]") {
  const std::string hooked = shipped("seeds/comm-hooks-fast-link.yaml");
  check_described(
      {"run", first_example, "--json", "-", "--why", "--steps", "3", "--run-ahead",
       "--ddp-statistics"},
      {"run", "throughput", "cluster", "memory", "buckets", "steps", "kinds of steps", "why"});
  check_described({"run", hooked, "--json", "-", "--vary", "training.comm_hook=noop,allreduce"},
                  {"run", "throughput", "cluster", "memory", "buckets"});
  check_described({"plan", first_example, "--json", "-"},
                  {"plan", "run", "throughput", "cluster", "memory"});
  check_described({"score", shipped("seeds/cs336-xl-2xh100.yaml"), "--json", "-"}, {"score"});
  check_described(
      {"tune", shipped("examples/two-workstations.yaml"), "--json", "-", "--uncertainty", "10%"},
      {"tune", "cluster", "memory"});
  check_described({"schedule", first_example, "--json", "-", "--steps", "3"},
                  {"schedule", "collectives", "cluster", "memory"});
}

TEST_CASE("every key of validate's JSON is described", "[tools][validate]") {
  const Scratch scratch;
  const std::string scenario = scratch.write("small.yaml", small_mlp).string();
  check_described({"validate", scenario, "--backend", "threads", "--ranks", "2", "--steps", "1",
                   "--warm-up", "0", "--repeats", "1", "--set", "compare=[bucketed]", "--vary",
                   "training.gradient_as_bucket_view=false,true", "--json", "-"},
                  {"run", "throughput", "cluster", "memory", "buckets", "validate"});
}

TEST_CASE("every column of a command's CSV is described", "[tools][report][fields]") {
  const auto check = [](const std::vector<std::string>& arguments,
                        const std::set<std::string_view>& groups) {
    const Outcome outcome = ddpsim(arguments);
    CAPTURE(arguments, outcome.err);
    REQUIRE(outcome.code == 0);
    CsvRecord header;
    REQUIRE(CsvReader(outcome.out).next(header));
    const std::set<std::string> names = described(groups);
    for (const std::string& column : header.fields) {
      CAPTURE(column);
      CHECK((names.contains(column) || column.find('.') != std::string::npos));
    }
  };
  check({"run", first_example, "--csv", "-"}, {"run", "throughput", "memory"});
  check({"run", first_example, "--csv", "-", "--vary", "training.bucket_cap=1MiB,2MiB"},
        {"run", "throughput", "memory", "sweep"});
  check({"sweep", first_example, "--csv", "-", "--vary", "training.bucket_cap=1MiB,2MiB"},
        {"run", "throughput", "memory", "sweep"});
  check({"plan", first_example, "--csv", "-"}, {"plan", "run", "throughput", "cluster", "memory"});
  check({"score", shipped("seeds/cs336-xl-2xh100.yaml"), "--csv", "-"}, {"score"});
  check({"tune", shipped("examples/two-workstations.yaml"), "--csv", "-"}, {"tune"});
  check({"run", first_example, "--hooks-log", "-"}, {"hooks-log"});
}

TEST_CASE("list results shows every field with its unit and which way is better",
          "[tools][report][fields]") {
  const Json rows = ddpsim({"list", "results", "--json", "-"}).json();
  std::size_t fields = 0;
  for (const FieldGroup& group : all_fields()) fields += group.fields.size();
  CHECK(rows.size() == fields);
  for (const Json& row : rows)
    if (row["value"] == "overlap_ratio" && row["of"] == "run") CHECK(row["better"] == "high");
}

}  // namespace
}  // namespace ddpsim
