#pragma once

#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "tools/report/records/record.hpp"

namespace ddpsim {

// Records as JSON: fields become keys, in order, without what is for people alone; nothing becomes
// null. Real numbers keep every bit.

nlohmann::ordered_json json_of(const FieldValue& value);
nlohmann::ordered_json json_of(const Record& record);
/// One object for each row.
nlohmann::ordered_json json_of(const Table& table);
/// The object of one row.
nlohmann::ordered_json json_of(const std::vector<Field>& columns, const TableRow& row);

/// Without line breaks; bytes that are no UTF-8 become U+FFFD.
std::string one_line(const nlohmann::ordered_json& json);

/// The value that json_of() wrote for a field of that kind (no lists or records); none if this is
/// no such value.
std::optional<FieldValue> value_from_json(ValueKind kind, const nlohmann::ordered_json& json);

}  // namespace ddpsim
